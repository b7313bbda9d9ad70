# Unusual processes: zombies, stopped, protected, with names of other programs, and processes that
# do not belong to this server.
use strict;
use warnings;

use File::Copy ();
use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use IO::Socket::UNIX ();
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('odd', huge_pages => 'off', max_connections => 20, logging_collector => 'on');
my $sql = HugeInfo::Session->new($node);

# Objects that list processes, and functions for one process.
my @lists = ('hugeinfo_backends', q(hugeinfo_fault_rates('10 ms')));
my @of_one = qw(hugeinfo_memory hugeinfo_mappings);

sub pids_in { my ($session, $list) = @_; return map { $_->{pid} } $session->rows("SELECT pid FROM $list") }

# Compares the row of a process with /proc.
sub compare
{
	my ($session, $pid, $name) = @_;
	my ($seen, $expected) = settled(
		sub { $session->rows("SELECT * FROM hugeinfo_backends WHERE pid = $pid") },
		sub { return { %{ status_file($pid) }, %{ stat_file($pid) }, %{ oom_files($pid) } } },
		sub { my ($rows, $kernel) = @_; return ({ map { $_ => $rows->[0]{$_} } keys %{ $kernel->[0] } }, $kernel->[0]) });
	is_deeply($seen, $expected, $name);
	return;
}

{
	my $name = 'processes of others';
	my $other = new_server('other');
	my $foreign = HugeInfo::Session->new($other);
	my $psql = $foreign->{run}{KIDS}[0]{PID};
	my %stranger = (
		'process 1' => 1, 'a kernel thread' => 2, 'zero' => 0, 'a negative number' => -1, 'the largest number' => 2147483647,
		'the smallest number' => -2147483648, 'this test' => $$, 'a psql' => $psql, 'another postmaster' => $other->{_pid},
		'a backend of another server' => $foreign->pid);
	for my $what (sort keys %stranger)
	{
		my $pid = $stranger{$what};
		for my $function (@of_one)
		{
			is_deeply([ $sql->notices("SELECT * FROM $function($pid)") ],
				[ '', ["WARNING:  01000: PID $pid is not a process of this server"] ], "$name: $function of $what");
		}
	}
	my $own = $sql->pid;
	my $list = join ', ', map { "($_)" } $own, sort values %stranger;
	$sql->value('SET client_min_messages = error');
	for my $function (@of_one)
	{
		is($sql->value("SELECT count(DISTINCT p) FROM (VALUES $list) AS v (p), LATERAL $function(p) AS m"), 1,
			"$name: a query over many rows of $function does not fail");
	}
	$sql->value('RESET client_min_messages');
	for my $from (@lists)
	{
		my %there = map { $_ => 1 } pids_in($sql, $from);
		is_deeply([ grep { $there{ $stranger{$_} } } sort keys %stranger ], [], "$name: none is in $from");
		is_deeply([ grep { !$there{$_} } family($node->{_pid}) ], [], "$name: our own are in $from");
	}
	is_deeply([ sort { $a <=> $b } pids_in($foreign, 'hugeinfo_backends') ], [ family($other->{_pid}) ], "$name: the other server lists its own");

	is_deeply([ $sql->notices("SELECT * FROM $_(NULL)") ], [ '', [] ], "$name: $_ of NULL") for @of_one;
	$foreign->close;
	$other->stop;
}

