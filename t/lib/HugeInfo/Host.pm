# The host as a test may change it. `use` this before anything of PostgreSQL:
#
# - a guardian (see HugeInfo::Guardian) is started; as root it can change pools and cgroups, and
#   has them put back,
# - this process then becomes an ordinary user for good, since servers do not run as root,
# - PostgreSQL::Test is pointed to a new directory of that user.
package HugeInfo::Host;

use strict;
use warnings;

use Exporter ();
use IO::Handle;
use Test::More;

my ($guardian, $owner, $to, $from, $dir, $cannot_change);

# Above the line that loads PostgreSQL::Test: what is compiled first ends last, after that has
# stopped the servers.
END
{
	if ($guardian && $$ == $owner)
	{
		my $status = $?;
		my $failed = $status || grep { !$_ } Test::More->builder->summary;
		if ($failed)
		{
			eval { _ask('keep') };
			diag("logs and data of the servers: $dir");
		}
		close $to;
		waitpid $guardian, 0;
		$? = $status || ($? ? 1 : 0);
	}
}

use HugeInfo::Checks ();
use HugeInfo::Contained ();
use HugeInfo::Guardian;
use HugeInfo::Kernel;
use HugeInfo::Namespace ();
use HugeInfo::Processes ();
use HugeInfo::Server ();
use HugeInfo::Session ();
use HugeInfo::User;

# Modules of PostgreSQL 17 and later would end the test as one that failed, whose directory is kept.
# After theirs.
INIT { @SIG{qw(INT TERM)} = qw(DEFAULT DEFAULT) }

our @ISA = qw(Exporter);
our @EXPORT = qw(set_pool set_overcommit make_group limit_group limit_memory in_group freeze thaw needs_host cannot pools_of_one_size
  set_thp set_strict_overcommit set_boot_pages add_swap mount_hugetlbfs page_out set_oom_score_adj type_in start_walks
  start_hidden);

sub import
{
	my ($class, @names) = @_;
	_start() unless $owner;
	return $class->export_to_level(1, $class, @names);
}

sub _start
{
	$owner = $$;
	# Whatever is loaded lazily from now on has to be found by the ordinary user. The checkout may be
	# closed to it, and perl takes a directory of @INC that it may not read for an error. What is ours
	# has been loaded by now.
	my $lib = __FILE__ =~ s{/HugeInfo/Host\.pm$}{}r;
	@INC = grep { $_ ne $lib } @INC;

	my $user = HugeInfo::User::name();
	die "no user \"$user\" to run servers as: set HUGEINFO_TEST_USER\n" unless defined getpwnam $user;

	# Perl opens them close-on-exec: no server holds the pipe that says when we end.
	pipe(my $guardian_reads, $to) or die "pipe: $!\n";
	pipe($from, my $guardian_writes) or die "pipe: $!\n";
	$guardian = fork // die "fork: $!\n";
	if (!$guardian)
	{
		close $to;
		close $from;
		HugeInfo::Guardian::run($owner, $user, $guardian_reads, $guardian_writes);
	}
	close $guardian_reads;
	close $guardian_writes;
	$to->autoflush(1);
	# the lock is ours
	$dir = _answer();
	$cannot_change = $> == 0 ? _in_use() : 'only root can change the pools and cgroups of the host';

	chdir '/' or die "/: $!\n";
	HugeInfo::User::become($user) if $> == 0;
	# PostgreSQL 15 reads the first, 16 and later the others
	@ENV{qw(TESTDIR TESTDATADIR TESTLOGDIR)} = ($dir, "$dir/tmp_check", "$dir/tmp_check/log");
	return;
}

# Pages that somebody else holds are not ours to play with; nor are those of a server that is down.
sub _in_use
{
	my @sizes = HugeInfo::Kernel::page_sizes_kb() or return 'this kernel has no huge pages';
	for my $kb (@sizes)
	{
		my $pool = HugeInfo::Kernel::pool($kb);
		my $committed = $pool->{total} - $pool->{free} + $pool->{reserved};
		return "$committed pages of $kb kB are in use on this host" if $committed;
		return "this host has $pool->{total} idle pages of $kb kB: HUGEINFO_TEST_POOLS=1 lets tests take them" if $pool->{total} && !$ENV{HUGEINFO_TEST_POOLS};
	}
	return;
}

