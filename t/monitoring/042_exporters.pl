# Debian's postgres_exporter and sql_exporter, as pg_monitor, on a server on small and on huge
# pages: every metric arrives with the value that SQL gives, as Prometheus wants it, and
# CloudNativePG's queries run as it runs them.
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
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
# Exporters keep sessions: of these there are several, one after the other.
my $node = new_server('exporters', max_connections => 60);
monitored($node);
my @queries = grep { $_->{collector} ne 'findings' } queries();
my @findings = grep { $_->{collector} eq 'findings' } queries();

# All that SQL says now.
sub all_samples { my ($session, @asked) = @_; return { map { %{ samples_of($session, $_) } } @asked } }

# Checks that each series lies between the SQL results before and after. Memory and faults change
# all the time, so each series has to fit only once.
sub compare_samples
{
	my ($session, $scrape, $name, @asked) = @_;
	my @wrong;
	until_true(sub {
		my $before = all_samples($session, @asked);
		my $seen = $scrape->();
		my $after = all_samples($session, @asked);
		my %expected = (%$before, %$after);
		@wrong = map { "$_: not there" } grep { !exists $seen->{$_} } keys %expected;
		push @wrong, map { "$_: nobody asked for it" } grep { !exists $expected{$_} } keys %$seen;
		for my $series (grep { exists $before->{$_} && exists $after->{$_} } keys %$seen)
		{
			my ($low, $high) = sort { $a <=> $b } $before->{$series}, $after->{$series};
			# who asks has more memory than who has asked
			($low, $high) = ($low - (1 << 20), $high + (1 << 20))
			  if $series =~ /_(?:rss_anon|page_table|page_table_max)_bytes\{backend_type="client backend"|_saving_bytes\{/;
			# the process that touched most of the segment may be the one who asks, too
			($low, $high) = (1, 2 * $high) if $series =~ /_numa_segment_pages\{/ && $low > 0;
			push @wrong, "$series: $seen->{$series}, but SQL says $low to $high" if $seen->{$series} < $low || $seen->{$series} > $high;
		}
		return !@wrong;
	});
	is(join("\n", sort @wrong), '', "$name: every metric as SQL says it");
	return;
}

sub linted
{
	my ($text, $name) = @_;
	my $out = '';
	IPC::Run::run([ tool('promtool'), 'check', 'metrics' ], '<', \$text, '>', \$out, '2>&1');
	is(join("\n", grep { /hugeinfo/ } split /\n/, $out), '', "$name: promtool check metrics");
	return;
}

sub compare_exporters
{
	my ($where) = @_;
	my $session = watch($node);
	SKIP:
	{
		my $name = "postgres_exporter, $where";
		needs_tools($name, qw(prometheus-postgres-exporter promtool));
		my $exporter = postgres_exporter($node, edited('postgres_exporter.yml', [ qr/  cache_seconds: \d+\n/, '' ]));
		compare_samples($session, sub { $exporter->samples('pg_hugeinfo', 'server') }, $name, @queries);
		linted($exporter->text, $name);
		# as it is, once: what is asked less often is kept
		my $kept = postgres_exporter($node, source('target/monitoring/postgres_exporter.yml'));
		my @first = map { $kept->samples('pg_hugeinfo_processes_minor_faults', 'server') } 1 .. 2;
		is_deeply($first[1], $first[0], "$name: asks for processes once a minute");
		is_deeply([ sort keys %{ $kept->samples('pg_hugeinfo', 'server') } ], [ sort keys %{ $exporter->samples('pg_hugeinfo', 'server') } ], "$name: the same series");
		# both files in one
		my $more = edited('postgres_exporter.yml', [ qr/  cache_seconds: \d+\n/, '' ]);
		append_to_file($more, slurp_file(edited('postgres_exporter_findings.yml', [ qr/  cache_seconds: \d+\n/, '' ])));
		my $all = postgres_exporter($node, $more);
		compare_samples($session, sub { $all->samples('pg_hugeinfo_check_finding', 'server') }, "$name, findings", @findings);
	}
	SKIP:
	{
		my $name = "justwatch, $where";
		needs_tools($name, 'prometheus-sql-exporter');
		my $exporter = justwatch($node, edited('justwatch_sql_exporter.yml', [ qr/interval: \d+s/, 'interval: 1s' ]));
		my $samples = sub {
			my $samples = $exporter->samples('sql_pg_hugeinfo', qw(driver host database user sql_job));
			# as Prometheus does with prometheus/justwatch.yml
			return { map { my $series = $_; $series =~ s/^sql_(\w+)\{(.*?),?\bcol="(\w+)"(,?)(.*)\}/$1_$3\{/; my ($left, $right) = ($2, $5); $series . join(',', grep { $_ ne '' } $left, $right) . '}' => $samples->{$_} } keys %$samples };
		};
		ok(until_true(sub { keys %{ $samples->() } >= keys %{ all_samples($session, @queries) } }), "$name: has all") or diag($exporter->log);
		# it asks by itself, once a second: between two of its answers nothing moves
		my @still = grep { $_->{name} =~ /^(?:status|restart|setting|pool|check|page_tables|host_thp)$/ } @queries;
		my %still = map { $_ => 1 } keys %{ all_samples($session, @still) };
		compare_samples($session, sub { my $seen = $samples->(); return { map { $_ => $seen->{$_} } grep { $still{$_} } keys %$seen } }, $name, @still);
		is_deeply([ sort keys %{ $samples->() } ], [ sort keys %{ all_samples($session, @queries) } ], "$name: every series");
	}
	return;
}

# As CloudNativePG asks: read-only, pinned to a search_path, with what comes before each query.
sub compare_cloudnativepg
{
	my ($where) = @_;
	my $session = watch($node);
	my $text = slurp_file(source('target/monitoring/cloudnativepg.yml'));
	my %predicates = map { $_ => 1 } $text =~ /predicate_query: (.*)/g;
	is(scalar keys %predicates, 1, "CloudNativePG, $where: one condition");
	$session->value('BEGIN TRANSACTION READ ONLY');
	$session->value('SET LOCAL search_path = pg_catalog, public, pg_temp');
	is($session->value($_), 't', "CloudNativePG, $where: the extension is found") for keys %predicates;
	my ($asked, $rows) = (0, 0);
	while ($text =~ /^      query: \|\n((?:        .*\n)+)/mg)
	{
		$asked++;
		$rows += $session->rows($1);
	}
	$session->value('COMMIT');
	is($asked, scalar @queries, "CloudNativePG, $where: every query runs");
	cmp_ok($rows, '>', 30, "CloudNativePG, $where: and answers");
	is($node->safe_psql('template1', $_), 'f', "CloudNativePG, $where: not asked where it is not") for keys %predicates;
	return;
}

SKIP:
{
	needs_host('small pages');
	pools_of_one_size($kb, 0);
	$node->restart;
}
compare_exporters('small pages');
compare_cloudnativepg('small pages');
SKIP:
{
	needs_host('huge pages');
	pools_of_one_size($kb, required_pages($node, $kb));
	$node->restart;
	is(watch($node)->value('SELECT in_use FROM hugeinfo.hugeinfo_status'), 't', 'huge pages: in use');
	compare_exporters('huge pages');
}

$node->stop;
done_testing;
