# The checks of hugeinfo_checks about the server's processes and the host's settings, in real
# states.
use strict;
use warnings;
# addresses have more than 32 bits
no warnings 'portable';

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Checks;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use IPC::Run ();
use List::Util qw(max min sum0);
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $kb = default_page_kb();
my $page = $kb && $kb * 1024;
my $node = new_server('server', shared_buffers => '64MB', max_connections => 200, huge_pages => 'off');

# Returns a figure of each process of the server, from /proc.
sub of_all { my ($figure) = @_; return map { $figure->($_) // () } family($node->{_pid}) }

# Repeats the query until the evidence is the same as the test reads before and after, because
# figures of running processes change.
sub settled_check
{
	my ($asked, $check, $read, $expected, $name) = @_;
	my ($checks, $figures);
	until_true(sub {
		my $before = $read->();
		$checks = checks_of($asked, $name);
		my $after = $read->();
		$figures = $after;
		my $seen = { map { $_ => $checks->{$check}{evidence}{$_} } keys %$after };
		return text_of($before) eq text_of($after) && text_of($seen) eq text_of($after);
	});
	compare_check($checks, $check, { %$expected, evidence => $figures }, $name);
	return $checks;
}

sub meminfo_bytes { my ($key) = @_; return slurp_file('/proc/meminfo') =~ /^\Q$key\E:\s+(\d+) kB$/m ? 1024 * $1 : undef }
sub vm { my ($name) = @_; return slurp_file("/proc/sys/vm/$name") =~ s/\n//r }
sub thp { my ($name) = @_; return slurp_file("/sys/kernel/mm/transparent_hugepage/$name") =~ /\[(.*)\]/ ? $1 : undef }

my $sql = HugeInfo::Session->new($node);

{
	my $name = 'the host as it is';
	my $checks = checks_of($sql, $name);
	compare_check($checks, 'hugetlb_shm_group', { status => 'ok', evidence => { hugetlb_shm_group => vm('hugetlb_shm_group') } }, $name);
	compare_check($checks, 'numa_segment', { status => 'ok' }, $name) if 1 == (() = glob '/sys/devices/system/node/node[0-9]*');
	settled_check($sql, 'major_faults', sub { return { major_faults => sum0(of_all(sub { stat_file($_[0])->{major_faults} })) } }, { status => 'ok' }, $name);
	my $started = (split / /, slurp_file("/proc/$node->{_pid}/stat") =~ s/^.*\) //sr)[19] / POSIX::sysconf(POSIX::_SC_CLK_TCK());
	my ($now) = split / /, slurp_file('/proc/uptime');
	my $seconds = $checks->{major_faults}{evidence}{seconds};
	# the kernel rounds the uptime up
	ok($seconds <= $now - $started + 2 && $seconds >= 0, "$name: as long as the postmaster runs") or diag("$seconds seconds");
}

SKIP:
{
	my $name = 'private THP, always';
	needs_host($name);
	set_thp('enabled', 'always');
	my $checks = checks_of($sql, $name);
	compare_check($checks, 'thp_private', { status => 'warning', finding => qr/\(enabled = always\)/, evidence => { enabled => 'always', defrag => thp('defrag') } }, $name);
	follow($node, remedy_of($checks, 'thp_private'), $name);
	is(thp('enabled'), 'madvise', "$name: the remedy changes the mode");
	compare_check(checks_of($sql, $name), 'thp_private', { status => 'ok', remedy => undef }, "$name, after the remedy");
	set_boot_pages(undef);
}

# Returns the part of the main segment that a process has on transparent huge pages.
sub thp_bytes
{
	my ($pid) = @_;
	my @shared = grep { $_->{permissions} =~ /s$/ && ($_->{path} // '') =~ m{^/dev/zero} } smaps_file($pid);
	return sum0(map { $_->{shmem_thp_bytes} // 0 } @shared);
}

sub fill_buffers
{
	my ($session) = @_;
	$session->value($_) for
	  q(CREATE TABLE IF NOT EXISTS large AS SELECT repeat('x', 1000) AS x FROM generate_series(1, 40000)),
	  'CREATE EXTENSION IF NOT EXISTS pg_prewarm', q(SELECT pg_prewarm('large', 'buffer')),
	  # with PostgreSQL 18, I/O workers read buffers for the backend
	  'SET max_parallel_workers_per_gather = 0', 'SELECT count(*) FROM large';
	return;
}

for my $mode (qw(always within_size advise never))
{
	SKIP:
	{
		my $name = "shared THP, $mode";
		needs_host($name);
		set_thp('shmem_enabled', $mode);
		$sql->close;
		$node->restart;
		# only the process that has faulted in most
		$sql = HugeInfo::Session->new($node);
		my $reader = HugeInfo::Session->new($node);
		fill_buffers($reader);
		my $warns = $mode =~ /always|within_size/;
		my $got = thp_bytes($reader->pid);
		$warns ? cmp_ok($got, '>', 0, "$name: the kernel uses some") : is($got, 0, "$name: the kernel uses none");
		settled_check($sql, 'thp_shared', sub { return {
					shmem_enabled => $mode,
					segment_thp_bytes => $warns ? thp_bytes($reader->pid) : undef,
					segment_bytes => segment($node->{_pid})->{bytes} } },
			{ status => $warns ? 'warning' : 'ok' }, $name);
		$reader->close;

		next if $mode ne 'always';
		$name = 'shared THP, always, on huge pages of the pool';
		pools_of_one_size($kb, required_pages($node, $kb));
		$sql->close;
		restarts($node, huge_pages => 'on');
		compare_check(checks_of($node, $name), 'thp_shared', {
				status => 'ok',
				finding => qr/is on huge pages of a pool/,
				evidence => { shmem_enabled => 'always', segment_thp_bytes => undef, segment_bytes => segment($node->{_pid})->{bytes} } }, $name);
		restarts($node, huge_pages => 'off');
		set_pool($kb, 0);
		$sql = HugeInfo::Session->new($node);
	}
}

sub swap_bytes { return sum0(of_all(sub { status_file($_[0])->{swap_bytes} })) }
sub swap_evidence
{
	my $used = meminfo_bytes('SwapTotal') - meminfo_bytes('SwapFree');
	return { swap_bytes => swap_bytes(), swap_of_host_bytes => $used, swappiness => vm('swappiness') };
}

SKIP:
{
	my $name = 'swap';
	needs_host($name);
	eval { add_swap(200); 1 } or cannot("$name: $@");
	# private memory that is not accessed again
	my $large = HugeInfo::Session->new($node);
	my $fill = sub { my ($mb) = @_; return $large->value("SELECT length(set_config('hugeinfo_test.filler', repeat('x', $mb << 20), false))") };
	$fill->(40);
	page_out($large->pid);
	cmp_ok(swap_bytes(), '>', 20 << 20, "$name: some memory is swapped out");
	cmp_ok(swap_bytes(), '<', 64 << 20, "$name: but not much");
	settled_check($sql, 'swap', \&swap_evidence, { status => 'ok', finding => qr/swapped out/ }, "$name, a little");

	$fill->(100);
	page_out($large->pid);
	cmp_ok(swap_bytes(), '>', 80 << 20, "$name: more memory is swapped out");
	settled_check($sql, 'swap', \&swap_evidence, { status => 'warning', finding => qr/is swapped out/ }, "$name, a lot");

	# major faults swap the memory in
	my $before = stat_file($large->pid)->{major_faults};
	$large->value(q(SELECT length(current_setting('hugeinfo_test.filler'))));
	cmp_ok(stat_file($large->pid)->{major_faults}, '>', $before, "$name: major faults swap it in");
	$large->close;
	until_true(sub { swap_bytes() < 64 << 20 });
	settled_check($sql, 'swap', \&swap_evidence, { status => 'ok' }, "$name, who had it has gone");
}

# Starts clients that fault in the whole table and stay.
sub crowd
{
	my ($clients) = @_;
	my $script = PostgreSQL::Test::Utils::tempdir() . '/crowd.sql';
	append_to_file($script, "SELECT count(*) FROM holes;\n\\sleep 1000 s\n") unless -e $script;
	local $ENV{PGHOST} = $node->host;
	local $ENV{PGPORT} = $node->port;
	my $run = IPC::Run::start([ 'pgbench', '--no-vacuum', "--client=$clients", "--file=$script", 'postgres' ], '<', \undef, '>', \my $out, '2>', \my $error);
	my $count = q(SELECT count(*) FROM pg_stat_activity WHERE state = 'idle' AND query LIKE 'SELECT count(*) FROM holes%');
	until_true(sub { $run->pump_nb; return $node->safe_psql('postgres', $count) == $clients }) or die "the crowd doesn't come: $error\n";
	return $run;
}

SKIP:
{
	my $name = 'page tables';
	needs_host($name);
	$sql->close;
	pools_of_one_size($kb, 0);
	# Huge pages that were turned off on purpose, which only large page tables make questionable.
	restarts($node, shared_buffers => '256MB', huge_pages => 'off');
	# The file of the table is one large hole, because a page of zeros is valid.
	$node->safe_psql('postgres', 'CREATE TABLE holes ()');
	truncate $node->data_dir . '/' . $node->safe_psql('postgres', q(SELECT pg_relation_filepath('holes'))), 240 << 20 or die "truncate: $!\n";
	my $prepare = sub {
		$node->safe_psql('postgres', q(CREATE EXTENSION IF NOT EXISTS pg_prewarm; SELECT pg_prewarm('holes', 'buffer')));
		$sql = HugeInfo::Session->new($node);
	};
	my $page_tables = sub {
		my @bytes = of_all(sub { status_file($_[0])->{page_table_bytes} });
		return { page_table_bytes => sum0(@bytes), processes => scalar(@bytes), memory_total_bytes => ram_bytes(),
			needed_bytes => min(segment($node->{_pid})->{bytes}, $sql->value(q(SELECT setting::bigint << 20 FROM pg_settings WHERE name = 'shared_memory_size'))) };
	};
	$prepare->();
	settled_check($sql, 'page_tables', $page_tables, { status => 'ok' }, "$name of few");

	my $crowd = crowd(150);
	my $figures = $page_tables->();
	cmp_ok($figures->{page_table_bytes}, '>', max(64 << 20, 0.2 * $figures->{needed_bytes}), "$name: they are large");
	my $checks = settled_check($sql, 'page_tables', $page_tables, { status => 'warning' }, "$name of many");
	is_deeply([ @{ $checks->{huge_pages} }{qw(status code)} ], [ 'ok', 'turned_off' ], "$name of many: the setting is not judged");
	my $remedy = remedy_of($checks, 'page_tables');
	$crowd->kill_kill;
	$sql->close;
	follow($node, $remedy, $name);
	is(segment($node->{_pid})->{page_bytes}, $page, "$name: the remedy gets huge pages");
	$prepare->();
	$crowd = crowd(150);
	settled_check($sql, 'page_tables', $page_tables, { status => 'ok' }, "$name of many, after the remedy");
	my $cured = $page_tables->();
	cmp_ok($cured->{page_table_bytes}, '<', 0.7 * $figures->{page_table_bytes}, "$name: they are smaller");
	$crowd->kill_kill;
	$sql->close;
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL; DROP TABLE holes');
	restarts($node, shared_buffers => '16MB', huge_pages => 'off');
	set_pool($kb, 0);
	$sql = HugeInfo::Session->new($node);
}

SKIP:
{
	my $name = 'OOM protection after the remedy';
	needs_host($name);
	my $adj = sub { my ($pid) = @_; return oom_files($pid)->{oom_score_adj} };
	# Values below 0 need CAP_SYS_RESOURCE, which root in a container or a small virtual machine can
	# lack.
	my $can_protect = eval { set_oom_score_adj($node->{_pid}, -1); 1 };
	diag('not tried: the OOM protection of a postmaster, because this root lacks CAP_SYS_RESOURCE') unless $can_protect;
	# With the remedy, the service manager protects the postmaster, and children reset their own value.
	set_oom_score_adj($node->{_pid}, 500);
	my $remedy = checks_of($sql, $name)->{oom_protection}{remedy};
	my %environment = $remedy =~ /\b(PG_OOM_ADJUST_FILE|PG_OOM_ADJUST_VALUE)=([^\s;]+)/g;
	is(scalar(keys %environment), 2, "$name: the remedy names both variables");
	$sql->close;
	$node->stop;
	{
		local %ENV = (%ENV, %environment);
		$node->start;
	}
	my ($adjust) = $remedy =~ /\bOOMScoreAdjust=(-\d+)/;
	set_oom_score_adj($node->{_pid}, $can_protect ? $adjust : 0);
	$sql = HugeInfo::Session->new($node);
	is($adj->($sql->pid), $environment{PG_OOM_ADJUST_VALUE}, "$name: a new backend has the value in the remedy");
	isnt($adj->($node->{_pid}), $adj->($sql->pid), "$name: the postmaster keeps its value");
	my $evidence = sub {
		return {
			oom_score_adj_of_postmaster => $adjust,
			least_oom_score_adj_of_others => min(map { $adj->($_) } grep { $_ != $node->{_pid} } family($node->{_pid})) };
	};
	settled_check($sql, 'oom_protection', $evidence, { status => 'ok' }, $name) if $can_protect;
}

SKIP:
{
	my $name = 'strict overcommit';
	needs_host($name);
	my $read = sub {
		my ($pages_bytes) = sum0(map { pool($_)->{total} * $_ * 1024 } page_sizes_kb());
		return {
			overcommit_memory => vm('overcommit_memory'),
			overcommit_ratio => vm('overcommit_ratio'),
			commit_limit_bytes => meminfo_bytes('CommitLimit'),
			pools_bytes => $pages_bytes };
	};
	settled_check($sql, 'overcommit', $read, { status => 'ok', finding => qr/^No strict overcommit/ }, "$name, none");
	set_pool($kb, 100);
	# far more than is committed, so that no program on this host is affected
	set_strict_overcommit(1000);
	my $checks = settled_check($sql, 'overcommit', $read, { status => 'ok', finding => qr/^Strict overcommit/ }, $name);
	# 10 steps of 100 pages less, and the pages of others
	my $by_others = 10 * pages_of_others($kb) * $page;
	my $limit = $checks->{overcommit}{evidence}{commit_limit_bytes};
	is($checks->{overcommit}{evidence}{taken_by_pools_bytes}, 1000 * $page + $by_others, "$name: the part of the limit that the pools take");
	set_pool($kb, 0);
	is(meminfo_bytes('CommitLimit') - $limit, 1000 * $page, "$name: without pools, the kernel raises the limit by as much");
	is(checks_of($sql, $name)->{overcommit}{evidence}{taken_by_pools_bytes}, $by_others, "$name: without pools, they take nothing");
	# the same score as its children
	set_oom_score_adj($node->{_pid}, oom_files($sql->pid)->{oom_score_adj});
	compare_check(checks_of($sql, $name), 'oom_protection', { status => 'warning', finding => qr/can kill the postmaster/ }, "$name: a limit above memory does not protect");
}

SKIP:
{
	my $name = 'memlock';
	needs_host($name);
	$sql->close;
	pools_of_one_size($kb, required_pages($node, $kb));
	my $limit = sub { my ($bytes) = @_; return !system_log('prlimit', "--memlock=$bytes:", '--pid', $$) };
	$node->stop;
	configure($node, huge_pages => 'on');
	$limit->(0) or cannot("$name: cannot lower the limit of this test");
	$node->start;
	is(segment($node->{_pid})->{page_bytes}, $page, "$name: without any locked memory it gets huge pages");
	like(slurp_file("/proc/$node->{_pid}/limits"), qr/^Max locked memory\s+0\s/m, "$name: the limit is 0");
}

$sql->close;
$node->stop;
done_testing;
