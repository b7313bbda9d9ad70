#!/usr/bin/perl
# cgroup2 mounted with memory_hugetlb_accounting: huge pages count towards the memory limit of a
# cgroup, and a process that exceeds it is killed.
use lib '/guest/lib';
use Guest;

my $kb = default_page_kb();
my @size = (shared_buffers => '128MB');
my $top = mount_groups(2, 'memory_hugetlb_accounting', 'hugetlb', 'memory');
my $group = make_group("$top/server");
placed(group => $group);

situation('no limit');
start(@size);
my $need = required_pages();
is_exact($kb, $need, @size);
compare();
same(check_of('memory_left')->{status}, 'ok', 'memory_left');

situation('a limit below the segment, most of which has not been faulted in yet');
put("$group/memory.max", 110 << 20);
compare();
my $check = check_of('memory_left');
told($check->{finding});
same($check->{status}, 'critical', 'memory_left, before it happens');
my $killed = sub { slurp("$group/memory.events") =~ /^oom_kill (\d+)$/m ? $1 : 0 };
my $before = $killed->();
my $error = touch(110);
true(defined $error, 'and then the server breaks');
told($error =~ s/\s+/ /gr);
true($killed->() > $before || why_not() =~ /signal 7/, 'by SIGBUS or the OOM killer', why_not());

situation('a limit above it');
stop();
put("$group/memory.max", 600 << 20);
start(@size, huge_pages => 'on');
same(check_of('memory_left')->{status}, 'ok', 'memory_left');
$error = touch(110);
true(!defined $error, 'the same query runs', $error);
same(value('SELECT cgroup_memory_limit_bytes FROM hugeinfo_host'), 600 << 20, 'cgroup_memory_limit_bytes');

finished();
