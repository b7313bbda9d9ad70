# The memory of a server, compared with /proc: on small pages, as System V memory, and on huge
# pages. Parallel queries of this server, but not of others, add dynamic shared memory.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use List::Util qw(max sum0 uniq);
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my %SETTINGS = (shared_buffers => '128MB', huge_pages => 'off', max_parallel_workers => 4);
my $node = new_server('footprint', %SETTINGS);
# Another server of the same user, whose dynamic shared memory is in the same directory.
my $other = new_server('other', %SETTINGS);
$node->safe_psql('postgres', $_) for 'CREATE EXTENSION pg_prewarm',
  q(CREATE TABLE large AS SELECT i, repeat('x', 1000) AS x FROM generate_series(1, 40000) AS i);

sub footprint { my ($sql) = @_; return ($sql->rows('SELECT * FROM hugeinfo_footprint'))[0] }

# Returns the size of dynamic shared memory that processes of the server have mapped.
sub dynamic_bytes
{
	my ($server) = @_;
	my %files = map { $_->{path} => 1 } grep { ($_->{path} // '') =~ m{^/dev/shm/PostgreSQL\.\d+$} } map { maps_file($_) } family($server->{_pid});
	return sum0(map { 512 * ((stat)[12] // 0) } keys %files);
}

# rss and swap of the server's System V segments.
sub system_v
{
	my ($server) = @_;
	my (undef, @lines) = split /\n/, slurp_file('/proc/sysvipc/shm');
	my @own = grep { $_->[4] == $server->{_pid} } map { [ split ] } @lines;
	return (sum0(map { $_->[14] } @own), sum0(map { $_->[15] } @own));
}

# Computes the footprint from the kernel's figures of each process.
sub kernels
{
	my @rows = map { status_file($_) } family($node->{_pid});
	return {
		processes => scalar @rows,
		private_bytes => sum_of('rss_anon_bytes', @rows),
		page_table_bytes => sum_of('page_table_bytes', @rows),
		swap_bytes => sum_of('swap_bytes', @rows),
		most_shared => max(map { $_->{rss_shmem_bytes} } @rows) };
}

# Compares the footprint while nothing changes.
sub compare
{
	my ($sql, $name, $segment_backed) = @_;
	my $real = segment($node->{_pid});
	my ($is, $should) = settled(
		sub { footprint($sql) },
		sub { return (kernels(), dynamic_bytes($node), [ system_v($node) ]) },
		sub {
			my ($rows, $now) = @_;
			my ($figures, $dynamic, $system_v) = @$now;
			my %expected = (%$figures, segment_bytes => $real->{bytes}, %{ $segment_backed->($figures, $dynamic, @$system_v) });
			delete $expected{most_shared};
			$expected{total_bytes} = sum0(@expected{qw(private_bytes segment_backed_bytes other_shared_bytes page_table_bytes swap_bytes)});
			return ({ map { $_ => $rows->[0]{$_} } keys %expected }, \%expected);
		});
	is_deeply($is, $should, "$name: the same as in /proc");
	return $is;
}

{
	my $name = 'small pages';
	my $sql = HugeInfo::Session->new($node);
	my $reader = HugeInfo::Session->new($node);
	my $lower_bound = sub {
		my ($figures, $dynamic, $guard) = @_;
		my $rest = $figures->{most_shared} - $dynamic - $guard;
		return { other_shared_bytes => $dynamic + $guard, segment_backed_bytes => $rest > 0 ? $rest : 0 };
	};
	my $before = compare($sql, $name, $lower_bound);
	cmp_ok($before->{other_shared_bytes}, '>', 4096, "$name: at least the control segment of dynamic shared memory");

	# One backend faults in the table. pg_prewarm reads the buffers, because PostgreSQL 18 and newer
	# use I/O workers; parallel workers would fault in parts of the table themselves.
	$reader->value($_) for q(SELECT pg_prewarm('large', 'buffer')), 'SET max_parallel_workers_per_gather = 0', 'SELECT sum(length(x)) FROM large';
	my $touched = compare($sql, "$name, faulted in", $lower_bound);
	cmp_ok($touched->{segment_backed_bytes} - $before->{segment_backed_bytes}, '>=', 16 << 20, "$name: grows as memory is faulted in");
	my $pss = sum0(map { $_->{pss_bytes} // 0 } grep { ($_->{path} // '') =~ m{^/dev/zero} && $_->{permissions} =~ /s$/ } map { smaps_file($_) } family($node->{_pid}));
	cmp_ok($touched->{segment_backed_bytes}, '<=', $pss + (1 << 20), "$name: is not more than all processes have faulted in");
	my $anon = sum0(map { rollup_file($_)->{pss_anon_bytes} // 0 } family($node->{_pid}));
	cmp_ok($touched->{private_bytes}, '>=', $anon, "$name: private memory is an upper bound");

	# A hash that workers share is in dynamic shared memory as long as the query runs.
	my @prepare = ('SET max_parallel_workers_per_gather = 2', 'SET parallel_setup_cost = 0', 'SET parallel_tuple_cost = 0',
		'SET min_parallel_table_scan_size = 0', q(SET work_mem = '64MB'), 'SET enable_mergejoin = off', 'SET enable_nestloop = off');
	my $parallel = sub {
		my ($server, $what) = @_;
		my $session = HugeInfo::Session->new($server);
		$session->value($_) for @prepare;
		my $idle = dynamic_bytes($server);
		$session->ask("SELECT count(*) FROM large AS a JOIN large AS b USING (i) WHERE a.x <= b.x AND (a.i % 40000 <> 0 OR pg_sleep(3600) IS NOT NULL)");
		ok(until_true(sub { dynamic_bytes($server) >= $idle + (16 << 20) }), "$name: $what has dynamic shared memory");
		return $session;
	};
	my $query = $parallel->($node, 'a parallel query');
	my $shared = compare($sql, "$name, parallel", $lower_bound);
	cmp_ok($shared->{other_shared_bytes}, '>=', $touched->{other_shared_bytes} + (16 << 20), "$name: it is included");
	$sql->value("SELECT pg_cancel_backend(@{[ $query->pid ]})");
	$query->answer;
	ok(until_true(sub { footprint($sql)->{other_shared_bytes} < 16 << 20 }), "$name: it is released after the query");

	$other->safe_psql('postgres', q(CREATE TABLE large AS SELECT i, repeat('x', 1000) AS x FROM generate_series(1, 40000) AS i));
	my $of_other = $parallel->($other, 'another server');
	cmp_ok(footprint($sql)->{other_shared_bytes}, '<', 16 << 20, "$name: that of another server is not included");
	$_->close for $of_other, $query, $reader, $sql;
}

{
	my $name = 'mmap';
	restarts($node, dynamic_shared_memory_type => 'mmap');
	my $sql = HugeInfo::Session->new($node);
	my $files = sum0(map { 512 * (stat)[12] } glob $node->data_dir . '/pg_dynshmem/mmap.*');
	my ($guard) = system_v($node);
	is(footprint($sql)->{other_shared_bytes}, $files + $guard, "$name: files in pg_dynshmem");
	$sql->close;
}

{
	my $name = 'System V';
	restarts($node, shared_memory_type => 'sysv', dynamic_shared_memory_type => 'sysv');
	my $sql = HugeInfo::Session->new($node);
	# The main segment is the largest; the others are dynamic.
	my $counted = sub {
		my (undef, @lines) = split /\n/, slurp_file('/proc/sysvipc/shm');
		my @own = sort { $b->[3] <=> $a->[3] } grep { $_->[4] == $node->{_pid} } map { [ split ] } @lines;
		return { segment_backed_bytes => $own[0][14], other_shared_bytes => sum0(map { $_->[14] } @own[ 1 .. $#own ]) };
	};
	my $seen = compare($sql, $name, $counted);
	$sql->value(q(SELECT pg_prewarm('large', 'buffer')));
	my $touched = compare($sql, "$name, faulted in", $counted);
	cmp_ok($touched->{segment_backed_bytes} - $seen->{segment_backed_bytes}, '>=', 30 << 20, "$name: grows as memory is faulted in");
	$sql->close;
	restarts($node, shared_memory_type => 'mmap', dynamic_shared_memory_type => 'posix');
}

SKIP:
{
	my $name = 'huge pages';
	my $sql = HugeInfo::Session->new($node);
	my $small = footprint($sql);
	$sql->close;
	needs_host($name);
	pools_of_one_size($kb, required_pages($node, $kb) + 3);
	restarts($node, huge_pages => 'on');
	$sql = HugeInfo::Session->new($node);
	my $bytes = segment($node->{_pid})->{bytes};
	my $huge = compare($sql, $name, sub { my (undef, $dynamic, $guard) = @_; return { segment_backed_bytes => $bytes, other_shared_bytes => $dynamic + $guard } });
	my $both = footprint($sql);
	is($both->{full_total_bytes}, $both->{total_bytes}, "$name: the total does not grow");
	# The difference is the rounding of the segment, and changes of processes.
	my $difference = $both->{full_total_bytes} - $small->{full_total_bytes};
	cmp_ok(abs $difference, '<', ($kb << 10) + (32 << 20), "$name: comparable with small pages") or diag("$difference bytes apart");
	$sql->close;
}

$_->stop for $node, $other;
done_testing;
