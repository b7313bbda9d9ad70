# Debian's postgres_exporter and sql_exporter, as pg_monitor, on a server on small and on huge
# pages: every metric arrives with the value in SQL and in a valid format, and the queries of
# CloudNativePG run.
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
# Several exporters run one after the other, and each keeps its sessions.
my $node = new_server('exporters', max_connections => 60);
monitored($node);
my @queries = grep { $_->{collector} ne 'findings' } queries();
my @findings = grep { $_->{collector} eq 'findings' } queries();

# Returns all present values in SQL.
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
		@wrong = map { "$_: missing" } grep { !exists $seen->{$_} } keys %expected;
		push @wrong, map { "$_: unexpected" } grep { !exists $expected{$_} } keys %$seen;
		for my $series (grep { exists $before->{$_} && exists $after->{$_} } keys %$seen)
		{
			my ($low, $high) = sort { $a <=> $b } $before->{$series}, $after->{$series};
			# a backend uses more memory during a query than after it
			($low, $high) = ($low - (1 << 20), $high + (1 << 20))
			  if $series =~ /_(?:rss_anon|page_table|page_table_max)_bytes\{backend_type="client backend"|_saving_bytes\{/;
			# the process that has faulted in most of the segment can be the querying one
			($low, $high) = (1, 2 * $high) if $series =~ /_numa_segment_pages\{/ && $low > 0;
			push @wrong, "$series: $seen->{$series}, but SQL says $low to $high" if $seen->{$series} < $low || $seen->{$series} > $high;
		}
		return !@wrong;
	});
	is(join("\n", sort @wrong), '', "$name: every metric is the same as in SQL");
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
		is_deeply($first[1], $first[0], "$name: queries processes once a minute");
		# A process that starts or ends at that moment has no type.
		my @series = map { [ sort grep { !/backend_type="unknown"/ } keys %{ $_->samples('pg_hugeinfo', 'server') } ] } $kept, $exporter;
		is_deeply($series[0], $series[1], "$name: the same series");
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
		ok(until_true(sub { keys %{ $samples->() } >= keys %{ all_samples($session, @queries) } }), "$name: has all series") or diag($exporter->log);
		# it queries by itself once a second, and its values do not change in between
		my @still = grep { $_->{name} =~ /^(?:status|restart|setting|pool|check|page_tables|host_thp)$/ } @queries;
		my %still = map { $_ => 1 } keys %{ all_samples($session, @still) };
		compare_samples($session, sub { my $seen = $samples->(); return { map { $_ => $seen->{$_} } grep { $still{$_} } keys %$seen } }, $name, @still);
		is_deeply([ sort keys %{ $samples->() } ], [ sort keys %{ all_samples($session, @queries) } ], "$name: every series");
	}
	return;
}

# Runs the queries like CloudNativePG: read-only, with a fixed search_path, and with the predicate
# query before each one.
sub compare_cloudnativepg
{
	my ($where) = @_;
	my $session = watch($node);
	my $text = slurp_file(source('target/monitoring/cloudnativepg.yml'));
	my %predicates = map { $_ => 1 } $text =~ /predicate_query: (.*)/g;
	is(scalar keys %predicates, 1, "CloudNativePG, $where: one predicate query");
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
	cmp_ok($rows, '>', 30, "CloudNativePG, $where: the queries return rows");
	is($node->safe_psql('template1', $_), 'f', "CloudNativePG, $where: the extension is not found in another database") for keys %predicates;
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
	is(watch($node)->value('SELECT in_use FROM public.hugeinfo_status'), 't', 'huge pages: in use');
	compare_exporters('huge pages');
}

$node->stop;
done_testing;
