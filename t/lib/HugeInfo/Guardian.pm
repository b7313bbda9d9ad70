# A process beside each test that outlives it, however it ends, and puts the host back.
#
# It is forked while the test is still root and keeps those rights; the test itself gives them up.
# It obeys a few words on a pipe, and end of file on that pipe is its sign: the kernel sends it also
# for a test killed by signal 9.
package HugeInfo::Guardian;

use strict;
use warnings;

use Fcntl qw(:flock O_RDONLY O_CREAT);
use File::Path ();
use IPC::SysV qw(IPC_RMID);
use POSIX ();
use Time::HiRes qw(sleep);

use HugeInfo::Cgroups;
use HugeInfo::Machine;
use HugeInfo::Pools;
use HugeInfo::User;

# Everything of this project that changes the host's pools takes this lock first.
my $LOCK = '/run/lock/pg_hugeinfo-host.lock';

sub lock_host
{
	# Without O_CREAT first: the kernel refuses even root to "create" another user's file in a sticky
	# directory. Only root creates it, so that root's shell scripts can always open it for writing.
	my $fh;
	if (!sysopen $fh, $LOCK, O_RDONLY)
	{
		return if $> != 0;
		sysopen $fh, $LOCK, O_RDONLY | O_CREAT, 0644 or die "$LOCK: $!\n";
	}
	return $fh if flock $fh, LOCK_EX | LOCK_NB;
	print STDERR "# waiting for another run that holds $LOCK\n";
	flock $fh, LOCK_EX or die "$LOCK: $!\n";
	return $fh;
}

# The servers of this test, and their children, work in data directories below the test's own new
# directory.
sub _servers
{
	my ($dir) = @_;
	return grep { index(readlink("/proc/$_/cwd") // '', "$dir/") == 0 } map { m{(\d+)$} } glob '/proc/[0-9]*';
}

sub _end_servers
{
	my ($dir) = @_;
	# SIGQUIT lets a postmaster remove its System V segment; SIGKILL would leave it behind
	for my $signal ((('QUIT') x 100), (('KILL') x 50))
	{
		my @pids = _servers($dir) or return;
		kill $signal => @pids;
		sleep 0.1;
	}
	return "servers below $dir do not end: " . join(' ', _servers($dir)) . "\n";
}

# What a postmaster that was killed has left behind: a System V segment each. It would stay until
# the next boot, and one of its pages is enough to be in the way of a huge page of 1 GB.
sub _remove_segments
{
	my ($user, $since) = @_;
	my $uid = getpwnam $user;
	open my $fh, '<', '/proc/sysvipc/shm' or return;
	my @failures;
	while (<$fh>)
	{
		# proc(5): ours, nobody's any more, and made during this test
		my (undef, $number, undef, undef, $creator, undef, $attached, $owner, undef, undef, undef, undef, undef, $made) = split;
		next unless $number =~ /^\d+$/ && $attached == 0 && $owner == $uid && $made >= $since && !-e "/proc/$creator";
		shmctl($number, IPC_RMID, 0) or push @failures, "System V segment $number: $!\n";
	}
	return @failures;
}

# As the user that owns it: root does not delete through names that somebody else can change.
sub _remove
{
	my ($dir, $user) = @_;
	my $pid = fork // die "fork: $!\n";
	if (!$pid)
	{
		eval { HugeInfo::User::become($user) if $> == 0; File::Path::remove_tree($dir); 1 };
		POSIX::_exit(-e $dir ? 1 : 0);
	}
	waitpid $pid, 0;
	return $? == 0 ? () : "$dir: cannot remove\n";
}

# Nobody else's memory is touched.
sub _own
{
	my ($dir, $pid) = @_;
	index(readlink("/proc/$pid/cwd") // '', "$dir/") == 0 or die "process $pid is none of this test's servers\n";
	return $pid;
}

sub _obey
{
	my ($test, $dir, $line) = @_;
	return HugeInfo::Pools::set_pages($1, $2) if $line =~ /^pool (\d+) (\d+)$/;
	return HugeInfo::Pools::set_overcommit($1, $2) if $line =~ /^overcommit (\d+) (\d+)$/;
	return HugeInfo::Cgroups::group($1) if $line =~ m{^group ([a-z]+(?:/[a-z]+)*)$};
	return HugeInfo::Cgroups::limit($1, $2, $3, $4)
	  if $line =~ m{^limit ([a-z/]+) (fault|reservation) (\d+) (\d+|max)$};
	return HugeInfo::Cgroups::enter($test, $1) if $line =~ m{^enter ([a-z/]+)$};
	return HugeInfo::Cgroups::leave($test) if $line eq 'leave';
	return HugeInfo::Machine::set_thp($1, $2) if $line =~ /^thp (enabled|defrag|shmem_enabled) ([a-z_]+)$/;
	return HugeInfo::Machine::set_strict_overcommit($1) if $line =~ /^strict_overcommit (\d+)$/;
	return HugeInfo::Machine::set_boot_pages($1 eq 'none' ? undef : $1) if $line =~ /^boot_pages (\d+|none)$/;
	return HugeInfo::Machine::add_swap($1) if $line =~ /^swap (\d+)$/;
	return HugeInfo::Machine::page_out(_own($dir, $1)) if $line =~ /^page_out (\d+)$/;
	return HugeInfo::Machine::set_oom_score_adj(_own($dir, $1), $2) if $line =~ /^oom_score_adj (\d+) (-?\d+)$/;
	return HugeInfo::Machine::type_in($1) if $line =~ /^type (.+)$/;
	die "not understood: $line\n";
}

# Never returns. Holds on to the test's stdout and stderr, so that whoever reads them waits until
# the host is restored.
sub run
{
	my ($test, $dir, $user, $from, $to) = @_;
	POSIX::setsid();
	$SIG{$_} = 'IGNORE' for qw(INT TERM HUP QUIT PIPE);
	chdir '/';
	my $lock = eval { lock_host() };
	my ($keep, $since) = (0, time);
	$to->autoflush(1);
	print $to $@ ? "error $@" : "ok\n";
	while (defined(my $line = <$from>))
	{
		chomp $line;
		# the test failed: its servers' logs are wanted
		if ($line eq 'keep') { $keep = 1; print $to "ok\n"; next }
		my $answer = eval { _obey($test, $dir, $line) // '' };
		(my $error = $@) =~ s/\n/ /g;
		print $to $error ? "error $error\n" : "ok $answer\n";
	}
	my @failures = (
		_end_servers($dir), _remove_segments($user, $since), HugeInfo::Cgroups::restore($test), HugeInfo::Machine::restore(),
		HugeInfo::Pools::restore(), $keep ? () : _remove($dir, $user));
	print STDERR "# NOT PUT BACK: $_" for @failures;
	POSIX::_exit(@failures ? 1 : 0);
}

1;
