# Two servers share a pool, and the recommended number is exact: enough, and one page less is not.
# A server that was turned off does not count, and a server on small pages keeps the memory that it
# has yet to fault in.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Contained;
use HugeInfo::Host;
use HugeInfo::Checks;
use HugeInfo::Kernel;
use HugeInfo::Server;
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();

# With huge_pages = on, the server starts with this many pages, and does not start with one less.
sub exact
{
	my ($node, $pages, $name) = @_;
	$node->stop;
	configure($node, huge_pages => 'on');

	pools_of_one_size($kb, $pages - 1);
	my ($started, $log) = starts($node);
	ok(!$started, "$name: does not start with one page less than $pages");
	like($log, qr/could not map anonymous shared memory/, "$name: because huge pages are missing");

	set_pool($kb, $pages);
	($started, $log) = starts($node);
	ok($started, "$name: starts with $pages") or diag($log);
	is(segment($node->{_pid})->{page_bytes}, $kb * 1024, "$name: on huge pages");
	configure($node, huge_pages => 'try');
	return;
}

# Returns the recommended number without the pages for other servers that run on small pages.
sub recommended { my ($node) = @_; my $seen = observe($node); return $seen->{status}{recommended_nr_hugepages} - $seen->{wanted_by_others} }

SKIP:
{
	needs_host('two servers');
	pools_of_one_size($kb, 0);
	my $one = new_server('one');
	my $two = new_server('two', shared_buffers => '24MB');
	my ($need_one, $need_two) = map { required_pages($_, $kb) } $one, $two;
	my $both = $need_one + $need_two;

	# The recommendation includes servers on small pages, so that all get huge pages.
	my $seen = observe($one);
	is($seen->{status}{recommended_nr_hugepages}, $need_one + $seen->{wanted_by_others}, 'both on small pages');
	exact($one, $need_one, 'the only server');

	my $name = 'one has all, two fell back';
	$seen = observe($two);
	compare_segment($two, $seen->{status}, $name);
	compare_pools($two, $seen, $name);
	is($seen->{pools}{$kb}{others_pages}, $need_one + pages_of_others($kb), "$name: for two, the pages of one belong to others");
	is($seen->{status}{shortfall_pages}, $need_two, "$name: two lacks all required pages");

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
		is($seen->{pools}{$kb}{others_pages}, $both - $own + pages_of_others($kb), "$name: the other's pages, seen from $from");
		compare_status($seen->{status}, {
				in_use => 't',
				status => 'ok',
				shortfall_pages => 0,
				fits_after_restart => 't',
				recommended_nr_hugepages => $both + $seen->{wanted_by_others},
			}, "$name, seen from $from");
	}
	exact($one, recommended($one), 'restarted while another server runs');

	# The pages of the other server are surplus now, and this server cannot use them.
	$name = 'pool shrunk under both';
	set_pool($kb, $need_two);
	$seen = observe($one);
	compare_pools($one, $seen, $name);
	compare_status($seen->{status},
		{ in_use => 't', shortfall_pages => $need_one, fits_after_restart => 'f', recommended_nr_hugepages => $both + $seen->{wanted_by_others} },
		$name);
	$one->stop;
	my ($started) = starts($one);
	is(segment($one->{_pid})->{page_bytes}, base_page(), "$name: the restart went as forecast");
	$_->stop for $one, $two;
}

SKIP:
{
	my $name = 'another server is turned off';
	needs_host($name);
	pools_of_one_size($kb, 0);
	my $one = new_server('alone');
	my $two = new_server('off', shared_buffers => '24MB', huge_pages => 'off');
	my $need = required_pages($one, $kb);
	my $seen = observe($one);
	my $pages = $need + $seen->{wanted_by_others};
	is($seen->{status}{recommended_nr_hugepages}, $pages, "$name: it does not count");
	my $checks = checks_of($one, $name);
	like($checks->{other_servers}{finding}, qr/^Another server runs on this host\. The pool has 0 huge pages .*; $need are needed\.$/, "$name: the check does not count it, either")
	  if $pages == $need;
	follow($one, remedy_of($checks, 'huge_pages'), $name);
	is(pool($kb)->{total}, $pages, "$name: the remedy sets as many pages");
	$checks = checks_of($one, "$name, after the remedy");
	compare_check($checks, $_, { status => 'ok' }, "$name, after the remedy") for 'huge_pages', 'restart', 'pool_size', 'reboot';
	is($checks->{pool_size}{code}, 'no_idle_pages', "$name, after the remedy: no page is idle") if $pages == $need;
	is_deeply([ @{ status_of($two) }{qw(status code remedy)} ], [ 'ok', 'turned_off', undef ], "$name: it is healthy, too");
	set_boot_pages(undef);
	$_->stop for $one, $two;
}

# A server in another IPC namespace, such as a container, has no segment in the list of this one.
SKIP:
{
	my $name = 'another IPC namespace';
	needs_host($name);
	my @own = qw(--user --map-current-user --ipc);
	needs_namespaces($name, @own);
	pools_of_one_size($kb, 0);
	my $one = new_server('outside');
	my $two = new_server('inside', shared_buffers => '24MB', huge_pages => 'try');
	my ($need_one, $need_two) = map { required_pages($_, $kb) } $one, $two;
	my $asked = observe($one)->{wanted_by_others} - $need_two;
	$two->stop;
	in_namespace($two, $name, [ 'unshare', @own ], sub {
		for my $view ('hugeinfo_pools', 'hugeinfo_plan()', 'hugeinfo_next_start')
		{
			my $pages = $one->safe_psql('postgres', "SELECT recommended_nr_hugepages FROM $view WHERE is_default");
			is($pages, $need_one + $need_two + $asked, "$name: $view includes it, without an idle page");
		}
	});
	$one->stop;
}

# Segments on small pages that have not been faulted in yet. The kernel counts that memory as
# available.
SKIP:
{
	my $name = 'two servers that have used none of their memory';
	needs_host($name);
	cannot("$name: overcommit is strict here") if slurp_file('/proc/sys/vm/overcommit_memory') =~ /^2/;
	pools_of_one_size($kb, 0);
	# A pool for both does not fit as long as one of them is on small pages.
	my $size = int(0.32 * ram_bytes() / (1 << 20)) . 'MB';
	my ($one, $two) = map { new_server("cold$_", shared_buffers => $size) } 1, 2;
	my ($need, $other) = map { POSIX::ceil(segment($_->{_pid})->{bytes} / $kb / 1024) } $one, $two;
	my $checks = checks_of($one, $name);
	my $remedy = remedy_of($checks, 'huge_pages');
	note("$name: $_") for split /\n/, $remedy;
	my ($pages) = $remedy =~ /^# then: sysctl -w vm\.nr_hugepages=(\d+)$/m;
	is($pages, $need + pages_of_others($kb), "$name: the remedy grows the pool by the own need") or diag($remedy);
	cmp_ok(($pages // 0) + $other, '<', 0.9 * ram_bytes() / $kb / 1024, "$name: the pool leaves the memory of the other server");
	like($remedy, qr/^# stop PostgreSQL.*^# then: sysctl .*^# start PostgreSQL/ms, "$name: after this server has stopped");
	my $all = $need + wanted_by_others($kb, $one->{_pid});
	like($checks->{other_servers}{remedy}, qr/^# stop the server on port \d+(?: and the server on port \d+)*, allocate $all huge pages /, "$name: both need more than a command");
	$_->stop for $one, $two;
}

done_testing;
