# A plan in a hostile environment: even if something blocks, floods, kills or outlives the child,
# the backend responds, and its client receives only a result or an error.
#
# Takes a minute, because several cases wait for the time limit of a plan, 10 seconds, and signals
# have to arrive in all phases of a child.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $temporary = PostgreSQL::Test::Utils::tempdir();
$ENV{TMPDIR} = $temporary;

# A library that every process of the server loads. Only in the program of a plan, it acts according
# to a file.
my $hostile = PostgreSQL::Test::Utils::tempdir();
append_to_file("$hostile/hostile.c", <<'C');
# include <signal.h>
# include <stdlib.h>
# include <string.h>
# include <stdio.h>
# include <unistd.h>
# include <fcntl.h>

static void flood(int first, int second)
{
	char line[1024];
	memset(line, 'x', sizeof line);
	line[sizeof line - 1] = '\n';
	for (int i = 0; i < 1024; i++)
		if (write(first, line, sizeof line) < 0 || write(second, line, sizeof line) < 0)
			_exit(9);
}

__attribute__((constructor)) static void be_hostile(void)
{
	static char arguments[65536];
	char deed = 0;
	int file = open("/proc/self/cmdline", O_RDONLY);
	ssize_t length = read(file, arguments, sizeof arguments);
	close(file);
	if (length <= 0 || !memmem(arguments, length, "\0-C\0", 4))
		return;
	file = open(getenv("HOSTILE_DEED"), O_RDONLY);
	if (file < 0 || read(file, &deed, 1) != 1)
		return;
	close(file);
	switch (deed)
	{
		case 'e': flood(2, 2); break;
		case 'o': flood(1, 1); break;
		case 'b': flood(1, 2); break;
		case 'h': if (!fork()) { pause(); _exit(0); } break;
		case 'f': if (!fork()) { for (;;) flood(1, 2); } break;
		case 'k': if (!fork()) { pause(); _exit(0); } kill(getpid(), SIGKILL); break;
		case 'a': abort();
		case 'q': _exit(0);
		case 'n': _exit(3);
		case 's':
			for (int signal_ = 1; signal_ < 32; signal_++) signal(signal_, SIG_IGN);
			if (!fork()) for (;;) pause();
			for (;;) pause();
	}
}
C
system_or_bail('cc', '-D_GNU_SOURCE', '-shared', '-fPIC', '-o', "$hostile/hostile.so", "$hostile/hostile.c");
# Some systems allow libraries only from certain directories.
{
	local $ENV{LD_PRELOAD} = "$hostile/hostile.so";
	plan(skip_all => "no library can be loaded from $hostile") unless `cat /proc/self/maps` =~ m{/hostile\.so$}m;
}
sub deed { my ($deed) = @_; unlink "$hostile/deed"; append_to_file("$hostile/deed", $deed); return }
deed('-');
$ENV{HOSTILE_DEED} = "$hostile/deed";

my $node;
{
	local $ENV{LD_PRELOAD} = "$hostile/hostile.so";
	$node = new_server('hostile', huge_pages => 'off', log_min_messages => 'warning');
}
my $data = $node->data_dir;
append_to_file("$data/postgresql.conf", "include = 'more.conf'\n");
append_to_file("$data/more.conf", '');
$node->reload;
my $sql = HugeInfo::Session->new($node);
my $backend = $sql->pid;

