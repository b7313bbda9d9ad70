#!/usr/bin/perl
# Two nodes: the pool spread by the kernel, all on one node, uneven; the segment interleaved, and on
# one node.
use lib '/guest/lib';
use Guest;

my $kb = default_page_kb();
my ($first, $second) = nodes_with_memory();
# A start faults in all of wal_buffers, so that pages are on the nodes.
my @size = (shared_buffers => '64MB', wal_buffers => '128MB');
mount_groups(2, undef, 'hugetlb', 'cpuset');

sub by_node { return map { node_pool($_, $kb)->{total} } $first, $second }

# Returns the extension's results about nodes.
sub verdict
{
	my ($name) = @_;
	my $check = check_of($name);
	told("$name: $check->{status}: $check->{finding}");
	return $check->{status};
}

situation('two nodes, no pool');
start(@size);
my $need = required_pages();
compare();

situation('the runbook on two nodes');
follow_runbook();
compare();
my @pages = by_node();
true(abs($pages[0] - $pages[1]) <= 1, 'each node has its half', "@pages");
touch(40);
compare();

situation('all of the pool on the first node');
stop();
set_pool($kb, 0);
same(set_node_pool($first, $kb, $need), $need, 'pages on it');
start(@size, huge_pages => 'on');
compare();
restart_as_said(@size);

situation('three quarters on the first node');
stop();
set_pool($kb, 0);
my $most = int($need * 3 / 4);
set_node_pool($first, $kb, $most);
set_node_pool($second, $kb, $need - $most);
start(@size, huge_pages => 'on');
compare();

# A server that is not bound can use pages of any node.
same(status()->{status}, 'ok', 'status');
restart_as_said(@size);

situation('interleaved');
stop();
set_pool($kb, 0);
set_node_pool($_, $kb, $need) for $first, $second;
placed(before => [qw(numactl --interleave=all)]);
start(@size, huge_pages => 'on');
compare();
restart_as_said(@size);

my @large = (shared_buffers => '32MB', wal_buffers => '1200MB');
situation('1.2 GB in use, interleaved, on small pages');
stop();
set_pool($kb, 0);
start(@large);
compare();
same(verdict('numa_segment'), 'ok', 'numa_segment');

situation('1.2 GB in use on one node, on small pages');
placed(before => [ 'numactl', "--preferred=$first" ]);
start(@large);
compare();
same(verdict('numa_segment'), 'warning', 'numa_segment');

situation('1.2 GB in use on one node, on huge pages');
my $large = required_pages();
stop();
same(set_node_pool($first, $kb, $large), $large, 'pages on it');
placed();
start(@large, huge_pages => 'on');
compare();
same(verdict('numa_segment'), 'warning', 'numa_segment');

finished();
