# Tests that hugeinfo ensure adds exactly the pages that the next start lacks, and restores the pool
# if they are not enough. Tests that hugeinfo why explains failed starts.
#
# Takes half a minute, because runs wait for memory, and 16 runs are killed.
use strict;
use warnings;

use File::Temp ();
use FindBin;
use IPC::Run ();
use JSON::PP ();
use Time::HiRes ();
use lib "$FindBin::RealBin/lib";
use HugeInfo::Tools;
use HugeInfo::Contained;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $program = source('target/program/hugeinfo');
my $bindir = $ENV{PATH} =~ s/:.*//r;
my $scratch = File::Temp::tempdir(CLEANUP => 1);
chmod 0755, $scratch;

# Runs the program as root. Returns the exit status and the output, with the errors.
sub as_root
{
	my ($arguments) = @_;
	my $file = "$scratch/out";
	type_in("$program $arguments --bindir $bindir >$file 2>&1; echo \$? >$file.status");
	my ($status, $out) = map { slurp_file($_) } "$file.status", $file;
	unlink $file, "$file.status";
	return ($status + 0, $out);
}

sub hugeinfo
{
	my (@arguments) = @_;
	my ($out, $error);
	IPC::Run::run([ $program, @arguments, '--bindir', $bindir ], '<', '/dev/null', '>', \$out, '2>', \$error);
	return ($? >> 8, $out, $error);
}

# The pool without pages of others.
sub total { return pool($kb)->{total} - pages_of_others($kb) }

# Reservations of earlier runs count for two minutes.
sub forget { return type_in("rm -rf /run/hugeinfo >$scratch/log") }

