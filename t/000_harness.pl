# Tests that changes to the host are undone however a test ends, and that other users cannot hold
# the lock.
use strict;
use warnings;

use Fcntl qw(:flock O_CREAT O_RDWR);
use FindBin;
use File::Temp qw(tempdir);
use IPC::Open2 qw(open2);
use POSIX qw(WNOHANG);
use Test::More;

use lib "$FindBin::RealBin/lib";
use HugeInfo::Kernel;

my $LOCK = '/run/pg_hugeinfo/lock';

# Calls a function while no other run changes the host.
sub at_rest
{
	my ($function) = @_;
	mkdir $LOCK =~ s{/[^/]*$}{}r, 0700;
	sysopen my $lock, $LOCK, O_RDWR | O_CREAT, 0600 or die "lock: $!\n";
	flock $lock, LOCK_EX or die "lock: $!\n";
	return $function->();
}

# Only root can open the lock.
my $why_not_here = \&HugeInfo::Kernel::why_pools_stay;
if (my $why = $> == 0 ? at_rest($why_not_here) : $why_not_here->())
{
	plan skip_all => $why unless $ENV{HUGEINFO_TEST_REQUIRE_ALL};
	fail("not skipped: $why");
	done_testing;
	exit;
}

sub contents { my ($file) = @_; open my $fh, '<', $file or die "$file: $!\n"; local $/; return scalar <$fh> }

# Returns the state of the host that tests can change. Excludes free and reserved pages, which
# change by themselves.
sub host
{
	my %state = (pools => pools(), groups => [ glob '/sys/fs/cgroup{,/*}/pg_hugeinfo_test_*' ]);
	delete @$_{qw(free reserved)} for values %{ $state{pools} };
	$state{nodes} = { map { $_ => contents($_) } glob '/sys/devices/system/node/node*/hugepages/*/nr_hugepages' };
	$state{controllers} = { map { $_ => contents($_) } grep { -e } glob '/sys/fs/cgroup{,/*}/cgroup.subtree_control' };
	my @settings = ('/sys/kernel/mm/transparent_hugepage/{enabled,shmem_enabled}', '/proc/sys/vm/overcommit_{memory,ratio}', '/proc/swaps');
	$state{settings} = { map { $_ => contents($_) } grep { -e } map { glob } @settings };
	$state{files} = [ glob '/etc/sysctl.d/* /var/tmp/pg_hugeinfo_*' ];
	# mounts of other programs can change meanwhile
	$state{mounts} = [ grep { /pg_hugeinfo/ } split /\n/, contents('/proc/mounts') ];
	return \%state;
}

sub host_at_rest { return at_rest(\&host) }

