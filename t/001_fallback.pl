# Servers that do not run on huge pages, each for a different reason.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Server;
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $node = new_server('fallback');
my $need = $kb && required_pages($node, $kb);

# Without rights on the host: any state of the pools.
{
	my $name = 'the host as it is';
	my $seen = observe($node);
	compare_segment($node, $seen->{status}, $name);
	compare_pools($node, $seen, $name);
}

# the columns that are the same in most scenarios
my %small = (in_use => 'f', page_size_bytes => base_page(), status => 'warning', required_huge_pages => $need);

SKIP:
{
	my $name = 'try, empty pool';
	needs_host($name);
	pools_of_one_size($kb, 0);
	restarts($node);
	my $seen = observe($node);
	compare_segment($node, $seen->{status}, $name);
	compare_pools($node, $seen, $name);
	compare_status($seen->{status}, {
			%small,
			huge_pages => 'try',
			shared_memory_type => 'mmap',
			huge_page_size_bytes => $kb * 1024,
			pool_total_pages => 0,
			pool_available_pages => 0,
			shortfall_pages => $need,
			fits_after_restart => 'f',
			recommended_nr_hugepages => $need + $seen->{wanted_by_others},
		}, $name);
	like($seen->{status}{reason}, qr/\b$need\b/, "$name: the reason names the required pages");
	like($seen->{status}{remedy}, qr/\bvm\.nr_hugepages\s*=\s*@{[ $need + $seen->{wanted_by_others} ]}\b/, "$name: the remedy is a sysctl");
	like($seen->{pools}{$kb}{how_to_set}, qr/\bvm\.nr_hugepages\s*=\s*@{[ $need + $seen->{wanted_by_others} ]}\b/, "$name: how_to_set is a sysctl");
}

SKIP:
{
	my $name = 'one page short';
	needs_host($name);
	pools_of_one_size($kb, $need - 1);
	# Without a line that sets them, idle pages could be those of another program.
	set_boot_pages($need - 1);
	restarts($node);
	my $seen = observe($node);
	compare_segment($node, $seen->{status}, $name);
	compare_pools($node, $seen, $name);
	compare_status($seen->{status}, {
			%small,
			pool_total_pages => $need - 1,
			pool_available_pages => $need - 1,
			shortfall_pages => 1,
			fits_after_restart => 'f',
			recommended_nr_hugepages => $need + $seen->{wanted_by_others},
		}, $name);
	like($seen->{status}{reason}, qr/\bNeeds $need\b.*; @{[ $need - 1 ]} are available/, "$name: the reason names the pages");
	like($seen->{status}{remedy}, qr/\bvm\.nr_hugepages\s*=\s*@{[ $need + $seen->{wanted_by_others} ]}\b/, "$name: the remedy is exact");

	set_boot_pages(undef);

	# The page now exists, but a server requests pages only when it starts.
	$name = 'pool filled too late';
	set_pool($kb, $need);
	$seen = observe($node);
	compare_pools($node, $seen, $name);
	compare_status($seen->{status}, { %small, shortfall_pages => 0, fits_after_restart => 't' }, $name);
	like($seen->{status}{remedy}, qr/restart/i, "$name: the remedy is a restart");
}

# Below, the pool is large enough, and another cause keeps the server on small pages. The restart
# forecast considers only the pool.
SKIP:
{
	my $name = 'off';
	needs_host($name);
	pools_of_one_size($kb, $need);
	restarts($node, huge_pages => 'off');
	my $seen = observe($node);
	compare_segment($node, $seen->{status}, $name);
	compare_pools($node, $seen, $name);
	compare_status($seen->{status},
		{ %small, status => 'ok', code => 'turned_off', remedy => undef, huge_pages => 'off', shortfall_pages => 0, fits_after_restart => 't' }, $name);
	like($seen->{status}{reason}, qr/huge_pages\b.*\boff/, "$name: the reason names the setting");
	configure($node, huge_pages => 'try');
}

SKIP:
{
	my $name = 'sysv';
	needs_host($name);
	pools_of_one_size($kb, $need);
	restarts($node, shared_memory_type => 'sysv');
	my $seen = observe($node);
	compare_segment($node, $seen->{status}, $name);
	compare_pools($node, $seen, $name);
	compare_status($seen->{status},
		{ %small, shared_memory_type => 'sysv', shortfall_pages => 0, fits_after_restart => 't' }, $name);
	like($seen->{status}{reason}, qr/sysv/, "$name: the reason names it");
	like($seen->{status}{remedy}, qr/shared_memory_type/, "$name: the remedy names it, too");

	restarts($node, shared_memory_type => 'mmap');
	is(status_of($node)->{in_use}, 't', "$name: the remedy works");
}

for my $mb (3, 16)
{
	SKIP:
	{
		my $name = "huge_page_size = ${mb}MB";
		needs_host($name);
		cannot("$name: this kernel has pages of $mb MB") if grep { $_ == $mb * 1024 } page_sizes_kb();
		pools_of_one_size($kb, $need);
		restarts($node, huge_page_size => "${mb}MB");
		my $seen = observe($node);
		compare_segment($node, $seen->{status}, $name);
		compare_pools($node, $seen, $name);
		compare_status($seen->{status}, {
				in_use => 'f',
				status => 'warning',
				huge_page_size_bytes => $mb << 20,
				# the kernel has no such pool
				pool_total_pages => undef,
				pool_available_pages => undef,
				fits_after_restart => 'f',
			}, $name);
		like($seen->{status}{reason}, qr/\b$mb MB\b.*/, "$name: the reason names the size");
		like($seen->{status}{remedy}, qr/huge_page_size/, "$name: the remedy names the setting");
		configure($node, huge_page_size => 0);
	}
}

done_testing;