SKIP:
{
needs_host('ensure');
my ($one, $two) = map { new_server($_, max_connections => 20) } qw(one two);
for my $node ($one, $two)
{
	$node->stop;
	configure($node, huge_pages => 'on');
}
forget();

pools_of_one_size($kb, 3);
my ($status, $out) = as_root('ensure --dry-run -D ' . $one->data_dir);
is($status, 0, 'dry run: exit status');
my ($need) = map { $_ - pages_of_others($kb) } $out =~ /nr_hugepages=(\d+)$/m;
is(total(), 3, 'dry run: changes nothing');

# The program does not understand this file.
{
	my $conf = slurp_file($one->data_dir . '/postgresql.conf');
	append_to_file($one->data_dir . '/postgresql.conf', "huge_pages = 'o\\156'\n");
	is((hugeinfo('ensure', '--dry-run', '-D', $one->data_dir))[1], $out, 'an escape in a file: the same commands');
	open my $file, '>', $one->data_dir . '/postgresql.conf' or die;
	print {$file} $conf;
	close $file;
}
($status, $out) = as_root('ensure -D ' . $one->data_dir);
is($status, 0, 'ensure: exit status') or diag($out);
is(total(), $need, 'ensure: as in the dry run');
($status, $out) = as_root('ensure -D ' . $one->data_dir);
is(total(), $need, 'ensure again: nothing is added');
like($out, qr/: has its $need huge pages/, 'ensure again: says so');

# Two servers that start at the same time need the pages of both, although those of the first one
# are still free.
as_root('ensure --for start -D ' . $two->data_dir);
is(total(), 2 * $need, 'a second server: pages of its own');
for my $node ($one, $two)
{
	my ($started, $log) = starts($node);
	ok($started, $node->name . ' starts') or diag($log);
	is(segment($node->{_pid})->{page_bytes}, $kb * 1024, $node->name . ' is on huge pages');
}
($status, $out) = as_root('ensure -D ' . $one->data_dir);
is($status, 0, 'while it runs: exit status');
like($out, qr/the server runs; nothing was changed/, 'while it runs: says so');
is(total(), 2 * $need, 'while it runs: the pool');

# Before restarts of two servers, ensure adds only the pages that they do not hold yet.
{
	forget();
	configure($_, shared_buffers => '48MB') for $one, $two;
	my ($dry) = (hugeinfo(qw(ensure --all --for restart --dry-run)))[1];
	my %count = $dry =~ m{^(\S+): lacks pages.*\n(?:    .*\n)*?    sysctl .*nr_hugepages=(\d+)$}mg;
	my ($fewer, $more) = sort { $a <=> $b } grep { defined } @count{ map { $_->data_dir } $one, $two };
	for my $node ($one, $two)
	{
		($status, $out) = as_root('ensure --for restart -c shared_buffers=48MB -D ' . $node->data_dir);
		is($status, 0, 'before a restart: exit status');
		like($out, qr/: will get \d+ huge pages of .* after the restart; \d+ were added to the pool/, 'before a restart: says so');
	}
	my $before = total();
	my $sum = 0;
	for my $node ($one, $two)
	{
		restarts($node, shared_buffers => '48MB');
		is(segment($node->{_pid})->{page_bytes}, $kb * 1024, 'after the restart: ' . $node->name . ' is on huge pages');
		$sum += required_pages($node, $kb);
	}
	is($before, $sum, 'before a restart: no more pages than both need');
	is($more - pages_of_others($kb), $sum, 'dry run of all: the second server adds to the pages of the first one');
	cmp_ok($fewer, '<', $more, 'dry run of all: the pages of the first one');
	($status, $out) = as_root('ensure --for restart -D ' . $one->data_dir);
	like($out, qr/: will get \d+ huge pages of \d+ .B after the restart$/m, 'a restart without changes: adds nothing');
	is(total(), $sum, 'a restart without changes: the pool');
	($status, $out) = as_root('ensure --for restart --wait 1s -D ' . $one->data_dir . ' -c shared_buffers=' . int(ram_bytes() / 2**20) . 'MB');
	is($status, 2, 'a restart with too much: exit status');
	like($out, qr/critical: A restart would fail/, 'a restart with too much: says why');
	is(total(), $sum, 'a restart with too much: the pool');
	configure($_, shared_buffers => '16MB') for $one, $two;
}
$_->stop for $one, $two;
forget();

# A server that is starting: it has written its lock file, and has no shared memory yet.
{
	pools_of_one_size($kb, 0);
	as_root('ensure --for start -D ' . $one->data_dir);
	my $file = $one->data_dir . '/postmaster.pid';
	my $pid = fork // die "fork: $!\n";
	if (!$pid)
	{
		chdir $one->data_dir;
		append_to_file($file, join("\n", $$, $one->data_dir, time, $one->port, '', '') . "\n");
		exec 'sleep', '60';
	}
	until (-s $file) { select undef, undef, undef, 0.01 }
	as_root('ensure --for start -D ' . $two->data_dir);
	is(total(), 2 * $need, 'a server that is starting: its pages are still reserved');
	kill 'KILL', $pid;
	waitpid $pid, 0;
	unlink $file;
	forget();
}

# A server in a container: postmaster.pid has its PID there.
{
	my @own = qw(unshare --user --map-current-user --pid --fork --mount-proc);
	pools_of_one_size($kb, $need);
	in_namespace($one, 'a container', \@own, sub {
		my ($postmaster) = @_;
		($status, $out) = as_root('ensure -D ' . $one->data_dir);
		like($out, qr/the server runs; nothing was changed/, 'a server in a container: runs');
		like((hugeinfo('preflight', '-D', $one->data_dir))[2], qr/is running \(PID $postmaster\)|might be in use by a container/, 'a server in a container: preflight');
	});
	forget();
}

# ExecStartPre of a unit: an unknown state does not keep the server from starting.
{
	pools_of_one_size($kb, 0);
	type_in("mkdir -m 700 /run/hugeinfo >$scratch/log");
	my $ensure = "$program ensure --wait 0 --lock-wait 0 -D " . $one->data_dir . " --bindir $bindir";
	for (['--for start', 0], ['--for start --strict', 3], ['', 3])
	{
		my ($options, $expected) = @$_;
		type_in("flock /run/hugeinfo $ensure $options >$scratch/locked 2>&1; echo \$? >>$scratch/locked");
		like(slurp_file("$scratch/locked"), qr/could not lock.*^$expected\n\z/ms, "another run ($options): exit status");
		unlink "$scratch/locked";
	}
	forget();
}

# Processes of another user that claim to be a server: this one, that of a directory of root, one
# without shared memory, and one that uses nothing of a huge segment (SHM_NORESERVE).
type_in("mkdir -m 755 $scratch/of_root; echo \"data_directory = '@{[ $one->data_dir ]}'\" >$scratch/of_root/postgresql.conf");
for (
	[ 'with this -D', 'shmget(0, 4096, 0600)', '-D ' . $one->data_dir ],
	[ 'with a directory of root', 'shmget(0, 4096, 0600)', "-D $scratch/of_root" ],
	[ 'without shared memory', '', '' ],
	[ 'with 1 TB', 'shmget(0, 2**40, 0600 | 010000)', '' ])
{
	my ($which, $segment, $arguments) = @$_;
	pools_of_one_size($kb, 0);
	my $attach = $segment ? "\$id = $segment // die; \$at = IPC::SysV::shmat(\$id, undef, 0) // die; shmctl(\$id, 0, 0);" : '';
	my $fake = "use IPC::SysV; $attach" . q{open F, ">", "postmaster.pid"; print F join("\n", $$, "/x", time, 5432, "", "*", " 1 1", "ready"), "\n"; close F; sleep 60};
	type_in("mkdir -m 777 $scratch/fake >$scratch/log");
	append_to_file("$scratch/fake.pl", $fake);
	type_in("cd $scratch/fake; setpriv --reuid=65534 --regid=65534 --clear-groups perl $scratch/fake.pl $arguments"
		  . " >/dev/null 2>&1 & echo \$! >$scratch/fake.pid; until test -s $scratch/fake/postmaster.pid; do sleep 0.01; done");
	($status, $out) = as_root('ensure --wait 0 -D ' . $one->data_dir);
	is($status, 0, "a process of another user $which: exit status") or diag($out);
	is(total(), $need, "a process of another user $which: the pool");
	like((as_root("ensure --dry-run -D $scratch/of_root"))[1], qr/belongs to root/, "a process of another user $which: not the server of root's directory");
	type_in("kill -9 \$(cat $scratch/fake.pid); rm -rf $scratch/fake >$scratch/log");
	unlink "$scratch/fake.pl";
	forget();
}
type_in("rm -rf $scratch/of_root >$scratch/log");

# Two runs at the same time, from an empty pool.
{
	pools_of_one_size($kb, 0);
	my $command = join ' & ', map { "$program ensure --for start -D " . $_->data_dir . " --bindir $bindir" } $one, $two;
	type_in("($command & wait) >$scratch/both 2>&1");
	is(total(), 2 * $need, 'two runs at once') or diag(slurp_file("$scratch/both"));
	forget();
}

# More than the host can spare: nothing changes, and only `on` fails.
{
	pools_of_one_size($kb, 5);
	my $too_much = ' -c shared_buffers=' . int(ram_bytes() / 2**20) . 'MB';
	($status, $out) = as_root('ensure --wait 1s -D ' . $one->data_dir . $too_much);
	is($status, 2, 'too much, on: exit status') or diag($out);
	like($out, qr/critical: A start would fail, because huge_pages = on\..* To do: .*(?:lower shared_buffers|add at least \d+ MB of memory)/, 'too much, on: says why');
	is(total(), 5, 'too much: the pool is as it was');
	is((as_root('ensure --wait 1s -D ' . $one->data_dir . "$too_much -c huge_pages=try"))[0], 0, 'too much, try: exit status');
	is((as_root('ensure --strict --wait 1s -D ' . $one->data_dir . "$too_much -c huge_pages=try"))[0], 1, 'too much, try, strict: exit status');
	is((as_root('ensure -D ' . $one->data_dir . ' -c huge_pages=off'))[1] =~ /does not ask for huge pages/, 1, 'off: asks for none');
	is(total(), 5, 'off: the pool is as it was');
	forget();
}

# Memory that another server has yet to fault in. It stops while ensure tries.
{
	pools_of_one_size($kb, 0);
	configure($two, huge_pages => 'off', shared_buffers => int(ram_bytes() / 2**20 * 0.96) . 'MB');
	$two->start;
	type_in("(timeout 120 $program ensure --wait 90s -D " . $one->data_dir . " --bindir $bindir; echo \$?) >$scratch/waits 2>&1 &");
	# It tries while it holds the lock.
	ok(until_true(sub { my $file = (stat '/run/hugeinfo')[1] // 0; slurp_file('/proc/locks') =~ /FLOCK .*:$file / }), 'memory that is released meanwhile: ensure tries');
	$two->stop;
	until_true(sub { -e "$scratch/waits" && slurp_file("$scratch/waits") =~ /^\d+\n\z/m });
	like(slurp_file("$scratch/waits"), qr/$need were added to the pool\n0\n\z/, 'memory that is released meanwhile: used');
	is(total(), $need, 'memory that is released meanwhile: the pool');
	configure($two, huge_pages => 'on', shared_buffers => '16MB');
	forget();
}

# kill -9 at any time: the pool has at least the pages that it had, and the next run succeeds.
pools_of_one_size($kb, 4);
my $start = Time::HiRes::time();
type_in("$program ensure -D " . $one->data_dir . " --bindir $bindir >/dev/null 2>&1");
my $whole = Time::HiRes::time() - $start;
forget();
for my $after (map { sprintf '%.3f', $whole * $_ / 16 } 1 .. 16)
{
	pools_of_one_size($kb, 4);
	type_in("$program ensure -D " . $one->data_dir . " --bindir $bindir >/dev/null 2>&1 & sleep $after; kill -9 \$!; wait; true");
	my $left = total();
	ok($left >= 4 && $left <= $need, "killed after $after s: the pool has $left pages");
	is((as_root('ensure -D ' . $one->data_dir))[0], 0, "killed after $after s: the next run");
	is(total(), $need, "killed after $after s: the pool after the next run");
	forget();
}
my @left = glob '/tmp/pg_hugeinfo-plan.*';
is(scalar(grep { (lstat $_)[4] == $< && time - (lstat $_)[9] > 300 } @left), 0, 'no old scratch directories');

# Refused: an ordinary user, and root with a directory of root or with links.
($status, undef, my $error) = hugeinfo('ensure', '-D', $one->data_dir);
is($status, 3, 'an ordinary user: exit status');
like($error, qr/only root can change the pools/, 'an ordinary user: the message');
type_in("mkdir -p $scratch/of_root >$scratch/log");
($status, $out) = as_root("ensure -D $scratch/of_root");
is($status, 3, 'a directory of root: exit status');
like($out, qr/belongs to root/, 'a directory of root: the message');
my $of_nobody = "/tmp/pg_hugeinfo_of_nobody.$$";
type_in("mkdir -p $of_nobody/data; chown $< $of_nobody/data; chown nobody $of_nobody >$scratch/log");
($status, $out) = as_root("ensure -D $of_nobody/data");
is($status, 3, 'a directory that another user could exchange: exit status');
like($out, qr/of_nobody\.$$ can be changed by users other than/, 'a directory that another user could exchange: the message');
type_in("rm -rf $of_nobody $scratch/of_root >$scratch/log");
# Others could hold the lock.
for my $mode (777, 755, 711)
{
	type_in("rm -rf /run/hugeinfo; mkdir -m $mode /run/hugeinfo >$scratch/log");
	($status, $out) = as_root('ensure -D ' . $one->data_dir);
	is($status, 3, "a lock directory with mode $mode: exit status");
	like($out, qr/is accessible to users other than root/, "a lock directory with mode $mode: the message");
}
type_in("rm -rf /run/hugeinfo; ln -s $scratch /run/hugeinfo >$scratch/log");
is((as_root('ensure -D ' . $one->data_dir))[0], 3, 'a link in place of the lock directory');
type_in("rm /run/hugeinfo >$scratch/log");

# The configuration runs as its owner, without a terminal and without files that root has opened.
{
	mkdir "$scratch/bin";
	for my $name (qw(postgres initdb))
	{
		append_to_file("$scratch/bin/$name", "#!/bin/sh\necho ran; cat <&9\n");
		chmod 0755, "$scratch/bin/$name";
	}
	type_in("echo secret >$scratch/of_root; chmod 600 $scratch/of_root;"
		  . " $program status -D " . $one->data_dir . " --bindir $scratch/bin 9<$scratch/of_root >$scratch/leak 2>&1; rm -f $scratch/of_root");
	unlike(slurp_file("$scratch/leak"), qr/secret/, 'a file that root has opened');
	my $conf = $one->data_dir . '/postgresql.conf';
	my $saved = slurp_file($conf);
	append_to_file($conf, "include '$scratch/of_root.conf'\n");
	type_in("umask 077; echo 'max_connections = 30' >$scratch/of_root.conf");
	($status, $out) = as_root('ensure --dry-run -D ' . $one->data_dir);
	isnt($status, 0, 'a file that only root can read: exit status');
	like($out, qr/of_root\.conf.*Permission denied/s, 'a file that only root can read: refused');
	unlink "$scratch/of_root.conf";
	open my $file, '>', $conf or die "$conf: $!\n";
	print {$file} $saved;
	close $file;
}

# why: each kind of failed start, with the message of PostgreSQL and what stops a start now.
{
	pools_of_one_size($kb, 0);
	my @here = ('-D', $one->data_dir);
	my $why = sub {
		my (@options) = @_;
		my ($status, $out, $error) = hugeinfo('why', @here, '--log', $one->logfile, '--format', 'json', @options);
		return ($status, JSON::PP->new->decode($out || '{}'), $error);
	};
	my $fails = sub { my ($started, $log) = starts($one); ok(!$started, 'it does not start'); return $log };
	$fails->();
	my ($status, $answer) = $why->();
	is($status, 2, 'why: too few pages: exit status');
	is($answer->{code}, 'no_memory_for_segment', 'why: too few pages');
	like($answer->{message}, qr/could not map anonymous shared memory/, 'why: the message');
	my ($restart) = grep { $_->{name} eq 'restart' } @{ $answer->{checks} };
	is($restart->{code}, 'would_not_start', 'why: the check');
	for my $command (grep { /^sysctl/ } split /\n/, $restart->{remedy}) { type_in($command) }
	ok((starts($one))[0], 'why: it starts after the remedy');
	$one->stop;
	is(($why->())[1]{code}, undef, 'why: the last start succeeded');
	like((hugeinfo('why', @here, '--log', $one->logfile))[1], qr/^No failed start was found in .*logging collector/s, 'why: other places');
	pools_of_one_size($kb, 0);
	for (
		[ 'no_such_size', huge_page_size => '64MB' ],
		[ undef, shared_preload_libraries => "'no_such_library'" ],
		[ 'configuration', max_connections => '-1' ],
		[ 'configuration', 'no_such_setting' => '1' ])
	{
		my ($code, $name, $value) = @$_;
		my $saved = slurp_file($one->data_dir . '/postgresql.conf');
		append_to_file($one->data_dir . '/postgresql.conf', "$name = $value\n");
		$fails->();
		(my $status, $answer) = $why->();
		is($answer->{code}, $code, "why: $name = $value");
		is($status, 2, "why: $name = $value: exit status");
		like($answer->{message}, qr/FATAL/, "why: $name = $value: the message");
		open my $file, '>', $one->data_dir . '/postgresql.conf' or die;
		print {$file} $saved;
		close $file;
	}
	# Other messages are shown as they are.
	configure($one, huge_pages => 'off');
	chmod 0755, $one->data_dir;
	$fails->();
	($status, $answer) = $why->();
	is($status, 3, 'why: another cause: exit status');
	is($answer->{code}, undef, 'why: another cause');
	like($answer->{message}, qr/FATAL/, 'why: another cause: the message');
	chmod 0700, $one->data_dir;
	ok((starts($one))[0], 'why: it starts after the repair');
	$one->stop;
	configure($one, huge_pages => 'on');

	# Messages of starts that are hard to provoke, as PostgreSQL writes them.
	my $log = "$scratch/server.log";
	for (
		[ bus_error => 'LOG:  server process (PID 7) was terminated by signal 7: Bus error' ],
		[ killed => 'LOG:  checkpointer process (PID 7) was terminated by signal 9: Killed' ],
		[ security_module => 'FATAL:  could not map anonymous shared memory: Permission denied' ],
		[ process_limit => 'LOG:  could not fork new process for connection: Resource temporarily unavailable' ])
	{
		my ($code, $line) = @$_;
		append_to_file($log, "2026-01-02 03:04:05 UTC [7] LOG:  database system is ready to accept connections\n"
			  . "2026-01-02 03:04:05 UTC [7] $line\n2026-01-02 03:04:05 UTC [7] HINT:  a hint\n"
			  . "2026-01-02 03:04:06 UTC [8] FATAL:  password authentication failed for user \"x\"\n");
		my $answer = JSON::PP->new->decode((hugeinfo('why', @here, '--log', $log, '--format', 'json'))[1]);
		is($answer->{code}, $code, "why: $line");
		is_deeply($answer->{details}, ['2026-01-02 03:04:05 UTC [7] HINT:  a hint'], "why: $code: the hint");
		unlink $log;
	}
	is((hugeinfo('why', @here, '--log', "$scratch/nothing"))[0], 3, 'why: no log');

	# log_directory is relative to the data directory, or absolute. Root reads no file of
	# another user there.
	my $conf = slurp_file($one->data_dir . '/postgresql.conf');
	my $fatal = "2026-01-02 03:04:05 UTC [7] FATAL:  could not map anonymous shared memory: Permission denied\n";
	mkdir $_ for "$scratch/logs", $one->data_dir . '/logs';
	for (['logs', $one->data_dir . '/logs'], ["$scratch/logs", "$scratch/logs"])
	{
		my ($value, $directory) = @$_;
		configure($one, log_directory => $value);
		append_to_file("$directory/a.log", $fatal);
		append_to_file("$directory/b.csv", "x\n");
		my ($out) = (as_root("why --format json @here"))[1];
		is(JSON::PP->new->decode($out)->{log}, "$directory/a.log", "why: log_directory = $value");
	}
	# A start that fails before the logging collector runs writes only to the journal.
	mkdir "$scratch/journal";
	append_to_file("$scratch/journal/journalctl", "#!/bin/sh\necho \"\$@\" >$scratch/asked\ncat $scratch/written\n");
	chmod 0755, "$scratch/journal/journalctl";
	my ($now, $none) = (time, 'could not map anonymous shared memory: Cannot allocate memory');
	for (
		[ no_memory_for_segment => [ $now + 9, 8, "FATAL:  $none" ] ],
		[ no_memory_for_segment => [ $now + 9, 8, "FATAL:  $none" ], [ $now + 9, 9, 'LOG:  database system is ready to accept connections' ] ],
		[ no_memory_for_segment => [ $now + 9, 8, "FATAL:  $none" ], [ $now + 9, 9, 'FATAL:  no PostgreSQL user name specified' ] ],
		[ unit_stopped_after_oom_kill => [ $now + 9, 1, q(postgresql-15.service: Failed with result 'oom-kill'.) ] ],
		[ security_module => [ $now + 9, 1, q(other.service: Failed with result 'oom-kill'.) ] ],
		[ security_module => [ $now - 9999, 8, "FATAL:  $none" ] ],
		[ security_module => [ $now + 9, 8, "FATAL:  $none" ], [ $now + 9, 8, 'LOG:  database system is ready to accept connections' ] ])
	{
		my ($code, @entries) = @$_;
		my @lines = map { JSON::PP->new->encode({ __REALTIME_TIMESTAMP => $_->[0] . '000000', _PID => "$_->[1]", MESSAGE => $_->[1] == 1 ? $_->[2] : "a $_->[2]" }) } @entries;
		unlink "$scratch/written";
		append_to_file("$scratch/written", join("\n", @lines) . "\n");
		type_in("PATH=$scratch/journal:\$PATH $program why --format json @here --bindir $bindir >$scratch/out; true");
		my $answer = JSON::PP->new->decode(slurp_file("$scratch/out"));
		is($answer->{code}, $code, 'why: the journal has ' . join ', ', map { $_->[2] } @entries);
		like(slurp_file("$scratch/asked"), qr/ _COMM=postgres .*_UID=\d+ \+ _PID=1 UNIT_RESULT=oom-kill$/, 'why: only messages of this user, and of systemd after an OOM kill');
	}
	type_in("umask 022; cat $scratch/logs/a.log >$scratch/logs/c.log");
	unlike((as_root("why @here"))[1], qr{logs/c\.log}, 'why: no log of another user');
	open my $file, '>', $one->data_dir . '/postgresql.conf' or die;
	print {$file} $conf;
	close $file;
}
forget();

# preflight --probe takes the pages that it needs, and no others.
{
	pools_of_one_size($kb, $need);
	my @here = ('-D', $one->data_dir);
	like((hugeinfo('preflight', @here, '--probe'))[1], qr/^Probe: the kernel allocated $need huge pages/m, 'probe: enough');
	my $pool = pool($kb);
	is($pool->{free} - $pool->{reserved}, $need, 'probe: the pages are free again');
	pools_of_one_size($kb, $need - 1);
	($status, $out) = hugeinfo('preflight', @here, '--probe');
	like($out, qr/^Probe: the kernel refused $need huge pages .*: (?:Cannot allocate|Out of) memory/m, 'probe: too few');

	# A pod without a limit of its own on huge pages, on a node with a pool.
	pools_of_one_size($kb, 200);
	limit_group('pod', 'fault', $kb, 0);
	in_group('pod', sub {
		like((hugeinfo('preflight', @here, '--probe'))[1], qr/could not allocate all of them \(SIGBUS\)\. A server would crash/, 'probe: a limit of 0');
		is((hugeinfo('preflight', '-c', 'huge_pages=off'))[0], 0, 'preflight: on small pages, a new server would start');
		is((hugeinfo('plan', '-c', 'shared_buffers=48MB', '--format', 'json'))[0], 0, 'plan: works there');
		is((hugeinfo('fit', '--pod'))[0], 3, 'fit: nothing fits');
	});
	my $here = (hugeinfo('plan', '-c', 'shared_buffers=48MB', '--format', 'json'))[1];
	in_group('pod', sub { is((hugeinfo('plan', '-c', 'shared_buffers=48MB', '--format', 'json'))[1], $here, 'plan: the same there') });
	limit_group('limited', 'fault', $kb, 100 * $kb * 1024);
	in_group('limited', sub {
		my $fit = JSON::PP->new->decode((hugeinfo('fit', '--pod', '--format', 'json'))[1]);
		is($fit->{required_pages}, 100, 'fit: the limit of the pod');
	});
}

}

done_testing;
