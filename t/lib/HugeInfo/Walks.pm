# The guardian's hands on random walks over huge pages: as root, below the directory of the test, so
# that they end with it like its servers.
package HugeInfo::Walks;

use strict;
use warnings;

use Fcntl qw(F_SETFL O_NOFOLLOW O_NONBLOCK O_WRONLY);
use POSIX ();

use HugeInfo::Cgroups;
use HugeInfo::Kernel;
use HugeInfo::Machine;
use HugeInfo::Pools;

# Of this checkout, and nothing that somebody else could name.
my $PROGRAM = __FILE__ =~ s{[^/]*/[^/]*/[^/]*/[^/]*$}{target/release/walks}r;

# Parents first.
my @GROUPS = qw(walks walks/inner walks/inner/leaf walks/side);

# Everything that a walk changes, as it is now.
sub _remember
{
	for my $kb (HugeInfo::Kernel::page_sizes_kb())
	{
		HugeInfo::Pools::remember($kb);
		HugeInfo::Pools::remember_overcommit($kb);
	}
	HugeInfo::Machine::remember_commit_limit();
	return;
}

# What it prints goes to the test by a FIFO.
sub start
{
	my ($dir, $user, @words) = @_;
	_remember();
	my ($version, @directories);
	for (@GROUPS)
	{
		($version, my $directory) = split / /, HugeInfo::Cgroups::group('hugetlb', $_), 2;
		push @directories, $directory;
	}
	# the test reads it already: it sees an end when we and the walks have closed it
	my $tap = "$dir/walks/tap";
	sysopen my $out, $tap, O_WRONLY | O_NOFOLLOW | O_NONBLOCK or die "$tap: $!\n";
	fcntl $out, F_SETFL, O_WRONLY or die "$tap: $!\n";
	my $pid = fork // die "fork: $!\n";
	return "$version $pid" if $pid;

	# the guardian's own signals are not for it
	$SIG{$_} = 'DEFAULT' for qw(INT TERM HUP QUIT PIPE);
	my $done = eval {
		chdir "$dir/walks" or die "$dir/walks: $!\n";
		open STDIN, '<', '/dev/null' or die "/dev/null: $!\n";
		open STDOUT, '>&', $out or die "stdout: $!\n";
		open STDERR, '>&', $out or die "stderr: $!\n";
		my $groups = join ':', @directories;
		exec $PROGRAM, "version=$version", "groups=$groups", "user=$user", @words
		  or die "$PROGRAM: $!\n";
	};
	print $out "Bail out! $@" unless $done;
	close $out;
	POSIX::_exit(1);
}

1;
