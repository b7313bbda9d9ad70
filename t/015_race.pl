# 10,000 calls of each function while connections open and close as fast as possible: no error, no
# open file, no lost memory.
#
# Takes a minute, because a leak of 100 bytes in a call shows only after 10,000 calls.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

my $CALLS = 10_000;
my $CONNECTIONS = 1000;
# PostgreSQL limits its child processes to twice the number of connections, workers, walsenders and
# autovacuum workers. The last summand is for auxiliary processes.
my $MOST = 2 * (40 + 8 + 10 + 4) + 20;
my $postmaster;

my $node = new_server('race', huge_pages => 'off', max_connections => 40, fsync => 'off', log_statement => 'none', log_disconnections => 'off',
	log_min_messages => 'error', log_min_error_statement => 'error');
$postmaster = $node->{_pid};
my $watch = HugeInfo::Session->new($node);

# The queries of loops in the server, which any error ends. Each pass returns the number of calls,
# and the problem that it found, if any.
my %pass = (
	hugeinfo_backends => qq{
		SELECT 1, CASE WHEN count(*) <> count(DISTINCT pid) THEN 'a process twice'
			WHEN count(*) FILTER (WHERE pid = pg_backend_pid() AND page_table_bytes > 0 AND rss_bytes > 0) <> 1 THEN 'the querying backend'
			WHEN count(*) FILTER (WHERE pid = $postmaster AND backend_type = 'postmaster' AND rss_bytes > 0) <> 1 THEN 'the postmaster'
			WHEN count(*) FILTER (WHERE backend_type IN ('checkpointer', 'walwriter', 'background writer') AND rss_bytes > 0) <> 3 THEN 'permanent processes'
			WHEN count(*) > $MOST THEN 'too many' END
		FROM hugeinfo_backends},
	hugeinfo_page_tables => qq{
		SELECT 1, CASE WHEN count(*) = 0 THEN 'no row'
			WHEN min(present_backends_bytes / one_backend_bytes) NOT BETWEEN 5 AND $MOST THEN 'too few or too many processes'
			WHEN NOT bool_and(now_bytes > 0) THEN 'no page tables' END
		FROM hugeinfo_page_tables},
	hugeinfo_fault_rates => qq{
		SELECT 1, CASE WHEN count(*) <> count(DISTINCT (pid, presence)) THEN 'a process twice'
			WHEN count(*) FILTER (WHERE pid IN (pg_backend_pid(), $postmaster) AND presence = 'stayed') <> 2 THEN 'permanent processes'
			WHEN min(minor_faults) < 0 OR min(major_faults) < 0 THEN 'negative faults'
			WHEN max(minor_faults) FILTER (WHERE pid <> $postmaster) > 1000000 THEN 'too much' END
		FROM hugeinfo_fault_rates('1 ms')},
	# for all processes of hugeinfo_backends, some of which have ended meanwhile
	hugeinfo_memory => q{
		SELECT count(*), CASE WHEN count(*) <> count(DISTINCT b.pid) THEN 'a process twice'
			WHEN count(*) FILTER (WHERE b.pid = pg_backend_pid() AND pss_bytes > 0) <> 1 THEN 'the querying backend'
			WHEN min(m.rss_bytes) < 0 OR max(m.rss_bytes) > 1 << 30 THEN 'rss' END
		FROM hugeinfo_backends() AS b LEFT JOIN LATERAL hugeinfo_memory(b.pid) AS m ON true},
	hugeinfo_mappings => q{
		SELECT count(DISTINCT b.pid), CASE
			WHEN count(*) FILTER (WHERE m.pid <> b.pid) <> 0 THEN 'another process'
			WHEN count(*) FILTER (WHERE b.pid = pg_backend_pid() AND kind = 'main segment' AND m.rss_bytes > 0) = 0 THEN 'the querying backend'
			WHEN count(*) FILTER (WHERE m.pid = b.pid AND (kind IS NULL OR size_bytes <= 0)) <> 0 THEN 'nonsense' END
		FROM hugeinfo_backends() AS b LEFT JOIN LATERAL hugeinfo_mappings(b.pid) AS m ON true});