sub more { my ($text) = @_; unlink "$data/more.conf"; append_to_file("$data/more.conf", $text); return }
sub is_there { my ($pid) = @_; return (state_of($pid) // 'Z') ne 'Z' }
# Returns all processes of plans that have loaded the library, with any parent.
sub left { return grep { is_there($_) && process_file($_, 'cmdline') =~ /\Q$temporary\E\/pg_hugeinfo-plan/ } map { m{(\d+)$} } glob '/proc/[0-9]*' }
sub leaves_nothing
{
	my ($name) = @_;
	ok(until_true(sub { !left() }), "$name: no process is left") or diag(join ' ', left());
	is_deeply([ glob "$temporary/pg_hugeinfo-plan.*" ], [], "$name: no directory is left");
	return;
}
my ($right) = $sql->value('SELECT DISTINCT segment_bytes FROM hugeinfo_plan()');
my $finding = q(SELECT status || ': ' || finding FROM hugeinfo_checks WHERE name = 'pending_settings');

# Much faster than the time limit, which would end a deadlock.
for (
	[ e => 'a flood of messages' ], [ o => 'a flood of output' ], [ b => 'floods of both' ], [ h => 'a helper that stays' ])
{
	my ($deed, $name) = @$_;
	deed($deed);
	is($sql->value('SELECT DISTINCT segment_bytes FROM hugeinfo_plan()'), $right, "$name: the result is correct");
	leaves_nothing($name);
	is($sql->value($finding) =~ s/:.*//sr, 'ok', "$name: the check is ok");
	leaves_nothing("$name, the check");
}
{
	# output after the result displaces it
	my $name = 'a helper that floods';
	deed('f');
	my ($state) = $sql->error_of('SELECT hugeinfo_plan()');
	like($state, qr/^(?:|38000)$/, "$name: a result, or an error");
	leaves_nothing($name);
}
# In all cases, an invalid configuration is an error.
for my $deed (qw(- e b h))
{
	deed($deed);
	more("work_mem = apples\n");
	like($sql->value($finding), qr/^critical: .*work_mem/s, "an invalid setting, deed $deed: is critical");
	more('');
}
{
	my $name = 'no configuration file';
	deed('-');
	rename "$data/postgresql.conf", "$data/elsewhere.conf" or die $!;
	like($sql->value($finding), qr/^critical: .*could not access the server configuration file/s, "$name: is critical");
	rename "$data/elsewhere.conf", "$data/postgresql.conf" or die $!;
	like($sql->value($finding), qr/^ok: /, "$name: ok when the file exists again");
}
# Errors from code other than that for settings, and errors that are not caused by the files.
deed('-');
for (
	[ critical => "recovery_target_name = 'a'\nrecovery_target_xid = '5'\n" ],
	[ critical => "max_connections = 250000\nmax_worker_processes = 200000\n" ],
	[ critical => "shared_preload_libraries = 'no_such_library'\n" ],
	[ unknown => "shared_preload_libraries = 'below/no_such_library'\n" ])
{
	my ($status, $text) = @$_;
	more($text);
	like($sql->value($finding), qr/^$status: /, "$status: $text");
}
more('');
for ([ k => qr/signal 9/ ], [ a => qr/signal 6/ ], [ q => qr/exit status 0/ ], [ n => qr/exit status 3/ ])
{
	my ($deed, $why) = @$_;
	my $name = "deed $deed";
	deed($deed);
	my ($state, $error) = $sql->error_of('SELECT hugeinfo_plan()');
	is($state, '38000', "$name: is not an error of the configuration");
	like($error, $why, "$name: the error has the end of the program");
	leaves_nothing($name);
	like($sql->value($finding), qr/^unknown: .*$why/s, "$name: the check is unknown, with the reason");
}
{
	my $name = 'a child that ignores signals';
	deed('s');
	# The library forks another child.
	is_cancelled($sql, 'SELECT hugeinfo_plan()', $name, sub { left() > 1 });
	leaves_nothing($name);
	my ($state) = $sql->error_of('SELECT hugeinfo_plan()');
	is($state, '38000', "$name: ends at the time limit");
	leaves_nothing("$name, time limit");
	my $victim = HugeInfo::Session->new($node);
	$victim->ask('SELECT hugeinfo_plan()');
	$victim->wait_until(sub { left() > 1 });
	$sql->value('SELECT pg_terminate_backend(' . $victim->pid . ')');
	ok(until_true(sub { !is_there($victim->pid) }), "$name: the session ends");
	leaves_nothing("$name, the end of the session");
	$victim->close;
	deed('-');
}

# A frozen process survives even SIGKILL until it is thawed.
SKIP:
{
	my $name = 'a frozen child';
	needs_host($name);
	make_group('frozen', 'freezer');
	deed('s');
	$sql->ask('SELECT hugeinfo_plan()');
	until_true(sub { $sql->{run}->pump_nb; left() > 1 }) or die "no child appears\n";
	freeze('frozen', left());
	my @children = grep { process_file($_, 'status') =~ /^PPid:\s+$backend$/m } left();
	is(scalar @children, 1, "$name: one child exists");
	HugeInfo::Session->new($node)->value("SELECT pg_cancel_backend($backend)");
	my (undef, $error) = $sql->answer;
	like($error, qr/57014/, "$name: does not block the backend");
	ok(is_there($_), "$name: survives SIGKILL") for @children;
	thaw('frozen');
	ok(until_true(sub { !left() }), "$name: ends once it is thawed");
	deed('-');
	is($sql->value('SELECT DISTINCT segment_bytes FROM hugeinfo_plan()'), $right, "$name: the next plan is correct");
	is_deeply([ grep { defined state_of($_) } @children ], [], "$name: no zombie remains");
	leaves_nothing($name);
}

# Opening a pipe blocks a process, and only SIGKILL ends it. This must not affect the backend.
{
	my $name = 'a pipe among the files';
	unlink "$data/more.conf";
	POSIX::mkfifo("$data/more.conf", 0600) or die "mkfifo: $!";
	is_cancelled($sql, 'SELECT * FROM hugeinfo_checks', "$name, the checks", sub { left() > 0 });
	is_cancelled($sql, 'SELECT * FROM hugeinfo_plan()', "$name, a plan", sub { left() > 0 });
	leaves_nothing($name);
	like($sql->value($finding), qr/^unknown: .*within 10 seconds/s, "$name: the check is unknown, and the others succeed");
	$sql->ask('SELECT * FROM hugeinfo_checks');
	$sql->wait_until(sub { left() > 0 });
	system_or_bail('pg_ctl', '-D', $data, '-m', 'fast', '-s', 'stop');
	eval { $sql->answer };
	like($sql->{error}, qr/57P01/, "$name: a fast shutdown does not wait for the time limit");
	leaves_nothing("$name, shutdown");
	$sql->close;
	more('');
	undef $node->{_pid};
	$node->start;
	$sql = HugeInfo::Session->new($node);
}

# Many broken files, one after the other: memory that PostgreSQL's parser leaks is released when the
# children end.
{
	my $name = 'a broken file';
	more("shared_buffers = 30 apples\n");
	my $again = sub { my ($times) = @_; $sql->error_of('SELECT hugeinfo_plan()') for 1 .. $times; return status_file($sql->pid)->{rss_anon_bytes} };
	$again->(20);
	my $before = $again->(1);
	cmp_ok($again->(100) - $before, '<', 500 << 10, "$name, a hundred times: no memory is lost");
	more('');
}

# Signals at any time after the fork. The client receives an error, and never a message of one of
# the server's signal handlers.
SKIP:
{
	my $name = 'signals';
	my $pid = $sql->pid;
	my $children = "/proc/$pid/task/$pid/children";
	cannot("$name: this kernel does not list children") unless -r $children;
	pipe(my $from, my $to) or die "pipe: $!";
	my @signals = qw(QUIT TERM INT USR1 HUP USR2 ALRM);
	my $this = $$;
	my $signaller = fork // die "fork: $!";
	if (!$signaller)
	{
		# sends one to each child, at once or a moment later, and prints the phase of the child
		$SIG{TERM} = sub { POSIX::_exit(0) };
		open my $list, '<', $children or POSIX::_exit(1);
		close $from;
		my ($turn, %met) = (0);
		while (getppid == $this)
		{
			seek $list, 0, 0;
			sysread $list, my $text, 100 or next;
			for my $child (grep { !$met{$_}++ } $text =~ /(\d+)/g)
			{
				select undef, undef, undef, 0.0005 * ($turn % 20) if $turn % 3 == 2;
				my $phase = process_file($child, 'cmdline') =~ /\0-C\0/ ? 'in the program' : 'before exec';
				kill $signals[ $turn++ % @signals ] => $child and syswrite $to, "$phase\n";
			}
		}
		POSIX::_exit(0);
	}
	close $to;
	# If all settings of the files are planned, the program is the only child. Otherwise, a copy of the
	# backend reads the files, and never calls exec.
	my $alone = q('{"huge_pages": "try", "huge_page_size": 0, "shared_memory_type": "mmap"}');
	my %count = ('before exec' => 0, 'in the program' => 0);
	my (%states, @unexpected);
	my $ask = sub {
		my ($times, $settings) = @_;
		for (1 .. $times)
		{
			my ($state, $text) = $sql->error_of("SELECT hugeinfo_plan($settings)");
			$states{ $state || 'an answer' }++;
			push @unexpected, $text if $text =~ /^(?:WARNING|FATAL|PANIC)/m || $state !~ /^(?:|38000)$/;
		}
	};
	$from->blocking(0);
	# On a busy host, the signaller finds only few children.
	$ask->(400, $alone);
	until_true(sub {
		$ask->(20, $alone);
		$count{$_}++ for map { chomp; $_ } <$from>;
		return ($states{38000} // 0) > 10 && !grep { $_ <= 10 } values %count;
	});
	kill STOP => $signaller;
	# the signals so far went to the program
	$count{$_}++ for map { chomp; $_ } <$from>;
	kill CONT => $signaller;
	$ask->(200, '');
	my $with_copies = 0;
	until_true(sub { $ask->(20, ''); $with_copies += () = <$from>; return $with_copies > 10 });
	kill TERM => $signaller;
	waitpid $signaller, 0;
	$with_copies += () = <$from>;
	note("signals sent to the program: $count{'before exec'} before exec, $count{'in the program'} after; "
		  . "then $with_copies to it and to copies of the backend; "
		  . join ', ', map { "$_: $states{$_}" } sort keys %states);
	cmp_ok($count{$_}, '>', 10, "$name: some arrived $_") for sort keys %count;
	cmp_ok($with_copies, '>', 10, "$name: some arrived at copies");
	cmp_ok($states{38000} // 0, '>', 10, "$name: some ended a child");
	is_deeply(\@unexpected, [], "$name: the client receives nothing else");
	is($sql->value('SELECT pg_backend_pid()'), $pid, "$name: the backend is the same");
	leaves_nothing($name);
	my $log = slurp_file($node->logfile);
	unlike($log, qr/PANIC|was terminated by signal|crash of another server process/, "$name: the server has not crashed");
}

# Directories of other users with names like ours, which any user can create in /tmp.
{
	my $name = 'a crowded directory';
	for my $i (1 .. 50_000) { open my $fh, '>', "$temporary/pg_hugeinfo-plan.$i" or die $! }
	is_cancelled($sql, endless('hugeinfo_plan()'), $name);
	unlink map { "$temporary/pg_hugeinfo-plan.$_" } 1 .. 50_000;
	leaves_nothing($name);
}
$sql->close;

# A fork fails for a user with more processes than the limit of the one that forks.
{
	my $name = 'a limit on processes';
	my $session = HugeInfo::Session->new($node);
	my ($before) = process_file($session->pid, 'limits') =~ /^Max processes +(\S+)/m;
	my $limit = sub { system_log('prlimit', '--pid', $session->pid, "--nproc=$_[0]:") == 0 or die "no limit can be set\n" };
	$limit->(1);
	my ($state, $error) = $session->error_of('SELECT hugeinfo_plan()');
	is($state, '53000', "$name: is an error");
	like($error, qr/: a limit on processes/, "$name: is named");
	like($session->value($finding), qr/^unknown: .*limit on processes/, "$name: the check names it");
	$limit->($before);
	is(($session->error_of('SELECT hugeinfo_plan()'))[0], '', "$name: without it");
	leaves_nothing($name);
	$session->close;
}

# Without a place for the scratch directory, the effect of the configuration is unknown.
sub restart_with_temporary
{
	my ($directory) = @_;
	local $ENV{TMPDIR} = $directory;
	$node->restart;
	return;
}

{
	my $name = 'a long TMPDIR';
	my $long = $temporary;
	while (length $long < 900) { $long .= '/' . 'x' x 100; mkdir $long or die "$long: $!" }
	restart_with_temporary($long);
	my $session = HugeInfo::Session->new($node);
	my ($state, $error) = $session->error_of('SELECT hugeinfo_plan()');
	like($error, qr/too long.*HINT:.*TMPDIR/s, "$name: the hint names TMPDIR");
	like($session->value($finding), qr/^unknown: /, "$name: the check is unknown");
	restart_with_temporary("$temporary/none");
	$session = HugeInfo::Session->new($node);
	($state, $error) = $session->error_of('SELECT hugeinfo_plan()');
	is($state, '58P01', 'no TMPDIR: is an error');
	like($error, qr/HINT:.*TMPDIR/s, 'no TMPDIR: the hint names it');
	like($session->value($finding), qr/^unknown: /, 'no TMPDIR: the check is unknown');
}

$node->stop;
SKIP:
{
	my $name = 'a full disk';
	my $why = why_no_mounts($temporary);
	cannot("$name: $why") if $why;
	my %seen;
	for my $pages (1, 4, 5)
	{
		with_little_room($node, $temporary, $pages * base_page(), sub {
			my $session = HugeInfo::Session->new($node);
			my $said = $session->value($finding);
			like($said, qr/^(?:unknown: .*No space left|ok: )/s, "$name, $pages pages: is not an error of the configuration");
			$seen{ $said =~ s/:.*//sr }++;
			$session->close;
			});
	}
	ok($seen{unknown}, "$name: happened");
}

done_testing;
