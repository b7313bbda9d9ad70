# The checks of hugeinfo_checks about huge pages, in real states: compares their figures with those
# that the test reads itself, and follows the remedies as written.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
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
my $other_kb = other_page_kb();
my $node = new_server('checks');
my $need = $kb && required_pages($node, $kb);

# Without rights on the host: any state of the pools.
{
	my $name = 'the host as it is';
	my $evidence = { huge_page_size_bytes => $page, known_sizes_bytes => [ map { $_ * 1024 } page_sizes_kb() ] };
	my $checks = checks_of($node, $name);
	compare_check($checks, 'huge_page_size', { status => 'ok', evidence => $evidence }, $name) if $kb;
}

# Undoes the changes of remedies to settings and the boot configuration.
sub reset_settings
{
	my (%settings) = @_;
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
	set_boot_pages(undef);
	restarts($node, %settings);
	return;
}

# Follows the remedy of a check that needs attention, and verifies the check afterwards.
sub is_cured
{
	my ($checks, $check, $name) = @_;
	follow($node, remedy_of($checks, $check), $name);
	my $after = checks_of($node, "$name, after the remedy");
	compare_check($after, $check, { status => 'ok', remedy => undef }, "$name, after the remedy");
	return $after;
}

sub is_back_on_huge_pages
{
	my ($checks, $check, $name, $size_kb) = @_;
	my $after = is_cured($checks, $check, $name);
	is(segment($node->{_pid})->{page_bytes}, ($size_kb // $kb) * 1024, "$name: the remedy gets huge pages");
	compare_restart($node, $after, $size_kb // $kb, { status => 'ok' }, { status => 'ok' }, "$name, after the remedy");
	return;
}

# Returns the number of huge pages that fit in free blocks now, which have the order of the page or
# a higher one.
sub pages_in_blocks
{
	my $order = log($page / base_page()) / log 2;
	my $sum = 0;
	for (split /\n/, slurp_file('/proc/buddyinfo'))
	{
		my @blocks = /zone\s+\w+\s+(.*)/ ? split ' ', $1 : die "not a line of buddyinfo: $_\n";
		$sum += $blocks[$_] << ($_ - $order) for $order .. $#blocks;
	}
	return $sum;
}

# Compares the growth of the pool with buddyinfo. Because buddyinfo changes all the time, this
# repeats until both agree once.
sub compare_growth
{
	my ($name) = @_;
	my ($ready, $checks);
	until_true(sub {
		$ready = pages_in_blocks();
		$checks = checks_of($node, $name);
		return $checks->{pool_growth}{evidence}{free_in_blocks_pages} == $ready;
	});
	my $shortfall = expected_pool($node, $kb)->{shortfall_pages};
	my ($failures) = slurp_file('/proc/vmstat') =~ /^htlb_buddy_alloc_fail (\d+)$/m;
	compare_check($checks, 'pool_growth', {
			status => $ready < $shortfall ? 'warning' : 'ok',
			evidence =>
			  { page_size_bytes => $page, shortfall_pages => $shortfall, free_in_blocks_pages => $ready, htlb_buddy_alloc_fail => $failures },
		}, $name);
	return $checks;
}

# All interfaces give the same answer about idle pages that the boot configuration requests.
SKIP:
{
	my $name = 'idle pages of the boot configuration';
	needs_host($name);
	pools_of_one_size($kb, 0);
	reset_settings(shared_buffers => '1072MB');
	my $others = pages_of_others($kb);
	my $needed = required_pages($node, $kb) + wanted_by_others($kb, $node->{_pid});
	my $pages = $needed + 540;
	pools_of_one_size($kb, $pages - $others);
	set_boot_pages($pages - $others);
	$node->restart;
	my $checks = checks_of($node, $name);
	compare_check($checks, 'pool_size', { status => 'ok', remedy => undef, evidence => { persistent_pages => $pages, needed_pages => $needed } }, $name);
	is($checks->{pool_size}{code}, 'idle_by_configuration', "$name: the code");
	my $session = HugeInfo::Session->new($node);
	my ($status) = $session->rows('SELECT status, code, remedy, recommended_nr_hugepages FROM hugeinfo_status');
	is_deeply($status, { status => 'ok', code => 'on_huge_pages', remedy => undef, recommended_nr_hugepages => $pages }, "$name: hugeinfo_status agrees");
	is($session->value("SELECT recommended_nr_hugepages FROM hugeinfo_pools WHERE page_size_bytes = $page"), $pages, "$name: hugeinfo_pools agrees");
	like($session->value('SELECT hugeinfo_text()'), qr/^OK /, "$name: hugeinfo_text() agrees");
	is($session->value(q(SELECT count(*) FROM hugeinfo_runbook WHERE command LIKE '%nr_hugepages%')), 0, "$name: the runbook changes no pool");

	$name = 'idle pages beyond those of the boot configuration';
	set_boot_pages($needed - $others);
	$checks = checks_of($node, $name);
	compare_check($checks, 'pool_size', { status => 'warning', evidence => { needed_pages => $needed } }, $name);
	($status) = $session->rows('SELECT status, code, remedy, recommended_nr_hugepages FROM hugeinfo_status');
	is_deeply($status, { status => 'warning', code => 'unused_pages', remedy => $checks->{pool_size}{remedy}, recommended_nr_hugepages => $needed },
		"$name: hugeinfo_status has the remedy");
	$session->close;
	set_boot_pages(undef);
	pools_of_one_size($kb, 0);
	reset_settings(shared_buffers => '16MB');
}

sub pool_asked_for
{
	my ($checks) = @_;
	my ($entry) = grep { $_->{page_size_bytes} == $page } @{ $checks->{pool_filled}{evidence}{pools} };
	return $entry;
}

SKIP:
{
	my $name = 'the next boot';
	needs_host($name);
	cannot("$name: another file requests huge pages after this test's")
	  if -e '/etc/sysctl.conf' && slurp_file('/etc/sysctl.conf') =~ m{^\s*-?vm[./]nr_hugepages\b}m;
	pools_of_one_size($kb, $need);
	reset_settings();
	my $file = '/etc/sysctl.d/zz-pg_hugeinfo-test.conf';
	my $others = pages_of_others($kb);
	# Other servers on small pages request the rest.
	my $needed = $need + wanted_by_others($kb, $node->{_pid}) - $others;
	my $reboot = sub { my ($pages, $line) = @_; return { page_size_bytes => $page, asked_pages => $pages + $others, required_pages => $needed + $others, source => "$file:" . ($line // 1) } };
	my $filled = sub { my ($pages) = @_; return { page_size_bytes => $page, asked_pages => $pages + $others, persistent_pages => pool($kb)->{total}, source => "$file:1" } };

	set_boot_pages($need - 1);
	my $checks = checks_of($node, $name);
	compare_check($checks, 'reboot', { status => 'warning', evidence => $reboot->($need - 1) }, $name);
	compare_check($checks, 'pool_filled', { status => 'ok' }, $name);
	is_deeply(pool_asked_for($checks), $filled->($need - 1), "$name: the requested pages");
	my $after = is_cured($checks, 'reboot', $name);
	compare_check($after, 'reboot', { status => 'ok', evidence => $reboot->($needed) }, "$name, after the remedy");

	$name = 'a pool that was not filled';
	set_boot_pages($needed + 7);
	$checks = checks_of($node, $name);
	compare_check($checks, 'reboot', { status => 'ok', evidence => $reboot->($needed + 7) }, $name);
	# no server needs the rest
	compare_check($checks, 'pool_filled', { status => 'ok', remedy => undef }, $name);
	is_deeply(pool_asked_for($checks), $filled->($needed + 7), "$name: the requested pages");
	set_pool($kb, $need - 3);
	$checks = checks_of($node, "$name, nor what is needed");
	compare_check($checks, 'pool_filled', { status => 'warning', finding => qr{^\Q$file\E:1 asked for @{[ $needed + $others + 7 ]} huge pages .*; (?:@{[ $needed + $others ]} are needed\. |needed: @{[ $needed + $others ]} = )} }, $name);
	is_cured($checks, 'pool_filled', $name);
	is(pool($kb)->{total}, $needed + $others, "$name: the remedy fills it as far as needed");

	$name = 'no file requests pages';
	set_boot_pages(undef);
	$checks = checks_of($node, $name);
	my $at_boot = slurp_file('/proc/cmdline') =~ /\bhugepages=/;
	compare_check($checks, 'reboot', { status => 'warning', evidence => { asked_pages => 0, source => undef } }, $name) unless $at_boot;
	is_cured($checks, 'reboot', $name);
	set_boot_pages(undef);

	# The peak of memory shows how much of a file is kept and copied. Unlike the run time, it does not
	# depend on the load of the machine.
	my $peak = sub {
		my $session = HugeInfo::Session->new($node);
		$session->value("SELECT count(*) FROM $_") for qw(hugeinfo_checks hugeinfo_runbook hugeinfo_report());
		my ($kilobytes) = process_file($session->pid, 'status') =~ /^VmHWM:\s+(\d+) kB$/m;
		$session->close;
		return $kilobytes;
	};
	set_boot_pages($need - 1);
	my $normal = $peak->();
	for my $lines (256, 380_000)
	{
		$name = "a file of $lines lines";
		set_boot_pages($need - 1, $lines);
		$checks = checks_of($node, $name);
		my $limits = qr/\Q$file\E is too large to read/;
		compare_check($checks, 'reboot',
			$lines <= 256 ? { status => 'warning', evidence => $reboot->($need - 1, $lines) } : { status => 'unknown', finding => $limits, remedy => undef }, $name);
		cmp_ok($peak->() - $normal, '<', 16 << 10, "$name: kB of additional memory");
	}
	set_boot_pages(undef);
}

SKIP:
{
	my $name = 'a segment that is too large for the host';
	needs_host($name);
	cannot("$name: overcommit is strict here") if slurp_file('/proc/sys/vm/overcommit_memory') =~ /^2/;
	pools_of_one_size($kb, 0);
	# It starts on small pages, because little of it is faulted in.
	reset_settings(shared_buffers => int(0.94 * ram_bytes() / (1 << 20)) . 'MB');
	my $real = segment($node->{_pid});
	cmp_ok($real->{bytes}, '>', 0.9 * ram_bytes(), "$name: the segment is that large");
	my $checks = compare_growth($name);
	# Memory cannot hold both the segment and the reserve. Other programs decide how bad that is.
	my $status = $checks->{memory_left}{status};
	like($status, qr/^(warning|critical)$/, "$name: the status of memory_left");
	my $others = pages_of_others($kb) * $page;
	compare_check($checks, 'memory_left', { evidence => { memory_total_bytes => ram_bytes(), pools_bytes => $others, left_bytes => ram_bytes() - $others }, status => $status }, $name);
	compare_restart($node, $checks, $kb, { status => 'warning', remedy => qr/^# .*lower shared_buffers to \d+MB.*: (?:too little memory is|with the pool, less than .* would stay) available/ }, { status => 'warning' }, $name);
	is_deeply([ map { $_->{name} } grep { ($_->{remedy} // '') =~ /nr_hugepages\s*=\s*\d|echo \d+ > \S*nr_hugepages/ } values %$checks ],
		[], "$name: no remedy sets a pool that leaves too little memory");
	# follows the remedy
	$node->safe_psql('postgres', q(ALTER SYSTEM SET shared_buffers = '16MB'));
	$node->restart;
	my $after = checks_of($node, "$name, after the remedy");
	compare_check($after, 'memory_left', { status => 'ok' }, "$name, after the remedy");
	is_back_on_huge_pages($after, 'huge_pages', $name);
	reset_settings(shared_buffers => '16MB');
}

# Last, because a machine that has run for long might have no such page.
SKIP:
{
	my $name = 'pool of the wrong size';
	needs_host($name);
	cannot("$name: this kernel has only one huge page size") unless $other_kb;
	reset_settings();
	eval { pools_of_one_size($other_kb, required_pages($node, $other_kb)); 1 } or cannot("$name: $@");
	$node->restart;
	my $checks = checks_of($node, $name);
	compare_restart($node, $checks, $kb, { status => 'warning' }, { status => 'warning' }, $name);
	# Whether to use the idle pages of the other size is a question.
	my $remedy = remedy_of($checks, 'huge_pages');
	like($remedy, qr/^# if no other program needs the .*, ALTER SYSTEM SET huge_page_size = '\w+' and restart PostgreSQL; otherwise, /, "$name: the remedy is a question");
	my ($otherwise) = $remedy =~ /otherwise, (.*)$/m;
	type_in($otherwise);
	is_back_on_huge_pages(checks_of($node, $name), 'huge_pages', $name);
}

$node->stop;
done_testing;
