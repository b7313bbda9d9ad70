# 200 servers in one Prometheus: recorded scrapes of a real server on small and on huge pages, with
# different names and states. The recording rules and the dashboard of a fleet return the sums of
# the scrapes, and so do the same rules on a federating Prometheus.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use HugeInfo::Tools;
use HugeInfo::Exporters;
use HugeInfo::Metrics;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use JSON::PP ();
use List::Util qw(min sum0 uniq);
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $servers = 200;
my $interval = 5;
my $rules = source('target/monitoring/prometheus/rules.yml');
my $dir = PostgreSQL::Test::Utils::tempdir();

sub recorded
{
	my ($node) = @_;
	my $exporter = postgres_exporter($node, source('target/monitoring/postgres_exporter.yml'));
	my @lines = grep { /hugeinfo/ } split /\n/, $exporter->text;
	$exporter->stop;
	return join '', map { "$_\n" } grep { !/^# / } @lines;
}

# Returns the value of a series of a scrape.
sub value { my ($scrape, $series) = @_; return $scrape =~ /^\Q$series\E(?:\{[^}]*\})? (\S+)$/m ? $1 : die "no $series\n" }
sub with { my ($scrape, $series, $value) = @_; return $scrape =~ s/^(\Q$series\E(?:\{[^}]*\})? )\S+$/$1$value/mgr }

# Name, labels and scrape of each server. Every fifth is on small pages, and in every third cluster
# one of two. Half of the former have huge_pages = off. Two of ten are on one host, and the second
# would use some of the idle pages.
sub fleet
{
	my ($small, $huge) = @_;
	return map {
		my $on_small = $_ % 5 == 0 || $_ % 6 == 1;
		my $scrape = $on_small ? $small : $huge;
		$scrape =~ s/^(pg_hugeinfo_setting_info\{[^}]*\bhuge_pages=")[^"]*/${1}off/m or die "no setting\n" if $_ % 10 == 0;
		$scrape = with($scrape, 'pg_hugeinfo_fits_after_restart', 0) if $_ % 7 == 0;
		# some have idle pages, and all have different page tables
		my $idle = $_ % 10 == 3 ? 1000 + $_ : $_ % 10 == 4 ? 900 + $_ : 0;
		$scrape =~ s/^(pg_hugeinfo_pool_idle_pages\{[^}]*page_size="[^"]*"[^}]*\} )\S+$/$1$idle/m;
		$scrape =~ s/^(pg_hugeinfo_processes_page_table_bytes\{[^}]*\} )(\S+)$/$1 . $2 * $_/mge;
		my $name = sprintf 'db%03d', $_;
		my $host = sprintf 'db%03d.internal', $_ % 10 == 4 ? $_ - 1 : $_;
		{ name => $name, host => $host, labels => { instance => "$host:" . (9000 + $_), cluster => sprintf('c%03d', $_ / 2), job => $_ % 4 ? 'here' : 'there' }, scrape => $scrape };
	} 0 .. $servers - 1;
}

# Writes prometheus.yml as JSON, which is valid YAML.
sub configuration
{
	my (@scrapes) = @_;
	return JSON::PP->new->canonical->encode({
			global => { map { $_ => "${interval}s" } qw(scrape_interval scrape_timeout evaluation_interval) },
			rule_files => [$rules],
			scrape_configs => \@scrapes });
}

# Returns values by job or by instance.
sub by { my ($label, $prometheus, $expression) = @_; return { map { $_->{$label} => $_->{value} + 0 } $prometheus->asked($expression) } }

sub by_job
{
	my ($code, @fleet) = @_;
	return { map { my $job = $_; $job => 0 + $code->(grep { $_->{labels}{job} eq $job } @fleet) } uniq map { $_->{labels}{job} } @fleet };
}

my $is_small = sub { return value($_[0]{scrape}, 'pg_hugeinfo_in_use') == 0 };
my $fell_back = sub { return $is_small->($_[0]) && $_[0]{scrape} !~ /^pg_hugeinfo_setting_info\{[^}]*\bhuge_pages="off"/m };
my $is_lost = sub { return !$is_small->($_[0]) && value($_[0]{scrape}, 'pg_hugeinfo_fits_after_restart') == 0 };

