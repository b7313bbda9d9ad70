#!/usr/bin/env perl
# Changes this host for a script or a test, and undoes every change when that client ends, also when
# it is killed with kill -9: scripts/lib/host.pl [LOCK FILE [USER]]. Its clients are
# scripts/lib/host.bash and t/lib/HugeInfo/Host.pm.
#
# Waits for the lock, makes a directory to work in (the workspace, which belongs to USER), and
# answers with its name. Then it reads requests from standard input. A request is the number of its
# words and then the words; an answer is "ok" or "error" and then a text. Each of these ends with a
# NUL. At end of file the program ends all processes of the workspace, undoes the changes in reverse
# order, removes the workspace, and releases the lock.
use strict;
use warnings;
# process_madvise takes 64-bit addresses.
no warnings 'portable';

use Cwd qw(realpath);
use Fcntl qw(:flock :mode O_CREAT O_EXCL O_NOFOLLOW O_NONBLOCK O_RDWR O_WRONLY);
use File::Temp qw(tempdir);
use IO::Handle;
use IO::Select;
use POSIX ();

my ($lock_file, $user) = @ARGV;
my ($client, $since) = (getppid, time);
my ($workspace, $keeps_workspace);
# What has been changed and the function that undoes it, oldest first.
my @changes;

my %verbs = (
	await => \&await, enter => \&enter, group => \&group, keep => sub { $keeps_workspace = 1; return }, leave => \&leave,
	mount => \&mount, page_out => \&page_out, pool => \&pool, remember => \&remember, set => \&set, start => \&start, swap => \&swap,
	type => \&type, undo => \&undo);

