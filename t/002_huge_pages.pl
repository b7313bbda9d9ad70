# Servers on huge pages, and the forecast of their restart.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use Test::More;

my $kb = default_page_kb();
my $node = new_server('huge');
my $need = $kb && required_pages($node, $kb);

# Restarts the server and compares the result with the forecast.
sub comes_true
{
	my ($status, $name) = @_;
	restarts($node);
	my $huge = segment($node->{_pid})->{page_bytes} > base_page() ? 't' : 'f';
	# NULL if pages have to be allocated at the start. Here, memory is available.
	is($huge, $status->{fits_after_restart} // 't', "$name: the restart went as forecast");
	return;
}

SKIP:
{
	my $name = 'exactly enough';
	needs_host($name);
	pools_of_one_size($kb, $need);
	restarts($node);
	my $seen = observe($node);
	compare_segment($node, $seen->{status}, $name);
	compare_pools($node, $seen, $name);
	compare_status($seen->{status}, {
			in_use => 't',
			page_size_bytes => $kb * 1024,
			segment_pages => $need,
			huge_page_size_bytes => $kb * 1024,
			required_huge_pages => $need,
			pool_total_pages => $need,
			pool_available_pages => 0,
			shortfall_pages => 0,
			fits_after_restart => 't',
			recommended_nr_hugepages => $need + $seen->{wanted_by_others},
			status => 'ok',
		}, $name);
	# Myths in docs/checks.md: pmap finds no mapping of /dev/zero, and VmPeak is too large.
	like(scalar(`pmap $node->{_pid}`), qr/\s@{[ $need * $kb ]}K rw-s- anon_hugepage/, "$name: the name of the segment");
	cmp_ok(process_file($node->{_pid}, 'status') =~ /^VmPeak:\s+(\d+) kB$/m && $1, '>', $need * $kb, "$name: VmPeak is more than the segment");
	comes_true($seen->{status}, $name);
}

# More idle pages than both 10% of the required ones and 1% of RAM raise a warning.
SKIP:
{
	needs_host('idle pages');
	my $of_ram = int(ram_bytes() / 100 / ($kb * 1024));
	my $of_need = int($need / 10);
	my $idle = $of_ram > $of_need ? $of_ram : $of_need;
	for my $case ([ 'a little too large', $idle, 'ok' ], [ 'oversized', $idle + 1, 'warning' ])
	{
		my ($name, $spare, $status) = @$case;
		# Pages that other servers request are not idle.
		my $free = $spare + wanted_by_others($kb, $node->{_pid}) - pages_of_others($kb);
		pools_of_one_size($kb, $need + $free);
		my $seen = observe($node);
		compare_pools($node, $seen, $name);
		compare_status($seen->{status}, {
				in_use => 't',
				status => $status,
				shortfall_pages => 0,
				fits_after_restart => 't',
				pool_total_pages => $need + $free,
				pool_available_pages => $free,
				recommended_nr_hugepages => $need + $seen->{wanted_by_others},
			}, $name);
		next if $status eq 'ok';
		like($seen->{status}{reason}, qr/^$spare huge pages .* are idle/, "$name: the reason names the idle pages");
		like($seen->{status}{remedy}, qr/\bvm\.nr_hugepages\s*=\s*@{[ $need + $seen->{wanted_by_others} ]}\b/, "$name: the remedy has the correct number");
		my @figures = map { "evidence ->> '$_'" } qw(persistent_pages needed_pages idle_bytes);
		is($node->safe_psql('postgres', sprintf q(SELECT %s FROM hugeinfo_checks WHERE name = 'pool_size'), join ', ', @figures),
			join('|', $seen->{kernel}{$kb}{total}, $need + $seen->{wanted_by_others}, $spare * $kb * 1024), "$name: the evidence");
	}
}

SKIP:
{
	my $name = 'overcommit only';
	needs_host($name);
	pools_of_one_size($kb, 0);
	set_overcommit($kb, $need);
	restarts($node);
	my $seen = observe($node);
	compare_segment($node, $seen->{status}, $name);
	compare_pools($node, $seen, $name);
	is($seen->{kernel}{$kb}{surplus}, $need, "$name: all pages are surplus");
	compare_status($seen->{status}, {
			in_use => 't',
			status => 'warning',
			shortfall_pages => 0,
			fits_after_restart => undef,
			pool_available_pages => 0,
			recommended_nr_hugepages => $need + $seen->{wanted_by_others},
		}, $name);
	comes_true($seen->{status}, $name);

	$name = 'overcommit lowered meanwhile';
	set_overcommit($kb, $need - 1);
	$seen = observe($node);
	compare_pools($node, $seen, $name);
	compare_status($seen->{status},
		{ in_use => 't', status => 'warning', shortfall_pages => 1, fits_after_restart => 'f' }, $name);
	comes_true($seen->{status}, $name);

	$name = 'pool and overcommit together';
	set_pool($kb, 3);
	set_boot_pages(3);
	set_overcommit($kb, $need - 3);
	$seen = observe($node);
	compare_pools($node, $seen, $name);
	compare_status($seen->{status},
		{ in_use => 'f', pool_available_pages => $need, shortfall_pages => 0, fits_after_restart => undef }, $name);
	comes_true($seen->{status}, $name);
	$seen = observe($node);
	compare_pools($node, $seen, "$name, running");
	compare_status($seen->{status}, { in_use => 't', status => 'warning', fits_after_restart => undef }, "$name, running");
	set_boot_pages(undef);
}

# The kernel cannot remove pages that are in use or reserved. They become surplus, and cease to
# exist at a restart.
for my $case ([ 3, 'try', 'warning' ], [ $need, 'try', 'warning' ], [ 1, 'on', 'critical' ])
{
	SKIP:
	{
		my ($taken, $huge_pages, $status) = @$case;
		my $name = "$taken pages removed under a server with huge_pages = $huge_pages";
		needs_host($name);
		pools_of_one_size($kb, $need);
		restarts($node, huge_pages => $huge_pages);
		set_pool($kb, $need - $taken);
		my $seen = observe($node);
		my $kernel = $seen->{kernel}{$kb};
		is_deeply([ @$kernel{qw(total surplus)} ], [ $need + pages_of_others($kb), $taken ], "$name: they became surplus");
		compare_segment($node, $seen->{status}, $name);
		compare_pools($node, $seen, $name);
		compare_status($seen->{status}, {
				in_use => 't',
				status => $status,
				shortfall_pages => $taken,
				fits_after_restart => 'f',
				recommended_nr_hugepages => $need + $seen->{wanted_by_others},
			}, $name);
		like($seen->{status}{reason}, qr/restart/i, "$name: the reason names the restart");
		like($seen->{status}{remedy}, qr/\bvm\.nr_hugepages\s*=\s*@{[ $need + $seen->{wanted_by_others} ]}\b/, "$name: the remedy restores the pages");

		if ($huge_pages eq 'try') { comes_true($seen->{status}, $name) }
		else
		{
			$node->stop;
			my ($started, $log) = starts($node);
			ok(!$started, "$name: it does not start again");
			like($log, qr/could not map anonymous shared memory/, "$name: because huge pages are missing");
		}
	}
}

done_testing;
