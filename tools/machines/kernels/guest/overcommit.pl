#!/usr/bin/perl
# Strict overcommit: the kernel's limit, and starts on small pages that it refuses.
use lib '/guest/lib';
use Guest;

my $VM = '/proc/sys/vm';
my $kb = default_page_kb();
my @size = (shared_buffers => '256MB');
mount_groups(2, undef, 'hugetlb', 'cpuset');

sub compare_limit
{
	my $evidence = check_of('overcommit')->{evidence};
	same($evidence->{commit_limit_bytes}, meminfo_kb('CommitLimit') * 1024, 'CommitLimit');
	my $taken = $evidence->{taken_by_pools_bytes};
	same(defined $taken, slurp("$VM/overcommit_kbytes") == 0, 'the pools take from a limit by ratio');
	return;
}

situation('enough room');
put("$VM/overcommit_ratio", 100);
put("$VM/overcommit_memory", 2);
start(@size);
my $need = required_pages();
my $segment_kb = status()->{segment_bytes} / 1024;
compare();
compare_limit();
my $before = meminfo_kb('CommitLimit');
follow_runbook();
compare();
compare_limit();
true($before - meminfo_kb('CommitLimit') >= $need * $kb, 'the pool has lowered the limit');
restart_as_said(@size);

# The server runs on pages that are not available after it stops.
sub lose_pages
{
	my ($limit_kb) = @_;
	stop();
	put("$VM/overcommit_kbytes", 4 * 1024 * 1024);
	same(set_pool($kb, $need), $need, 'pages in the pool');
	start(@size);
	same(status()->{in_use}, 't', 'in_use');
	set_pool($kb, $need - 1);
	put("$VM/overcommit_kbytes", meminfo_kb('Committed_AS') + $limit_kb);
	compare_limit();
	my $check = check_of('restart');
	told("$check->{status}: $check->{finding}");
	return $check->{status};
}

situation('a fallback that the limit forbids');
same(lose_pages($segment_kb / 2), 'critical', 'restart');
true(!restart(), 'it does not start');
true(is_for_want_of_memory(), 'since the limit refuses it', why_not());

situation('a fallback within the limit');
same(lose_pages($segment_kb * 3), 'warning', 'restart');
true(restart(), 'it starts', why_not());
same(status()->{in_use}, 'f', 'on small pages');
compare();
compare_limit();

finished();
