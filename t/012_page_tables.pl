# The size of page tables: 8 bytes for each page that a process has faulted in, which is a lot on
# small pages and almost nothing on huge ones. Compares the forecast of hugeinfo_page_tables with
# the result.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Tools;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use List::Util qw(max min sum);
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $ENTRY = 8;
my $table_bytes = 1 << 30;

my $node = new_server('page_tables', shared_buffers => '1152MB', huge_pages => 'off', wal_level => 'minimal', max_connections => 80);
$node->safe_psql('postgres', $_) for 'CREATE EXTENSION pg_prewarm', q(
	CREATE UNLOGGED TABLE large (x text);
	ALTER TABLE large ALTER x SET STORAGE PLAIN;
	INSERT INTO large SELECT repeat('x', 7000) FROM generate_series(1, 131072)), 'CHECKPOINT';
cmp_ok($node->safe_psql('postgres', q(SELECT pg_relation_size('large'))), '>=', $table_bytes, 'a table of 1 GB');

# Returns the bytes of page table entries for this many bytes on pages of this size, without the
# upper levels.
sub entries { my ($bytes, $page) = @_; return $ENTRY * POSIX::ceil($bytes / $page) }

sub page_tables { my ($pid) = @_; return status_file($pid)->{page_table_bytes} }

