#!/usr/bin/perl
# Many nodes, which the kernel makes of one machine. Prints the costs as multiples of that of reading
# one file of each node, because absolute times mean nothing in an emulated machine.
use lib '/guest/lib';
use Guest;
use Time::HiRes qw(time);

my ($count) = @ARGV;
my $kb = default_page_kb();
mount_groups(2, undef, 'hugetlb', 'cpuset');

sub milliseconds { my ($code) = @_; my $began = time; $code->(); return 1000 * (time - $began) }

# Reads the memory of each node once, the least that an answer about nodes can cost.
sub read_nodes { node_memory_kb($_) for nodes(); return }

situation("$count nodes");
same(scalar(my @nodes = nodes()), $count, 'nodes of the kernel');
start(shared_buffers => '128MB');
compare();
my $files = milliseconds(\&read_nodes);
for my $view (qw(hugeinfo_status hugeinfo_pools hugeinfo_checks hugeinfo_runbook hugeinfo_numa))
{
	value("SELECT count(*) FROM $view");
	my $cost = milliseconds(sub { value("SELECT count(*) FROM (SELECT * FROM $view OFFSET 0) AS v") });
	told(sprintf '%s: %.0f ms, %.1f times one file of each node (%.0f ms)', $view, $cost, $cost / $files, $files);
}

situation("$count nodes, the runbook");
follow_runbook();
compare();

finished();
