# Page faults over a sample: how many, of which processes, and how the wait ends.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use Test::More;
use Time::HiRes qw(time);

my $node = new_server('fault_rates', max_connections => 20);
my $sql = HugeInfo::Session->new($node);
my $other = HugeInfo::Session->new($node);

# Begins a sample, and goes on once it is waiting.
sub begin
{
	my ($session, $duration) = @_;
	my $pid = $session->pid;
	$session->ask("SELECT to_json(r) FROM hugeinfo_fault_rates('$duration') AS r");
	my $waits = until_true(sub {
		return $other->value("SELECT count(*) FROM pg_stat_activity WHERE pid = $pid AND wait_event_type = 'Extension'");
	});
	die "it does not wait\n" unless $waits;
	return;
}

sub finish
{
	my ($session) = @_;
	my ($out, $error) = $session->answer;
	die $error if $error =~ /^ERROR/m;
	return map { JSON::PP->new->decode($_) } split /\n/, $out;
}

{
	my $name = 'a sample';
	my $idle = HugeInfo::Session->new($node);
	my $busy = HugeInfo::Session->new($node);
	my $goes = HugeInfo::Session->new($node);
	my $gone = $goes->pid;
	my @stay = grep { $_ != $gone } family($node->{_pid});
	$_->value('SELECT length(repeat(\'x\', 1000))') for $idle, $busy;

	my %before = map { $_ => stat_file($_) } $idle->pid, $busy->pid;
	my $start = time;
	begin($sql, '3 seconds');
	# Whatever wakes a backend up does not end its wait.
	$other->value('SELECT pg_log_backend_memory_contexts(' . $sql->pid . ')');
	$other->value('SELECT pg_reload_conf()');
	my $comes = HugeInfo::Session->new($node);
	$goes->close;
	$busy->value(q(SELECT length(repeat('x', 50000000))));
	my @rows = finish($sql);
	my $took = time - $start;
	my %after = map { $_ => stat_file($_) } $idle->pid, $busy->pid, $comes->pid;

	my %row = map { $_->{pid} => $_ } @rows;
	is(scalar @rows, scalar keys %row, "$name: one row for each process");
	is_deeply(
		{ map { $_ => $row{$_}{presence} } keys %row },
		{ (map { $_ => 'stayed' } @stay), $comes->pid => 'came', $gone => 'went' }, "$name: who stayed, came and went");
	is_deeply(
		{ map { $_ => $row{$_}{backend_type} } keys %row },
		{ $gone => 'client backend',
			map { @$_{qw(pid backend_type)} } $other->rows('SELECT pid, backend_type FROM hugeinfo_backends') },
		"$name: what they are");

	for my $case ([ 'idle', $idle->pid ], [ 'busy', $busy->pid ])
	{
		my ($what, $pid) = @$case;
		my %faults = map { $_ => $after{$pid}{$_} - $before{$pid}{$_} } qw(minor_faults major_faults);
		is_deeply({ map { $_ => $row{$pid}{$_} } keys %faults }, \%faults, "$name: faults of who is $what");
	}
	is($row{ $idle->pid }{minor_faults}, 0, "$name: none where nothing happens");
	cmp_ok($row{ $busy->pid }{minor_faults}, '>', 10, "$name: some where memory is touched");
	is_deeply(
		{ map { $_ => $row{ $comes->pid }{$_} } qw(minor_faults major_faults) },
		$after{ $comes->pid }, "$name: faults of who came, since it did");
	is_deeply([ grep { defined } map { $row{$gone}{$_} } qw(minor_faults major_faults minor_faults_per_second major_faults_per_second) ],
		[], "$name: nothing is known of who went");

	my ($seconds) = map { $_->{seconds} } values %row;
	is(scalar(grep { $_->{seconds} != $seconds } @rows), 0, "$name: one length for all");
	cmp_ok($seconds, '>=', 3, "$name: not shorter than asked for");
	cmp_ok($seconds, '<=', $took, "$name: nor longer than it took");
	for my $kind (qw(minor_faults major_faults))
	{
		my @wrong = grep { abs($_->{"${kind}_per_second"} * $seconds - $_->{$kind}) > 1e-6 * (1 + $_->{$kind}) }
		  grep { $_->{presence} ne 'went' } @rows;
		is_deeply(\@wrong, [], "$name: ${kind}_per_second by the real length");
	}
	$_->close for $idle, $busy, $comes;
}