for my $ending (qw(KILL INT TERM))
{
	my $before = host_at_rest();
	HugeInfo::Kernel::remember_others();
	my $test = open2(my $from, undef, $^X, "$FindBin::RealBin/lib/victim.pl");
	# PostgreSQL's modules can print notes before
	my ($ready, $no_swap) = '#';
	while ($ready =~ /^#/)
	{
		$ready = <$from> // '';
		($no_swap) = $ready =~ /^# (.*swap.*)/ unless $no_swap;
	}
	my ($server, $dir) = $ready =~ /^ready (\d+) (.*)$/
	  or BAIL_OUT('the victim does not start: ' . join '', $ready, <$from>);

	is(pool(default_page_kb())->{total}, 65 + pages_of_others(default_page_kb()), "$ending: the pool was changed");
	isnt(readlink("/proc/$server/exe"), undef, "$ending: a server was running");
	is(HugeInfo::Kernel::segment($server)->{page_bytes}, 1024 * default_page_kb(), "$ending: on huge pages");
	isnt(scalar(@{ host()->{groups} }), scalar(@{ $before->{groups} }), "$ending: a cgroup was created");
	my $changed = host();
	my @same = grep { $changed->{settings}{$_} eq $before->{settings}{$_} } sort keys %{ $before->{settings} };
	SKIP:
	{
		last unless $no_swap;
		@same = grep { $_ ne '/proc/swaps' } @same;
		diag("skipped: $ending: $no_swap");
		skip($no_swap, 1) unless $ENV{HUGEINFO_TEST_REQUIRE_ALL};
		fail("not skipped: $no_swap");
	}
	is("@same", '', "$ending: every setting was changed");
	isnt("@{ $changed->{files} }", "@{ $before->{files} }", "$ending: files were created");
	like("@{ $changed->{mounts} }", qr/ hugetlbfs /, "$ending: a file system was mounted");
	open my $lock, '+<', $LOCK or die "lock: $!\n";
	ok(!flock($lock, LOCK_EX | LOCK_NB), "$ending: the host was locked");
	close $lock;

	kill $ending => $test;
	waitpid $test, 0;

	is_deeply(host_at_rest(), $before, "$ending: the host is as before");
	# init can reap it late; a zombie has no program
	is(readlink("/proc/$server/exe"), undef, "$ending: the server has ended");
	ok(!-e $dir, "$ending: its directory is removed");
	my @shm = grep { (split)[4] eq $server } grep { /\d/ } split /\n/, contents('/proc/sysvipc/shm');
	is("@shm", '', "$ending: no System V segment is left behind");
}

my $tools = "$FindBin::RealBin/../tools";
my $program = "$tools/lib/host.pl";

# A script is another client than a test.
{
	my $name = 'KILL of a script';
	my $before = host_at_rest();
	my $script = open2(my $from, undef, "$tools/with-pages", 3, qw(echo running));
	close $from;
	waitpid $script, 0;
	is_deeply(host_at_rest(), $before, 'end of a script: the host is as before');

	$script = open2($from, undef, "$tools/with-pages", 3, qw(sh -c), 'echo running; exec sleep 600');
	is(scalar <$from>, "running\n", "$name: it runs");
	my $kb = default_page_kb();
	is(pool($kb)->{total}, $before->{pools}{$kb}{total} + 3, "$name: it has added pages");
	kill KILL => $script;
	waitpid $script, 0;
	is_deeply(host_at_rest(), $before, "$name: the host is as before");
}

# Returns the workspace from the first answer, or undef if there is no answer.
sub first_answer { my ($from) = @_; local $/ = "\0"; my $verdict = <$from> // return; chomp(my $text = <$from>); return $text }

# The kernel reports the paths of processes with symbolic links resolved.
{
	my $place = tempdir(DIR => '/var/tmp', CLEANUP => 1);
	chmod 0755, $place;
	symlink '.', "$place/link" or die "link: $!\n";
	local $ENV{TMPDIR} = "$place/link";
	my $host = open2(my $from, my $to, $program);
	my $dir = first_answer($from);
	mkdir "$dir/data" or die "$dir/data: $!\n";
	my @sleepers = map {
		my $sleeper = fork // die "fork: $!\n";
		exec qw(env -C), $_, qw(sleep 600) or die "env: $!\n" if !$sleeper;
		$sleeper;
	} $dir, "$dir/data";
	close $to;
	waitpid $host, 0;
	is($?, 0, 'TMPDIR is a symbolic link: all is undone');
	ok(!-e $dir, 'TMPDIR is a symbolic link: the directory is removed');
	is_deeply([ map { waitpid $_, WNOHANG } @sleepers ], \@sleepers, 'TMPDIR is a symbolic link: programs that run there are ended');
	kill KILL => @sleepers;
}

# Sends a request. Returns the answer: "ok" or "error", and a text.
sub request
{
	my ($to, $from, @words) = @_;
	local $/ = "\0";
	print $to map { "$_\0" } scalar(@words), @words;
	$to->flush;
	chomp(my @answer = map { scalar(<$from>) // die "host.pl has ended\n" } 1, 2);
	return @answer;
}

# Returns the exit status of a process that must end within 30 s.
sub status_of
{
	my ($pid) = @_;
	local $SIG{ALRM} = sub { kill KILL => $pid };
	alarm 30;
	waitpid $pid, 0;
	alarm 0;
	return $?;
}

# The user of the workspace can make links in it.
{
	my $name = 'a program in the workspace';
	my $place = tempdir(CLEANUP => 1);
	my $host = open2(my $from, my $to, $program, '', 'nobody');
	my $dir = first_answer($from);
	mkdir "$place/directory" or die "$place: $!\n";
	symlink "$place/file", "$dir/file" or die "$dir: $!\n";
	symlink "$place/directory", "$dir/directory" or die "$dir: $!\n";
	for my $file ("$dir/file", "$dir/directory/file", "$dir/../file", "$place/file")
	{
		my ($verdict) = request($to, $from, 'start', $file, 'true');
		is($verdict, 'error', "$name: its output does not go to " . ($file =~ s{\Q$dir\E}{DIR}r =~ s{\Q$place\E}{PLACE}r));
	}
	is_deeply([ glob "$place/* $place/*/*" ], ["$place/directory"], "$name: no link is followed");
	my ($verdict, $pid) = request($to, $from, 'start', "$dir/log", 'pwd');
	is($verdict, 'ok', "$name: its output goes to a plain file");
	request($to, $from, 'await', $pid);
	select undef, undef, undef, 0.1 until contents("/proc/$pid/stat") =~ /\) Z /;
	is(contents("$dir/log"), "$dir\n", "$name: it runs in the directory of the file");
	close $to;
	is(status_of($host), 0, "$name: all is undone");
}

# A remedy can create directories.
{
	my $name = 'a line with mkdir -p';
	my $place = tempdir(CLEANUP => 1);
	my $host = open2(my $from, my $to, $program);
	first_answer($from);
	for my $line ("(umask 022 && mkdir -p '$place/a b'/c && echo 1 >> '$place/a b/c/x.conf')", "mkdir -p $place/kept && echo 1 > $place/kept/x.conf")
	{
		is_deeply([ request($to, $from, 'type', $line) ], [ 'ok', '' ], "$name: is run");
	}
	is(contents("$place/a b/c/x.conf"), "1\n", "$name: the file exists");
	open my $other, '>', "$place/kept/other" or die "$place: $!\n";
	close $to;
	is(status_of($host), 0, "$name: all is undone");
	ok(!-e "$place/a b", "$name: its directories are removed");
	is_deeply([ glob "$place/kept/*" ], ["$place/kept/other"], "$name: a directory with another file is kept");
}

# A stopped process never ends by itself.
{
	my $name = 'a stopped process to wait for';
	my $host = open2(my $from, my $to, $program);
	first_answer($from);
	my $process = fork // die "fork: $!\n";
	exec qw(sh -c), 'kill -STOP $$' or die "sh: $!\n" if !$process;
	waitpid $process, POSIX::WUNTRACED;
	is((request($to, $from, 'await', $process))[0], 'ok', "$name: is registered");
	close $to;
	is(status_of($host), 0, "$name: is continued");
	kill KILL => $process;
}

# A cgroup with processes cannot be removed.
{
	my $name = 'a process outside of the workspace in a cgroup';
	my $before = host_at_rest();
	my $host = open2(my $from, my $to, $program, $LOCK);
	first_answer($from);
	my ($verdict, $group) = request($to, $from, 'group', 'hugetlb', 'outer/inner');
	SKIP:
	{
		skip($group, 3) if $verdict ne 'ok' && !$ENV{HUGEINFO_TEST_REQUIRE_ALL};
		is($verdict, 'ok', "$name: the cgroup is created") or last;
		my $file = $group =~ s/^\d //r . '/cgroup.procs';
		my $sleeper = fork // die "fork: $!\n";
		exec qw(sleep 600) or die "sleep: $!\n" if !$sleeper;
		open my $processes, '>', $file or die "$file: $!\n";
		defined syswrite $processes, "$sleeper\n" or die "$file: $!\n";
		close $processes;
		like(contents($file), qr/^$sleeper$/m, "$name: it is in the cgroup");
		close $to;
		is(status_of($host), 0, "$name: all is undone");
		is(waitpid($sleeper, WNOHANG), 0, "$name: it still runs");
		kill KILL => $sleeper;
		waitpid $sleeper, 0;
	}
	is_deeply(host_at_rest(), $before, "$name: the host is as before");
}

# Tests of the lock.
{
	my ($mode, $owner) = (stat($LOCK =~ s{/[^/]*$}{}r))[ 2, 4 ];
	is(sprintf('%o %d', $mode & 07777, $owner), '700 0', 'only root can open the lock');

	my $place = tempdir(CLEANUP => 1);
	my $nobody = getpwnam 'nobody';
	for my $case (
		[ 'a dangling link', sub { symlink "$place/victim", $_[0] } ],
		[ 'a link to a file', sub { symlink '/etc/passwd', $_[0] } ],
		[ 'a FIFO', sub { POSIX::mkfifo($_[0], 0666) } ],
		[ 'a directory', sub { mkdir $_[0] } ],
		[ 'the file of another user', sub { open my $fh, '>', $_[0]; chown $nobody, -1, $_[0] } ])
	{
		my ($name, $make) = @$case;
		my $lock = "$place/lock of $name";
		$make->($lock) or die "$lock: $!\n";
		my $host = open2(my $from, my $to, $program, $lock);
		is(first_answer($from), undef, "$name is rejected as lock");
		waitpid $host, 0;
		isnt($?, 0, "$name: exit status is not zero");
	}
	ok(!-e "$place/victim", 'a dangling link: no file is created');

	my $holder = open2(my $from, my $to, $program, "$place/lock");
	ok(-d first_answer($from), 'the first run has the lock');
	for my $end ('TERM', 'end of file')
	{
		my $waiting = open2(my $answers, my $requests, $program, "$place/lock");
		1 until contents("/proc/$waiting/wchan") =~ /\w/ || waitpid($waiting, WNOHANG);
		$end eq 'TERM' ? kill TERM => $waiting : close $requests;
		is(first_answer($answers), undef, "$end: a waiting run ends");
		waitpid $waiting, 0;
	}
	close $to;
	waitpid $holder, 0;
	is($?, 0, 'the first run ends normally');

	sysopen my $lock, $LOCK, O_RDWR | O_CREAT, 0600 or die "lock: $!\n";
	flock $lock, LOCK_EX or die "lock: $!\n";
	for my $signal (qw(TERM KILL))
	{
		my $script = open2(my $output, undef, qw(sh -c), 'exec "$0" 1 true 2>&1', "$tools/with-pages");
		like(scalar <$output>, qr/waiting for another run/, "$signal: a script waits for its turn");
		local $SIG{ALRM} = sub { die "$signal: the script or its host.pl still waits\n" };
		alarm 60;
		kill $signal => $script;
		# Both have closed it when this ends.
		my @rest = <$output>;
		waitpid $script, 0;
		alarm 0;
		isnt($?, 0, "$signal: it has ended, and so has its host.pl");
	}
}

done_testing;
