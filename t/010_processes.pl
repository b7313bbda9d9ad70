# Every process of a server: compares each figure with /proc.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Compares the SQL row of each process with the kernel's numbers, in the same way as `settled`.
# First compares all processes at once, and then repeats each changed process separately, because
# shorter queries are disturbed less often. Omits the querying backend, because its numbers change
# with every query.
sub still
{
	my ($postmaster, $asking, $rows, $kernel) = @_;
	my (%seen, %alike);
	my $look = sub {
		my (@pids) = @_;
		my %before = map { $_ => text_of($kernel->($_)) } @pids;
		my %row = map { $_->{pid} => $_ } $rows->(@pids);
		for my $pid (grep { $row{$_} } @pids)
		{
			my $after = $kernel->($pid);
			next if text_of($after) ne $before{$pid};
			my %same = map { $_ => $row{$pid}{$_} } keys %$after;
			$seen{$pid} = [ $row{$pid}, $after ];
			$alike{$pid} = text_of(\%same) eq $before{$pid};
		}
	};
	my $open = sub { return grep { $_ != $asking && !$alike{$_} } family($postmaster) };
	for (1 .. 10) { $look->($open->()) if $open->() }
	until_true(sub { $look->($_) for $open->(); return !$open->() });
	return %seen;
}

my $LIST = 'SELECT * FROM hugeinfo_backends';
my $MEMORY = 'SELECT p AS pid, m.* FROM unnest(ARRAY[%s]) AS p, LATERAL hugeinfo_memory(p) AS m';

# Returns the columns of a row that the kernel's figures have.
sub compare
{
	my ($seen, $name) = @_;
	my ($row, $kernel) = @$seen;
	is_deeply({ map { $_ => $row->{$_} } keys %$kernel }, $kernel, $name);
	return;
}

sub figures { my ($pid) = @_; return { %{ status_file($pid) }, %{ stat_file($pid) }, %{ oom_files($pid) } } }

