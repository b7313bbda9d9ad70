# Page faults over a sample: their numbers and the processes.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(clock_gettime sleep CLOCK_MONOTONIC);

my $node = new_server('fault_rates', max_connections => 20);
my $sql = HugeInfo::Session->new($node);
my $other = HugeInfo::Session->new($node);

# Begins a sample and returns once the sample is waiting. Returns 0 if the sample has already ended.
sub begin
{
	my ($session, $duration) = @_;
	$session->ask("SELECT to_json(r) FROM hugeinfo_fault_rates('$duration') AS r");
	return $session->wait_until_waiting($other);
}

sub finish
{
	my ($session) = @_;
	my ($out, $error) = $session->answer;
	die $error if $error =~ /^ERROR/m;
	return map { JSON::PP->new->decode($_) } split /\n/, $out;
}

# Begins a sample of this length, runs $wake, and stops the backend during the wait. The sample then
# cannot end until the backend continues. On a busy host, a sample can end before the backend is
# stopped. In that case, begins another sample.
sub begin_stopped
{
	my ($session, $seconds, $wake) = @_;
	until_true(sub {
		begin($session, "$seconds seconds") && $wake->() && $session->wait_until_waiting($other);
		kill STOP => $session->pid;
		until_true(sub { state_of($session->pid) eq 'T' }) or die "the backend does not stop\n";
		return 1 if $other->value('SELECT wait_event_type FROM pg_stat_activity WHERE pid = ' . $session->pid) eq 'Extension';
		kill CONT => $session->pid;
		my @short = grep { $_->{seconds} < $seconds } finish($session);
		is_deeply(\@short, [], 'a sample that ended early has the requested length');
		return 0;
	}) or die "no sample could be stopped\n";
	return;
}

