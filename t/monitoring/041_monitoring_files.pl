# Tests the generated files without a server: tools accept them, each alert fires and stays silent
# as intended, and each format has all metrics.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use HugeInfo::Tools;
use HugeInfo::Metrics;
use HugeInfo::Host;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use JSON::PP ();
use Test::More;

my @queries = queries();
my %optional = map { $_->{collector} => 1 } grep { $_->{collector} eq 'findings' } @queries;
my $directory = PostgreSQL::Test::Utils::tempdir();

sub write_file { my ($name, $text) = @_; append_to_file("$directory/$name", $text); return "$directory/$name" }

# Returns the exit status and the output of a program.
sub said { my (@command) = @_; my $out = ''; IPC::Run::run(\@command, '<', '/dev/null', '>', \$out, '2>&1'); return ($? >> 8, $out) }

# Rules: the tests pass for the file of each prefix, and fail for broken files.
my $tests = slurp_file(source('monitoring/tests/alerts.yml'));
my %rules = map { $_ => slurp_file(source("target/monitoring/prometheus/$_.yml")) } qw(rules rules-cnpg);
my @alerts = $rules{rules} =~ /- alert: (\w+)/g;
cmp_ok(scalar @alerts, '>', 10, 'there are alerts');
{
	my %times = (immediately => '0s', map { ("$_ min" => "${_}m", "$_ h" => "${_}h") } 1 .. 60);
	my @documented = map { my ($name, $for, $severity) = /^\| `(Postgres\w+)` \|.*\| ([^|]+) \| (\w+) \|$/; $name ? "$name $times{$for} $severity" : () }
	  split /\n/, slurp_file(source('docs/monitoring.md'));
	my @generated;
	push @generated, "$1 $2 $3" while $rules{rules} =~ /- alert: (\w+)\n.*?for: (\w+)\n.*?severity: (\w+)/sg;
	is_deeply(\@documented, \@generated, 'the page has all alerts, in the same order');
}
SKIP:
{
	needs_tools('rules', 'promtool');
	for ([ 'rules', '' ], [ 'rules-cnpg', 'cnpg_' ])
	{
		my ($name, $exporter) = @$_;
		my $file = source("target/monitoring/prometheus/$name.yml");
		my ($status, $out) = said(tool('promtool'), 'check', 'rules', $file);
		is($status, 0, "$name: promtool check rules") or diag($out);
		my $for_it = $tests =~ s/\bpg_hugeinfo/${exporter}pg_hugeinfo/gr =~ s{rule_files: .*}{rule_files: [$file]}r;
		($status, $out) = said(tool('promtool'), 'test', 'rules', write_file("$name.yml", $for_it));
		is($status, 0, "$name: promtool test rules") or diag($out);
	}
	# the tests detect each missing alert, and each that always fires
	my %broken = (gone => $rules{rules} =~ s/      - alert: .*//sr, always => $rules{rules} =~ s/expr: \|\n(?: {10}.*\n)+ +for: .*/expr: vector(1)/gr);
	for my $how (sort keys %broken)
	{
		my $file = write_file("$how.yml", $broken{$how});
		my (undef, $out) = said(tool('promtool'), 'test', 'rules', write_file("$how-test.yml", $tests =~ s{rule_files: .*}{rule_files: [$file]}r));
		my $expected = $how eq 'gone' ? qr/\[\n/ : qr/\[\],/;
		my %failed = map { $_ => 1 } $out =~ /alertname: *(\w+), time: \w+, *\n\s*exp:$expected/g;
		is_deeply([ grep { !$failed{$_} } @alerts ], [], "the tests see each alert that is $how");
	}
}

SKIP:
{
	needs_tools('YAML', 'python3');
	my $yaml = sub {
		my ($text) = @_;
		my ($out, $error) = ('', '');
		IPC::Run::run([ 'python3', '-c', 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)' ], '<', \$text, '>', \$out, '2>', \$error)
		  or die "not YAML: $error\n";
		return JSON::PP->new->allow_nonref->decode($out);
	};
	my $file = sub { return $yaml->(slurp_file(source("target/monitoring/$_[0]"))) };

	# name of a metric => its type and SQL, in the list and in a file
	my $expected = sub {
		my ($optional, $type) = @_;
		return { map { my $query = $_; map { $_->{full_name} => [ $type // $_->{type}, $query->{labels}, $query->{sql} ] } @{ $query->{metrics} } }
			  grep { !$optional{ $_->{collector} } == !$optional } @queries };
	};
	my $exporter_says = sub {
		my ($queries, @allowed) = @_;
		my %found;
		for my $namespace (keys %$queries)
		{
			my $query = $queries->{$namespace};
			is_deeply([ grep { my $key = $_; !grep { $_ eq $key } @allowed } keys %$query ], [], "$namespace: only keys that the tool supports");
			my @columns = map { my ($name) = keys %$_; [ $name, $_->{$name}{usage}, $_->{$name}{description} ] } @{ $query->{metrics} };
			my @labels = map { $_->[0] } grep { $_->[1] eq 'LABEL' } @columns;
			$found{"${namespace}_$_->[0]"} = [ lc $_->[1], \@labels, $query->{query} =~ s/\n\z//r ] for grep { $_->[1] ne 'LABEL' } @columns;
		}
		return \%found;
	};
	for my $optional (0, 1)
	{
		my $suffix = $optional ? '_findings' : '';
		is_deeply($exporter_says->($file->("postgres_exporter$suffix.yml"), qw(master cache_seconds query metrics)),
			$expected->($optional), "postgres_exporter$suffix: every metric");

		my $map = $file->("cloudnativepg$suffix.yml");
		is("$map->{apiVersion} $map->{kind}", 'v1 ConfigMap', "CloudNativePG$suffix: version and kind");
		ok(exists $map->{metadata}{labels}{'cnpg.io/reload'}, "CloudNativePG$suffix: is reloaded when it changes");
		my $queries = $yaml->($map->{data}{queries});
		is_deeply($exporter_says->($queries, qw(target_databases predicate_query query metrics)), $expected->($optional), "CloudNativePG$suffix: every metric");
		is_deeply([ grep { "@{$_->{target_databases}}" ne '*' || $_->{predicate_query} !~ /^SELECT EXISTS/ } values %$queries ],
			[], "CloudNativePG$suffix: only in databases with the extension");

		my %justwatch;
		my $jobs = slurp_file(source("target/monitoring/justwatch_sql_exporter$suffix.yml"));
		for my $job (@{ $yaml->($optional ? "jobs:\n$jobs" : $jobs)->{jobs} })
		{
			for my $query (@{ $job->{queries} })
			{
				$justwatch{"$query->{name}_$_"} = [ 'gauge', $query->{labels} // [], $query->{query} =~ s/\n\z//r ] for @{ $query->{values} };
			}
		}
		is_deeply(\%justwatch, $expected->($optional, 'gauge'), "justwatch$suffix: every metric");
	}
}

unlike(slurp_file(source('target/monitoring/zabbix/template.yaml')), qr/\{\{/, 'zabbix: nothing of Prometheus is left');

# Requirements of a panel.
for my $name (qw(server fleet server-cnpg fleet-cnpg))
{
	my $dashboard = JSON::PP->new->decode(slurp_file(source("target/monitoring/grafana/$name.json")));
	my @panels = grep { $_->{type} ne 'row' } @{ $dashboard->{panels} };
	is_deeply([ map { $_->{title} } grep { !$_->{description} || !$_->{fieldConfig}{defaults}{unit} } @panels ], [], "$name: unit and description of each panel");
	for my $panel (grep { $_->{type} eq 'table' } @panels)
	{
		my %options = map { $_->{id} => $_->{options} } @{ $panel->{transformations} };
		my $titles = $options{organize}{renameByName};
		my @columns = sort @{ $options{filterFieldsByName}{include}{names} };
		my $table = "$name, $panel->{title}";
		is_deeply([ sort keys %$titles ], \@columns, "$table: each column has a title");
		is_deeply([ grep { /^Value$|\{\{|\$/ } values %$titles ], [], "$table: the titles are words");
		next if $panel->{title} ne 'Needs attention now';
		is_deeply([ sort values %$titles ], [qw(check code server status)], "$table: the columns");
	}
	my %at;
	for my $panel (@{ $dashboard->{panels} })
	{
		my ($x, $y, $w, $h) = @{ $panel->{gridPos} }{qw(x y w h)};
		for my $column ($x .. $x + $w - 1) { $at{"$column,$_"}++ for $y .. $y + $h - 1 }
	}
	is_deeply([ grep { $at{$_} > 1 || /^(\d+)/ && $1 > 23 } keys %at ], [], "$name: no panels overlap");
	is_deeply([ map { $_->{name} } @{ $dashboard->{templating}{list} } ], [qw(datasource job instance)], "$name: the variables");
}

done_testing;
