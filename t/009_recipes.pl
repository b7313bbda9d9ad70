# Commands that administrators run by hand, and the queries that replace them, on the same server,
# on small and huge pages. README.md has some of them.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $node = new_server('recipes');

sub shell
{
	my ($command) = @_;
	my ($out, $err) = run_command([ 'sh', '-c', $command ]);
	is($err, '', "$command: no error");
	return $out;
}

sub sql { my ($query) = @_; return $node->safe_psql('postgres', $query) }

sub by_hand_and_by_sql
{
	my ($name) = @_;
	my $postmaster = $node->{_pid};

	# With both names, because the recipe that greps only for zero finds nothing on huge pages.
	my $pmap = shell("pmap $postmaster | grep -E 'anon_hugepage|zero'");
	my ($footprint_kb, $mapped_as) = $pmap =~ /\s(\d+)K rw-s- (anon_hugepage|zero)/;
	ok($footprint_kb, "$name: pmap shows one shared mapping");
	is(sql('SELECT segment_bytes / 1024 FROM hugeinfo_status'), $footprint_kb, "$name: pmap and segment_bytes");
	is(sql('SELECT in_use FROM hugeinfo_status'), $mapped_as eq 'zero' ? 'f' : 't', "$name: pmap and in_use");

	my ($huge_kb) = shell('grep ^Hugepagesize /proc/meminfo') =~ /(\d+) kB/;
	is(sql('SELECT huge_page_size_bytes / 1024 FROM hugeinfo_status'), $huge_kb, "$name: Hugepagesize");
	my $pages = POSIX::ceil($footprint_kb / $huge_kb);
	is(sql('SELECT required_huge_pages FROM hugeinfo_status'), $pages, "$name: footprint / Hugepagesize, rounded up");

	# VmPeak is larger, because it includes libraries, heap and stack.
	my ($peak_kb) = shell("grep ^VmPeak /proc/$postmaster/status") =~ /(\d+) kB/;
	cmp_ok(sql('SELECT required_huge_pages FROM hugeinfo_status'), '<', POSIX::ceil($peak_kb / $huge_kb),
		"$name: fewer pages than VmPeak would need");

	# The server can fault in pages at any time.
	my ($seen, $meminfo) = settled(
		sub { sql('SELECT total_pages, free_pages, reserved_pages, surplus_pages FROM hugeinfo_pools WHERE is_default') },
		sub {
			my %meminfo = shell('grep ^HugePages_ /proc/meminfo') =~ /^HugePages_(\w+):\s+(\d+)$/mg;
			return join '|', @meminfo{qw(Total Free Rsvd Surp)};
		},
		sub { my ($rows, $kernel) = @_; return ($rows->[0], $kernel->[0]) });
	is($seen, $meminfo, "$name: grep HugePages_ /proc/meminfo");
	my $sysctl = shell('cat /proc/sys/vm/nr_hugepages');
	is(sql('SELECT total_pages - surplus_pages FROM hugeinfo_pools WHERE is_default'), $sysctl, "$name: sysctl vm.nr_hugepages");
	return;
}

# The flags list the page sizes of an x86 processor. hugeinfo_pools lists those of the kernel, on
# any processor.
SKIP:
{
	my %flags = map { $_ => 1 } split ' ', shell('grep -m1 -E "^(flags|Features)" /proc/cpuinfo');
	skip('only x86 processors have the flags pse and pdpe1gb', 2) unless $flags{pse};
	is(sql('SELECT count(*) FROM hugeinfo_pools WHERE page_size_bytes = 2 << 20'), 1, 'flag pse: 2 MB');
	is(sql('SELECT count(*) FROM hugeinfo_pools WHERE page_size_bytes = 1 << 30'), $flags{pdpe1gb} // 0, 'flag pdpe1gb: 1 GB');
}

by_hand_and_by_sql('small pages') if sql('SELECT NOT in_use FROM hugeinfo_status') eq 't';

SKIP:
{
	needs_host('the recipes on huge pages');
	pools_of_one_size($kb, sql('SELECT recommended_nr_hugepages FROM hugeinfo_status'));
	$node->restart;
	is(sql('SELECT in_use FROM hugeinfo_status'), 't', 'on huge pages after a restart with the recommended number');
	by_hand_and_by_sql('huge pages');
}

$node->stop;
done_testing;
