#!/usr/bin/perl
# Limits of cgroups on huge pages: groups.pl VERSION
use lib '/guest/lib';
use Guest;

my ($version) = @ARGV;
my $kb = default_page_kb();
my $page = $kb << 10;
my $top = mount_groups($version, undef, 'hugetlb');
my $outer = make_group("$top/outer");
put("$outer/cgroup.subtree_control", '+hugetlb') if $version == 2;
my $inner = make_group("$outer/inner");
my ($limit, $use) = $version == 2 ? qw(max current) : qw(limit_in_bytes usage_in_bytes);
my $none = $version == 2 ? 'max' : -1;
# Half of it is faulted in at once, because a start fills wal_buffers with zeroes.
my @size = (shared_buffers => '64MB', wal_buffers => '64MB');
placed(group => $inner);

sub set_limit { my ($dir, $kind, $bytes) = @_; put("$dir/hugetlb.2MB.$kind$limit", $bytes); return }

sub limit_of
{
	my ($dir, $name) = @_;
	my $text = slurp("$dir/hugetlb.2MB.$name");
	return $text eq 'max' || $text > 9e18 ? undef : $text;
}

# Compares SQL columns with the files of the cgroups that limit the server.
sub compare_limits
{
	my ($touching, $reserving) = @_;
	my $pool = row("SELECT * FROM hugeinfo_pools WHERE page_size_bytes = $page");
	same($pool->{cgroup_limit_bytes}, limit_of($touching, $limit), 'cgroup_limit_bytes');
	same($pool->{cgroup_used_bytes}, limit_of($touching, $use), 'cgroup_used_bytes');
	same($pool->{cgroup_reserved_limit_bytes}, limit_of($reserving, "rsvd.$limit"), 'cgroup_reserved_limit_bytes');
	same($pool->{cgroup_reserved_bytes}, limit_of($reserving, "rsvd.$use"), 'cgroup_reserved_bytes');
	return;
}

situation('cgroups without limits');
start(@size);
my $need = required_pages();
is_exact($kb, $need, @size);
compare();
compare_limits($inner, $inner);

situation('the outer cgroup limits reservations below the segment');
stop();
set_limit($outer, 'rsvd.', ($need - 1) * $page);
start(@size);
compare();
compare_limits($inner, $outer);
same(status()->{in_use}, 'f', 'it fell back');
true(!restart_as_said(@size), 'and would again');
start(@size);
follow_runbook();
compare_limits($inner, $outer);
stop();
set_limit($outer, 'rsvd.', $none);

situation('a fault limit, while the server is on small pages');
set_pool($kb, $need - 1);
start(@size);
set_pool($kb, $need);
set_limit($inner, '', 100 << 20);
compare();
compare_limits($inner, $inner);
my $check = check_of('cgroup_fault_limit');
same($check->{status}, 'warning', 'cgroup_fault_limit');

situation('a fault limit below the segment');
stop();
set_limit($inner, '', $none);
start(@size, huge_pages => 'on');
set_limit($inner, '', 100 << 20);
compare();
compare_limits($inner, $inner);
same(status()->{status}, 'critical', 'status before it happens');
my $error = touch(60);
true(defined $error, 'and then the server breaks');
true(join(' ', $error, why_not()) =~ /Bad address|signal 7|read only \d+ of 8192 bytes/, 'for want of a page', $error);

situation('the runbook with this limit');
stop();
set_limit($inner, '', $none);
start(@size, huge_pages => 'on');
set_limit($inner, '', 100 << 20);
follow_runbook();
$error = touch(60);
true(!defined $error, 'the same query runs', $error);
compare_limits($inner, $inner);

finished();
