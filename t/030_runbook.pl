# The runbook of broken machines, followed as it stands: after each step hugeinfo_status says what
# the runbook said it would, and at the end nothing is left to do.
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

sub runbook
{
	my ($settings) = @_;
	my $from = defined $settings ? "hugeinfo_runbook('$settings')" : 'hugeinfo_runbook';
	my $json = $node->safe_psql('postgres', "SELECT coalesce(json_agg(r ORDER BY r.step), '[]') FROM $from AS r");
	return @{ JSON::PP->new->decode($json) };
}

# In its control group, if it has one.
sub start { return $group ? in_group($group, sub { $node->start }) : $node->start }
sub restart { $node->stop; return start() }

# What no test can do as it stands: the unit of a service that is none.
sub is_of_the_unit { my ($row) = @_; return $row->{command} =~ /systemd unit|server's environment|numactl/ }

sub take
{
	my ($row, $name) = @_;
	my $command = $row->{command};
	note("$name: $command");
	if (is_of_the_unit($row)) { }
	elsif ($command eq 'restart PostgreSQL') { restart() }
	elsif ($command eq 'stop PostgreSQL') { $node->stop }
	elsif ($command eq 'start PostgreSQL') { start() }
	elsif ($row->{where_to_run} eq 'SQL') { $node->safe_psql('postgres', $command) }
	else { follow($node, $command, $name) }
	return;
}

sub follow_runbook
{
	my ($name, $settings) = @_;
	my @rows = runbook($settings);
	isnt(scalar @rows, 0, "$name: there is something to do");
	for my $row (@rows)
	{
		isnt($row->{where_to_run}, 'decision', "$name: $row->{step}: needs no decision") or diag($row->{command});
		take($row, $name);
		next if $row->{expected} eq 'the server is down';
		my $status = status_of($node);
		is("$status->{status}: $status->{reason}", $row->{expected}, "$name: $row->{step}: $row->{command}");
	}
	is(segment($node->{_pid})->{page_bytes}, $page, "$name: on huge pages");
	my $status = status_of($node);
	is($status->{status}, 'ok', "$name: well") or diag($status->{reason});
	my @left = grep { !is_of_the_unit($_) && $_->{command} ne 'restart PostgreSQL' } runbook();
	is_deeply([ map { $_->{command} } @left ], [], "$name: nothing is left to do");
	return;
}

# A server with these settings, started with so many pages in the pool, in that group.
sub from
{
	my ($pages, %settings) = @_;
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
	configure($node, huge_pages => 'try', shared_memory_type => 'mmap', huge_page_size => 0, %settings);
	$node->stop;
	pools_of_one_size($kb, $pages);
	return start();
}

sub grouped
{
	my ($name, %limits) = @_;
	make_group($name);
	limit_group($name, $_, $kb, $limits{$_} * $page) for sort keys %limits;
	$group = $name;
	return;
}

my @machines;
for ([ 'try' ], [ 'off', huge_pages => 'off' ], [ 'sysv', shared_memory_type => 'sysv' ], [ 'a size that is not there', huge_page_size => '3MB' ])
{
	my ($cause, @settings) = @$_;
	push @machines, [ "$cause, no pool", sub { from(0, @settings) } ];
	push @machines, [ "$cause, a pool that is short", sub { from($need - 3, @settings) } ];
	push @machines, [ "$cause, a pool that came too late", sub { from(0, @settings); set_pool($kb, $need) } ];
}
for my $huge_pages ('try', 'on')
{
	push @machines, [ "$huge_pages, the pool taken away", sub { from($need, huge_pages => $huge_pages); set_pool($kb, 0) } ];
	push @machines, [ "$huge_pages, a few pages taken away", sub { from($need, huge_pages => $huge_pages); set_pool($kb, $need - 3) } ];
}
my $many = int(ram_bytes() / 50 / ($page || 1));
push @machines,
  [ 'a pool too large', sub { from($need); set_pool($kb, $need + $many) } ],
  [ 'a pool too large, and unused', sub { from(0); set_pool($kb, $need + $many) } ],
  [ 'on surplus pages alone', sub { from(0); set_overcommit($kb, $need); restart() } ],
  [ 'an armed limit', sub { grouped('armed', fault => $need - 2); from($need) } ],
  [ 'a limit that a restart would arm', sub { from(0); set_pool($kb, $need); grouped('late', fault => $need - 2); restart_on_small_pages() } ],
  [ 'a limit on reservations', sub { grouped('reserved', reservation => $need - 2); from($need) } ],
  [ 'both limits', sub { grouped('both', fault => $need - 1, reservation => $need - 2); from($need) } ],
  [ 'both limits and no pool', sub { grouped('all', fault => $need - 1, reservation => $need - 2); from(0) } ],
  [ 'off, with a limit', sub { grouped('off', fault => $need - 2); from(0, huge_pages => 'off') } ],
  [ 'more shared_buffers wait', sub { from($need); $node->safe_psql('postgres', q(ALTER SYSTEM SET shared_buffers = '40MB')) } ],
  [ 'off waits', sub { from($need); $node->safe_psql('postgres', 'ALTER SYSTEM SET huge_pages = off') } ],
  [ 'sysv waits', sub { from($need); $node->safe_psql('postgres', 'ALTER SYSTEM SET shared_memory_type = sysv') } ];

# A server that a limit on faults would have killed is started beside it.
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
		undef $group;
		$break->();
		follow_runbook($name);
	}
}

for (
	[ 'more shared_buffers', '{"shared_buffers": "40MB"}' ],
	[ 'fewer', '{"shared_buffers": "4MB"}' ],
	[ 'what changes no size', '{"wal_level": "logical"}' ],
	[ 'more of several', '{"shared_buffers": "24MB", "max_connections": 60, "huge_pages": "on"}' ])
{
	SKIP:
	{
		my ($what, $settings) = @$_;
		my $name = "planned: $what";
		needs_host($name);
		undef $group;
		from($need);
		follow_runbook($name, $settings);
		my $wanted = JSON::PP->new->decode($settings);
		is($node->safe_psql('postgres', "SHOW $_"), $wanted->{$_}, "$name: $_") for sort keys %$wanted;
	}
}

SKIP:
{
	my $name = 'a healthy server';
	needs_host($name);
	from($need);
	my @rows = grep { $_->{command} !~ /sysctl\.d|next boot|restart PostgreSQL/ && !is_of_the_unit($_) } runbook();
	is_deeply(\@rows, [], "$name has nothing to do");
	my $same = $node->safe_psql('postgres', q(SELECT jsonb_object_agg(name, CASE name WHEN 'shared_buffers' THEN setting::int * 8 || 'kB'
		ELSE setting END) FROM pg_settings WHERE name IN ('shared_buffers', 'max_connections', 'wal_level', 'huge_pages')));
	is_deeply([ runbook($same) ], [ runbook() ], "$name: what it has is not typed again");
}

$node->stop;

done_testing;