sub idle_bytes
{
	my ($scrape) = @_;
	my %size = $scrape =~ /^pg_hugeinfo_pool_page_size_bytes\{[^}]*page_size="([^"]*)"[^}]*\} (\S+)$/mg;
	my %idle = $scrape =~ /^pg_hugeinfo_pool_idle_pages\{[^}]*page_size="([^"]*)"[^}]*\} (\S+)$/mg;
	return sum0(map { $size{$_} * $idle{$_} } keys %idle);
}

sub compare_rules
{
	my ($prometheus, $name, @fleet) = @_;
	is_deeply(by('job', $prometheus, 'job:pg_hugeinfo_small_page_servers:count'), by_job(sub { scalar grep { $is_small->($_) } @_ }, @fleet),
		"$name: servers on small pages");
	is_deeply(by('job', $prometheus, 'job:pg_hugeinfo_lost_at_restart:count'), by_job(sub { scalar grep { $is_lost->($_) } @_ }, @fleet),
		"$name: servers that a restart would lose");
	my %share = %{ by('job', $prometheus, 'job:pg_hugeinfo_in_use:avg') };
	my $expected = by_job(sub { (grep { !$is_small->($_) } @_) / @_ }, @fleet);
	is_deeply({ map { $_ => sprintf '%.9f', $share{$_} } keys %share }, { map { $_ => sprintf '%.9f', $expected->{$_} } keys %$expected }, "$name: share on huge pages");
	is_deeply(by('instance', $prometheus, 'instance:pg_hugeinfo_pool_idle_bytes:sum'), { map { $_->{labels}{instance} => idle_bytes($_->{scrape}) } @fleet },
		"$name: idle bytes of each server");
	is_deeply(by('instance', $prometheus, 'instance:pg_hugeinfo_processes_page_table_bytes:sum'),
		{ map { $_->{labels}{instance} => sum0($_->{scrape} =~ /^pg_hugeinfo_processes_page_table_bytes\{[^}]*\} (\S+)$/mg) } @fleet }, "$name: page tables of each server");
	return;
}

# Clusters with servers on small and on huge pages, without those that have huge_pages = off.
sub uneven
{
	my (@fleet) = @_;
	my %seen;
	for (@fleet)
	{
		$seen{ $_->{labels}{cluster} }{small} = 1 if $fell_back->($_);
		$seen{ $_->{labels}{cluster} }{huge} = 1 if !$is_small->($_);
	}
	return grep { keys %{ $seen{$_} } == 2 } keys %seen;
}

