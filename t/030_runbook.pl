# Follows the runbook of broken servers as written: after each step, hugeinfo_status is as expected,
# and at the end the server is healthy and the runbook empty. Following the rows of hugeinfo_checks
# from top to bottom has the same result.
#
# Takes half a minute, because it breaks and cures a server 60 times, each time with restarts.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Checks;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Server;
use JSON::PP ();
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $page = $kb && $kb * 1024;
my $node = new_server('runbook');
my $need = $kb && required_pages($node, $kb);
my $group;

# Starts the server in its cgroup, if it has one.
sub start { return $group ? in_group($group, sub { $node->start }) : $node->start }
sub restart { $node->stop; return start() }

sub is_healthy_at_last
{
	my ($name) = @_;
	is(segment($node->{_pid})->{page_bytes}, $page, "$name: on huge pages");
	my $status = status_of($node);
	is($status->{status}, 'ok', "$name: healthy") or diag($status->{reason});
	my $left = $node->safe_psql('postgres', q(SELECT string_agg(command, '; ') FROM hugeinfo_runbook));
	is($left, '', "$name: no command is left");
	return;
}

sub has_runbook
{
	my ($name, $settings) = @_;
	my @rows = follow_runbook($node, $name, \&start, $settings);
	isnt(scalar @rows, 0, "$name: the runbook has steps");
	my @decisions = grep { !defined $_->{where_to_run} && $_->{instruction} !~ /OOM score|memory\.oom\.group/ } @rows;
	is_deeply(\@decisions, [], "$name: no decision is left to a person") or diag($_->{instruction}) for @decisions;
	return is_healthy_at_last($name);
}

# Follows all rows of hugeinfo_checks in their order.
sub type_all_rows
{
	my ($name) = @_;
	my $json = $node->safe_psql('postgres', q(SELECT json_agg(remedy) FROM hugeinfo_checks WHERE steps IS NOT NULL));
	follow($node, $_, $name, \&start) for @{ JSON::PP->new->decode($json) };
	return is_healthy_at_last($name);
}

# Starts a server with these settings and this many pages in the pool, in the cgroup.
sub from
{
	my ($pages, %settings) = @_;
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
	configure($node, huge_pages => 'try', shared_memory_type => 'mmap', huge_page_size => 0, %settings);
	$node->stop;
	pools_of_one_size($kb, $pages);
	return start();
}

# Another cgroup each time, because the kernel rejects a limit below the use.
my $groups = 0;
sub grouped
{
	my ($name, %limits) = @_;
	$name .= ++$groups;
	make_group($name);
	limit_group($name, $_, $kb, $limits{$_} * $page) for sort keys %limits;
	$group = $name;
	return;
}

my @machines;
for ([ 'try' ], [ 'a size that does not exist', huge_page_size => '3MB' ])
{
	my ($cause, @settings) = @$_;
	push @machines, [ "$cause, no pool", sub { from(0, @settings) } ];
	push @machines, [ "$cause, a pool that is short", sub { from($need - 3, @settings) } ];
	push @machines, [ "$cause, a pool set after the start", sub { from(0, @settings); set_pool($kb, $need) } ];
}
# sysv can be intended, so its remedy is a question with the way to mmap.
sub from_sysv
{
	my ($pages) = @_;
	from($pages, shared_memory_type => 'sysv');
	my $remedy = $node->safe_psql('postgres', q(SELECT remedy FROM hugeinfo_checks WHERE name = 'huge_pages'));
	my ($back) = $remedy =~ /^# do nothing if .*; otherwise, for the next start, (ALTER SYSTEM SET .*;)/;
	is($back, q(ALTER SYSTEM SET shared_memory_type = 'mmap';), 'sysv: the way to mmap') or diag($remedy);
	return $node->safe_psql('postgres', $back);
}
push @machines,
  [ 'mmap after sysv, no pool', sub { from_sysv(0) } ],
  [ 'mmap after sysv, a pool that is short', sub { from_sysv($need - 3) } ];
for my $huge_pages ('try', 'on')
{
	push @machines, [ "$huge_pages, the pool removed", sub { from($need, huge_pages => $huge_pages); set_pool($kb, 0) } ];
	push @machines, [ "$huge_pages, a few pages removed", sub { from($need, huge_pages => $huge_pages); set_pool($kb, $need - 3) } ];
}
my $many = int(ram_bytes() / 50 / ($page || 1));
push @machines,
  [ 'a pool too large', sub { from($need); set_pool($kb, $need + $many) } ],
  [ 'a pool too large, and unused', sub { from(0); set_pool($kb, $need + $many) } ],
  [ 'on surplus pages only', sub { from(0); set_overcommit($kb, $need); restart() } ],
  [ 'a limit below the mapped pages', sub { grouped('armed', fault => $need - 2); from($need) } ],
  [ 'a limit below the pages of the next start', sub { from(0); set_pool($kb, $need); grouped('late', fault => $need - 2); restart_on_small_pages() } ],
  [ 'a limit on reservations', sub { grouped('reserved', reservation => $need - 2); from($need) } ],
  [ 'both limits', sub { grouped('both', fault => $need - 1, reservation => $need - 2); from($need) } ],
  [ 'both limits and no pool', sub { grouped('all', fault => $need - 1, reservation => $need - 2); from(0) } ],
  [ 'larger shared_buffers pending', sub { from($need); $node->safe_psql('postgres', q(ALTER SYSTEM SET shared_buffers = '40MB')) } ],
  [ 'a pool that is short by one page', sub { from($need - 1) } ],
  [ 'a pool of one page', sub { from(1) } ],
  [ 'on, pending, with a short pool', sub { from($need - 3); $node->safe_psql('postgres', 'ALTER SYSTEM SET huge_pages = on') } ],
  [ 'smaller shared_buffers pending', sub { from($need); $node->safe_psql('postgres', q(ALTER SYSTEM SET shared_buffers = '8MB')); set_pool($kb, 0) } ];