{
	my $name = 'without a duration';
	my ($seconds) = $sql->value('SELECT min(seconds) FROM hugeinfo_fault_rates()');
	cmp_ok($seconds, '>=', 1, "$name: a second");
	my ($out, $notices) = $sql->notices('SELECT count(*) FROM hugeinfo_fault_rates(NULL)');
	is($out, 0, "$name: NULL gives no row");
	is_deeply($notices, [], "$name: in silence");
	is($sql->value(q(SELECT min(seconds) >= 0.000001 AND count(*) > 3 FROM hugeinfo_fault_rates('1 microsecond'))), 't',
		'the shortest');
}

{
	my $name = 'durations that make no sense';
	my @bad = ('0', '-1 second', '-1 microsecond', '1 hour 1 microsecond', '2 hours', '1 month -29 days', '10 years',
		'178000000 years', '-178000000 years', '1 day -25 hours');
	push @bad, 'infinity', '-infinity' if $sql->value('SHOW server_version_num') >= 170000;
	for my $duration (@bad)
	{
		my ($state, $text) = $sql->error_of("SELECT * FROM hugeinfo_fault_rates('$duration')");
		is($state, '22023', "$name: $duration");
		like($text, qr/^HINT:  \S/m, "$name: $duration: with a hint");
	}
	# the longest is not one of them, nor is what only looks long: these wait until they are stopped
	for my $duration ('1 hour', '1 day -23 hours', '1 month -30 days 1 hour')
	{
		$sql->value('SET statement_timeout = 50');
		is(($sql->error_of("SELECT * FROM hugeinfo_fault_rates('$duration')"))[0], '57014', "$duration is a duration");
		$sql->value('RESET statement_timeout');
	}
}

# Every process, as they are now.
sub is_right
{
	my ($name) = @_;
	is_deeply([ map { $_->{pid} } $sql->rows(q(SELECT pid FROM hugeinfo_fault_rates('10 ms') ORDER BY pid)) ],
		[ family($node->{_pid}) ], "$name: the next call is right");
	return;
}

{
	my $name = 'a timeout';
	is_cancelled($sql, q(SELECT * FROM hugeinfo_fault_rates('10 s')), $name);
	is_right($name);
}

{
	my $name = 'a cancel';
	begin($sql, '1 hour');
	$other->value('SELECT pg_cancel_backend(' . $sql->pid . ')');
	my (undef, $error) = $sql->answer;
	like($error, qr/^ERROR:  57014:/m, "$name: ends it");
	is_right($name);
}

# Cancelled at any moment, also while files are read: nothing is left open, and errors are the
# cancel's.
{
	my $name = 'cancels at odd moments';
	my @calls = map { "SELECT count(*) FROM generate_series(1, 100000) AS i, LATERAL (SELECT i, r FROM $_ AS r) AS t" }
	  "hugeinfo_mappings($node->{_pid} + 0 * i)", "hugeinfo_memory($node->{_pid} + 0 * i)",
	  q(hugeinfo_fault_rates(make_interval(secs => 0.0001 + 0 * i)));
	push @calls, map { "DO \$\$ BEGIN LOOP PERFORM * FROM $_; END LOOP; END \$\$" } qw(hugeinfo_backends hugeinfo_page_tables);
	$sql->query($_) for map { ('SET statement_timeout = 20', $_) } @calls;
	my @before = open_files($sql->pid);
	my %states;
	for my $round (1 .. 20)
	{
		$sql->value("SET statement_timeout = $round");
		$states{ ($sql->error_of($_))[0] }++ for @calls;
	}
	$sql->value('SET statement_timeout = 0');
	is_deeply(\%states, { 57014 => 20 * @calls }, "$name: each is the cancel's");
	is_deeply([ open_files($sql->pid) ], \@before, "$name: no file stays open");
	is_right($name);
}

{
	my $name = 'the end of the session';
	my $ended = HugeInfo::Session->new($node);
	my $pid = $ended->pid;
	begin($ended, '1 hour');
	$other->value("SELECT pg_terminate_backend($pid)");
	ok(until_true(sub { !defined state_of($pid) }), "$name: ends the wait");
	$ended->close;
}

$_->close for $sql, $other;
$node->stop;
done_testing;
