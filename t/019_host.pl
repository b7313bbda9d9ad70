# Compares the views of the host with the kernel's files. Values that change must be between two
# reads. The view of NUMA nodes must not fault in shared memory.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use JSON::PP ();
use List::Util qw(max sum0);
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $node = new_server('host', shared_buffers => '128MB', huge_pages => 'off');
my $sql = HugeInfo::Session->new($node);

# undef if there is no such file
sub contents { my ($file) = @_; return -e $file ? slurp_file($file) =~ s/\n\z//r : undef }

# Compares numbers by name. Each must lie between two reads by the test.
sub lies_between
{
	my ($read, $see, $name) = @_;
	my @names = sort keys %{ $read->() };
	is_deeply([ sort keys %{ $see->() } ], \@names, "$name: all names");
	cmp_ok(scalar @names, '>', 5, "$name: more than 5");
	# A query allocates memory while it runs, and releases it at the end.
	my %slack = map { $_ => 4 << 20 } grep { /^committed_as/i } @names;
	is(join("\n", misfits($read, $see, %slack)), '', "$name: every number is between two reads");
	return;
}

# The kernel keeps 64 bytes for each base page of a huge page, and can free all but one base page of
# them.
sub saving
{
	my $bytes = 0;
	for my $size (page_sizes_kb())
	{
		my $of_one = $size * 1024 / base_page() * 64 - base_page();
		$bytes += pool($size)->{total} * $of_one if $of_one > 0;
	}
	return $bytes;
}

sub meminfo
{
	my ($unit_kb) = slurp_file('/proc/meminfo') =~ /^Hugepagesize:\s+(\d+) kB$/m;
	my %bytes;
	for (split /\n/, slurp_file('/proc/meminfo'))
	{
		my ($key, $number, $unit) = /^([^:]+):\s+(\d+)( kB)?$/ or die "not a line of meminfo: $_\n";
		$bytes{$key} = 1024 * $number * ($unit ? 1 : $unit_kb // die "pages of no size: $_\n");
	}
	return \%bytes;
}

{
	my $name = 'meminfo';
	lies_between(\&meminfo, sub { return { map { $_->{name} => $_->{bytes} } $sql->rows('SELECT * FROM hugeinfo_meminfo') } }, $name);
	my @rows = $sql->rows('SELECT * FROM hugeinfo_meminfo');
	is_deeply([ map { $_->{name} } @rows ], [ slurp_file('/proc/meminfo') =~ /^([^:]+):/mg ], "$name: in the kernel's order");
	is_deeply([ map { $_->{huge_pages} } @rows ], [ map { $kb && POSIX::ceil($_->{bytes} / 1024 / $kb) } @rows ], "$name: in huge pages");
}

{
	my $name = 'vmstat';
	lies_between(
		sub { return { map { split / / } split /\n/, slurp_file('/proc/vmstat') } },
		sub { return { map { $_->{name} => $_->{value} } $sql->rows('SELECT * FROM hugeinfo_vmstat') } }, $name);
}

{
	my $name = 'host';
	my $vm = sub { return contents("/proc/sys/vm/$_[0]") };
	my $thp = sub { return (contents("/sys/kernel/mm/transparent_hugepage/$_[0]") // '') =~ /\[(.*)\]/ ? $1 : undef };
	my $read = sub {
		my $memory = meminfo();
		my (undef, undef, $release, undef, $machine) = POSIX::uname();
		my $processors = 0;
		for (split /,/, contents('/sys/devices/system/cpu/online')) { my ($first, $last) = split /-/; $processors += ($last // $first) - $first + 1 }
		return {
			kernel_release => $release,
			machine => $machine,
			base_page_size_bytes => base_page(),
			default_huge_page_size_bytes => $kb && $kb * 1024,
			memory_total_bytes => $memory->{MemTotal},
			memory_available_bytes => $memory->{MemAvailable},
			swap_total_bytes => $memory->{SwapTotal},
			swap_free_bytes => $memory->{SwapFree},
			page_table_bytes => $memory->{PageTables},
			hugetlb_bytes => $memory->{Hugetlb},
			commit_limit_bytes => $memory->{CommitLimit},
			committed_as_bytes => $memory->{Committed_AS},
			(map { $_ => $vm->($_) } qw(overcommit_memory overcommit_ratio swappiness hugetlb_shm_group)),
			overcommit_bytes => $vm->('overcommit_kbytes') ? $vm->('overcommit_kbytes') * 1024 : undef,
			(map { ("thp_$_" => $thp->($_)) } qw(enabled defrag shmem_enabled)),
			hugetlb_optimize_vmemmap => !defined $vm->('hugetlb_optimize_vmemmap') ? undef : $vm->('hugetlb_optimize_vmemmap') ? 't' : 'f',
			vmemmap_saving_bytes => saving(),
			numa_nodes => scalar(() = glob '/sys/devices/system/node/node[0-9]*') || undef,
			processors => $processors };
	};
	# Compared below.
	my @of_cgroup = qw(cgroup_memory_limit_bytes cgroup_memory_used_bytes cgroup_oom_kills);
	my $is_text = qr/^(?:kernel_release|machine|thp_)/;
	my $see = sub { my ($row) = $sql->rows('SELECT * FROM hugeinfo_host'); delete @$row{@of_cgroup}; return $row };
	my $part = sub { my ($row, $text) = @_; return { map { $_ => $row->{$_} } grep { /$is_text/ ? $text : !$text } keys %$row } };
	is_deeply($part->($see->(), 1), $part->($read->(), 1), "$name: texts");
	lies_between(sub { return $part->($read->(), 0) }, sub { return $part->($see->(), 0) }, $name);
}

# Returns the pages of the main segment on each node that a process has faulted in, from numa_maps.
sub segment_pages
{
	my ($pid) = @_;
	my @shared = grep { $_->{permissions} =~ /s$/ && ($_->{path} // '') =~ m{^/(?:dev/zero|anon_hugepage|SYSV)} } maps_file($pid);
	my ($largest) = sort { $b->{size_bytes} <=> $a->{size_bytes} } @shared;
	my ($line) = process_file($pid, 'numa_maps') =~ /^\Q$largest->{start_address}\E (.*)$/m;
	return { $line =~ /\bN(\d+)=(\d+)/g };
}

# Returns the processes that have faulted in most, by figures that are cheap to read. Several can
# have the same figure.
sub touched_most
{
	my %bytes = map { my $row = status_file($_); $_ => ($row->{rss_shmem_bytes} // 0) + ($row->{hugetlb_bytes} // 0) } family($node->{_pid});
	my $most = max(values %bytes);
	return grep { $bytes{$_} == $most } keys %bytes;
}

# Compares each row with the node's files, while nothing changes.
sub compare_numa
{
	my ($name) = @_;
	my @dirs = sort { ($a =~ /(\d+)$/)[0] <=> ($b =~ /(\d+)$/)[0] } glob '/sys/devices/system/node/node[0-9]*';
	my $page_bytes = segment($node->{_pid})->{page_bytes};
	my $json = JSON::PP->new->canonical;
	# The row of small pages has the figures of the whole node. No process of this test is bound to
	# nodes.
	my @of_node = qw(is_allowed processors memory_total_bytes);
	my $of_node = sub {
		my ($dir) = @_;
		my ($memory) = contents("$dir/meminfo") =~ /MemTotal: *(\d+) kB/;
		my $processors = sum0(map { my ($first, $last) = split /-/; ($last // $first) - $first + 1 } split /,/, contents("$dir/cpulist"));
		return (is_allowed => $memory ? 't' : 'f', processors => $processors, memory_total_bytes => $memory * 1024);
	};
	my $read = sub {
		# The view can read any of several processes if the result is the same.
		my @candidates = sort { $a <=> $b } touched_most();
		my @segments = map { segment_pages($_) } @candidates;
		my $segment = $segments[0];
		my $is_clear = !grep { $json->encode($_) ne $json->encode($segment) } @segments;
		my @rows;
		for my $dir (@dirs)
		{
			my ($number) = $dir =~ /(\d+)$/;
			for my $page (base_page(), map { $_ * 1024 } page_sizes_kb())
			{
				my $pool = sprintf "$dir/hugepages/hugepages-%dkB", $page / 1024;
				my %count = map { $_ => contents("$pool/${_}_hugepages") } qw(nr free surplus);
				push @rows, {
					numa_node => $number + 0,
					page_size_bytes => $page,
					is_used_by_server => $page == $page_bytes ? 't' : 'f',
					total_pages => $count{nr},
					free_pages => $count{free},
					surplus_pages => $count{surplus},
					touched_segment_pages => $page == $page_bytes ? $segment->{$number} // 0 : 0,
					$page == base_page() ? $of_node->($dir) : map { $_ => undef } @of_node };
			}
		}
		return (\@rows, "@candidates", $is_clear);
	};
	my ($before, $who, $is_clear, @seen, @free);
	my $same = until_true(sub {
		($before, $who, $is_clear) = $read->();
		@seen = $sql->rows('SELECT * FROM hugeinfo_numa');
		@free = map { delete $_->{memory_free_bytes} } @seen;
		my ($after, $who_then) = $read->();
		return $is_clear && $who eq $who_then && $json->encode($before) eq $json->encode($after);
	});
	ok($same, "$name: the server does not change") or diag("faulted in most: $who");
	is_deeply(\@seen, $before, "$name: every row is the same as in the files");
	is_deeply([ map { defined } @free ], [ map { defined $_->{memory_total_bytes} } @seen ], "$name: free memory of whole nodes");
	is(scalar(grep { defined $free[$_] && $free[$_] > $seen[$_]{memory_total_bytes} } 0 .. $#free), 0, "$name: not more than all");
	cmp_ok(sum0(map { $_->{touched_segment_pages} } @seen), '>', 0, "$name: a part of the segment has been faulted in");
	return $who;
}

SKIP:
{
	my $name = 'NUMA, small pages';
	cannot("$name: this kernel has no NUMA support") unless -e "/proc/$$/numa_maps" && -e '/sys/devices/system/node/node0';
	# A backend that reads a table faults in most pages.
	my $reader = HugeInfo::Session->new($node);
	$reader->value($_) for q(CREATE TABLE large AS SELECT repeat('x', 1000) AS x FROM generate_series(1, 40000)), 'CREATE EXTENSION pg_prewarm',
	  q(SELECT pg_prewarm('large', 'buffer')),
	  # with PostgreSQL 18, I/O workers read buffers for the backend
	  'SET max_parallel_workers_per_gather = 0', 'SELECT count(*) FROM large';
	is(compare_numa($name), $reader->pid, "$name: read from the process that has faulted in most");

	# A new backend that has loaded everything that the query needs.
	my $fresh = HugeInfo::Session->new($node);
	my $shared = sub { return status_file($_[0])->{rss_shmem_bytes} };
	$fresh->rows("SELECT * FROM $_") for 'hugeinfo_status', 'hugeinfo_pools', 'hugeinfo_numa LIMIT 0';
	my ($before, $chosen_before) = map { $shared->($_) } $fresh->pid, $reader->pid;
	my @rows = $fresh->rows('SELECT * FROM hugeinfo_numa');
	my ($after, $chosen_after) = map { $shared->($_) } $fresh->pid, $reader->pid;
	cmp_ok(sum0(map { $_->{touched_segment_pages} } @rows), '>=', (40 << 20) / base_page(), "$name: many pages are counted");
	cmp_ok($after - $before, '<=', 16 * base_page(), "$name: the querying backend does not fault them in");
	is($chosen_after, $chosen_before, "$name: the process that is read does not, either");
	# The figure grows if pages are faulted in.
	$fresh->value('SET max_parallel_workers_per_gather = 0');
	$fresh->value('SELECT count(*) FROM large');
	cmp_ok($shared->($fresh->pid) - $after, '>=', 40 << 20, "$name: reading the table faults them in");
	is_cancelled($fresh, endless('hugeinfo_numa()'), $name);
	$_->close for $fresh, $reader;
}

SKIP:
{
	my $name = 'NUMA, huge pages';
	cannot("$name: this kernel has no NUMA support") unless -e "/proc/$$/numa_maps" && -e '/sys/devices/system/node/node0';
	needs_host($name);
	pools_of_one_size($kb, required_pages($node, $kb) + 3);
	$sql->close;
	restarts($node, huge_pages => 'on');
	$sql = HugeInfo::Session->new($node);
	my $reader = HugeInfo::Session->new($node);
	$reader->value(q(SELECT pg_prewarm('large', 'buffer')));
	compare_numa($name);
	$reader->close;
}

SKIP:
{
	my $name = 'cgroup';
	needs_host("$name: a cgroup of memory");
	my ($version, $dir) = make_group('short/inner', 'memory');
	note("memory controller of cgroup version $version");
	my ($usage, $events) = $version == 2 ? qw(current events) : qw(usage_in_bytes oom_control);
	my $limit = 512 << 20;
	limit_memory('short', $limit);
	$sql->close;
	$node->stop;
	in_group('short/inner', sub { $node->start }, 'memory');
	$sql = HugeInfo::Session->new($node);
	my $see = sub {
		my ($row) = $sql->rows('SELECT cgroup_memory_limit_bytes AS limit, cgroup_memory_used_bytes AS used, cgroup_oom_kills AS kills FROM hugeinfo_host');
		return $row;
	};
	my $read = sub {
		return {
			limit => $limit,
			used => contents("$dir/memory.$usage"),
			kills => contents("$dir/memory.$events") =~ /^oom_kill (\d+)$/m ? $1 : undef };
	};
	is_deeply([ sort keys %{ $see->() } ], [ sort keys %{ $read->() } ], "$name: all columns");
	is(join("\n", misfits($read, $see)), '', "$name: the limit of the parent, and the cgroup's own numbers");
	is($see->()->{kills}, 0, "$name: nothing has been killed");

	# Another process of the cgroup exceeds the limit, and is killed.
	my $on_host = q(SELECT value FROM hugeinfo_vmstat WHERE name = 'oom_kill');
	my $before = $sql->value($on_host);
	in_group('short/inner', sub {
		system($^X, '-e', q(open my $adj, '>', '/proc/self/oom_score_adj' or die; print $adj 1000; close $adj or die;
			my $much = 'x' x (1 << 30); print length $much));
	}, 'memory');
	is($? & 127, 9, "$name: a process was killed");
	is(join("\n", misfits($read, $see)), '', "$name: numbers after an OOM kill");
	is($see->()->{kills}, 1, "$name: the kill is counted");
	# Other processes on the host might have been killed meanwhile.
	cmp_ok($sql->value($on_host), '>', $before, "$name: the host counts it, too");
	is($sql->value('SELECT 1'), 1, "$name: the server survives");
	is_deeply([ $sql->rows(q(SELECT path, status FROM hugeinfo_sources WHERE source = 'memory cgroup')) ],
		[ { path => "$dir/memory.$events", status => 'ok' } ], "$name: hugeinfo_sources has the file");
}

$sql->close;
$node->stop;
done_testing;
