#!/usr/bin/perl
# No control groups: none mounted, as in small virtual machines; then a hierarchy that is about
# something else.
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

situation('the memory controller alone, version 1');
mount_groups(1, undef, 'memory');
compare();
same(status()->{status}, 'ok', 'status') or told(status()->{reason});
same(status()->{fits_after_restart}, 't', 'fits_after_restart');

finished();