# Every expression of the fleet's dashboard has a result, and the sums are those of the scrapes.
sub compare_dashboard
{
	my ($prometheus, $name, @fleet) = @_;
	my $dashboard = JSON::PP->new->decode(slurp_file(source('target/monitoring/grafana/fleet.json')));
	my @panels = map { ($_, @{ $_->{panels} // [] }) } @{ $dashboard->{panels} };
	my @expressions = map { map { $_->{expr} =~ s/\$(?:job|instance)\b/.+/gr } @{ $_->{targets} // [] } } @panels;
	my %answer = map { $_ => [ $prometheus->asked($_) ] } @expressions;
	is_deeply([ grep { !@{ $answer{$_} } } @expressions ], [], "$name: the dashboard has " . @expressions . ' expressions, and each has a result');
	my $sums = sub { my ($pattern) = @_; return [ map { $answer{$_}[0]{value} + 0 } grep { $_ =~ $pattern } @expressions ] };
	is_deeply($sums->(qr/^count\(pg_hugeinfo_in_use/), [ scalar @fleet ], "$name: the dashboard counts servers");
	is_deeply($sums->(qr/^sum\(\(pg_hugeinfo_in_use\{[^}]*\} == bool 0/), [ scalar grep { $fell_back->($_) } @fleet ], "$name: the dashboard counts those that fell back");
	is_deeply($sums->(qr/^sum\(\(pg_hugeinfo_in_use\{[^}]*\} == bool 1/), [ scalar grep { $is_lost->($_) } @fleet ], "$name: the dashboard counts those that a restart would lose");
	my %idle;
	push @{ $idle{ $_->{host} } }, idle_bytes($_->{scrape}) for @fleet;
	is_deeply($sums->(qr/^sum\(min .*pg_hugeinfo_pool_idle_pages/), [ sum0(map { min(@$_) } values %idle) ], "$name: the dashboard adds up idle memory, each host once");
	cmp_ok(keys %idle, '<', @fleet, "$name: some servers share a host");
	return;
}

# Waits until all servers have been scraped, and all rules have been evaluated afterwards: the first
# one twice.
sub wait_for_rules
{
	my ($prometheus) = @_;
	my $since;
	until_true(sub { my ($now) = $prometheus->asked("vector(time()) and on () (count(pg_hugeinfo_in_use) == $servers)"); return $since = $now && $now->{value} })
	  or die "not all servers have been scraped\n";
	until_true(sub { my ($last) = $prometheus->asked('min(timestamp(job:pg_hugeinfo_small_page_servers:count))'); return $last && $last->{value} > $since + $interval })
	  or die "the rules are not evaluated\n";
	return;
}

# Figures for docs/fleet.md.
sub measure
{
	my ($prometheus, $name) = @_;
	my $is = sub { my ($metric) = @_; return $prometheus->text =~ /^$metric(?:\{.*\})? (\S+)$/m ? $1 : die "no $metric\n" };
	my $series = (map { $_->{value} } $prometheus->asked('count({__name__=~"pg_hugeinfo_.*"})'))[0];
	my $answer = JSON::PP->new->decode($prometheus->get('/api/v1/rules')->{content});
	my ($slowest) = sort { $b->{evaluationTime} <=> $a->{evaluationTime} } map { @{ $_->{rules} } } @{ $answer->{data}{groups} };
	note(sprintf '%s: the slowest rule is %s, %.1f ms', $name, $slowest->{name}, 1000 * $slowest->{evaluationTime});
	note(sprintf '%s: rules in %.1f ms; %d series of servers, %d in the head; %.0f MB of memory', $name,
		1000 * $is->('prometheus_rule_group_last_duration_seconds'), $series, $is->('prometheus_tsdb_head_series'),
		$is->('process_resident_memory_bytes') / (1 << 20));
	cmp_ok($series / $servers, '<=', 250, "$name: series of a server");
	return;
}

SKIP:
{
	my $name = "$servers servers";
	needs_tools($name, qw(prometheus prometheus-postgres-exporter python3));
	needs_host($name);

	my $node = new_server('recorded', huge_pages => 'try');
	monitored($node);
	my $need = required_pages($node, $kb);
	$node->stop;
	pools_of_one_size($kb, 0);
	$node->start;
	my $small = recorded($node);
	$node->stop;
	pools_of_one_size($kb, $need);
	$node->start;
	my $huge = recorded($node);
	is_deeply([ map { value($_, 'pg_hugeinfo_in_use') } $small, $huge ], [ 0, 1 ], "$name: recorded on small and on huge pages");
	my @fleet = fleet($small, $huge);
	my $page = 'metrics.txt';
	for (@fleet)
	{
		mkdir "$dir/$_->{name}" or die "$dir/$_->{name}: $!\n";
		append_to_file("$dir/$_->{name}/$page", $_->{scrape});
	}

	# Each path is a server. Prometheus 3 needs a fallback format, because the files have no type.
	my $web = started("/$fleet[0]{name}/$page", sub { my ($address) = @_; my ($host, $port) = split /:/, $address;
			return ['python3', '-m', 'http.server', '--bind', $host, '--directory', $dir, $port] });
	my $prometheus = prometheus(configuration({
				job_name => 'fleet',
				static_configs => [ map { { targets => [ $web->address ], labels => { %{ $_->{labels} }, __metrics_path__ => "/$_->{name}/$page" } } } @fleet ] }));
	wait_for_rules($prometheus);
	compare_rules($prometheus, $name, @fleet);
	is_deeply({ map { $_->{cluster} => 1 } $prometheus->asked('ALERTS{alertname="PostgresHugePagesClusterUneven"}') }, { map { $_ => 1 } uneven(@fleet) },
		"$name: uneven clusters");
	compare_dashboard($prometheus, $name, @fleet);
	measure($prometheus, $name);

	# The unchanged rules, on a Prometheus that gets the series from the first one.
	my $central = prometheus(configuration({
				job_name => 'federate', honor_labels => JSON::PP::true, metrics_path => '/federate', params => { 'match[]' => ['{__name__=~"pg_hugeinfo_.*|up"}'] },
				static_configs => [ { targets => [ $prometheus->address ] } ] }));
	wait_for_rules($central);
	compare_rules($central, "$name, federated", @fleet);
	measure($central, "$name, federated");
	$_->stop for $central, $prometheus, $web;
	$node->stop;
}

done_testing;
