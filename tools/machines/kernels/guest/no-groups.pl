#!/usr/bin/perl
# No cgroups: none mounted, as in small virtual machines; then a hierarchy without the memory and
# hugetlb controllers.
use lib '/guest/lib';
use Guest;

my $kb = default_page_kb();

situation('no hierarchy is mounted');
start();
my $need = required_pages();
is_exact($kb, $need);
told('/proc/PID/cgroup: ' . slurp('/proc/' . postmaster() . '/cgroup'));
compare();
same(status()->{status}, 'ok', 'status') or told(status()->{reason});
same(status()->{fits_after_restart}, 't', 'fits_after_restart');
restart_as_said();

situation('only a hierarchy of another controller');
mount_groups(1, undef, 'pids');
compare();
same(status()->{status}, 'ok', 'status') or told(status()->{reason});
same(status()->{fits_after_restart}, 't', 'fits_after_restart');

finished();