# Returns the page tables of a typical client backend, without those of resident shared memory.
sub private_part
{
	my ($sql, $page) = @_;
	my @pids = map { $_->{pid} } $sql->rows(q(SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'));
	my @private = sort { $a <=> $b } map { max(0, page_tables($_) - entries(status_file($_)->{rss_shmem_bytes}, $page)) } @pids;
	return $private[ @private / 2 ];
}

# Returns the rows of the view, and compares them with the kernel's figures of the same moment.
sub compare_view
{
	my ($sql, $name) = @_;
	my $real = segment($node->{_pid});
	my ($private, @each, @rows);
	my $still = until_true(sub {
		# A process can fault in a shared page without another page of page tables.
		my $read = sub {
			my @processes = sort { $a <=> $b } family($node->{_pid});
			return private_part($sql, $real->{page_bytes}), map { page_tables($_) // () } @processes;
		};
		my @before = $read->();
		@rows = $sql->rows('SELECT * FROM hugeinfo_page_tables');
		($private, @each) = $read->();
		"@before" eq "$private @each";
	});
	my ($processes, $now) = (scalar @each, sum(@each));
	my ($in_use) = map { $_->{one_backend_bytes} } grep { $_->{is_used_by_server} eq 't' } @rows;
	ok($still, "$name: the processes do not change");

	my $stated = HugeInfo::Server::shared_memory_bytes($node);
	is_deeply([ map { $_->{page_size_bytes} } @rows ], [ base_page(), map { $_ * 1024 } page_sizes_kb() ],
		"$name: small pages first, then each size");
	for my $row (@rows)
	{
		my $page = $row->{page_size_bytes};
		# A segment on huge pages is padded to whole pages. On other pages, it would have its exact
		# size, which PostgreSQL reports rounded up to whole megabytes.
		my $most = entries($real->{bytes}, $page);
		my $least = entries($real->{bytes} < $stated ? $real->{bytes} : $stated - (1 << 20), $page);
		my $one = $row->{one_backend_bytes};
		ok($least <= $one && $one <= $most, "$name, $page: one backend") or diag("$one is not from $least to $most");
		is_deeply(
			$row,
			{
				page_size_bytes => $page,
				is_used_by_server => $page == $real->{page_bytes} ? 't' : 'f',
				one_backend_bytes => $one,
				present_backends_bytes => $one * $processes,
				max_connections_bytes => $one * 80,
				now_bytes => $now,
				# from the page tables of each process beyond the private part
				saving_bytes => $page < $real->{page_bytes}
				? undef
				: sum(map { my $part = min(max($_ - $private, 0), $in_use); $part - POSIX::ceil($part * $one / $in_use) } @each),
			},
			"$name, $page: all columns");
	}
	return map { $_->{page_size_bytes} => $_ } @rows;
}

# Makes a backend fault in the whole table. Returns how much its page tables grow, from the kernel,
# and compares with the view.
sub growth
{
	my ($sql, $name) = @_;
	my $backend = HugeInfo::Session->new($node);
	my $pid = $backend->pid;
	my $seen = sub { return $sql->value("SELECT page_table_bytes FROM hugeinfo_backends WHERE pid = $pid") };
	$backend->value('SELECT count(*) FROM pg_class');
	my $settled = sub {
		my ($when) = @_;
		my ($shown, $bytes) = agreeing($seen, sub { page_tables($pid) });
		is($shown, $bytes, "$name: page tables $when");
		return $bytes;
	};
	my $before = $settled->('before');
	$backend->value('SET max_parallel_workers_per_gather = 0');
	is($backend->value('SELECT count(*) FROM large'), 131072, "$name: a backend faults in 1 GB");
	return ($settled->('after') - $before, $backend);
}

# Ends idle sessions, whose page tables the kernel frees as the query in the documentation
# forecasts.
sub frees_page_tables
{
	my ($name, $count) = ('idle sessions', 60);
	my ($query) = slurp_file(source('docs/processes.md')) =~ /^(SELECT count\(\*\) AS sessions,.*?);$/ms or die "no query in docs/processes.md\n";
	$query =~ s/pg_size_pretty\((.*)\) AS page_tables/$1 AS page_tables/ && $query =~ s/'10 minutes'/'0 s'/ or die "another query: $query\n";
	my @sessions = map { HugeInfo::Session->new($node) } 1 .. $count;
	for (@sessions)
	{
		$_->value('SET max_parallel_workers_per_gather = 0');
		$_->value('SELECT count(*) FROM large');
	}
	my $sql = HugeInfo::Session->new($node);
	my $all = sub { return sum(map { page_tables($_) // 0 } family($node->{_pid})) };
	my $of_host = sub { return 1024 * meminfo_kb('PageTables') };
	my ($forecast) = $sql->rows($query);
	is($forecast->{sessions}, $count, "$name: the query counts them");
	my @before = ($all->(), $of_host->());
	$sql->value("SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity WHERE state = 'idle'");
	my @freed = ($before[0] - $all->(), $before[1] - $of_host->());
	note("$name: forecast $forecast->{page_tables}, freed $freed[0] by the server, $freed[1] on the host");
	cmp_ok($forecast->{page_tables}, '>=', $count * entries($table_bytes, base_page()), "$name: each has page tables for the table");
	cmp_ok(abs($freed[0] - $forecast->{page_tables}), '<', 0.02 * $forecast->{page_tables}, "$name: the server has as much less");
	# Other programs also change the figure of the host.
	cmp_ok($freed[1], '>', 0.7 * $forecast->{page_tables}, "$name: the kernel has freed them");
	$_->close for @sessions, $sql;
	return;
}

{
	my $name = 'small pages';
	my $thp = '/sys/kernel/mm/transparent_hugepage/shmem_enabled';
	my $on_thp = -e $thp && slurp_file($thp) =~ /\[(?:always|within_size|force)\]/;
	SKIP:
	{
		cannot("$name: shared memory is on transparent huge pages here") if $on_thp;
		my $sql = HugeInfo::Session->new($node);
		is($sql->value(q(SELECT pg_prewarm('large', 'buffer') >= 131072)), 't', "$name: the table is in shared buffers");
		my ($grown, $backend) = growth($sql, $name);
		my %row = compare_view($sql, $name);
		my $least = entries($table_bytes, base_page());
		my $forecast = $row{ base_page() }{one_backend_bytes};
		# a little more for other memory, and the upper levels
		cmp_ok($grown, '>=', $least, "$name: 8 bytes for each faulted-in page");
		cmp_ok($grown, '<=', 1.05 * $forecast, "$name: no more than forecast");

		cmp_ok($row{ $kb * 1024 }{saving_bytes}, '>=', 0.9 * $least, "$name: huge pages would save nearly all of it") if $kb;
		is($row{ base_page() }{saving_bytes}, 0, "$name: small pages would save nothing");
		like($sql->value(q(SELECT finding FROM hugeinfo_checks WHERE name = 'page_tables')),
			qr/^Page tables of \d+ processes take \d+ [kM]B; on \d+ [kMG]B pages they would take about \d+ [kM]B\.$/, "$name: the finding has both sizes");

		# A second backend makes the sum grow by as much.
		my ($again, $second) = growth($sql, "$name, another backend");
		cmp_ok(abs($again - $grown), '<', 0.05 * $grown, "$name: each backend has separate page tables");
		my %later = compare_view($sql, "$name, another backend");
		cmp_ok($later{ base_page() }{now_bytes}, '>=', $row{ base_page() }{now_bytes} + $least, "$name: the sum includes them");

		$_->close for $second, $backend, $sql;
		frees_page_tables();
	}
}

SKIP:
{
	my $name = 'huge pages';
	needs_host($name);
	pools_of_one_size($kb, required_pages($node, $kb));
	restarts($node, huge_pages => 'on');
	my $sql = HugeInfo::Session->new($node);
	$sql->value(q(SELECT pg_prewarm('large', 'buffer')));
	my ($grown, $backend) = growth($sql, $name);
	my %row = compare_view($sql, $name);
	my $small = $row{ base_page() }{one_backend_bytes};
	cmp_ok($small, '>=', entries($table_bytes, base_page()), "$name: small pages would need megabytes");
	cmp_ok($grown, '<', $small / 10, "$name: page tables hardly grow");
	is($row{ $kb * 1024 }{is_used_by_server}, 't', "$name: the server uses this size");
	cmp_ok(status_file($backend->pid)->{rss_shmem_bytes}, '<', 64 << 20, "$name: the faulted-in memory is not resident");
	my ($memory) = $sql->rows('SELECT * FROM hugeinfo_memory(' . $backend->pid . ')');
	cmp_ok($memory->{shared_hugetlb_bytes} + $memory->{private_hugetlb_bytes}, '>=', $table_bytes,
		"$name: it counts as huge pages, separately from other memory");
	is_deeply({ map { $_ => $memory->{$_} } qw(shared_hugetlb_bytes private_hugetlb_bytes) },
		{ map { $_ => rollup_file($backend->pid)->{$_} } qw(shared_hugetlb_bytes private_hugetlb_bytes) },
		"$name: the same as in smaps_rollup");
	$_->close for $backend, $sql;
}

$node->stop;
done_testing;
