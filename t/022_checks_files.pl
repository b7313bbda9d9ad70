# hugeinfo_checks: settings in configuration files that are pending a restart, and other servers on
# the host.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::OtherUser;
use HugeInfo::Host;
use HugeInfo::Checks;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $page = $kb && $kb * 1024;
my $node = new_server('files');
my $need = $kb && required_pages($node, $kb);

my $file = $node->data_dir . '/postgresql.conf';
my $contents = slurp_file($file);
sub set_file { my ($text) = @_; open my $fh, '>', $file or die "$file: $!\n"; print $fh $contents, $text; return close $fh }

SKIP:
{
	my $name = 'nothing is pending';
	needs_host('pending settings');
	pools_of_one_size($kb, $need);
	$node->restart;
	compare_check(checks_of($node, $name), 'pending_settings', { status => 'ok', evidence => { waiting => 'f' }, remedy => undef }, $name);

	for (
		[ 'ALTER SYSTEM', sub { $node->safe_psql('postgres', q(ALTER SYSTEM SET shared_buffers = '40MB')) } ],
		[ 'a line in postgresql.conf', sub { set_file("shared_buffers = '40MB'\n") } ])
	{
		my ($name, $change) = @$_;
		$change->();
		my $checks = checks_of($node, $name);
		compare_check($checks, 'restart', { status => 'warning' }, "$name, the same of the next start");
		compare_check($checks, 'pending_settings', {
				status => 'warning',
				finding => qr/^Settings are pending a restart \(shared_buffers\)\. A restart would lose huge pages\./,
				evidence => { huge_pages => 'try', page_size_bytes => $page, own_pages => $need, pool_total_pages => $need + pages_of_others($kb) } }, $name);
		is_deeply($checks->{pending_settings}{evidence}{waiting_settings}, ['shared_buffers'], "$name: named in the evidence");
		my $remedy = remedy_of($checks, 'pending_settings');
		my $required = $checks->{pending_settings}{evidence}{required_pages};
		like($remedy, qr/\bvm\.nr_hugepages=@{[ $required + wanted_by_others($kb, $node->{_pid}) ]}\b/, "$name: the remedy has its pages");

		# one page less is not enough
		set_pool($kb, $required - 1);
		$node->restart;
		my $real = segment($node->{_pid});
		is($real->{page_bytes}, base_page(), "$name: with one page less it falls back");
		is($required, POSIX::ceil($real->{bytes} / $page), "$name: the pages are those of the real segment");
		set_pool($kb, $need);
		follow($node, $remedy, $name);
		$node->restart;
		is(segment($node->{_pid})->{page_bytes}, $page, "$name: the remedy gets huge pages");
		my $after = checks_of($node, "$name, after the remedy");
		compare_check($after, 'pending_settings', { status => 'ok', evidence => { waiting => 'f' } }, "$name, after the remedy");
		compare_check($after, 'restart', { status => 'ok', evidence => { required_pages => $required } }, "$name, after the remedy");
		$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
		set_file('');
		set_pool($kb, $need);
		$node->restart;
	}

	$name = 'a setting of another kind';
	set_file("huge_pages = off\n");
	compare_check(checks_of($node, $name), 'pending_settings',
		{ status => 'warning', finding => qr/would lose huge pages\. .*huge_pages = off/, evidence => { huge_pages => 'off' } }, $name);

	$name = 'on, and too few pages';
	set_file("shared_buffers = '40MB'\nhuge_pages = on\n");
	compare_check(checks_of($node, $name), 'pending_settings', { status => 'critical', finding => qr/would fail/ }, $name);
	$node->stop;
	ok(!(starts($node))[0], "$name: it does not start");
	set_file('');
	$node->start;
}

for (
	[ 'an invalid value', "shared_buffers = 'much'\n", qr/invalid value for parameter "shared_buffers": "much"/ ],
	[ 'an invalid line', "shared_buffers 40MB or so\n", qr/syntax error in file ".*postgresql\.conf"/ ],
	[ 'a setting that does not exist', "shared_bufers = 40MB\n", qr/unrecognized configuration parameter "shared_bufers"/ ],
	[ 'settings that contradict each other', "max_wal_senders = 10\nwal_level = minimal\n", qr/WAL streaming \("?max_wal_senders"? > 0\) requires/i ])
{
	my ($name, $text, $message) = @$_;
	set_file($text);
	my $checks = checks_of($node, $name);
	compare_check($checks, 'pending_settings', { status => 'critical', finding => $message, evidence => { waiting => 't' } }, $name);
	# the remedy is a query that shows the error
	my ($query) = remedy_of($checks, 'pending_settings') =~ /(SELECT .* WHERE NOT applied)/;
	isnt($node->safe_psql('postgres', $query), '', "$name: the remedy shows it");
	$node->stop;
	my ($started, $log) = starts($node);
	ok(!$started, "$name: it does not start");
	like($log, $message, "$name: with this message");
	set_file('');
	$node->start;
	compare_check(checks_of($node, $name), 'pending_settings', { status => 'ok', evidence => { waiting => 'f' } }, "$name, put right");
}

