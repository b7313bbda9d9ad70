# Functions with which a test changes the host. `use` this before any module of PostgreSQL. At load
# time, it does the following:
#
# - It starts tools/lib/host.pl, which changes pools and cgroups as root, and undoes the changes
#   when the test has ended.
# - It permanently switches this process to an ordinary user, because servers do not run as root.
# - It sets the directory of PostgreSQL::Test to a new directory of that user.
package HugeInfo::Host;

use strict;
use warnings;

use Exporter ();
use IO::Handle;
use Test::More;

my ($host, $owner, $to, $from, $dir, $cannot_change);

# Before the line that loads PostgreSQL::Test, because END blocks run in reverse order: this one
# runs after PostgreSQL::Test has stopped the servers.
END
{
	if ($host && $$ == $owner)
	{
		my $status = $?;
		my $failed = $status || grep { !$_ } Test::More->builder->summary;
		if ($failed)
		{
			eval { _host('keep') };
			diag("logs and data of the servers: $dir");
		}
		close $to;
		waitpid $host, 0;
		$? = $status || ($? ? 1 : 0);
	}
}

use HugeInfo::Checks ();
use HugeInfo::Contained ();
use HugeInfo::Kernel;
use HugeInfo::Namespace ();
use HugeInfo::Processes ();
use HugeInfo::Server ();
use HugeInfo::Session ();
use HugeInfo::User;

# Replaces signal handlers of PostgreSQL 17 and newer, which would end the test as a failed one,
# whose directory is kept. In INIT, which runs after they are set.
INIT { @SIG{qw(INT TERM)} = qw(DEFAULT DEFAULT) }

our @ISA = qw(Exporter);
our @EXPORT = qw(set_pool set_overcommit make_group limit_group limit_memory in_group freeze thaw needs_host cannot pools_of_one_size
  set_thp set_strict_overcommit set_boot_pages add_swap mount_hugetlbfs page_out set_oom_score_adj type_in
  start_hidden start_with_mounts);

my $ROOT = __FILE__ =~ s{/lib/HugeInfo/Host\.pm$}{/..}r;
my $LOCK = '/run/pg_hugeinfo/lock';
my $VM = '/proc/sys/vm';

sub import
{
	my ($class, @names) = @_;
	_start() unless $owner;
	return $class->export_to_level(1, $class, @names);
}

sub _start
{
	$owner = $$;
	# From now on, the ordinary user must be able to find modules that are loaded lazily. That user
	# might have no access to the checkout, and Perl raises an error for unreadable directories in
	# @INC. All our own modules are already loaded.
	my $lib = __FILE__ =~ s{/HugeInfo/Host\.pm$}{}r;
	@INC = grep { $_ ne $lib } @INC;

	my $user = HugeInfo::User::name();
	die "no user \"$user\" to run servers as: set HUGEINFO_TEST_USER\n" unless defined getpwnam $user;

	# Perl sets close-on-exec, so no server keeps the pipe open. host.pl sees its end when we end.
	pipe(my $requests, $to) or die "pipe: $!\n";
	pipe($from, my $answers) or die "pipe: $!\n";
	$host = fork // die "fork: $!\n";
	if (!$host)
	{
		# Other users often have no access to root's TMPDIR.
		delete $ENV{TMPDIR} if $> == 0;
		open STDIN, '<&', $requests or die "stdin: $!\n";
		open STDOUT, '>&', $answers or die "stdout: $!\n";
		# An ordinary user does not change the host, and needs no lock.
		exec $^X, "$ROOT/tools/lib/host.pl", $> == 0 ? $LOCK : '', $user or die "host.pl: $!\n";
	}
	close $requests;
	close $answers;
	$to->autoflush(1);
	# host.pl answers after it has acquired the lock.
	$dir = _answer();
	$cannot_change = HugeInfo::Kernel::why_pools_stay();
	HugeInfo::Kernel::remember_others();

	chdir '/' or die "/: $!\n";
	HugeInfo::User::become($user) if $> == 0;
	# Temporary directories are removed with the workspace, even if this test is killed. Programs of
	# other users have some of them.
	chmod 0711, $dir or die "$dir: $!\n";
	$ENV{TMPDIR} = $dir;
	# PostgreSQL 15 reads the first, 16 and later the others
	@ENV{qw(TESTDIR TESTDATADIR TESTLOGDIR)} = ($dir, "$dir/tmp_check", "$dir/tmp_check/log");
	return;
}

