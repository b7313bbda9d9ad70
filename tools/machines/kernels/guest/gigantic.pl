#!/usr/bin/perl
# 1 GB pages from the kernel command line, as the default size or in addition to it.
use lib '/guest/lib';
use Guest;

my $default = default_page_kb();
my $gigantic = 1 << 20;
my @size = (shared_buffers => '256MB');
my @gigantic = (@size, huge_page_size => '1GB');
mount_groups(2, undef, 'hugetlb', 'cpuset');
told(slurp('/proc/cmdline'));

situation('huge_page_size = 1GB, and one such page exists');
same(pool($gigantic)->{total}, 1, 'pages of 1 GB');
start(@gigantic, huge_pages => 'on');
compare();
same(status()->{page_size_bytes}, 1 << 30, 'page_size_bytes');
touch(60);
compare();
restart_as_said(@gigantic);

situation('the default size');
start(@size);
compare();
same(status()->{huge_page_size_bytes}, $default << 10, 'huge_page_size_bytes');
same(status()->{in_use}, $default == $gigantic ? 't' : 'f', 'in_use');
restart_as_said(@size);

situation('the 1 GB page has been removed');
stop();
same(set_pool($gigantic, 0), 0, 'pages of 1 GB');
start(@gigantic);
compare();
same(status()->{in_use}, 'f', 'it fell back');
restart_as_said(@gigantic);
start(@gigantic);
follow_runbook();
compare();

finished();
