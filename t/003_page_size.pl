# A page size other than the kernel's default, which is 1 GB on most machines, and one that no
# kernel has: PostgreSQL rounds the segment up to it, and the kernel rounds it up to its own pages.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Server;
use Test::More;

my $kb = other_page_kb();

SKIP:
{
	needs_host('another page size');
	cannot('this kernel has only one huge page size') unless $kb;
	my $size = $kb >= 1 << 20 ? ($kb >> 20) . 'G' : ($kb >> 10) . 'M';
	my $node = new_server('large', huge_page_size => "${size}B");
	my $need = required_pages($node, $kb);
	my $write = "/sys/kernel/mm/hugepages/hugepages-${kb}kB/nr_hugepages";

	my $name = 'none reserved';
	pools_of_one_size($kb, 0);
	restarts($node);
	my $seen = observe($node);
	compare_segment($node, $seen->{status}, $name);
	compare_pools($node, $seen, $name);
	compare_status($seen->{status}, {
			in_use => 'f',
			status => 'warning',
			huge_page_size_bytes => $kb * 1024,
			required_huge_pages => $need,
			shortfall_pages => $need,
			recommended_nr_hugepages => $need + wanted_by_others($kb, $node->{_pid}),
			fits_after_restart => 'f',
		}, $name);
	like($seen->{status}{remedy}, qr/\Q$write\E/, "$name: the remedy writes to the pool of that size");
	my $how = $seen->{pools}{$kb}{how_to_set};
	like($how, qr/\b$need\b.*\Q$write\E/s, "$name: how_to_set has the command for now");
	like($how, qr/hugepagesz=$size hugepages=$need\b/, "$name: how_to_set has the words for the boot");

	$name = 'reserved';
	# A machine that has run for long might have no such page.
	eval { set_pool($kb, $need); 1 } or cannot("$name: $@");
	restarts($node);
	$seen = observe($node);
	compare_segment($node, $seen->{status}, $name);
	compare_pools($node, $seen, $name);
	compare_status($seen->{status}, {
			in_use => 't',
			status => 'ok',
			page_size_bytes => $kb * 1024,
			segment_pages => $need,
			required_huge_pages => $need,
			pool_total_pages => $need,
			shortfall_pages => 0,
			fits_after_restart => 't',
		}, $name);
}

SKIP:
{
	my $name = 'a huge_page_size that is not a power of two';
	needs_host($name);
	my $default = default_page_kb();
	cannot("$name: 1536 kB does not round up to $default kB pages") if $default != 2048;
	my $node = new_server('uneven', huge_page_size => '1536kB');
	# sizes for each remainder of both
	for my $mb (40 .. 45)
	{
		$node->stop;
		pools_of_one_size($default, 0);
		configure($node, shared_buffers => "${mb}MB", huge_pages => 'try');
		$node->start;
		my $need = $node->safe_psql('postgres', 'SELECT required_huge_pages FROM hugeinfo_status');
		$node->stop;
		configure($node, huge_pages => 'on');
		set_pool($default, $need - 1);
		ok(!$node->start(fail_ok => 1), "$name: $mb MB: one less than $need pages are too few");
		set_pool($default, $need);
		ok($node->start(fail_ok => 1), "$name: $mb MB: $need pages are enough");
		my $seen = observe($node);
		compare_segment($node, $seen->{status}, $name);
		compare_status($seen->{status}, { in_use => 't', status => 'ok', required_huge_pages => $need, fits_after_restart => 't' }, "$name: $mb MB");
	}
}

done_testing;
