#!/usr/bin/perl
# The pool: empty, exact, one page short, removed while the server runs, with surplus pages, too
# large; and settings that request no huge pages, or a size that does not exist.
use lib '/guest/lib';
use Guest;

my $kb = default_page_kb();
my @size = (shared_buffers => '128MB');
mount_groups(2, undef, 'hugetlb', 'cpuset');

situation('no pool');
start(@size);
compare();
my $status = status();
my $need = $status->{required_huge_pages};
same($status->{status}, 'warning', 'status');
same($status->{shortfall_pages}, $need, 'shortfall_pages');
same($status->{recommended_nr_hugepages}, $need, 'recommended_nr_hugepages');
restart_as_said(@size);

situation('exactly the required pages');
is_exact($kb, $need, @size);
compare();
same(status()->{status}, 'ok', 'status');
touch(60);
compare();
restart_as_said(@size);

situation('one page short, and the server fell back');
stop();
set_pool($kb, $need - 1);
start(@size);
compare();
same(status()->{shortfall_pages}, 1, 'shortfall_pages');

situation('the pool is removed while the server runs');
stop();
set_pool($kb, $need);
start(@size, huge_pages => 'on');
touch(60);
set_pool($kb, 0);
compare();
same(pool($kb)->{surplus}, $need, 'its pages are surplus now');
same(status()->{status}, 'critical', 'status: on would not start again');
restart_as_said(@size);

situation('half of the pool is surplus, and overcommit allows it again');
stop();
set_pool($kb, 0);
my $half = int($need / 2);
set_overcommit($kb, $need - $half);
set_pool($kb, $half);
start(@size, huge_pages => 'on');
compare();
true(restart_unpromised(@size), 'it gets them again');
compare();

situation('overcommit is one page short');
set_overcommit($kb, $need - $half - 1);
compare();
true(!restart_as_said(@size), 'and so it does not start');
set_overcommit($kb, 0);

situation('the pool is too large');
stop();
# 120 MB: small pages are also needed
set_pool($kb, $need + int(120 * 1024 / $kb));
start(@size, huge_pages => 'on');
compare();
my $size = check_of('pool_size');
same($size->{status}, 'warning', 'pool_size');
restart_as_said(@size);

for (
	[ 'huge_pages = off', huge_pages => 'off' ],
	[ 'shared_memory_type = sysv', shared_memory_type => 'sysv' ],
	[ 'a size that the kernel has not', huge_page_size => '16MB' ])
{
	my ($name, %settings) = @$_;
	situation($name);
	start(@size, %settings);
	compare();
	same(status()->{in_use}, 'f', 'in_use');
	same(status()->{status}, 'warning', 'status');
}

situation('cgroups are no longer mounted');
stop();
system('umount /sys/fs/cgroup') == 0 or die "umount failed\n";
set_pool($kb, $need);
start(@size, huge_pages => 'on');
compare();
same(status()->{fits_after_restart}, 't', 'nothing can limit the server');
restart_as_said(@size);

finished();