# Compares the check with the other servers in /proc: programs of that name whose parent has another
# name. $own is the number of pages that the next start of the server requests.
sub name_of { my ($pid) = @_; return process_file($pid, 'comm') =~ s/\n//r }

sub asks { my ($pid) = @_; return next_setting($pid, 'huge_pages') =~ /^(?:try|on)$/ && next_setting($pid, 'shared_memory_type') eq 'mmap' }

sub compare_other_servers
{
	my ($asked, $postmaster, $uid, $own, $name) = @_;
	my $expected = sub {
		my %of = (other_servers => 0, hidden_servers => 0, others_pages => 0, asked_pages => 0);
		for my $pid (map { m{(\d+)$} } glob '/proc/[0-9]*')
		{
			my ($parent) = process_file($pid, 'stat') =~ /.*\) \S (\d+)/s or next;
			next if $pid == $postmaster || name_of($pid) ne 'postgres' || name_of($parent) eq 'postgres';
			# a program that only prints a setting
			next if title($pid) eq '' || process_file($pid, 'cmdline') =~ /\0(?:-C|--single|-V)\0/;
			$of{other_servers}++;
			my $real = $uid == $> && (stat "/proc/$pid")[4] == $uid && eval { segment($pid) };
			if (!$real) { $of{hidden_servers}++; next }
			my $pages = POSIX::ceil($real->{bytes} / $page);
			$of{others_pages} += $pages if $real->{page_bytes} == $page;
			$of{asked_pages} += $pages if $real->{page_bytes} == base_page() && asks($pid);
		}
		return \%of;
	};
	my ($of, $checks);
	until_true(sub {
		my $before = $expected->();
		$checks = checks_of($asked, $name);
		$of = $expected->();
		return text_of($before) eq text_of($of);
	});
	my $evidence = { other_servers => $of->{other_servers} };
	my $status = 'ok';
	if ($of->{other_servers})
	{
		my $capacity = pool($kb)->{total};
		my $others = $of->{others_pages} + $of->{asked_pages};
		$evidence = { %$evidence, hidden_servers => $of->{hidden_servers}, others_pages => $others, page_size_bytes => $page, own_pages => $own,
			persistent_pages => $capacity };
		$status = $of->{asked_pages} && $own + $others > $capacity ? 'warning' : $of->{hidden_servers} ? 'unknown' : 'ok';
	}
	compare_check($checks, 'other_servers', { status => $status, evidence => $evidence }, $name);
	return ($checks, $of);
}

SKIP:
{
	my $name = 'two servers';
	needs_host($name);
	pools_of_one_size($kb, $need);
	$node->restart;
	my $other = new_server('other', shared_buffers => '24MB');
	my $of_other = required_pages($other, $kb);
	my $ask = sub { my ($which, $own, $name) = @_; return compare_other_servers($which, $which->{_pid}, $>, $own, "$name, asked by " . $which->name) };
	$ask->($other, $of_other, $name);
	my ($checks) = $ask->($node, $need, $name);
	is($checks->{other_servers}{status}, 'warning', "$name: the pool is too small for both");
	my $port = $other->port;
	# The finding adds up the last of many servers.
	like($checks->{other_servers}{finding}, qr/\b$of_other for the server on port $port \(huge_pages = try\)|\d+ for \d+ others\b/, "$name: the finding names the other server");
	follow($node, remedy_of($checks, 'other_servers'), $name);
	is(segment($node->{_pid})->{page_bytes}, $page, "$name: the remedy does not affect running servers");
	for ($node, $other) { $_->restart if segment($_->{_pid})->{page_bytes} == base_page() }
	for ($node, $other)
	{
		is(segment($_->{_pid})->{page_bytes}, $page, "$name: the remedy gets huge pages for " . $_->name);
		($checks, my $of) = $ask->($_, $_ == $node ? $need : $of_other, "$name, after the remedy");
		is($checks->{other_servers}{status}, $of->{hidden_servers} ? 'unknown' : 'ok', "$name, after the remedy");
	}
	set_boot_pages(undef);

	$name = 'a server that is turned off';
	restarts($other, huge_pages => 'off');
	set_pool($kb, $need);
	$ask->($other, 0, $name);
	$ask->($node, $need, $name);
	$other->stop;

	$name = 'the only server';
	my (undef, $of) = $ask->($node, $need, $name);
	note("$of->{other_servers} other servers run on this host");
}

SKIP:
{
	my $name = "another user's server";
	needs_host($name);
	my $missing = HugeInfo::OtherUser::missing();
	cannot("$name: $missing") if $missing;
	my $other = HugeInfo::OtherUser::server();
	pools_of_one_size($kb, 2 * $need + 30);
	$node->restart;
	my (undef, $of) = compare_other_servers($node, $node->{_pid}, $>, $need, $name);
	cmp_ok($of->{hidden_servers}, '>', 0, "$name: is hidden");

	$name = "our server, from another user's";
	my $theirs = HugeInfo::Session->new($node, socket => $other->{socket}, port => $other->{port}, user => 'postgres');
	$theirs->value('CREATE EXTENSION pg_hugeinfo');
	compare_other_servers($theirs, $other->{pid}, $other->{uid}, 0, $name);
	$theirs->close;

	$name = 'too few even for the visible server';
	$node->stop;
	set_pool($kb, $need - 1);
	$node->start;
	(my $checks, $of) = compare_other_servers($node, $node->{_pid}, $>, $need, $name);
	is($checks->{other_servers}{status}, 'unknown', $name) unless $of->{asked_pages};
}

$node->stop;
done_testing;
