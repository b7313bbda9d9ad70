# A test to be killed by 000_harness.pl: it changes everything that a test can change, prints a
# line, and waits.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Server;
use PostgreSQL::Test::Cluster;
use Test::More;

my $kb = default_page_kb();
my $node = PostgreSQL::Test::Cluster->new('victim');
$node->init;
configure($node, shared_buffers => '16MB', huge_pages => 'on');

set_pool($kb, 64);
set_overcommit($kb, 3);
make_group('outer/inner');
limit_group('outer/inner', 'fault', $kb, 1024 * $kb * 1000);
in_group('outer/inner', sub { $node->start });
set_thp('enabled', 'always');
set_thp('shmem_enabled', 'within_size');
set_strict_overcommit(1000);
set_boot_pages(64);
mount_hugetlbfs($kb, '');
my $no_swap = eval { add_swap(8); 1 } ? '' : $@;
type_in('sysctl -w vm.nr_hugepages=' . (65 + pages_of_others($kb)));

my $out = Test::More->builder->output;
print $out "# $no_swap" if $no_swap;
print $out "ready $node->{_pid} $ENV{TESTDIR}\n";
sleep 600;
