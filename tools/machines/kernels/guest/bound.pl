#!/usr/bin/perl
# Servers that are allowed to use only one node, by numactl or by a cgroup. The kernel refuses a
# mapping on huge pages if that node has too few free pages, even if the pool has enough elsewhere.
# Reservations are not per node, however, so other processes can use the pages of that node.
use lib '/guest/lib';
use Guest;
use List::Util 'sum';

my $kb = default_page_kb();
my ($first, $second) = nodes_with_memory();
my @size = (shared_buffers => '64MB', wal_buffers => '4MB');
my $top = mount_groups(2, undef, 'hugetlb', 'cpuset');
my $group = make_group("$top/bound");
put("$group/cpuset.mems", $second);

start(@size);
my $need = required_pages();
mkdir '/run/others' or die "/run/others: $!\n";
system('mount -t hugetlbfs -o pagesize=2M none /run/others') == 0 or die "no hugetlbfs\n";

sub pools_of
{
	my ($pages_of_first, $pages_of_second) = @_;
	stop();
	set_pool($kb, 0);
	same(set_node_pool($first, $kb, $pages_of_first), $pages_of_first, "pages on node $first");
	same(set_node_pool($second, $kb, $pages_of_second), $pages_of_second, "pages on node $second");
	return;
}

sub how_to_set { return value("SELECT how_to_set FROM hugeinfo_pools WHERE page_size_bytes = $kb * 1024") }

# Adds the pages that a decision names to the node that it names.
sub follow_decision
{
	my ($decision) = @_;
	told($decision);
	my ($pages, $node, $file) = $decision =~ /^# allocate (\d+) more huge pages of \S+ MB on NUMA node (\d+) \((\S+)\)/m;
	same($node, $second, 'the decision names the node') or return;
	same($file, "/sys/devices/system/node/nodeN/hugepages/hugepages-${kb}kB/nr_hugepages", 'and the file');
	my $pool = node_pool($node, $kb);
	my $wanted = $pool->{total} - $pool->{surplus} + $pages;
	same(set_node_pool($node, $kb, $wanted), $wanted, "pages on node $node");
	return;
}

for (
	[ 'bound by numactl', before => [ 'numactl', "--membind=$second" ] ],
	[ 'bound by a control group', group => $group ])
{
	my ($how, @place) = @$_;
	situation("$how, and the pool is on the other node");
	pools_of($need, 0);
	placed(@place);
	start(@size);
	compare();
	my $allowed = value("SELECT string_agg(numa_node::text, ' ') FROM hugeinfo_numa WHERE is_allowed");
	same($allowed, $second, 'the node that it may use');
	same(status()->{in_use}, 'f', 'it fell back');
	true(!restart_as_said(@size), 'and would again');

	situation("$how, one page short on its node");
	pools_of($need, $need - 1);
	start(@size);
	compare();
	true(!restart_as_said(@size), 'too few');

	situation("$how, and its node has the required pages");
	pools_of(0, $need);
	start(@size, huge_pages => 'on');
	compare();
	same(status()->{status}, 'ok', 'status');
	true(restart_as_said(@size), 'enough');
	touch(40);
	compare();

	situation("$how, and the decision from an empty pool");
	pools_of(0, 0);
	start(@size);
	follow_decision(status()->{remedy});
	# sysctl files cannot name nodes.
	follow_runbook(qr/at boot by hand, or let the server use all NUMA nodes: .* on node $second$/);
	compare();
	same(node_pool($second, $kb)->{total}, $need, 'pages on its node');

	situation("$how, and its node has too little memory for the pool");
	pools_of(0, 0);
	start(@size, shared_buffers => '340MB');
	my %left = slurp("/sys/devices/system/node/node$second/meminfo") =~ /(MemFree|Active\(file\)|Inactive\(file\)|SReclaimable):\s+(\d+) kB/g;
	my $taken = int(sum(values %left) / 1024) - 300;
	system('numactl', "--membind=$second", 'fallocate', '-l', "${taken}MiB", '/run/ballast') == 0 or die "cannot fill the memory of node $second\n";
	true(meminfo_kb('MemAvailable') > 800 * 1024, 'the host has enough');
	for my $said (status()->{remedy}, how_to_set())
	{
		true($said =~ /; node $second has 0 of 0 pages free, and (\d+) MB of memory available/ && $1 < 400, 'the decision shows the memory of the node', $said);
	}
	unlink '/run/ballast';

	situation("$how, and how_to_set while the pool is on the other node");
	pools_of($need, 0);
	start(@size);
	follow_decision(how_to_set());
	true(restart_as_said(@size), 'enough');
	compare();

	situation("$how, and how_to_set while it has reserved pages");
	pools_of(5, $need + 5);
	start(@size, huge_pages => 'on');
	follow_how_to_set($kb, sub { same(touch(40), undef, 'the reserved pages exist') });
	compare();

	situation("$how, and pages of its node are removed from the pool");
	pools_of($need, $need);
	start(@size, huge_pages => 'on');
	compare();
	my $touched = node_pool($second, $kb)->{total} - node_pool($second, $kb)->{free};
	same(set_node_pool($second, $kb, $touched + 2), $touched + 2, "pages on node $second");
	my $check = check_of('huge_pages');
	same($check->{status}, 'critical', 'huge_pages');
	told($check->{finding});
	follow_decision($check->{remedy});
	same(touch(40), undef, 'the reserved pages exist again');
	true(restart_as_said(@size, huge_pages => 'on'), 'enough');

	situation("$how, and another process uses the pages that it has reserved");
	pools_of($need, $need);
	start(@size, huge_pages => 'on');
	# faults in the parts of the segment that the comparison needs, while there are pages
	compare();
	my $free = node_pool($second, $kb)->{free};
	system('numactl', "--membind=$second", 'fallocate', '-l', $free * 2 . 'MiB', '/run/others/taken') == 0
	  or die "cannot use the pages of node $second\n";
	same(node_pool($second, $kb)->{free}, 0, "free pages on node $second");
	compare();
	my $status = status();
	told("$status->{status}: $status->{reason}");
	my $error = touch(50);
	true(join(' ', $error // '', why_not()) =~ /Bad address|signal 7/, 'the server breaks', $error);
	true($status->{status} ne 'ok', 'and the status was not ok');
	stop();
	unlink '/run/others/taken';
}

finished();
