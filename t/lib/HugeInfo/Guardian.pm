# A process beside each test that keeps its rights: it is forked while the test is still root, and
# the test itself gives them up. It obeys a few words on a pipe. Before each change it tells
# scripts/janitor, which outlives both, how to undo it.
package HugeInfo::Guardian;

use strict;
use warnings;

use POSIX ();

use HugeInfo::Cgroups;
use HugeInfo::Janitor;
use HugeInfo::Machine;
use HugeInfo::Pools;
use HugeInfo::Walks;

# Nobody else's memory is touched.
sub _own
{
	my ($dir, $pid) = @_;
	index(readlink("/proc/$pid/cwd") // '', "$dir/") == 0 or die "process $pid is none of this test's servers\n";
	return $pid;
}

# A control group below that of the test. Its name can hold anything but a line feed.
my $GROUP = qr{(?:(?!\.\.?(?:/|$))[^/]+)(?:/(?!\.\.?(?:/|$))[^/]+)*};

sub _obey
{
	my ($test, $dir, $user, $line) = @_;
	# the test failed: its servers' logs are wanted
	return HugeInfo::Janitor::undo('keep_workspace') if $line eq 'keep';
	return HugeInfo::Pools::set_pages($1, $2) if $line =~ /^pool (\d+) (\d+)$/;
	return HugeInfo::Pools::set_overcommit($1, $2) if $line =~ /^overcommit (\d+) (\d+)$/;
	return HugeInfo::Cgroups::group($1, $2) if $line =~ m{^group (hugetlb|memory|freezer) ($GROUP)$};
	return HugeInfo::Cgroups::limit($1, $2, $3, $4)
	  if $line =~ m{^limit ($GROUP) (fault|reservation) (\d+) (\d+|max)$};
	return HugeInfo::Cgroups::limit_memory($1, $2) if $line =~ m{^limit_memory ([a-z/]+) (\d+)$};
	return HugeInfo::Cgroups::freeze($1, map { _own($dir, $_) } split / /, $2) if $line =~ m{^freeze ([a-z]+) (\d+(?: \d+)*)$};
	return HugeInfo::Cgroups::thaw($1) if $line =~ m{^thaw ([a-z]+)$};
	return HugeInfo::Cgroups::enter($test, $1, $2) if $line =~ m{^enter (hugetlb|memory) ($GROUP)$};
	return HugeInfo::Cgroups::leave($test, $1) if $line =~ /^leave (hugetlb|memory)$/;
	return HugeInfo::Machine::set_thp($1, $2) if $line =~ /^thp (enabled|defrag|shmem_enabled) ([a-z_]+)$/;
	return HugeInfo::Machine::set_strict_overcommit($1) if $line =~ /^strict_overcommit (\d+)$/;
	return HugeInfo::Machine::set_boot_pages($1 eq 'none' ? undef : $1, $2) if $line =~ /^boot_pages (\d+|none)(?: (\d+))?$/;
	return HugeInfo::Machine::add_swap($1) if $line =~ /^swap (\d+)$/;
	return HugeInfo::Machine::mount_hugetlbfs($1, $2, $3) if $line =~ /^hugetlbfs (\S+) (\d+) ([\w=,]*)$/;
	return HugeInfo::Machine::page_out(_own($dir, $1)) if $line =~ /^page_out (\d+)$/;
	return HugeInfo::Machine::set_oom_score_adj(_own($dir, $1), $2) if $line =~ /^oom_score_adj (\d+) (-?\d+)$/;
	return HugeInfo::Machine::start_hidden($user, $1, $2) if $line =~ m{^start_hidden (\Q$dir\E/[\w/.-]+) (\Q$dir\E/[\w/.-]+)$};
	return HugeInfo::Machine::type_in($1) if $line =~ /^type (.+)$/;
	return HugeInfo::Walks::start($dir, $user, split / /, $1) if $line =~ m{^walks ([a-z_]+=[\w./:-]+(?: [a-z_]+=[\w./:-]+)*)$};
	die "not understood: $line\n";
}

# Never returns. Holds on to the test's stdout and stderr, so that whoever reads them waits until
# the host is restored. End of file on the pipe is its sign: the kernel sends it also for a test
# killed by signal 9.
sub run
{
	my ($test, $user, $from, $to) = @_;
	POSIX::setsid();
	$SIG{$_} = 'IGNORE' for qw(INT TERM HUP QUIT PIPE);
	chdir '/';
	# where plain su leaves these out; scripts/janitor has them, too
	$ENV{PATH} .= ':/usr/sbin:/sbin';
	$to->autoflush(1);
	my $dir = HugeInfo::Janitor::start($user);
	print $to "ok $dir\n";
	while (defined(my $line = <$from>))
	{
		chomp $line;
		my $answer = eval { _obey($test, $dir, $user, $line) // '' };
		(my $error = $@) =~ s/\n/ /g;
		print $to $error ? "error $error\n" : "ok $answer\n";
	}
	POSIX::_exit(HugeInfo::Janitor::finish() ? 0 : 1);
}

1;
