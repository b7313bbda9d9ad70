#!/usr/bin/perl
# A segment with whole gigabytes on huge pages: processes share the page tables of these
# (mm/hugetlb.c huge_pmd_share), and HugetlbPages leaves out what lies below shared ones.
use lib '/guest/lib';
use Guest;

my $kb = default_page_kb();
my @size = (shared_buffers => '1500MB', wal_buffers => '1900MB');
mount_groups(2, undef, 'hugetlb', 'cpuset');

situation('3.4 GB, as planned');
start(shared_buffers => '32MB');
my $plan = row(q(SELECT required_pages FROM hugeinfo_plan('{"shared_buffers": "1500MB", "wal_buffers": "1900MB"}') WHERE is_requested));
stop();
same(set_pool($kb, $plan->{required_pages}), $plan->{required_pages}, 'pages in the pool');
start(@size, huge_pages => 'on');
same(required_pages(), $plan->{required_pages}, 'required_huge_pages');
compare();

situation('3.4 GB, touched by several processes');
touch(40);
value('CHECKPOINT');
compare();
restart_as_said(@size);

finished();