sub loop
{
	my ($function, $calls) = @_;
	return qq{
		DO \$\$
		DECLARE
			calls bigint := 0;
			made bigint;
			problem text;
		BEGIN
			WHILE calls < $calls LOOP
				$pass{$function} INTO made, problem;
				IF problem IS NOT NULL THEN
					RAISE EXCEPTION '%', problem;
				END IF;
				calls := calls + made;
			END LOOP;
		END
		\$\$};
}

# Returns the resident private memory.
sub private_kb { my ($pid) = @_; return status_file($pid)->{rss_anon_bytes} / 1024 }

sub sessions { return $watch->value(q(SELECT sum(sessions) FROM pg_stat_database)) }

my %session = map { $_ => HugeInfo::Session->new($node) } sort keys %pass;
for (values %session)
{
	# a process that has ended raises a warning, so there can be thousands
	$_->value('SET client_min_messages = error');
	$_->value('SET log_min_messages = error');
}

my $script = PostgreSQL::Test::Utils::tempdir() . '/nothing.sql';
append_to_file($script, "SELECT 1;\n");
my ($pgbench_says, $pgbench_complains) = ('', '');
my $pgbench = IPC::Run::start(
	[ 'pgbench', '-n', '-C', '-c', 4, '-j', 2, '-T', 1_000_000, '-f', $script, '-h', $node->host, '-p', $node->port, 'postgres' ],
	'<', '/dev/null', '>', \$pgbench_says, '2>', \$pgbench_complains);
my $churned = until_true(sub { sessions() > 200 });
ok($churned, 'connections come and go');

my $before = sessions();
my (%files, %memory);
# After these calls, each session has loaded everything that it needs.
$session{$_}->value(loop($_, $CALLS / 20)) for sort keys %session;
for (sort keys %session)
{
	$files{$_} = [ open_files($session{$_}->pid) ];
	$memory{$_} = private_kb($session{$_}->pid);
}
# Runs the slowest function, and the one that mostly sleeps, in parallel with the others, so that
# the host has time for connections.
my @beside = qw(hugeinfo_fault_rates hugeinfo_mappings);
my @others = grep { my $function = $_; !grep { $_ eq $function } @beside } sort keys %session;
$session{$_}->ask(loop($_, $CALLS)) for @beside;
for my $function (@others, @beside)
{
	$session{$function}->ask(loop($function, $CALLS)) if grep { $_ eq $function } @others;
	my $pid = $session{$function}->pid;
	my (undef, $error) = $session{$function}->answer;
	is($error, '', "$function: $CALLS calls without an error");
	# A busy host might make only few connections meanwhile.
	if ($function eq $beside[-1])
	{
		$session{$function}->value(loop($function, $CALLS / 20)) until sessions() - $before > $CONNECTIONS;
	}
	is_deeply([ open_files($pid) ], $files{$function}, "$function: no open file is left");
	my $grown = private_kb($pid) - $memory{$function};
	# 100 bytes per call would be 1 MB
	cmp_ok($grown, '<', 1000, "$function: memory does not grow");
}
note(sessions() - $before . ' connections');
is($pgbench->pumpable ? '' : $pgbench_complains, '', 'pgbench runs to the end');

$pgbench->signal('INT');
eval { $pgbench->finish };

# Within one statement, too, the memory of a call is released before the next call. The statement
# itself reads the kernel's figure.
for my $from ('hugeinfo_memory(pg_backend_pid() + 0 * i)', 'hugeinfo_mappings(pg_backend_pid() + 0 * i)')
{
	my $own = q{CASE WHEN i IN (200, 2000) THEN substring(pg_read_file('/proc/self/status') FROM 'RssAnon:\s+(\d+)') END};
	my ($first, $last) = split /\n/, $watch->value(qq{
		SELECT kb FROM (SELECT i, $own AS kb
			FROM generate_series(1, 2000) AS i, LATERAL (SELECT count(*) FROM $from AS m OFFSET 0) AS t) AS s
		WHERE kb IS NOT NULL ORDER BY i});
	cmp_ok($last - $first, '<', 1000, "$from: memory does not grow within a statement");
}

$_->close for $watch, values %session;
unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal|server process .* exited/, 'the server has not crashed');
$node->stop;
done_testing;
