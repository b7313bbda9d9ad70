#!/usr/bin/env perl
# Changes this host for a script or a test (the client). Undoes every change when the client ends,
# even by kill -9. Usage: tools/lib/host.pl [LOCK FILE [USER]]. The clients are
# tools/lib/host.bash and t/lib/HugeInfo/Host.pm.
#
# The program waits for the lock, creates a workspace directory that USER owns, and answers with the
# path of the directory. Then it reads requests from standard input. A request is the number of its
# words, followed by the words. An answer is "ok" or "error", followed by a text. Each of these
# fields ends with a NUL. At end of file, the program ends all processes of the workspace, undoes
# the changes in reverse order, removes the workspace, and releases the lock.
use strict;
use warnings;
# process_madvise needs 64-bit addresses.
no warnings 'portable';

use Cwd qw(realpath);
use Fcntl qw(:flock :mode O_APPEND O_CREAT O_EXCL O_NOFOLLOW O_NONBLOCK O_RDWR O_WRONLY);
use File::Temp qw(tempdir);
use IO::Handle;
use IO::Select;
use POSIX ();

my ($lock_file, $user) = @ARGV;
my ($client, $since) = (getppid, time);
my ($workspace, $keeps_workspace);
# Changed files with the functions that undo the changes, oldest first.
my @changes;

my %verbs = (
	await => \&await, enter => \&enter, group => \&group, keep => sub { $keeps_workspace = 1; return }, leave => \&leave,
	mount => \&mount, page_out => \&page_out, pool => \&pool, remember => \&remember, set => \&set, start => \&start, swap => \&swap,
	type => \&type, undo => \&undo);