sub _answer
{
	my $line = <$from> // die "the guardian of the host has ended\n";
	chomp $line;
	my ($verdict, $text) = split / /, $line, 2;
	die "$text\n" if $verdict ne 'ok';
	return $text;
}

sub _ask
{
	my ($line) = @_;
	print $to "$line\n" or die "the guardian of the host has ended\n";
	return _answer();
}

# Exactly so many persistent pages of that size; dies when the kernel does not give them.
sub set_pool { my ($kb, $pages) = @_; return _ask("pool $kb $pages") }

sub set_overcommit { my ($kb, $pages) = @_; return _ask("overcommit $kb $pages") }

# All pages in one pool: the others are emptied.
sub pools_of_one_size
{
	my ($kb, $pages) = @_;
	for (HugeInfo::Kernel::page_sizes_kb())
	{
		set_pool($_, 0) unless $_ == $kb;
		set_overcommit($_, 0);
	}
	set_pool($kb, $pages);
	return;
}

# A cgroup of the controller hugetlb, memory or freezer; returns the version of the controller and
# the directory.
sub make_group { my ($name, $controller) = @_; return split / /, _ask('group ' . ($controller // 'hugetlb') . " $name"), 2 }

# kind: fault or reservation; bytes may be max
sub limit_group { my ($name, $kind, $kb, $bytes) = @_; return _ask("limit $name $kind $kb $bytes") }

sub limit_memory { my ($name, $bytes) = @_; return _ask("limit_memory $name $bytes") }

# Run code with this process, and so what it starts, in a group.
sub in_group
{
	my ($name, $code, $controller) = @_;
	$controller //= 'hugetlb';
	_ask("enter $controller $name");
	my $done = eval { $code->(); 1 };
	my $error = $@;
	_ask("leave $controller");
	die $error unless $done;
	return;
}

# Processes of this test's servers, in a group of the freezer.
sub freeze { my ($name, @pids) = @_; return _ask("freeze $name @pids") }

sub thaw { my ($name) = @_; return _ask("thaw $name") }

# what: enabled, defrag or shmem_enabled
sub set_thp { my ($what, $mode) = @_; return _ask("thp $what $mode") }

# Mode 2; the limit in percent of RAM.
sub set_strict_overcommit { my ($ratio) = @_; return _ask("strict_overcommit $ratio") }

# In a file of sysctl's, in so many equal lines; undef for no such file.
sub set_boot_pages { my ($pages, $lines) = @_; return _ask(join ' ', 'boot_pages', $pages // 'none', $lines // ()) }

sub add_swap { my ($mb) = @_; return _ask("swap $mb") }

# With such options, for this test's user; returns the directory.
sub mount_hugetlbfs { my ($kb, $options) = @_; return _ask('hugetlbfs ' . HugeInfo::User::name() . " $kb $options") }

# Private memory of one of this test's processes goes to swap.
sub page_out { my ($pid) = @_; return _ask("page_out $pid") }

sub set_oom_score_adj { my ($pid, $value) = @_; return _ask("oom_score_adj $pid $value") }

# Starts the server of a data directory where /proc hides the processes of other users.
sub start_hidden { my ($data, $log) = @_; return _ask("start_hidden $data $log") }

# A line of a remedy that root is to type.
sub type_in { my ($line) = @_; return _ask("type $line") }

# Random walks, as root, in the directory "walks" of this test; they write to a FIFO "tap" that is
# there. See crates/walks.
sub start_walks { my (@words) = @_; return _ask("walks @words") }

# Leaves the SKIP block: visibly, and as a failure where nothing may be skipped.
sub cannot
{
	my ($why) = @_;
	diag("skipped: $why");
	skip($why, 1) unless $ENV{HUGEINFO_TEST_REQUIRE_ALL};
	fail("not skipped: $why");
	no warnings 'exiting';
	last SKIP;
}

sub needs_host
{
	my ($scenario) = @_;
	cannot("$scenario: $cannot_change") if $cannot_change;
	return;
}


1;