# A server that a fault limit would have killed is started outside of the cgroup.
sub restart_on_small_pages
{
	set_pool($kb, 0);
	restart();
	set_pool($kb, $need);
	return;
}

for (@machines)
{
	SKIP:
	{
		my ($name, $break) = @$_;
		needs_host($name);
		for my $way ([ 'runbook', \&has_runbook ], [ 'all rows', \&type_all_rows ])
		{
			undef $group;
			$break->();
			$way->[1]->("$name, $way->[0]");
		}
	}
}

# If huge pages are turned off on purpose, the runbook changes nothing.
for my $pending (0, 1)
{
	SKIP:
	{
		my $name = $pending ? 'huge_pages = off, pending' : 'huge_pages = off';
		needs_host($name);
		undef $group;
		from(0, huge_pages => $pending ? 'try' : 'off');
		$node->safe_psql('postgres', 'ALTER SYSTEM SET huge_pages = off') if $pending;
		restart() if $pending;
		my $status = status_of($node);
		is_deeply([ @$status{qw(status code remedy)} ], [ 'ok', 'turned_off', undef ], "$name: ok") or diag($status->{reason});
	}
}

# A pending value that turns huge pages off can be intended. To undo it, set the running value,
# which RESET would remove.
for ([ 'huge_pages', 'on', 'off' ], [ 'shared_memory_type', 'mmap', 'sysv' ])
{
	SKIP:
	{
		my ($setting, $running, $pending) = @$_;
		my $name = "$setting = $pending, pending after another ALTER SYSTEM";
		needs_host($name);
		undef $group;
		from($need);
		$node->safe_psql('postgres', "ALTER SYSTEM SET $setting = $running");
		restart();
		$node->safe_psql('postgres', "ALTER SYSTEM SET $setting = $pending");
		my $remedy = $node->safe_psql('postgres', q(SELECT remedy FROM hugeinfo_checks WHERE name = 'restart'));
		my ($back) = $remedy =~ /(ALTER SYSTEM SET .*;)/;
		is($back, "ALTER SYSTEM SET $setting = '$running';", "$name: the way back") or diag($remedy);
		$node->safe_psql('postgres', $back);
		restart();
		is($node->safe_psql('postgres', "SHOW $setting"), $running, "$name: as before");
		is(status_of($node)->{code}, 'on_huge_pages', "$name: healthy again");
	}
}

for (
	[ 'larger shared_buffers', '{"shared_buffers": "40MB"}' ],
	[ 'smaller', '{"shared_buffers": "4MB"}' ],
	[ 'a setting that changes no size', '{"wal_level": "logical"}' ],
	[ 'several settings', '{"shared_buffers": "24MB", "max_connections": 60, "huge_pages": "on"}' ])
{
	SKIP:
	{
		my ($what, $settings) = @$_;
		my $name = "planned: $what";
		needs_host($name);
		undef $group;
		from($need);
		has_runbook($name, $settings);
		my $wanted = JSON::PP->new->decode($settings);
		is($node->safe_psql('postgres', "SHOW $_"), $wanted->{$_}, "$name: $_") for sort keys %$wanted;
	}
}

SKIP:
{
	my $name = 'a healthy server';
	needs_host($name);
	# With pages for other servers that request them.
	from($need + wanted_by_others($kb, $node->{_pid}) - pages_of_others($kb));
	my @rows = follow_runbook($node, $name, \&start);
	is_deeply([ grep { defined } map { $_->{command} } @rows ], [], "$name has no command");
	my $same = $node->safe_psql('postgres', q(SELECT string_agg(name || '=' || CASE name WHEN 'shared_buffers' THEN setting::int * 8 || 'kB'
		ELSE setting END, ' ') FROM pg_settings WHERE name IN ('shared_buffers', 'max_connections', 'wal_level', 'huge_pages')));
	my $planned = $node->safe_psql('postgres', "SELECT string_agg(command, '; ') FROM hugeinfo_runbook('$same')");
	is($planned, '', "$name: a plan of its present settings has no command");
}

$node->stop;

done_testing;
