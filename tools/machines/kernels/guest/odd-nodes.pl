#!/usr/bin/perl
# Nodes without memory, with a hole in their numbers, or of different sizes: odd-nodes.pl ONLINE
# HAS_MEMORY, as the kernel writes them.
use lib '/guest/lib';
use Guest;

my $kb = default_page_kb();
my @size = (shared_buffers => '64MB', wal_buffers => '32MB');
mount_groups(2, undef, 'hugetlb', 'cpuset');
my %file = map { $_ => slurp("/sys/devices/system/node/$_") } qw(online possible has_cpu has_memory);
told("$_: $file{$_}") for sort keys %file;
same("$file{online} $file{has_memory}", "@ARGV", 'nodes, and those with memory');
told("node $_: " . node_memory_kb($_) . ' kB') for nodes();

situation('no pool');
start(@size);
my $need = required_pages();
compare();

situation('the runbook');
follow_runbook();
compare();
my @with_memory = nodes_with_memory();
my $pages = 0;
$pages += node_pool($_, $kb)->{total} for @with_memory;
true($pages >= $need, 'nodes with memory have the pool');
restart_as_said(@size);

situation('all pages on the last node that has memory');
stop();
set_pool($kb, 0);
my $given = set_node_pool($with_memory[-1], $kb, $need);
# Much of a small node can be in use already.
my $is_small = node_memory_kb($with_memory[-1]) < 2 * $need * $kb;
true($given == $need || $is_small && $given < $need, "asked for $need pages, given $given");
start(@size);
compare();
restart_as_said(@size);

start(@size);
if ($given < $need)
{
	situation('the runbook in that state');
	follow_runbook();
	compare();
}
else { same(status()->{status}, 'ok', 'status: a server that is not bound can use pages of any node') }

finished();
