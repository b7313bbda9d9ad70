# A PID does not identify a process, because it can have been reused. And not every child of the
# postmaster is a process of the server: as process 1 of a container, the postmaster inherits
# orphans.
#
# Takes half a minute, because the server serves a thousand connections, whose PIDs other programs
# reuse, and samples of page faults last two seconds.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Contained;
use HugeInfo::Namespace;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = new_server('numbers', huge_pages => 'off', max_connections => 40, log_connections => 'on', fsync => 'off', log_min_messages => 'warning');
$node->stop;

my ($first, $last) = ($HugeInfo::Namespace::FIRST, $HugeInfo::Namespace::LAST);

sub is_stranger
{
	my ($sql, $pid, $name) = @_;
	for my $function (qw(hugeinfo_memory hugeinfo_mappings))
	{
		is_deeply([ $sql->notices("SELECT count(*) FROM $function($pid)") ],
			[ 0, ["WARNING:  01000: PID $pid is not a process of this server"] ], "$name: no $function");
	}
	is($sql->value("SELECT count(*) FROM $_ WHERE pid = $pid"), 0, "$name: not in $_")
	  for 'hugeinfo_backends', q(hugeinfo_fault_rates('10 ms'));
	return;
}

# Begins a sample and stops the backend during the wait. The sample then cannot end until
# `of_number` continues the backend. On a busy host, a sample can end before the backend is stopped.
# In that case, begins another sample.
sub begin_sample
{
	my ($there, $session, $other) = @_;
	until_true(sub {
		$session->ask(q(SELECT to_json(r) FROM hugeinfo_fault_rates('2 seconds') AS r));
		$session->wait_until_waiting($other);
		$there->stop_process($session->pid);
		return 1 if $other->value('SELECT wait_event_type FROM pg_stat_activity WHERE pid = ' . $session->pid) eq 'Extension';
		$there->continue_process($session->pid);
		$session->answer;
		return 0;
	}) or die "no sample could be stopped\n";
	return;
}

sub faults { my ($session, $pid) = @_; return $session->value("SELECT minor_faults FROM hugeinfo_backends WHERE pid = $pid") }

# Returns the rows of the sample for one PID.
sub of_number
{
	my ($there, $session, $number) = @_;
	$there->continue_process($session->pid);
	my ($out, $error) = $session->answer;
	die $error if $error =~ /^ERROR/m;
	return grep { $_->{pid} == $number } map { JSON::PP->new->decode($_) } split /\n/, $out;
}