{
	my $name = 'a sample';
	my $idle = HugeInfo::Session->new($node);
	my $busy = HugeInfo::Session->new($node);
	my $goes = HugeInfo::Session->new($node);
	my $gone = $goes->pid;
	my @stay = grep { $_ != $gone } family($node->{_pid});
	$_->value('SELECT length(repeat(\'x\', 1000))') for $idle, $busy;

	# The sample includes at least the faults between the inner reads, which happen while the backend
	# is stopped, and at most the faults between the outer reads.
	my $read = sub { return map { $_ => stat_file($_) } @_ };
	my $start = clock_gettime(CLOCK_MONOTONIC);
	my %before = $read->($idle->pid, $busy->pid);
	begin_stopped($sql, 3, sub {
		# Waking up the backend must not end its wait.
		my $log_size = -s $node->logfile;
		$other->value('SELECT pg_log_backend_memory_contexts(' . $sql->pid . ')');
		$other->value('SELECT pg_reload_conf()');
		my $logged = sub { return substr(slurp_file($node->logfile), $log_size) =~ /logging memory contexts of PID @{[ $sql->pid ]}/ };
		return until_true($logged) || die "the backend was not woken up\n";
	});
	my %first = $read->($idle->pid, $busy->pid);
	my $comes = HugeInfo::Session->new($node);
	$goes->close;
	until_true(sub { !defined state_of($gone) }) or die "a session does not end\n";
	$busy->value(q(SELECT length(repeat('x', 50000000))));
	my %last = $read->($idle->pid, $busy->pid, $comes->pid);
	kill CONT => $sql->pid;
	my @rows = finish($sql);
	my $took = clock_gettime(CLOCK_MONOTONIC) - $start;
	my %after = $read->($idle->pid, $busy->pid, $comes->pid);
	my %row = map { $_->{pid} => $_ } @rows;
	is(scalar @rows, scalar keys %row, "$name: one row for each process");
	is_deeply(
		{ map { $_ => $row{$_}{presence} } keys %row },
		{ (map { $_ => 'stayed' } @stay), $comes->pid => 'came', $gone => 'went' }, "$name: processes that stayed, came and went");
	is_deeply(
		{ map { $_ => $row{$_}{backend_type} } keys %row },
		{ $gone => 'client backend',
			map { @$_{qw(pid backend_type)} } $other->rows('SELECT pid, backend_type FROM hugeinfo_backends') },
		"$name: their types");

	for my $case ([ 'idle', $idle->pid ], [ 'busy', $busy->pid ], [ 'new', $comes->pid ])
	{
		my ($what, $pid) = @$case;
		for my $kind (qw(minor_faults major_faults))
		{
			# For a new process, the sample includes all its faults.
			my $least = $last{$pid}{$kind} - ($first{$pid}{$kind} // 0);
			my $most = $after{$pid}{$kind} - ($before{$pid}{$kind} // 0);
			my $is = $row{$pid}{$kind};
			ok($least <= $is && $is <= $most, "$name: $kind of the $what process") or diag("$is is not from $least to $most");
		}
	}
	cmp_ok($row{ $busy->pid }{minor_faults}, '>', 10, "$name: the busy process has faults");
	is_deeply([ grep { defined } map { $row{$gone}{$_} } qw(minor_faults major_faults minor_faults_per_second major_faults_per_second) ],
		[], "$name: a process that went has no faults");

	my ($seconds) = map { $_->{seconds} } values %row;
	is(scalar(grep { $_->{seconds} != $seconds } @rows), 0, "$name: one length for all");
	cmp_ok($seconds, '>=', 3, "$name: not shorter than requested");
	cmp_ok($seconds, '<=', $took, "$name: not longer than the query");
	for my $kind (qw(minor_faults major_faults))
	{
		my @wrong = grep { abs($_->{"${kind}_per_second"} * $seconds - $_->{$kind}) > 1e-6 * (1 + $_->{$kind}) }
		  grep { $_->{presence} ne 'went' } @rows;
		is_deeply(\@wrong, [], "$name: ${kind}_per_second by the real length");
	}
	$_->close for $idle, $busy, $comes;
}

# PostgreSQL 17 and newer have infinite intervals. sql/hugeinfo_fault_rates.sql has other invalid ones.
for my $duration ($sql->value('SHOW server_version_num') >= 170000 ? ('infinity', '-infinity') : ())
{
	my ($state) = $sql->error_of("SELECT * FROM hugeinfo_fault_rates('$duration')");
	is($state, '22023', "invalid durations: $duration");
}
cmp_ok($sql->value(q(SELECT count(*) FROM hugeinfo_fault_rates('1 microsecond'))), '>', 3, 'the shortest duration');

# The maximum duration is valid, and so are durations that only look longer.
for my $duration ('1 hour', '1 day -23 hours', '1 month -30 days 1 hour')
{
	ok(begin($sql, $duration), "$duration is a duration");
	$sql->cancel;
}

# Checks that the next call returns every current process. A process that has just ended might
# remain for a moment.
sub is_right
{
	my ($name) = @_;
	my ($seen, $expected) = settled(
		sub { $sql->rows(q(SELECT pid FROM hugeinfo_fault_rates('10 ms') ORDER BY pid)) },
		sub { family($node->{_pid}) },
		sub { my ($rows, $pids) = @_; return ([ map { $_->{pid} } @$rows ], $pids) });
	is_deeply($seen, $expected, "$name: the next call is correct");
	return;
}

# A cancel at any moment, including while files are read, leaves no file open. The only error is
# that of the cancel.
{
	my $name = 'cancels at odd moments';
	my @calls = map { "(SELECT count(*) FROM generate_series(1, 100000) AS i, LATERAL (SELECT i, r FROM $_ AS r) AS t) AS t" }
	  "hugeinfo_mappings($node->{_pid} + 0 * i)", "hugeinfo_memory($node->{_pid} + 0 * i)",
	  q(hugeinfo_fault_rates(make_interval(secs => 0.0001 + 0 * i)));
	push @calls, qw(hugeinfo_backends hugeinfo_page_tables);
	my $cancel = sub {
		my ($call, $delay) = @_;
		$sql->ask(endless($call));
		$sql->wait_until(sub { $sql->{error} =~ /^NOTICE: .* begun$/m });
		# The delay varies the moment of the cancel.
		sleep $delay;
		return state_in(($sql->cancel)[1]);
	};
	$cancel->($_, 0.02) for @calls;
	my @before = open_files($sql->pid);
	my %states;
	for my $round (1 .. 20)
	{
		$states{ $cancel->($_, $round / 1000) }++ for @calls;
	}
	is_deeply(\%states, { 57014 => 20 * @calls }, "$name: each error is that of the cancel");
	is_deeply([ open_files($sql->pid) ], \@before, "$name: no file stays open");
	is_right($name);
}

$_->close for $sql, $other;
$node->stop;
done_testing;