sub main
{
	# A signal to the client's process group is not for this program.
	POSIX::setsid();
	umask 022;
	STDOUT->autoflush(1);
	# Plain su leaves these out.
	$ENV{PATH} .= ':/usr/sbin:/sbin';
	# Released when this program ends. Its children do not inherit it.
	my $lock = $lock_file ? wait_for_lock() : undef;
	$SIG{$_} = 'IGNORE' for qw(INT TERM HUP QUIT PIPE);
	$workspace = make_workspace();
	chdir '/';
	answer('ok', $workspace);
	while (my ($verb, @words) = request())
	{
		my $text = eval { ($verbs{$verb} // die "no such request: $verb\n")->(@words) // '' };
		$@ ? answer('error', $@ =~ s/\n\z//r) : answer('ok', $text);
	}
	my $failed;
	for my $step (\&end_processes, \&remove_segments, sub { undo('') }, \&remove_workspace)
	{
		eval { $step->(); 1 } or $failed = print STDERR "==> $@";
	}
	return $failed ? 1 : 0;
}

# The words of the next request. None at end of file, or if the client was killed within a request.
sub request
{
	local $/ = "\0";
	my ($count, @words) = scalar <STDIN>;
	return unless defined $count && chomp $count;
	while (@words < $count)
	{
		my $word = <STDIN> // return;
		chomp $word or return;
		push @words, $word;
	}
	return @words;
}

sub answer { print map { "$_\0" } @_; return }

# Only a plain file of this user is a lock: no link can make root create a file elsewhere, and no
# FIFO makes it wait. Nobody else can open the lock and hold it.
sub wait_for_lock
{
	mkdir $lock_file =~ s{/[^/]*\z}{}r, 0700;
	sysopen my $lock, $lock_file, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600 or die "==> lock $lock_file: $!\n";
	my ($mode, $owner) = (stat $lock)[ 2, 4 ];
	die "==> lock $lock_file: not a plain file of this user\n" unless S_ISREG($mode) && $owner == $>;
	my $waits;
	until (flock $lock, LOCK_EX | LOCK_NB)
	{
		print STDERR "==> waiting for another run on this host to end\n" unless $waits++;
		# There is nothing to read yet but the end of file of a client that no longer waits.
		exit 1 if IO::Select->new(\*STDIN)->can_read(0.2);
	}
	return $lock;
}

# Servers run from it, mostly as another user. Root's own TMPDIR is often closed to others, and some
# hosts mount /tmp with noexec.
sub make_workspace
{
	my $first = $ENV{TMPDIR} || '/tmp';
	for my $place ($first, '/var/tmp')
	{
		# The kernel shows the paths of processes without symbolic links.
		my $dir = eval { tempdir('pg_hugeinfo.XXXXXX', DIR => realpath($place)) } // next;
		chmod 0755, $dir;
		if (!runs_programs($dir))
		{
			rmdir $dir;
			next;
		}
		print STDERR "==> in $place: servers cannot run from $first\n" if $place ne $first;
		return $dir unless $user;
		chmod 0700, $dir;
		chown((getpwnam $user)[ 2, 3 ], $dir) or die "==> $dir: $!\n";
		return $dir;
	}
	die "==> servers can run neither from $first nor from /var/tmp: name another directory, as in TMPDIR=/srv\n";
}

sub runs_programs
{
	my ($dir) = @_;
	write_file("$dir/program", "#!/bin/sh\n");
	chmod 0755, "$dir/program";
	my @as_other = $> == 0 ? qw(setpriv --reuid=65534 --regid=65534 --clear-groups --) : ();
	my $runs = eval { run(@as_other, "$dir/program"); 1 };
	unlink "$dir/program";
	return $runs;
}

sub remove_workspace
{
	return if $keeps_workspace;
	# A process that was just ended can still be writing its last file.
	try_until(2, sub { system("rm -rf '$workspace' 2>/dev/null") == 0 }) or run('rm', '-rf', $workspace);
	return;
}

# To be called before a change.
sub change { my ($what, $undo) = @_; push @changes, [ $what, $undo ]; return }

sub is_changed { my ($what) = @_; return grep { $_->[0] eq $what } @changes }

# Undoes the changes of all files whose names start like that, the last one first.
sub undo
{
	my ($start) = @_;
	my @undone = grep { index($_->[0], $start) == 0 } @changes;
	@changes = grep { index($_->[0], $start) != 0 } @changes;
	my @errors;
	for (reverse @undone)
	{
		my ($what, $undo) = @$_;
		eval { $undo->(); 1 } or push @errors, "not put back: $what: $@";
	}
	die @errors if @errors;
	return;
}

# Files

sub read_file
{
	my ($file) = @_;
	open my $fh, '<', $file or return;
	local $/;
	return scalar <$fh>;
}

sub write_file
{
	my ($file, $text) = @_;
	open my $fh, '>', $file or die "$file: $!\n";
	# The kernel reports errors of the write, which buffered output would only show at its end.
	defined syswrite $fh, $text or die "$file: cannot write $text: $!\n";
	return;
}

# The text to write so that the file becomes as it is now. Of several modes it is the one in
# brackets. Nothing if there is no such file.
sub contents { my ($file) = @_; my $text = read_file($file); return $file =~ m{^/sys/} && $text =~ /\[(\S+)\]/ ? $1 : $text }

# Puts the file back in the end as it is now. Removes it then if there is none.
sub remember
{
	my ($file) = @_;
	$file = default_pool() . '/nr_hugepages' if $file eq '/proc/sys/vm/nr_hugepages';
	return remember_pool($1) if $file =~ m{/(hugepages-\d+kB)/nr_hugepages$};
	# Some files of the kernel only start something, such as compact_memory.
	return if is_changed($file) || -e $file && !((stat _)[2] & 0400);
	# Of a run that was cut short by a loss of power.
	unlink $file if $file =~ m{^/etc/.*pg_hugeinfo};
	my $before = contents($file);
	change($file, sub {
		if (!defined $before) { return !-e $file || unlink $file || die "$!\n" }
		# A pool of gigantic pages refuses even the number of surplus pages that is there.
		write_file($file, $before) if $before ne (contents($file) // '');
	});
	return;
}

# Files of a process or of a new cgroup are not put back: these end before.
sub set
{
	my ($file, $value) = @_;
	if ($file =~ m{^/proc/(\d+)/}) { must_be_ours($1) }
	elsif (!is_changed($file =~ s{/[^/]*\z}{}r)) { remember($file) }
	return write_file($file, "$value\n");
}

# Pools

sub default_pool
{
	read_file('/proc/meminfo') =~ /^Hugepagesize:\s+(\d+) kB$/m or die "this kernel has no huge pages\n";
	return "/sys/kernel/mm/hugepages/hugepages-$1kB";
}

# Persistent pages. Reading nr_hugepages includes surplus pages; writing to it does not.
sub pool_size { my ($dir) = @_; return read_file("$dir/nr_hugepages") - read_file("$dir/surplus_hugepages") }

# Each node is put back, too: otherwise the kernel would distribute the pages in its own way.
sub remember_pool
{
	my ($name) = @_;
	for my $dir ("/sys/kernel/mm/hugepages/$name", glob "/sys/devices/system/node/node*/hugepages/$name")
	{
		next if is_changed("$dir/nr_hugepages");
		my $pages = pool_size($dir);
		change("$dir/nr_hugepages", sub { set_pool($dir, $pages, 60) });
	}
	return;
}

sub pool
{
	my ($dir, $pages, $tries) = @_;
	remember("$dir/nr_hugepages");
	return set_pool($dir, $pages, $tries // 60);
}

# The kernel allocates fewer pages without an error if memory is fragmented.
sub set_pool
{
	my ($dir, $pages, $tries) = @_;
	for my $try (1 .. $tries)
	{
		write_file("$dir/nr_hugepages", "$pages\n");
		return if pool_size($dir) == $pages;
		next if $try == $tries;
		make_room();
		pause(0.25);
	}
	die "$dir/nr_hugepages: asked for $pages pages, the kernel gives " . pool_size($dir) . "\n";
}

# Frees memory in large blocks: a 1 GB page needs a whole block, and a single kernel object in it
# prevents that. The kernel keeps empty slabs until it is told to shrink them.
sub make_room
{
	eval { write_file(@$_) } for [ '/proc/sys/vm/drop_caches', 3 ], (map { [ $_, 1 ] } glob '/sys/kernel/slab/*/shrink'), [ '/proc/sys/vm/compact_memory', 1 ];
	return;
}

# Cgroups. Version 2 where the kernel offers the controller there, else version 1. Mounting a
# controller as version 1 takes it away from version 2, perhaps until a reboot: that is done only
# where version 2 does not have it.

# By controller: the version, the mount, our cgroup in it, and the client's former cgroup.
my %hierarchies;

sub lists { my ($file, $controller) = @_; return (read_file($file) // '') =~ /(?:^|\s)\Q$controller\E(?:\s|$)/ }

sub mounted
{
	my ($controller) = @_;
	my @older;
	for (split /\n/, read_file('/proc/mounts'))
	{
		my (undef, $dir, $type, $options) = split / /;
		return (2, $dir) if $type eq 'cgroup2' && lists("$dir/cgroup.controllers", $controller);
		@older = (1, $dir) if $type eq 'cgroup' && grep { $_ eq $controller } split /,/, $options;
	}
	return @older;
}

sub hierarchy
{
	my ($controller) = @_;
	return $hierarchies{$controller} if $hierarchies{$controller};
	my ($version, $mount) = mounted($controller);
	if (!$version)
	{
		lists('/proc/cgroups', $controller) or die "this kernel has no $controller cgroup controller\n";
		# The number of the initial namespace. From a container the whole host would lose it.
		(readlink('/proc/self/ns/cgroup') // 'cgroup:[4026531835]') eq 'cgroup:[4026531835]' or die "the $controller controller is not offered to this container\n";
		($version, $mount) = (1, mount('cgroup', $controller));
	}
	my $top = "$mount/pg_hugeinfo_test_$$";
	enable($mount, $controller) if $version == 2;
	make_group($top);
	return $hierarchies{$controller} = { version => $version, mount => $mount, top => $top };
}

# For the children of a cgroup of version 2.
sub enable
{
	my ($dir, $controller) = @_;
	my $file = "$dir/cgroup.subtree_control";
	return if lists($file, $controller);
	# Our own cgroups are removed.
	change($file, sub { write_file($file, "-$controller\n") unless is_limited($dir, $controller) }) unless is_changed($dir);
	return write_file($file, "+$controller\n");
}

# Others can have set limits since then, which they would lose.
sub is_limited
{
	my ($dir, $controller) = @_;
	# "max" is a number of 19 digits where the kernel has rounded it.
	return grep({ read_file($_) !~ /^(?:max|\d{19})$/ } glob "$dir/*/$controller.*{max,high}") || grep { lists($_, $controller) } glob "$dir/*/cgroup.subtree_control";
}

sub make_group
{
	my ($dir) = @_;
	return if -d $dir;
	# A cgroup is busy until its last process has been reaped.
	change($dir, sub { try_until(10, sub { !-d $dir || rmdir $dir }) or die "$!\n" });
	mkdir $dir or die "$dir: $!\n";
	return;
}

# Makes a cgroup and its parents. The answer is the version of its controller and its directory.
sub group
{
	my ($controller, $name) = @_;
	my $found = hierarchy($controller);
	my $dir = $found->{top};
	for my $level (split m{/}, $name)
	{
		die "no name of a cgroup: $name\n" if $level =~ /^\.{0,2}$/;
		enable($dir, $controller) if $found->{version} == 2;
		$dir .= "/$level";
		make_group($dir);
	}
	return "$found->{version} $dir";
}

# Moves the client, so that its servers start in that cgroup.
sub enter
{
	my ($controller, $name) = @_;
	my $found = hierarchy($controller);
	if (!defined $found->{former})
	{
		my $line = $found->{version} == 2 ? qr/0::/ : qr/\d+:[^:]*\b\Q$controller\E\b[^:]*:/;
		read_file("/proc/$client/cgroup") =~ m{^$line(/.*)$}m or die "the client is in no $controller cgroup\n";
		$found->{former} = $found->{mount} . $1;
		change("the cgroup of process $client", sub { leave($controller) if is_running($client) });
	}
	return write_file("$found->{top}/$name/cgroup.procs", "$client\n");
}

sub leave { my ($controller) = @_; return write_file("$hierarchies{$controller}{former}/cgroup.procs", "$client\n") }

# Mounts and swap

sub mount
{
	my ($type, $options) = @_;
	my $dir = tempdir('pg_hugeinfo_XXXXXX', DIR => '/run');
	change($dir, sub {
		run('umount', $dir) if read_file('/proc/mounts') =~ m{^\S+ \Q$dir\E }m;
		rmdir $dir or die "$!\n";
	});
	run('mount', '-t', $type, '-o', $options, 'none', $dir);
	return $dir;
}

# Some file systems have no swap files: overlayfs, btrfs, those in memory.
sub swap
{
	my ($mb) = @_;
	my $file = "/var/tmp/pg_hugeinfo_swap_$$";
	change($file, sub {
		run('swapoff', $file) if read_file('/proc/swaps') =~ m{^\Q$file\E\s}m;
		!-e $file || unlink $file or die "$!\n";
	});
	sysopen my $fh, $file, O_WRONLY | O_CREAT | O_EXCL, 0600 or die "$file: $!\n";
	# A swap file has no holes.
	my $zeros = "\0" x (1 << 20);
	for (1 .. $mb) { (syswrite($fh, $zeros) // 0) == 1 << 20 or die "$file: $!\n" }
	close $fh;
	run('mkswap', $file);
	return run('swapon', $file);
}

# Commands

# Dies with the output of a command that fails.
sub run
{
	open my $out, '-|', 'sh', '-c', 'exec "$@" </dev/null 2>&1', 'sh', @_ or die "sh: $!\n";
	my $text = do { local $/; <$out> };
	close $out or die "it fails: @_: $text\n";
	return;
}

# Runs a line of a remedy as root. The files that it changes follow a redirection or "sed -i", or
# "sysctl -w" names them.
sub type
{
	my ($line) = @_;
	my $word = qr/(?:'[^']*'|\\.|[^\s'\\()<>&;|])+/;
	my @files = map { s/'([^']*)'|\\(.)/$1 \/\/ $2/ger } $line =~ /(?:>|sed -i $word) *($word)/g;
	push @files, map { '/proc/sys/' . tr{.}{/}r } $line =~ /\bsysctl -w ([\w.]+)=/g;
	die "cannot tell what this changes: $line\n" unless @files;
	remember($_) for @files;
	return run('sh', '-c', $line);
}

# Starts a command in the directory of a file that gets its output. Both are in the workspace, so
# that the command ends with it. The answer is its process.
sub start
{
	my ($file, @command) = @_;
	index($file, "$workspace/") == 0 or die "$file is not in the workspace\n";
	open my $out, '>>', $file or die "$file: $!\n";
	my $pid = fork // die "fork: $!\n";
	return $pid if $pid;
	$SIG{$_} = 'DEFAULT' for qw(INT TERM HUP QUIT PIPE);
	chdir $file =~ s{/[^/]*\z}{}r;
	open STDIN, '<', '/dev/null';
	open STDOUT, '>&', $out;
	open STDERR, '>&', $out;
	exec @command or print "exec $command[0]: $!\n";
	POSIX::_exit(127);
}

# Processes

# Programs of the workspace, and those that work in it.
sub is_ours { my ($pid) = @_; return grep { index((readlink("/proc/$pid/$_") // '') . '/', "$workspace/") == 0 } qw(exe cwd) }

sub must_be_ours { my ($pid) = @_; is_ours($pid) or die "process $pid is not of the workspace\n"; return }

# SIGQUIT lets a server remove its System V segment. A frozen process does not end. A process that
# is just starting cannot be seen: looks until it has seen none twice.
sub end_processes
{
	my ($signal, $seen_none, @pids) = ('QUIT', 0);
	my $look = sub {
		eval { write_file($_, "THAWED\n") } for grep { -e } map { "$_->[0]/freezer.state" } @changes;
		@pids = grep { is_ours($_) } map { m{(\d+)$} } glob '/proc/[0-9]*';
		kill $signal => @pids;
		return !@pids && $seen_none++;
	};
	return if try_until(10, $look);
	$signal = 'KILL';
	try_until(5, $look) or die "these processes of $workspace do not end: @pids\n";
	return;
}

# A postmaster that was killed leaves a System V segment behind. It would stay until the next boot,
# and a single page of it can prevent a 1 GB page. Removes segments of the user that were made since
# the start of this program, and whose creator is gone.
sub remove_segments
{
	return unless $user;
	for (split /\n/, read_file('/proc/sysvipc/shm') // '')
	{
		my ($id, $creator, $attached, $uid, $changed) = (split)[ 1, 4, 6, 7, 13 ];
		next if $id !~ /^\d/ || $attached || $uid != getpwnam $user || $changed < $since || is_running($creator);
		# IPC_RMID
		shmctl $id, 0, 0 or die "System V segment $id: $!\n";
	}
	return;
}

# Does not end before that process, whose children have changed the host themselves.
sub await
{
	my ($pid) = @_;
	my $start = is_running($pid) // return;
	change("process $pid", sub { pause(0.1) while (is_running($pid) // '') eq $start });
	return;
}

# The time of its start, which another process with its number does not have. Zombies do not run.
sub is_running
{
	my ($pid) = @_;
	my ($state, $start) = (split ' ', (read_file("/proc/$pid/stat") // '') =~ s/.*\) //sr)[ 0, 19 ];
	return ($state // 'Z') ne 'Z' ? $start : undef;
}

# Moves private memory of a process to swap (process_madvise(2), Linux 5.10).
sub page_out
{
	my ($pid) = @_;
	must_be_ours($pid);
	my ($SYS_pidfd_open, $SYS_process_madvise, $MADV_PAGEOUT) = (434, 440, 21);
	my $process = syscall $SYS_pidfd_open, $pid + 0, 0;
	die "pidfd_open: $!\n" if $process < 0;
	for (split /\n/, read_file("/proc/$pid/maps"))
	{
		next unless /^([0-9a-f]+)-([0-9a-f]+) rw.p \S+ \S+ 0\s*(?:\[heap\])?$/;
		my $range = pack 'QQ', hex $1, hex($2) - hex($1);
		syscall($SYS_process_madvise, $process, $range, 1, $MADV_PAGEOUT, 0) >= 0 or die "process_madvise: $!\n";
	}
	POSIX::close($process);
	return;
}

# Time

sub pause { my ($seconds) = @_; select undef, undef, undef, $seconds; return }

sub try_until
{
	my ($seconds, $code) = @_;
	for (1 .. 10 * $seconds)
	{
		return 1 if $code->();
		pause(0.1);
	}
	return $code->();
}

exit main();