SKIP:
{
	my $missing = HugeInfo::Namespace::missing();
	cannot("reused PIDs: $missing") if $missing;
	my $there = HugeInfo::Namespace->new($node);
	note("PIDs from $first to $last: the last one is " . $there->how);
	my $sql = HugeInfo::Session->new($node);
	my $other = HugeInfo::Session->new($node);

	# a backend that has ended, so that its PID is free
	my $ended = sub {
		my $victim = shift // HugeInfo::Session->new($node);
		my $number = $victim->pid;
		$victim->close;
		until_true(sub { !$there->exists($number) }) or die "$number does not end\n";
		return $number;
	};
	my $successor = sub {
		my ($number) = @_;
		my $session;
		# A PID becomes free only some time after its process has ended.
		until_true(sub {
			$session->close if $session;
			$there->next_number($number);
			$session = HugeInfo::Session->new($node, application_name => 'successor');
			return $session->pid == $number;
		});
		is($session->pid, $number, 'another backend reuses the PID');
		return $session;
	};

	{
		my $name = 'a PID reused by another program';
		my $number = $ended->();
		is($there->stranger($number), $number, "$name: has this PID");
		is($sql->value("SELECT pg_read_file('/proc/$number/oom_score_adj')"), "$HugeInfo::Namespace::STRANGER_ADJ\n",
			"$name: the server is allowed to read it");
		like($sql->value("SELECT pg_read_file('/proc/$number/maps')"), qr/perl/, "$name: including its memory");
		is_stranger($sql, $number, $name);
		$there->end_stranger($number);

		$name = 'a PID reused by another backend';
		my $session = $successor->($number);
		my ($row) = $sql->rows("SELECT * FROM hugeinfo_backends WHERE pid = $number");
		is($row->{application_name}, 'successor', "$name: the new backend is shown");
		$session->close;
	}

	{
		my $name = 'a PID reused by another backend during a sample';
		my $victim = HugeInfo::Session->new($node);
		begin_sample($there, $sql, $other);
		my $session = $successor->($ended->($victim));
		my $number = $session->pid;
		my $before = faults($other, $number);
		my @rows = of_number($there, $sql, $number);
		my $after = faults($other, $number);
		is(join(' ', sort map { $_->{presence} } @rows), 'came went', "$name: one went, one came");
		my ($came, $went) = sort { $a->{presence} cmp $b->{presence} } @rows;
		ok($before <= $came->{minor_faults} && $came->{minor_faults} <= $after, "$name: only the faults of the new one")
		  or diag("$came->{minor_faults} is not from $before to $after");
		is($went->{minor_faults}, undef, "$name: the faults of the old one are unknown");
		$session->close;
	}

	{
		my $name = 'a PID reused by another program during a sample';
		my $victim = HugeInfo::Session->new($node);
		begin_sample($there, $sql, $other);
		my $number = $ended->($victim);
		$there->stranger($number);
		is(join(' ', map { $_->{presence} } of_number($there, $sql, $number)), 'went', "$name: one went");
		$there->end_stranger($number);

		$name = 'a PID of another program reused by a backend during a sample';
		$there->stranger($number);
		begin_sample($there, $sql, $other);
		$there->end_stranger($number);
		my $session = $successor->($number);
		is(join(' ', map { $_->{presence} } of_number($there, $sql, $number)), 'came', "$name: one came");
		$session->close;
	}

	# The querying backend is stopped at any point, and meanwhile another program reuses the PID of a
	# backend. A process that was verified before must not be read as the other program afterwards. The
	# query reads five files of each backend, so about one of ten stops is between two of them.
	{
		my $name = 'a PID reused by another program during a read';
		my $rounds = 80;
		$other->value('SELECT pg_advisory_lock(1)');
		$sql->ask(qq{
			DO \$\$
			DECLARE
				leaked bigint := 0;
				of_pass bigint;
			BEGIN
				-- until the lock is given up
				WHILE NOT pg_try_advisory_lock(1) LOOP
					SELECT count(*) FROM hugeinfo_backends WHERE oom_score_adj = $HugeInfo::Namespace::STRANGER_ADJ
						OR rss_bytes > $HugeInfo::Namespace::STRANGER_BYTES * 0.9 INTO of_pass;
					leaked := leaked + of_pass;
				END LOOP;
				RAISE NOTICE 'leaked %', leaked;
			END
			\$\$});
		my $done = 0;
		until_true(sub {
			my $victim = HugeInfo::Session->new($node);
			my $number = $victim->pid;
			sleep rand 0.002;
			$there->stop_process($sql->pid);
			$victim->close;
			# a stopped process can hold a lock that others need to end
			my $ended;
			for (1 .. 100) { last if $ended = !$there->exists($number); sleep 0.005 }
			$done++ if $ended && $there->stranger($number) == $number;
			$there->continue_process($sql->pid);
			sleep 0.002;
			$there->end_stranger($number) if $ended;
			return $done == $rounds;
		});
		$other->value('SELECT pg_advisory_unlock(1)');
		my (undef, $error) = $sql->answer;
		my ($count) = $error =~ /NOTICE:  \w+: leaked (\d+)$/m;
		is($count, 0, "$name: the other program is not shown") or diag($error);
		is($done, $rounds, "$name: the PID was reused in each round");
	}

	# Backends and other programs reuse few PIDs again and again, while queries read all of them.
	{
		my $name = 'PIDs that are reused all the time';
		my $script = PostgreSQL::Test::Utils::tempdir() . '/nothing.sql';
		append_to_file($script, "SELECT 1;\n");
		my $says;
		my $pgbench = IPC::Run::start(
			[ 'pgbench', '-n', '-C', '-c', 4, '-j', 2, '-T', 1_000_000, '-f', $script, '-h', $node->host, '-p', $node->port, 'postgres' ],
			'<', '/dev/null', '>&', \$says);
		my $log_size = -s $node->logfile;
		my $large = $HugeInfo::Namespace::STRANGER_BYTES * 0.9;
		my %leak = (
			hugeinfo_backends => "FROM hugeinfo_backends WHERE oom_score_adj = $HugeInfo::Namespace::STRANGER_ADJ OR rss_bytes > $large",
			hugeinfo_memory => "FROM generate_series($first, $last) AS p, LATERAL hugeinfo_memory(p) WHERE rss_bytes > $large",
			hugeinfo_mappings => "FROM generate_series($first, $last) AS p, LATERAL hugeinfo_mappings(p) AS m WHERE m.pid <> p OR path LIKE '%/perl%'",
			hugeinfo_fault_rates => q(FROM hugeinfo_fault_rates('1 ms') WHERE minor_faults < 0 OR major_faults < 0));
		my %calls = (hugeinfo_backends => 1000, hugeinfo_memory => 100, hugeinfo_mappings => 50, hugeinfo_fault_rates => 500);
		my %leaked;
		my $look = sub {
			my ($function) = @_;
			my ($leaked, $error) = $sql->query(qq{
				SET client_min_messages = notice;
				SET log_min_messages = error;
				DO \$\$
				DECLARE
					leaked bigint := 0;
					of_pass bigint;
				BEGIN
					-- for each other program that is queried
					SET LOCAL client_min_messages = error;
					FOR pass IN 1..$calls{$function} LOOP
						SELECT count(*) $leak{$function} INTO of_pass;
						leaked := leaked + of_pass;
					END LOOP;
					SET LOCAL client_min_messages = notice;
					RAISE NOTICE 'leaked %', leaked;
				END
				\$\$});
			my ($count) = $error =~ /NOTICE:  \w+: leaked (\d+)$/m;
			diag($error) unless defined $count && $count == 0;
			$leaked{$function} += $count // 1;
		};
		# On a busy host, PIDs are reused slowly. Repeat until enough of them have been reused.
		my (%strangers, @both, $turns);
		my $came_round = until_true(sub {
			$there->churn;
			$look->($_) for sort keys %leak;
			my $calm = $there->calm;
			$strangers{$_} += $calm->{$_} for keys %$calm;
			my $log = substr slurp_file($node->logfile), $log_size;
			my %backends;
			$backends{$1}++ while $log =~ /\[(\d+)\].*connection received/g;
			@both = grep { $strangers{$_} } keys %backends;
			$turns = 0;
			$turns += $_ for map { $backends{$_} } @both;
			return @both > 20 && $turns > 2 * @both && 1000 <= (() = $log =~ /connection received/g);
		});
		is($leaked{$_}, 0, "$name: $_ never shows another program") for sort keys %leak;
		$pgbench->signal('INT');
		eval { $pgbench->finish };
		note(scalar(@both) . " numbers went to both, $turns times to a backend");
		ok($came_round, "$name: both use the same PIDs repeatedly");
	}
	$_->close for $sql, $other;
	$there->close;
}

