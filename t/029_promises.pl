# Random states of a server, its pool and its cgroup on this kernel: starts succeed or fail as
# forecast, and following the runbook has the expected result.
#
#   HUGEINFO_SEED=N     other states than the usual ones (1)
#   HUGEINFO_STATES=N   this many of them (25)
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Checks;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Server;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{HUGEINFO_SEED} // 1;
my $states = $ENV{HUGEINFO_STATES} // 25;
srand $seed;

my $kb = default_page_kb();
my $page = $kb && $kb * 1024;
my $node = new_server('promises');
my $need = $kb && required_pages($node, $kb);
my $group;

sub one_of { return $_[ rand @_ ] }

sub start
{
	my (@options) = @_;
	my $started;
	$group ? in_group($group, sub { $started = $node->start(@options) }) : ($started = $node->start(@options));
	return $started;
}

# Starts the server without its cgroup and its settings if it does not start with them.
sub start_anyhow
{
	return if start(fail_ok => 1);
	undef $group;
	append_to_file($node->data_dir . '/postgresql.auto.conf', "huge_pages = 'try'\n");
	start();
	return;
}

# Random numbers close to a relevant one.
sub near { return int($need + one_of(-$need, -3, -1, 0, 1, 40)) }

sub random_group
{
	my ($number) = @_;
	$group = one_of(undef, undef, "promises$number");
	return unless $group;
	make_group($group);
	for my $kind ('fault', 'reservation')
	{
		limit_group($group, $kind, $kb, near() * $page) if rand() < 0.5;
	}
	return;
}

# A server that runs, with settings that can be pending.
sub random_state
{
	my ($number) = @_;
	$node->stop if $node->{_pid};
	undef $group;
	pools_of_one_size($kb, 0);
	set_overcommit($kb, 0);
	unlink $node->data_dir . '/postgresql.auto.conf';
	append_to_file($node->data_dir . '/postgresql.auto.conf', "\n");
	configure($node, huge_pages => one_of('try', 'try', 'off'), huge_page_size => one_of(0, 0, 0, '3MB'), shared_memory_type => one_of(('mmap') x 5, 'sysv'));
	set_pool($kb, near()) if rand() < 0.6;
	start();
	random_group($number) if rand() < 0.4;
	if ($group)
	{
		# A limit applies to a server that was started in the cgroup. A low one ends it during the start.
		$node->stop;
		start_anyhow();
	}
	set_overcommit($kb, one_of(0, 0, 0, $need));
	set_pool($kb, near()) if rand() < 0.6;
	$node->safe_psql('postgres', 'ALTER SYSTEM SET huge_pages = ' . one_of('on', 'try', 'off')) if rand() < 0.4;
	$node->safe_psql('postgres', q(ALTER SYSTEM SET shared_buffers = ') . one_of('8MB', '24MB', '40MB') . q(')) if rand() < 0.4;
	return;
}

sub state_of
{
	my $status = status_of($node);
	my $pool = pool($kb);
	return "pool $pool->{total}, free $pool->{free}, reserved $pool->{reserved}, surplus $pool->{surplus}; $status->{status} $status->{code}: $status->{reason}";
}

# Starts the server and compares the result with the code of the check.
sub compare_start
{
	my ($name) = @_;
	my $checks = checks_of($node, $name);
	my $restart = $checks->{restart};
	my $is_limited = $checks->{cgroup_fault_limit}{code} =~ /^cgroup_bomb/ || $checks->{pending_settings}{code} =~ /^cgroup_bomb/;
	my $before = state_of();
	$node->stop;
	my $started = start(fail_ok => 1);
	my $is_on = $started && segment($node->{_pid})->{page_bytes} == $page;
	my $code = $restart->{code};
	if ($code eq 'fits' && !$is_limited)
	{
		ok($is_on, "$name: a start with the forecast huge pages is on huge pages") or diag($before);
	}
	elsif ($code eq 'would_not_start')
	{
		ok(!$started, "$name: a start with the forecast failure fails") or diag($before);
	}
	elsif ($code =~ /^would_(?:lose|not_get)|^does_not_ask$/)
	{
		ok($started && !$is_on, "$name: a start with the forecast small pages is on small pages") or diag($before);
	}
	else
	{
		note("$name: no forecast ($code)");
	}
	start_anyhow() unless $started;
	return;
}

sub follow_all
{
	my ($name) = @_;
	# PostgreSQL does not start with sysv and on.
	my $is_sysv = next_setting($node->{_pid}, 'shared_memory_type') eq 'sysv' && next_setting($node->{_pid}, 'huge_pages') ne 'on';
	my $is_turned_off = next_setting($node->{_pid}, 'huge_pages') eq 'off';
	my $before = segment($node->{_pid})->{page_bytes};
	follow_runbook($node, $name, \&start);
	my $status = status_of($node);
	my $after = segment($node->{_pid})->{page_bytes};
	is(next_setting($node->{_pid}, 'huge_pages') eq 'off', $is_turned_off, "$name: turned off as before");
	if ($is_turned_off || $is_sysv)
	{
		is($after, $before, "$name: on the same pages");
		my $code = $after == $page ? 'would_lose_at_restart' : $is_turned_off ? 'turned_off' : 'sysv';
		is($status->{code}, $code, "$name: a server that is turned off") or diag(state_of());
		return;
	}
	is($status->{status}, 'ok', "$name: healthy after the runbook") or diag(state_of());
	is($after, $page, "$name: on huge pages");
	return;
}

SKIP:
{
	needs_host('random states');
	note("HUGEINFO_SEED=$seed");
	for my $number (1 .. $states)
	{
		my $name = "state $number of seed $seed";
		random_state($number);
		note("$name: " . state_of());
		rand() < 0.5 ? compare_start($name) : follow_all($name);
	}
}

$node->stop;

done_testing;
