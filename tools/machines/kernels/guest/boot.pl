#!/usr/bin/perl
# The pages that the kernel command line requested, and those that were allocated: boot.pl
# WORD=NUMBER…, where a word is NODE:KB, or KB for all nodes.
use lib '/guest/lib';
use Guest;

mount_groups(2, undef, 'hugetlb', 'cpuset');
told(slurp('/proc/cmdline'));
my $asked = 0;
for (@ARGV)
{
	my ($node, $kb, $pages) = /^(?:(\d+):)?(\d+)=(\d+)$/ or die "$_?\n";
	my $pool = defined $node ? node_pool($node, $kb) : pool($kb);
	$asked += $pages if $kb == default_page_kb();
	same($pool && $pool->{total}, $pages, "pages of $kb kB" . (defined $node ? " on node $node" : ''));
}
start(shared_buffers => '32MB');
compare();
my $check = check_of('reboot');
told($check->{finding});
if (grep { /:/ } @ARGV)
{
	# The extension does not compute numbers for single nodes.
	same($check->{status}, 'unknown', 'reboot');
	true($check->{finding} =~ m{^/proc/cmdline sets the pages of each NUMA node}, 'the reason is the command line', $check->{finding});
}
else
{
	my $is_enough = pool(default_page_kb())->{total} >= required_pages();
	same($check->{status} eq 'ok' ? 1 : 0, $is_enough ? 1 : 0, 'reboot is ok if this boot allocated enough');
	same($check->{evidence}{asked_pages}, $asked, 'pages that the kernel command line asks for');
}
for my $name (qw(pool_filled pool_size))
{
	my $check = check_of($name);
	told("$name: $check->{status}: $check->{finding}");
}
finished();