SKIP:
{
	my $name = 'an orphan';
	my @own = qw(--user --map-current-user --pid --fork --mount-proc);
	needs_namespaces($name, @own);
	# another server in the namespace, whose postmaster becomes an orphan when it has started
	my ($second, $third) = map { PostgreSQL::Test::Cluster->new($_) } 'second', 'third';
	for ($second, $third)
	{
		$_->init;
		$_->append_conf('postgresql.conf', "shared_buffers = 16MB\nmax_connections = 40\nlogging_collector = on\n");
	}

	# Disables address randomization if possible, so that both servers have their segments at the same
	# address.
	my @same_addresses = IPC::Run::run([ 'setarch', '-R', 'true' ], '2>', '/dev/null') ? ('setarch', '-R') : ();
	my $run = IPC::Run::start([ 'unshare', @own, @same_addresses, 'postgres', '-D', $node->data_dir ], '<', '/dev/null', '>>', $node->logfile, '2>&1');
	my $up = until_true(sub { !$run->pumpable || !system_log('pg_isready', '-q', '-h', $node->host, '-p', $node->port) });
	ok($up && $run->pumpable, "$name: the server is up");
	my $sql = HugeInfo::Session->new($node);
	is($sql->value(q(SELECT pg_read_file('postmaster.pid', 0, 2))), "1\n", "$name: its postmaster is process 1");
	my $list = 'SELECT pid FROM hugeinfo_backends ORDER BY pid';
	my $before = $sql->value($list);

	$sql->value('CREATE TEMPORARY TABLE said (t text)');
	my ($data, $log) = ($second->data_dir, $second->logfile);
	# A server without its postmaster. The logger stays as long as another process can write to the
	# log, such as a stopped one.
	my $dir = PostgreSQL::Test::Utils::tempdir();
	append_to_file("$dir/headless", <<~"SHELL");
		dir=$dir data=@{[ $third->data_dir ]}
		SHELL
	append_to_file("$dir/headless", <<~'SHELL');
		exec 2>$dir/log >&2
		postgres -D $data &
		child() { ps --no-headers --ppid $! -o pid,args | awk "/postgres: $1/ { print \$1 }"; }
		until [ "$(child '(sys)?logger')" ] && [ "$(child checkpointer)" ]; do sleep 0.1; done
		child '(sys)?logger' >$dir/logger
		child checkpointer >$dir/stopped
		kill -STOP $(cat $dir/stopped)
		kill -KILL $!
		wait
		SHELL
	my %orphan;
	for my $case (
		[ 'a program', q(perl -e '$0 = "postgres: logger"; $SIG{TERM} = sub { exit }; sleep 3600' >&- 2>&- & echo $!) ],
		[ 'a program of the new name', q(perl -e '$0 = "postgres: syslogger"; $SIG{TERM} = sub { exit }; sleep 3600' >&- 2>&- & echo $!) ],
		[ 'the logger of a server that has lost its postmaster', "sh $dir/headless; cat $dir/logger" ],
		[ 'another server', "pg_ctl -w -D $data -l $log start >&- 2>&-; head -1 $data/postmaster.pid" ])
	{
		my ($what, $program) = @$case;
		$sql->value('TRUNCATE said');
		$sql->value("COPY said FROM PROGRAM \$\$$program\$\$" =~ s/\$\$(.*)\$\$/"'" . $1 =~ s{'}{''}gr . "'"/ser);
		$orphan{$what} = $sql->value('SELECT t FROM said');
	}
	for my $what (sort keys %orphan)
	{
		my $number = $orphan{$what};
		like($number, qr/^\d+$/, "$name, $what: exists");
		is($sql->value("SELECT split_part(pg_read_file('/proc/$number/stat'), ') ', 2) LIKE '_ 1 %'"), 't',
			"$name, $what: is the postmaster's child now");
		is_stranger($sql, $number, "$name, $what");
	}
	is($sql->value($list), $before, "$name: the server's processes are as before");
	is($sql->value('SELECT present_backends_bytes / one_backend_bytes FROM hugeinfo_page_tables LIMIT 1'), scalar(split /\n/, $before),
		"$name: none counts for page tables");
	$sql->value("COPY said FROM PROGRAM 'kill -CONT \$(cat $dir/stopped)'");
	# not with SIGKILL, because the postmaster would treat that as a crash
	$sql->value("COPY said FROM PROGRAM 'kill $orphan{'a program'} $orphan{'a program of the new name'}'");
	$sql->value("COPY said FROM PROGRAM 'pg_ctl -w -D $data -m fast stop'");
	$sql->close;
	my ($postmaster) = grep { (readlink("/proc/$_/cwd") // '') eq $node->data_dir } (family($run->{KIDS}[0]{PID}));
	kill INT => $postmaster;
	$run->finish;
}

SKIP:
{
	my $name = 'the PID of a postmaster that has died';
	my $missing = HugeInfo::Namespace::missing();
	cannot("$name: $missing") if $missing;
	configure($node, logging_collector => 'on');
	my $there = HugeInfo::Namespace->new($node);
	my $postmaster = $there->postmaster;
	my $sql = HugeInfo::Session->new($node);

	# A backend's entry in shared memory does not identify the process that reuses its PID.
	my $list = 'SELECT pid, backend_type FROM hugeinfo_backends WHERE backend_type IS NULL OR backend_type IN (\'logger\', \'syslogger\')';
	my ($number, @rows);
	until_true(sub {
		my ($logger) = grep { is_logger($_->{backend_type}) } $sql->rows($list);
		my $victim = HugeInfo::Session->new($node);
		$number = $victim->pid;
		$victim->close;
		until_true(sub { !$there->exists($number) }) or die "$number does not end\n";
		$there->next_number($number);
		$there->end_stranger($logger->{pid});
		# the postmaster starts another logger, which has no type until it has set its title
		my $up = until_true(sub {
			@rows = $sql->rows($list);
			return @rows == 1 && is_logger($rows[0]{backend_type}) && $rows[0]{pid} != $logger->{pid};
		});
		die "no logger\n" unless $up || (@rows && $rows[0]{pid} == $number);
		return $rows[0]{pid} == $number;
	});
	is_deeply([ map { [ $_->{pid}, is_logger($_->{backend_type}) ] } @rows ], [ [ $number, 1 ] ], 'a PID of a backend reused by the logger');

	# busy, so that it does not notice the end of its server before the other program exists
	my $flag = PostgreSQL::Test::Utils::tempdir() . '/flag';
	$sql->ask(qq{
		SELECT pg_advisory_lock(2);
		DO \$\$
		DECLARE
			listed bigint;
			of_memory bigint;
			of_mappings bigint;
		BEGIN
			WHILE pg_stat_file('$flag', true) IS NULL LOOP
			END LOOP;
			SELECT count(*) FROM hugeinfo_backends() INTO listed;
			SELECT count(*) FROM hugeinfo_memory($postmaster) INTO of_memory;
			SELECT count(*) FROM hugeinfo_mappings($postmaster) INTO of_mappings;
			RAISE NOTICE 'shown % % %', listed, of_memory, of_mappings;
		END
		\$\$});
	my $other = HugeInfo::Session->new($node);
	until_true(sub { $other->value(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted)) }) or die "it does not begin\n";
	$there->end_stranger($postmaster);
	my $stranger;
	# A PID becomes free only some time after its process has ended.
	until_true(sub {
		$stranger = $there->stranger($postmaster);
		$there->end_stranger($stranger) if $stranger != $postmaster;
		return $stranger == $postmaster;
	});
	is($stranger, $postmaster, "$name: another program reuses it");
	append_to_file($flag, '');
	like(($sql->answer)[1], qr/shown 0 0 0$/m, "$name: is not shown");
	$there->end_stranger($postmaster);
	$_->close for $sql, $other;
	$there->close;
}

SKIP:
{
	my $name = 'PIDs of another namespace';
	my @own = qw(--user --map-current-user --pid --fork);
	needs_namespaces($name, @own);
	# process 1 is the postmaster inside the namespace, and another process in /proc
	my $fourth = PostgreSQL::Test::Cluster->new('fourth');
	$fourth->init;
	$fourth->append_conf('postgresql.conf', "shared_buffers = 16MB\nmax_connections = 40\n");
	my $run = IPC::Run::start([ 'unshare', @own, 'postgres', '-D', $fourth->data_dir ], '<', '/dev/null', '>>', $fourth->logfile, '2>&1');
	my $up = until_true(sub { !$run->pumpable || !system_log('pg_isready', '-q', '-h', $fourth->host, '-p', $fourth->port) });
	ok($up && $run->pumpable, "$name: the server is up");
	my $sql = HugeInfo::Session->new($fourth);
	$sql->value('CREATE EXTENSION pg_hugeinfo');
	is_stranger($sql, 1, $name);
	is($sql->value("SELECT count(*) FROM $_"), 0, "$name: nothing in $_")
	  for 'hugeinfo_backends', q(hugeinfo_fault_rates('1 ms')), 'hugeinfo_postmaster_mappings';
	is($sql->value('SELECT count(*) FROM hugeinfo_page_tables WHERE now_bytes IS NOT NULL'), 0, "$name: nothing in hugeinfo_page_tables");
	$sql->close;
	my ($postmaster) = grep { (readlink("/proc/$_/cwd") // '') eq $fourth->data_dir } (family($run->{KIDS}[0]{PID}));
	kill INT => $postmaster;
	$run->finish;
}

done_testing;
