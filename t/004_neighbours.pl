# Two servers share a pool, and the recommended number is exact: enough, and one page less is not.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Server;
use Test::More;

my $kb = default_page_kb();

# With so many pages the server starts on huge pages only; with one less it refuses.
sub exact
{
	my ($node, $pages, $name) = @_;
	$node->stop;
	configure($node, huge_pages => 'on');

	pools_of_one_size($kb, $pages - 1);
	my ($started, $log) = starts($node);
	ok(!$started, "$name: refuses to start with one page less than $pages");
	like($log, qr/could not map anonymous shared memory/, "$name: for want of huge pages");

	set_pool($kb, $pages);
	($started, $log) = starts($node);
	ok($started, "$name: starts with $pages") or diag($log);
	is(segment($node->{_pid})->{page_bytes}, $kb * 1024, "$name: on huge pages");
	configure($node, huge_pages => 'try');
	return;
}

# Returns the recommended number without the pages for other servers that run on small pages.
sub recommended { my ($node) = @_; my $seen = observe($node); return $seen->{status}{recommended_nr_hugepages} - $seen->{small_neighbours} }

SKIP:
{
	needs_host('two servers');
	pools_of_one_size($kb, 0);
	my $one = new_server('one');
	my $two = new_server('two', shared_buffers => '24MB');
	my ($need_one, $need_two) = map { required_pages($_, $kb) } $one, $two;
	my $both = $need_one + $need_two;

	# a server on small pages counts: all together are to get huge pages
	my $seen = observe($one);
	is($seen->{status}{recommended_nr_hugepages}, $need_one + $seen->{small_neighbours}, 'both on small pages');
	exact($one, $need_one, 'alone');

	my $name = 'one has all, two fell back';
	$seen = observe($two);
	compare_segment($two, $seen->{status}, $name);
	compare_pools($two, $seen, $name);
	is($seen->{pools}{$kb}{others_pages}, $need_one, "$name: the pages of one are another's to two");
	is($seen->{status}{shortfall_pages}, $need_two, "$name: two lacks all it needs");

	exact($two, recommended($two), 'another server is on huge pages');

	$name = 'both on huge pages';
	for my $case ([ $one, $need_one ], [ $two, $need_two ])
	{
		my ($node, $own) = @$case;
		$seen = observe($node);
		my $from = $node->name;
		compare_segment($node, $seen->{status}, "$name, seen from $from");
		compare_pools($node, $seen, "$name, seen from $from");
		is($seen->{pools}{$kb}{own_pages}, $own, "$name: own pages of $from");
		is($seen->{pools}{$kb}{others_pages}, $both - $own, "$name: the other's pages, seen from $from");
		compare_status($seen->{status}, {
				in_use => 't',
				status => 'ok',
				shortfall_pages => 0,
				fits_after_restart => 't',
				recommended_nr_hugepages => $both + $seen->{small_neighbours},
			}, "$name, seen from $from");
	}
	exact($one, recommended($one), 'restarted while another server runs');

	# The neighbour's pages are surplus now: they are there, but not for us.
	$name = 'pool shrunk under both';
	set_pool($kb, $need_two);
	$seen = observe($one);
	compare_pools($one, $seen, $name);
	compare_status($seen->{status},
		{ in_use => 't', shortfall_pages => $need_one, fits_after_restart => 'f', recommended_nr_hugepages => $both + $seen->{small_neighbours} },
		$name);
	$one->stop;
	my ($started) = starts($one);
	is(segment($one->{_pid})->{page_bytes}, base_page(), "$name: the restart went as forecast");
}

done_testing;