sub main
{
	# Signals to the client's process group must not reach this program.
	POSIX::setsid();
	umask 022;
	STDOUT->autoflush(1);
	# Plain su does not add these directories.
	$ENV{PATH} .= ':/usr/sbin:/sbin';
	# The lock is released when this program ends. Children do not inherit it.
	my $lock = $lock_file ? wait_for_lock() : undef;
	$SIG{$_} = 'IGNORE' for qw(INT TERM HUP QUIT PIPE);
	$workspace = make_workspace();
	chdir '/';
	answer('ok', $workspace);
	while (my ($verb, @words) = request())
	{
		my $text = eval { ($verbs{$verb} // die "unknown request: $verb\n")->(@words) // '' };
		$@ ? answer('error', $@ =~ s/\n\z//r) : answer('ok', $text);
	}
	my $failed;
	for my $step (\&end_processes, \&remove_segments, sub { undo('') }, \&remove_workspace)
	{
		eval { $step->(); 1 } or $failed = print STDERR "==> $@";
	}
	return $failed ? 1 : 0;
}

# Returns the words of the next request. Returns none at end of file, or if the client was killed
# while it wrote a request.
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

# Accepts only a plain file of this user as lock. A symbolic link could make root create a file
# elsewhere, and a FIFO could block it. Other users must not be able to open and hold the lock.
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
		# The client sends no requests yet, so the only event is end of file: it has stopped waiting.
		exit 1 if IO::Select->new(\*STDIN)->can_read(0.2);
	}
	return $lock;
}

# Servers run from the workspace, mostly as another user. Other users often have no access to root's
# TMPDIR, and some hosts mount /tmp with noexec.
sub make_workspace
{
	my $first = $ENV{TMPDIR} || '/tmp';
	for my $place ($first, '/var/tmp')
	{
		# The kernel reports the paths of processes with symbolic links resolved.
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
	# A process that is just ending can still write a file.
	try_until(2, sub { eval { run('rm', '-rf', '--', $workspace); 1 } }) or die "$@";
	return;
}

# Registers the undo function of a change. Call this before the change.
sub change { my ($what, $undo) = @_; push @changes, [ $what, $undo ]; return }

sub is_changed { my ($what) = @_; return grep { $_->[0] eq $what } @changes }

# Undoes the changes of all files whose names start with `start`, newest first.
sub undo
{
	my ($start) = @_;
	my @undone = grep { index($_->[0], $start) == 0 } @changes;
	@changes = grep { index($_->[0], $start) != 0 } @changes;
	my @errors;
	for (reverse @undone)
	{
		my ($what, $undo) = @$_;
		eval { $undo->(); 1 } or push @errors, "could not undo: $what: $@";
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
	# The kernel reports errors of the write. Buffered output would report them only on close.
	defined syswrite $fh, $text or die "$file: cannot write $text: $!\n";
	return;
}

# Returns the text that restores the current contents when written to the file. In a list of modes,
# this is the mode in brackets. Returns undef if the file does not exist.
sub contents { my ($file) = @_; my $text = read_file($file); return $file =~ m{^/sys/} && $text =~ /\[(\S+)\]/ ? $1 : $text }

# Registers the file so that its current contents are restored at the end. A file that does not
# exist yet is removed at the end.
sub remember
{
	my ($file) = @_;
	$file = default_pool() . '/nr_hugepages' if $file eq '/proc/sys/vm/nr_hugepages';
	return remember_pool($1) if $file =~ m{/(hugepages-\d+kB)/nr_hugepages$};
	# Some kernel files, such as compact_memory, only trigger an action and cannot be read.
	return if is_changed($file) || -e $file && !((stat _)[2] & 0400);
	# The file is left over from a run that was interrupted by a power failure.
	unlink $file if $file =~ m{^/etc/.*pg_hugeinfo};
	my $before = contents($file);
	change($file, sub {
		if (!defined $before) { return !-e $file || unlink $file || die "$!\n" }
		# The kernel rejects every write of surplus pages for gigantic pages, even of the current value.
		write_file($file, $before) if $before ne (contents($file) // '');
	});
	return;
}

# Registers the directory and its parents as far as they do not exist yet, so that they are removed
# at the end. A directory in which another user has created a file is kept.
sub remember_directory
{
	my ($dir) = @_;
	return if -e $dir || is_changed("$dir/");
	remember_directory($1) if $dir =~ m{^(.+)/};
	# With a slash, because files in a new cgroup are not restored, and these are.
	change("$dir/", sub { rmdir $dir or $!{ENOENT} or $!{ENOTEMPTY} or die "$!\n" });
	return;
}

# Files of a process or of a new cgroup are not restored, because process and cgroup end before
# that.
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

# Returns the number of persistent pages. nr_hugepages includes surplus pages when it is read, but
# not when it is written.
sub pool_size { my ($dir) = @_; return read_file("$dir/nr_hugepages") - read_file("$dir/surplus_hugepages") }

# Also registers each node. Otherwise the kernel would distribute the restored pages itself.
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

# Retries, because the kernel allocates fewer pages without an error if memory is fragmented.
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
	die "$dir/nr_hugepages: requested $pages pages, the kernel allocated " . pool_size($dir) . "\n";
}

# Frees memory in large blocks. A 1 GB page needs a whole block, and a single kernel object in the
# block prevents its allocation. The kernel keeps empty slabs until a write to `shrink`.
sub make_room
{
	eval { write_file(@$_) } for [ '/proc/sys/vm/drop_caches', 3 ], (map { [ $_, 1 ] } glob '/sys/kernel/slab/*/shrink'), [ '/proc/sys/vm/compact_memory', 1 ];
	return;
}

# Cgroups. Uses version 2 if it has the controller, else version 1. Mounting a controller as version
# 1 removes it from version 2, perhaps until a reboot. Therefore, this is done only if version 2
# does not have the controller.

# Per controller: the version, the mount point, our cgroup, and the client's former cgroup.
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
		# This is the inode number of the initial namespace. A mount in a container would remove the
		# controller from version 2 on the whole host.
		(readlink('/proc/self/ns/cgroup') // 'cgroup:[4026531835]') eq 'cgroup:[4026531835]' or die "the $controller controller is not offered to this container\n";
		($version, $mount) = (1, mount('cgroup', $controller));
	}
	my $top = "$mount/pg_hugeinfo_test_$$";
	enable($mount, $controller) if $version == 2;
	make_group($top);
	return $hierarchies{$controller} = { version => $version, mount => $mount, top => $top };
}

# Enables a controller for the children of a version 2 cgroup.
sub enable
{
	my ($dir, $controller) = @_;
	my $file = "$dir/cgroup.subtree_control";
	return if lists($file, $controller);
	# No entry is needed for our own cgroups, because they are removed.
	change($file, sub { write_file($file, "-$controller\n") unless is_limited($dir, $controller) }) unless is_changed($dir);
	return write_file($file, "+$controller\n");
}

# Returns true if limits were set meanwhile. Disabling the controller would remove them.
sub is_limited
{
	my ($dir, $controller) = @_;
	# If the kernel has rounded the maximum, it prints a 19-digit number instead of "max".
	return grep({ read_file($_) !~ /^(?:max|\d{19})$/ } glob "$dir/*/$controller.*{max,high}") || grep { lists($_, $controller) } glob "$dir/*/cgroup.subtree_control";
}

sub make_group
{
	my ($dir) = @_;
	return if -d $dir;
	# A cgroup is busy until its last process has been reaped. A process that the client started
	# outside of the workspace moves to the root cgroup.
	my $root = $dir =~ s{/pg_hugeinfo_test_.*}{}sr;
	change($dir, sub {
		try_until(10, sub {
			for my $pid (split /\n/, read_file("$dir/cgroup.procs") // '') { eval { write_file("$root/cgroup.procs", "$pid\n") } }
			return !-d $dir || rmdir $dir;
		}) or die "$!\n";
	});
	mkdir $dir or die "$dir: $!\n";
	return;
}

# Creates a cgroup and its parents. Returns the version of the controller and the directory.
sub group
{
	my ($controller, $name) = @_;
	my $found = hierarchy($controller);
	my $dir = $found->{top};
	for my $level (split m{/}, $name)
	{
		die "not a valid cgroup name: $name\n" if $level =~ /^\.{0,2}$/;
		enable($dir, $controller) if $found->{version} == 2;
		$dir .= "/$level";
		make_group($dir);
	}
	return "$found->{version} $dir";
}

# Moves the client to a cgroup, so that its servers start there.
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

# Adds swap. Some file systems do not support swap files: overlayfs, btrfs, and those in memory.
sub swap
{
	my ($mb) = @_;
	my $file = "/var/tmp/pg_hugeinfo_swap_$$";
	change($file, sub {
		run('swapoff', $file) if read_file('/proc/swaps') =~ m{^\Q$file\E\s}m;
		!-e $file || unlink $file or die "$!\n";
	});
	sysopen my $fh, $file, O_WRONLY | O_CREAT | O_EXCL, 0600 or die "$file: $!\n";
	# A swap file must not have holes.
	my $zeros = "\0" x (1 << 20);
	for (1 .. $mb) { (syswrite($fh, $zeros) // 0) == 1 << 20 or die "$file: $!\n" }
	close $fh;
	run('mkswap', $file);
	return run('swapon', $file);
}

# Commands

# Runs a command. Dies with its output if it fails.
sub run
{
	open my $out, '-|', 'sh', '-c', 'exec "$@" </dev/null 2>&1', 'sh', @_ or die "sh: $!\n";
	my $text = do { local $/; <$out> };
	close $out or die "command failed: @_: $text\n";
	return;
}

# Runs a line of a remedy as root. Finds the changed files after redirections, "sed -i" and
# "sysctl -w", and new directories after "mkdir -p".
sub type
{
	my ($line) = @_;
	my $word = qr/(?:'[^']*'|\\.|[^\s'\\()<>&;|])+/;
	my ($directories, $files) = map { [ map { s/'([^']*)'|\\(.)/$1 \/\/ $2/ger } $line =~ /$_ *($word)/g ] } qr/\bmkdir -p/, qr/>|sed -i $word/;
	push @$files, map { '/proc/sys/' . tr{.}{/}r } $line =~ /\bsysctl -w ([\w.]+)=/g;
	# A condition changes none.
	my $is_condition = $line =~ /\Aif ! \[ "\$\((?:sysctl -n|cat) [^()]*\)" -ge \d+ \]; then echo '[^']*' >&2; false; fi\z/;
	die "unknown which files this changes: $line\n" unless @$files || $is_condition;
	remember_directory($_) for @$directories;
	remember($_) for @$files;
	return run('sh', '-c', $line);
}

# Starts a command that writes its output to `file`, in the directory of that file. The directory is
# in the workspace, so the command is ended with the workspace. Returns the PID.
sub start
{
	my ($file, @command) = @_;
	# The workspace belongs to another user, who can make links.
	my $directory = $file =~ s{/[^/]*\z}{}r;
	my $real = realpath($directory) // '';
	$real eq $directory && index("$real/", "$workspace/") == 0 or die "$file is not in the workspace\n";
	sysopen my $out, $file, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW or die "$file: $!\n";
	my $pid = fork // die "fork: $!\n";
	return $pid if $pid;
	$SIG{$_} = 'DEFAULT' for qw(INT TERM HUP QUIT PIPE);
	chdir $directory;
	open STDIN, '<', '/dev/null';
	open STDOUT, '>&', $out;
	open STDERR, '>&', $out;
	exec @command or print "exec $command[0]: $!\n";
	POSIX::_exit(127);
}

# Processes

# Returns true if the program or the working directory of the process is in the workspace.
sub is_ours { my ($pid) = @_; return grep { index((readlink("/proc/$pid/$_") // '') . '/', "$workspace/") == 0 } qw(exe cwd) }

sub must_be_ours { my ($pid) = @_; is_ours($pid) or die "process $pid does not belong to the workspace\n"; return }

# Ends all processes of the workspace. SIGQUIT lets a server remove its System V segment. Frozen
# processes are thawed, because they do not end otherwise. A process that is just starting might not
# be visible yet, so the search must find no process twice.
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

# Removes segments of the user that were created after the start of this program and whose creator
# has ended. A killed postmaster leaves a System V segment behind, which would remain until a
# reboot. A single page of it can prevent the allocation of a 1 GB page.
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

# Delays the undo until that process has ended, because its children undo their own changes to the
# host.
sub await
{
	my ($pid) = @_;
	my $start = is_running($pid) // return;
	change("process $pid", sub {
		while ((is_running($pid) // '') eq $start)
		{
			# A stopped process would never end.
			kill CONT => $pid;
			pause(0.1);
		}
	});
	return;
}

# Returns the start time of the process, which identifies it if its PID is reused. Returns undef for
# zombies.
sub is_running
{
	my ($pid) = @_;
	my ($state, $start) = (split ' ', (read_file("/proc/$pid/stat") // '') =~ s/.*\) //sr)[ 0, 19 ];
	return ($state // 'Z') ne 'Z' ? $start : undef;
}

# Moves the private memory of a process to swap (process_madvise(2), Linux 5.10).
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