sub _answer
{
	local $/ = "\0";
	my ($verdict, $text) = map { scalar(<$from>) // die "tools/lib/host.pl has ended\n" } 1, 2;
	chomp($verdict, $text);
	die "$text\n" if $verdict ne 'ok';
	return $text;
}

# Sends a verb and its words to tools/lib/host.pl.
sub _host
{
	my (@words) = @_;
	utf8::downgrade($_, 1) || utf8::encode($_) for @words;
	local $SIG{PIPE} = 'IGNORE';
	print $to map { "$_\0" } scalar(@words), @words or die "tools/lib/host.pl has ended\n";
	return _answer();
}

sub _pool { my ($kb) = @_; return "/sys/kernel/mm/hugepages/hugepages-${kb}kB" }

# Sets the pool to exactly this number of persistent pages, in addition to those of others. Dies if
# the kernel does not allocate them, and without `needs_host` where pools must not be changed.
sub set_pool
{
	my ($kb, $pages) = @_;
	die "$cannot_change\n" if $cannot_change;
	return _host('pool', _pool($kb), $pages + HugeInfo::Kernel::pages_of_others($kb));
}

# Does not write the current value, because the kernel rejects every write for gigantic pages.
sub set_overcommit
{
	my ($kb, $pages) = @_;
	my $file = _pool($kb) . '/nr_overcommit_hugepages';
	return if _read($file) == $pages;
	return _host('set', $file, $pages);
}

sub _read { my ($file) = @_; open my $fh, '<', $file or die "$file: $!\n"; local $/; return scalar(<$fh>) =~ s/\n\z//r }

# Sets one pool and empties the others, except for pages of others.
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

# Creates a cgroup of the controller hugetlb, memory or freezer. Returns the version of the
# controller and the directory.
sub make_group
{
	my ($name, $controller) = @_;
	$controller //= 'hugetlb';
	return split / /, _host('group', $controller, $name), 2;
}

# Returns the version of a cgroup and the prefix of its file names. Creates the cgroup and its
# parents if necessary.
sub _group
{
	my ($controller, $name) = @_;
	my ($version, $dir) = make_group($name, $controller);
	return ($version, "$dir/$controller");
}

# Limits a cgroup. kind: fault or reservation; bytes: a number or max.
sub limit_group
{
	my ($name, $kind, $kb, $bytes) = @_;
	my ($version, $prefix) = _group('hugetlb', $name);
	# Use the size format of the kernel's file names, such as 2MB for 2048.
	my $size = $kb >= 1 << 20 ? ($kb >> 20) . 'GB' : $kb >= 1 << 10 ? ($kb >> 10) . 'MB' : "${kb}KB";
	$prefix .= ".$size" . ($kind eq 'reservation' ? '.rsvd' : '');
	return _host('set', "$prefix.max", $bytes) if $version == 2;
	return _host('set', "$prefix.limit_in_bytes", $bytes eq 'max' ? -1 : $bytes);
}

# Limits the memory of a cgroup with almost no swap. In version 1, the limit on memory and swap must
# be higher than the limit on memory. Otherwise it would be hit first, and Linux 6.18 does not count
# that.
sub limit_memory
{
	my ($name, $bytes) = @_;
	my ($version, $prefix) = _group('memory', $name);
	_host('set', $version == 2 ? "$prefix.max" : "$prefix.limit_in_bytes", $bytes);
	my ($file, $limit) = $version == 2 ? ("$prefix.swap.max", 0) : ("$prefix.memsw.limit_in_bytes", $bytes + (4 << 20));
	_host('set', $file, $limit) if -e $file;
	return;
}

# Runs code while this process, and therefore every process that it starts, is in a cgroup.
sub in_group
{
	my ($name, $code, $controller) = @_;
	$controller //= 'hugetlb';
	_host('enter', $controller, $name);
	my $done = eval { $code->(); 1 };
	my $error = $@;
	_host('leave', $controller);
	die $error unless $done;
	return;
}

# Freezes processes of this test's servers with the version 1 freezer. A process that is frozen in
# this way survives every signal.
sub freeze
{
	my ($name, @pids) = @_;
	my (undef, $prefix) = _group('freezer', $name);
	my $state = "$prefix.state";
	my $processes = $prefix =~ s{[^/]*\z}{cgroup.procs}r;
	_host('set', $processes, $_) for @pids;
	_host('set', $state, 'FROZEN');
	HugeInfo::Processes::until_true(sub { _read($state) eq 'FROZEN' }) or die "$state: does not freeze\n";
	return;
}

sub thaw { my ($name) = @_; my (undef, $prefix) = _group('freezer', $name); return _host('set', "$prefix.state", 'THAWED') }

# what: enabled, defrag or shmem_enabled
sub set_thp { my ($what, $mode) = @_; return _host('set', "/sys/kernel/mm/transparent_hugepage/$what", $mode) }

# Sets overcommit mode 2, with a limit in percent of RAM. Rejects low limits, with which the host
# would run out of memory.
sub set_strict_overcommit
{
	my ($ratio) = @_;
	my ($committed, $ram) = map { _read('/proc/meminfo') =~ /^$_:\s+(\d+) kB$/m ? $1 : die "no $_\n" } qw(Committed_AS MemTotal);
	die "$ratio percent is too little for this host\n" if $ratio * $ram / 100 < 4 * ($committed + $ram);
	_remember_commit_limit();
	_host('set', "$VM/overcommit_ratio", $ratio);
	return _host('set', "$VM/overcommit_memory", 2);
}

# Remembers the setting that is not 0, because the kernel sets one to 0 when the other is written.
sub _remember_commit_limit
{
	my ($file) = grep { _read($_) } map { "$VM/overcommit_$_" } qw(kbytes ratio);
	return $file && _host('remember', $file);
}

# Creates the last file in sysctl.d, which sets the pool, with pages of others, with this number of
# identical lines. undef removes the file, and undoes changes by commands of remedies.
sub set_boot_pages
{
	my ($pages, $lines) = @_;
	return _host('undo', '/etc/') unless defined $pages;
	$pages += HugeInfo::Kernel::pages_of_others(HugeInfo::Kernel::default_page_kb());
	return _host('set', '/etc/sysctl.d/zz-pg_hugeinfo-test.conf', join "\n", ("vm.nr_hugepages = $pages") x ($lines // 1));
}

sub add_swap { my ($mb) = @_; return _host('swap', $mb) }

# Mounts hugetlbfs with these options, for this test's user. Returns the directory.
sub mount_hugetlbfs
{
	my ($kb, $options) = @_;
	my $uid = getpwnam HugeInfo::User::name();
	return _host('mount', 'hugetlbfs', join ',', "pagesize=${kb}K", 'mode=0700', "uid=$uid", $options || ());
}

# Moves private memory of one of this test's processes to swap.
sub page_out { my ($pid) = @_; return _host('page_out', $pid) }

sub set_oom_score_adj { my ($pid, $value) = @_; return _host('set', "/proc/$pid/oom_score_adj", $value) }

# Starts the server of a data directory in a mount namespace in which /proc hides processes of other
# users.
sub start_hidden
{
	my ($data, $log) = @_;
	return start_with_mounts($log, 'mount -t proc -o hidepid=2 proc /proc', qw(postgres -D), $data);
}

# Starts a command as this test's user, in a mount namespace that root has prepared with shell
# commands. The log is in the directory where the command runs. Returns the PID.
sub start_with_mounts
{
	my ($log, $prepare, @command) = @_;
	my ($uid, $gid) = (getpwnam HugeInfo::User::name())[ 2, 3 ];
	return _host('start', $log, qw(unshare --mount --propagation private sh -c), "$prepare && exec \"\$@\"", 'sh',
		'setpriv', "--reuid=$uid", "--regid=$gid", qw(--init-groups --inh-caps=-all), @command);
}

# Runs a line of a remedy as root. The changes are undone at the end.
sub type_in { my ($line) = @_; return _host('type', $line) }

# Leaves the SKIP block with a message. Fails if tests must not be skipped.
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