# Runs code while a process is stopped.
sub while_stopped
{
	my ($pid, $code) = @_;
	kill STOP => $pid;
	my $done = eval {
		until_true(sub { (state_of($pid) // '') eq 'T' }) or die "$pid does not stop\n";
		$code->();
		1;
	};
	my $error = $@;
	kill CONT => $pid;
	die $error unless $done;
	return;
}

# A stopped postmaster does not reap its children, so they remain zombies.
{
	my $name = 'a zombie';
	my $victim = HugeInfo::Session->new($node);
	my $pid = $victim->pid;
	while_stopped($node->{_pid}, sub {
		$sql->value("SELECT pg_terminate_backend($pid)");
		ok(until_true(sub { (state_of($pid) // '') eq 'Z' }), "$name: exists");
		my $alive = grep { $_ != $pid } family($node->{_pid});
		for my $from (@lists, 'hugeinfo_page_tables', 'hugeinfo_backends AS b, LATERAL hugeinfo_memory(b.pid) AS m',
			'hugeinfo_backends AS b, LATERAL hugeinfo_mappings(b.pid) AS m', map { "$_($pid)" } @of_one)
		{
			is(($sql->error_of("SELECT * FROM $from"))[0], '', "$name: no error in $from");
		}
		my @rows = $sql->rows('SELECT * FROM hugeinfo_backends');
		is(scalar(grep { $_->{pid} != $pid } @rows), $alive, "$name: the others are listed");
		# its memory has been released
		is_deeply([ map { grep { defined } @$_{qw(page_table_bytes rss_bytes virtual_bytes)} } grep { $_->{pid} == $pid } @rows ], [],
			"$name: it has no memory");
		is_deeply([ map { delete $_->{pid}; grep { defined } values %$_ } $sql->rows("SELECT * FROM hugeinfo_memory($pid)") ], [], "$name: it has no memory in hugeinfo_memory");
		is($sql->value("SELECT count(*) FROM hugeinfo_mappings($pid)"), 0, "$name: no mappings");
		my ($row) = grep { $_->{pid} == $pid } $sql->rows(q(SELECT * FROM hugeinfo_fault_rates('10 ms')));
		is_deeply([ $row->{minor_faults} // 0, $row->{presence} // 'stayed' ], [ 0, 'stayed' ], "$name: no faults");
	});
	ok(until_true(sub { !defined state_of($pid) }), "$name: is reaped in the end");
	my @left = grep { $_ == $pid } map { pids_in($sql, $_) } @lists;
	is("@left", '', "$name: is no longer listed");
	for my $function (@of_one)
	{
		is_deeply([ $sql->notices("SELECT * FROM $function($pid)") ],
			[ '', ["WARNING:  01000: PID $pid is not a process of this server"] ], "$name: $function");
	}
	$victim->close;
}

{
	my $name = 'a stopped process';
	my $victim = HugeInfo::Session->new($node);
	my $pid = $victim->pid;
	while_stopped($pid, sub {
		compare($sql, $pid, "$name: is shown like any other");
	});
	$victim->close;
}

$sql->close;
$node->stop;

# Clients that have connected but not sent a startup packet have a process without a slot in shared
# memory, and so have clients above all limits: up to twice the number of slots.
{
	my $name = 'clients without a startup packet';
	my $full = new_server('full', huge_pages => 'off', max_connections => 5, superuser_reserved_connections => 1,
		autovacuum_max_workers => 1, max_worker_processes => 0, max_wal_senders => 0, authentication_timeout => 600);
	my $sql = HugeInfo::Session->new($full);
	my $without = sub {
		return sort { $a <=> $b } split /\n/, $sql->value('SELECT pid FROM hugeinfo_backends() EXCEPT SELECT pid FROM pg_stat_activity');
	};
	my $usual = () = $without->();
	my @before = family($full->{_pid});
	my $file = $full->host . '/.s.PGSQL.' . $full->port;
	my @silent = map { IO::Socket::UNIX->new(Peer => $file) // die "$file: $!\n" } 1 .. 40;
	ok(until_true(sub { (() = family($full->{_pid})) == @before + @silent }), "$name: have a process each");

	my @pids = family($full->{_pid});
	is_deeply([ sort { $a <=> $b } pids_in($sql, 'hugeinfo_backends') ], \@pids, "$name: hugeinfo_backends lists them");
	my @seen = $without->();
	is(scalar @seen, $usual + @silent, "$name: PostgreSQL itself does not list them");
	my $list = join ', ', @seen;
	is($sql->value("SELECT count(*) FROM unnest(ARRAY[$list]) AS p, LATERAL hugeinfo_memory(p) AS m WHERE pss_bytes > 0"), scalar @seen,
		"$name: hugeinfo_memory of each");
	is($sql->value("SELECT count(DISTINCT p) FROM unnest(ARRAY[$list]) AS p, LATERAL hugeinfo_mappings(p) AS m WHERE kind = 'main segment'"),
		scalar @seen, "$name: each has the main segment");
	is($sql->value("SELECT count(*) FROM hugeinfo_backends WHERE pid IN ($list) AND backend_type = 'postmaster'"), 1,
		"$name: none has the type of the postmaster or the logger");

	CORE::close($_) for @silent;
	ok(until_true(sub { "@{[ family($full->{_pid}) ]}" eq "@before" }), "$name: end");
	is_deeply([ sort { $a <=> $b } pids_in($sql, 'hugeinfo_backends') ], \@before, "$name: are no longer listed");
	$sql->close;
	$full->stop;
}

# Starts the same server from another program file, with its usual name as argument 0.
sub started_from
{
	my ($program, $code, @options) = @_;
	my $usual = $node->config_data('--bindir') . '/postgres';
	my $run = IPC::Run::start(
		[ $^X, '-e', 'my $program = shift; exec {$program} @ARGV', $program, $usual, '-D', $node->data_dir, @options ],
		'<', '/dev/null', '>>', $node->logfile, '2>&1');
	my $up = until_true(sub { !$run->pumpable || !system_log('pg_isready', '-q', '-h', $node->host, '-p', $node->port) });
	my $postmaster = $run->{KIDS}[0]{PID};
	if ($up && $run->pumpable) { eval { $code->($postmaster); 1 } or fail("died: $@") }
	else { fail("the server does not start from $program") }
	kill INT => $postmaster;
	$run->finish;
	return;
}

my $bin = PostgreSQL::Test::Utils::tempdir();

sub copy_program
{
	my ($file, $mode) = @_;
	File::Copy::copy($node->config_data('--bindir') . '/postgres', "$bin/$file") or die "$bin/$file: $!\n";
	chmod $mode, "$bin/$file";
	return "$bin/$file";
}

# In stat, the name is in parentheses, and can contain parentheses.
{
	my $name = 'a program with an odd name';
	my $file = "p) Z 1 (\n7 8";
	symlink $node->config_data('--bindir') . '/postgres', "$bin/$file" or die "symlink: $!\n";
	started_from("$bin/$file", sub {
		my ($postmaster) = @_;
		my $sql = HugeInfo::Session->new($node);
		like(process_file($postmaster, 'stat'), qr/^$postmaster \(p\) Z 1 \(\n7 8\) S /, "$name: stat contains it");
		is_deeply([ sort { $a <=> $b } pids_in($sql, 'hugeinfo_backends') ], [ family($postmaster) ], "$name: all processes");
		compare($sql, $postmaster, "$name: the postmaster's figures");
		is($sql->value("SELECT backend_type FROM hugeinfo_backends WHERE pid = $postmaster"), 'postmaster', "$name: the postmaster's type");
		$sql->close;
	});
}

# A title uses the space of the arguments, and is padded to their length.
{
	my $name = 'a bloated title';
	my $usual = $node->config_data('--bindir') . '/postgres';
	my $long = 'x' x 100_000;
	started_from($usual, sub {
		my ($postmaster) = @_;
		my $sql = HugeInfo::Session->new($node);
		my @pids = family($postmaster);
		my ($logger) = grep { is_logger(title($_) =~ s/^postgres: bloated: (\S+) *$/$1/r) } @pids;
		isnt($logger, undef, "$name: the logger has one");
		cmp_ok(length process_file($logger, 'cmdline'), '>', 200_000, "$name: it is long");
		my %row = map { $_->{pid} => $_ } $sql->rows('SELECT * FROM hugeinfo_backends');
		is_deeply([ sort { $a <=> $b } keys %row ], \@pids, "$name: all processes");
		like(title($logger), qr/: \Q$row{$logger}{backend_type}\E *$/, "$name: the logger is recognized by it");
		is($row{$postmaster}{backend_type}, 'postmaster', "$name: the postmaster is recognized without it");
		compare($sql, $_, "$name: figures of $row{$_}{backend_type}") for $logger, $postmaster;
		is($sql->value("SELECT count(*) > 10 FROM hugeinfo_mappings($logger)"), 't', "$name: its mappings");
		$sql->close;
	}, '-c', 'cluster_name=bloated', map { ('-c', "archive_cleanup_command=$long") } 1 .. 3);
}

# This happens after an upgrade in place.
{
	my $name = 'a program whose file was removed';
	my $program = copy_program('gone', 0755);
	started_from($program, sub {
		my ($postmaster) = @_;
		unlink $program;
		my $sql = HugeInfo::Session->new($node);
		my @mapped = grep { ($_->{path} // '') eq "$program (deleted)" } maps_file($postmaster);
		cmp_ok(scalar @mapped, '>', 1, "$name: maps shows it as deleted");
		is($sql->value(q(SELECT count(*) FROM hugeinfo_postmaster_mappings WHERE kind = 'executable')), scalar @mapped,
			"$name: it is still the executable");
		is_deeply([ sort { $a <=> $b } pids_in($sql, 'hugeinfo_backends') ], [ family($postmaster) ], "$name: all processes");
		$sql->close;
	});
}

# If the program of a process is not readable, only the process itself can read its memory files.
{
	my $name = 'protected memory files';
	my $program = copy_program('closed', 0111);
	started_from($program, sub {
		my ($postmaster) = @_;
		my $sql = HugeInfo::Session->new($node);
		my $open = open(my $fh, '<', "/proc/$postmaster/smaps_rollup");
		SKIP:
		{
			cannot("$name: they are readable here") if $open;
			my @rows = $sql->rows('SELECT * FROM hugeinfo_backends');
			is_deeply([ sort { $a <=> $b } map { $_->{pid} } @rows ], [ family($postmaster) ], "$name: all processes");
			is(scalar(grep { !defined $_->{page_table_bytes} || !defined $_->{minor_faults} } @rows), 0, "$name: with the figures that all users can read");
			my ($out, $notices) = $sql->notices("SELECT * FROM hugeinfo_memory($postmaster)");
			is($out, $postmaster . '|' x 11, "$name: hugeinfo_memory has no figures");
			is_deeply($notices, [], "$name: without a notice");
			is_deeply([ $sql->notices("SELECT * FROM hugeinfo_mappings($postmaster)") ], [ '', [] ], "$name: hugeinfo_mappings has no rows");
			is(($sql->error_of("SELECT * FROM $_"))[0], '', "$name: no error in $_") for @lists, 'hugeinfo_page_tables';
			is($sql->value(q(SELECT count(*) > 0 FROM hugeinfo_mappings WHERE kind = 'main segment' AND rss_bytes > 0)), 't',
				"$name: a backend can read its own memory");
			is($sql->value('SELECT page_size_bytes > 0 FROM hugeinfo_status'), 't', "$name: the status is known");
		}
		$sql->close;
	});
}

done_testing;