sub describe { my ($row) = @_; return ($row->{backend_type} // 'of unknown type') . " $row->{pid}" }

# Compares all processes of one server with two sessions: each is idle while the other runs a query.
sub compare_all
{
	my ($node, $name, @sessions) = @_;
	my $postmaster = $node->{_pid};
	my (%backends, %memory, @pids);
	# again if a worker started or ended meanwhile
	until_true(sub {
		(%backends, %memory) = ();
		@pids = family($postmaster);
		for my $session (@sessions)
		{
			my $own = $session->pid;
			%backends = (still($postmaster, $own, sub { $session->rows($LIST) }, \&figures), %backends);
			%memory = (still($postmaster, $own, sub { $session->rows(sprintf $MEMORY, join ',', @_) }, \&rollup_file), %memory);
		}
		return "@pids" eq join ' ', family($postmaster);
	});

	is_deeply([ sort { $a <=> $b } keys %backends ], \@pids, "$name: a row of hugeinfo_backends for each process that ps lists");
	is_deeply([ sort { $a <=> $b } keys %memory ], \@pids, "$name: a row of hugeinfo_memory for each process");
	for my $pid (grep { $backends{$_} } @pids)
	{
		my $what = "$name: " . describe($backends{$pid}[0]);
		compare($backends{$pid}, "$what: status, stat and OOM score");
		compare($memory{$pid}, "$what: smaps_rollup") if $memory{$pid};
	}
	return map { $_ => $backends{$_}[0] } keys %backends;
}

# Compares each type with the title of the process, which contains it except for client backends.
sub compare_types
{
	my ($node, $name, %row) = @_;
	for my $pid (sort { $a <=> $b } keys %row)
	{
		my $type = $row{$pid}{backend_type} // '';
		my $title = title($pid);
		if ($pid == $node->{_pid}) { is($type, 'postmaster', "$name: $pid is the postmaster") }
		elsif ($type eq 'client backend')
		{
			my ($user, $database) = map { quotemeta $row{$pid}{$_} } qw(usename datname);
			like($title, qr/^postgres: (?:\S+: )?$user $database \[local\]/, "$name: $pid is a client backend");
		}
		else
		{
			# since PostgreSQL 16, only the title shows the kind of worker of a subscription
			my $word = quotemeta($type) =~ s/replication\\ worker$/replication (?:apply )?worker/r;
			like($title, qr/^postgres: (?:\S+: )?$word(?:\s|$)/, "$name: $pid has the type in its title");
			isnt($type, '', "$name: $pid has a type");
		}
	}
	return;
}

my $node = new_server('processes',
	max_connections => 30,
	wal_level => 'logical',
	max_wal_senders => 5,
	logging_collector => 'on',
	archive_mode => 'on',
	archive_command => 'sleep 3600',
	shared_preload_libraries => 'pg_prewarm',
	autovacuum => 'on',
	autovacuum_max_workers => 1,
	autovacuum_naptime => '1s');
my $postmaster = $node->{_pid};

# Names of a client, its role and its database: of maximum length, and with text that looks like the
# end of the name in stat, or of a word in the title.
my %odd = (
	user => substr('r) S 1 (' x 8, 0, 63),
	dbname => substr("d\t) Z 1 0 0 " x 8, 0, 60) . '%s}',
	application_name => substr(") R 1 \\ ' \" {" x 8, 0, 63));
$node->safe_psql('postgres', qq{
	CREATE ROLE "$odd{user}" SUPERUSER LOGIN;
	CREATE DATABASE "$odd{dbname}"});

# Two observing sessions, and one process of each kind.
my @eyes = map { HugeInfo::Session->new($node, application_name => "eye $_") } 1, 2;
my $sql = $eyes[0];
my $odd = HugeInfo::Session->new($node, %odd);

# A walsender and an apply worker: the server subscribes to itself, for which the slot must exist
# before.
$sql->value($_) for
  'CREATE TABLE published (i int)',
  'CREATE PUBLICATION everything FOR TABLE published',
  q(SELECT pg_create_logical_replication_slot('mirror', 'pgoutput'));
$node->safe_psql($_, 'CREATE TABLE IF NOT EXISTS published (i int)') for 'postgres', 'template1';
my $subscriber = HugeInfo::Session->new($node, dbname => 'template1');
my ($host, $port) = ($node->host, $node->port);
$subscriber->value(qq{
	CREATE SUBSCRIPTION mirror CONNECTION 'host=$host port=$port dbname=postgres' PUBLICATION everything
	WITH (create_slot = false, slot_name = mirror, copy_data = false)});

# A leader and its workers, each of which sleeps.
$sql->value($_) for 'CREATE TABLE slow AS SELECT i FROM generate_series(1, 1000) AS i', 'ANALYZE slow';
my $leader = HugeInfo::Session->new($node, application_name => 'leader');
$leader->value("SET $_ = 0") for qw(min_parallel_table_scan_size parallel_setup_cost parallel_tuple_cost);
$leader->ask('SELECT count(pg_sleep(3600)) FROM slow');

# Programs that the server runs, such as archive_command, are not processes of the server.
my $copier = HugeInfo::Session->new($node, application_name => 'copier');
$copier->value('CREATE TEMPORARY TABLE nothing (t text)');
$copier->ask(q(COPY nothing FROM PROGRAM 'sleep 3600'));

# A vacuum that does not end, because of its cost limit.
$sql->value($_) for
  q(CREATE TABLE dead WITH (fillfactor = 10, autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1) AS SELECT i, repeat('x', 500) AS x FROM generate_series(1, 5000) AS i),
  'DELETE FROM dead';

my @wanted = sort 'postmaster', 'checkpointer', 'background writer', 'walwriter', 'archiver',
  'autovacuum launcher', 'autovacuum worker', 'logical replication launcher', 'walsender',
  'parallel worker', 'client backend';

sub missing
{
	my %there = map { ($_->{backend_type} // '') => 1 } @_;
	my @missing = grep { !$there{$_} } @wanted;
	# their names have changed with PostgreSQL 16 and 19
	push @missing, 'the worker of the subscription' unless grep { /^logical replication (?:apply )?worker$/ } keys %there;
	push @missing, 'the logger' unless grep { is_logger($_) } keys %there;
	return join ', ', @missing;
}

{
	my $name = 'every type of process';
	my @rows;
	my ($missing, $segments);
	until_true(sub {
		# something to archive, but not much, in case that a process never starts
		$sql->value(q(SELECT pg_logical_emit_message(false, 'test', 'x'), pg_switch_wal())) if $segments++ < 20;
		@rows = $sql->rows('SELECT pid, backend_type FROM hugeinfo_backends');
		($missing = missing(@rows)) eq '';
	});
	is($missing, '', "$name: exists");
	# Each worker that starts or ends changes the shared memory of other processes. This worker does
	# not end, and prevents a second one.
	my $workers = q(SELECT coalesce(string_agg(pid::text, ' ' ORDER BY pid), '') FROM pg_stat_activity WHERE backend_type = 'autovacuum worker');
	ok(until_true(sub { $sql->value("$workers AND query LIKE 'autovacuum: VACUUM % public.dead'") }), "$name: a worker that does not end");

	my %row = compare_all($node, $name, @eyes);
	compare_types($node, $name, %row);
	# a worker without a database
	is($sql->value(q(SELECT count(*) FROM %s AS r WHERE backend_type = 'autoprewarm leader') =~ s/%s/$_/r), 1,
		"$name: a worker that pg_stat_activity does not list, in $_") for 'hugeinfo_backends', q(hugeinfo_fault_rates('1 ms'));
	is($sql->value(q(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autoprewarm leader')), 0, "$name: pg_stat_activity does not list it");

	# children of the postmaster's children
	my @programs;
	until_true(sub { @programs = map { (family($_))[1] // () } grep { $_ != $postmaster } family($postmaster); @programs > 1 });
	my @shown = grep { $row{$_} } @programs;
	cmp_ok(scalar @programs, '>', 1, "$name: the server runs programs");
	is("@shown", '', "$name: they are not among its processes");
	for my $program (@programs)
	{
		is_deeply([ $sql->notices("SELECT * FROM $_($program)") ],
			[ '', ["WARNING:  01000: PID $program is not a process of this server"] ],
			"$name: $_ of a program") for qw(hugeinfo_memory hugeinfo_mappings);
	}

	# Compares with pg_stat_activity all processes that it lists.
	my $columns = 'pid, backend_type, datname, usename, application_name, state, backend_start';
	my $own_word = "SELECT $columns FROM pg_stat_activity WHERE backend_type <> 'autovacuum worker'";
	is_deeply(
		[ $sql->rows("SELECT $columns FROM hugeinfo_backends WHERE pid IN (SELECT pid FROM ($own_word) AS a) ORDER BY pid") ],
		[ $sql->rows("$own_word ORDER BY pid") ], "$name: as pg_stat_activity describes it");
	is($sql->value("SELECT backend_start = pg_postmaster_start_time() FROM hugeinfo_backends WHERE pid = $postmaster"),
		't', "$name: the postmaster's start");

	is_deeply(
		{ map { $_ => $row{ $odd->pid }{$_} } qw(datname usename state) },
		{ datname => $odd{dbname}, usename => $odd{user}, state => 'idle' },
		"$name: odd names are complete");
	is($row{ $odd->pid }{application_name}, $odd{application_name}, "$name: an odd application_name is complete");

	is($sql->value('SELECT count(*) - count(DISTINCT pid) FROM hugeinfo_backends'), 0, "$name: each PID once");
}

# The figures of the querying backend change all the time, but its faults can only grow.
{
	my $name = 'the querying backend';
	my $own = $sql->pid;
	my $before = stat_file($own);
	my ($row) = $sql->rows("SELECT * FROM hugeinfo_backends WHERE pid = $own");
	my $after = stat_file($own);
	for (qw(minor_faults major_faults))
	{
		ok($before->{$_} <= $row->{$_} && $row->{$_} <= $after->{$_}, "$name: $_ between those before and after")
		  or diag("$before->{$_}, $row->{$_}, $after->{$_}");
	}
	is($row->{state}, 'active', "$name: is active");
}

# Raising an OOM score needs no privileges.
{
	my $name = 'oom_score_adj';
	my $victim = $odd->pid;
	my $by_default = oom_files($victim);
	append_to_file("/proc/$victim/oom_score_adj", '321');
	my ($row) = $sql->rows("SELECT oom_score, oom_score_adj FROM hugeinfo_backends WHERE pid = $victim");
	is($row->{oom_score_adj}, 321, "$name: as set");
	cmp_ok($row->{oom_score}, '>', $by_default->{oom_score}, "$name: raises the score");
	append_to_file("/proc/$victim/oom_score_adj", $by_default->{oom_score_adj});
}

# sql/privileges.sql compares all grants.
{
	my $name = 'privileges';
	$sql->value('CREATE ROLE observer IN ROLE pg_monitor');
	my $what = 'SELECT pid, backend_type, datname, usename, application_name, state FROM hugeinfo_backends '
	  . q(WHERE backend_type <> 'autovacuum worker' ORDER BY pid);
	my $all = [ $eyes[1]->rows($what) ];
	$eyes[1]->value('SET ROLE observer');
	is_deeply([ $eyes[1]->rows($what) ], $all, "$name: pg_monitor sees what a superuser sees");
	is($eyes[1]->value("SELECT count(*) > 10 FROM hugeinfo_mappings($postmaster) WHERE rss_bytes > 0"), 't',
		"$name: pg_monitor sees addresses, too");
	$eyes[1]->value('RESET ROLE');
}

$copier->close;
$leader->close;
for (@eyes, $odd, $subscriber) { $_->value('SELECT 1'); $_->close }
$node->stop('immediate');

# A standby is read-only and has different processes.
{
	my $name = 'a standby';
	my $primary = new_server('primary', wal_level => 'replica', max_wal_senders => 3);
	$primary->backup('backup');
	my $standby = PostgreSQL::Test::Cluster->new('standby');
	$standby->init_from_backup($primary, 'backup', has_streaming => 1);
	$standby->start;
	my @eyes = map { HugeInfo::Session->new($standby) } 1, 2;
	my $up = until_true(sub {
		$eyes[0]->value(q{SELECT count(*) FROM hugeinfo_backends WHERE backend_type IN ('startup', 'walreceiver')}) == 2;
	});
	ok($up, "$name: startup process and walreceiver");
	my %row = compare_all($standby, $name, @eyes);
	compare_types($standby, $name, %row);
	$_->close for @eyes;
	$_->stop('immediate') for $standby, $primary;
}

done_testing;
