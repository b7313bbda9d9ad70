# The guardian's hands on the rest of the host: modes of transparent huge pages, overcommit, swap,
# what the next boot is to set up, and what becomes of the memory of the test's own servers.
package HugeInfo::Machine;

use strict;
use warnings;
# addresses have more than 32 bits
no warnings 'portable';

use Fcntl qw(O_CREAT O_EXCL O_WRONLY);
use File::Temp ();
use POSIX ();

use HugeInfo::Janitor;
use HugeInfo::KernelFile;
use HugeInfo::Pools;

my $THP = '/sys/kernel/mm/transparent_hugepage';
my $VM = '/proc/sys/vm';
# The last of its kind, and nobody else's.
my $BOOT_FILE = '/etc/sysctl.d/zz-pg_hugeinfo-test.conf';

my %told;

# What has to be written for it to be as it is: of several modes the one in brackets.
sub _contents
{
	my ($file) = @_;
	my $text = slurp_kernel($file);
	chomp $text;
	return $text =~ /\[(.*)\]/ ? $1 : $text;
}

sub _set
{
	my ($file, $value) = @_;
	_remember($file);
	return write_kernel($file, $value);
}

# Before it is changed.
sub _remember
{
	my ($file) = @_;
	HugeInfo::Janitor::undo('put_back', $file, _contents($file)) unless $told{$file}++;
	return;
}

# what: enabled, defrag or shmem_enabled
sub set_thp { my ($what, $mode) = @_; return _set("$THP/$what", $mode) }

# Overcommit mode 2, with a limit of so many percent of RAM. A low one would leave the host without
# memory for anything.
sub set_strict_overcommit
{
	my ($ratio) = @_;
	my ($committed, $ram) = map { slurp_kernel('/proc/meminfo') =~ /^$_:\s+(\d+) kB$/m ? $1 : die "no $_\n" } qw(Committed_AS MemTotal);
	die "$ratio percent is too little for this host\n" if $ratio * $ram / 100 < 4 * ($committed + $ram);
	_set("$VM/overcommit_ratio", $ratio);
	_set("$VM/overcommit_memory", 2);
	return;
}

# Before somebody else changes it. The kernel sets one to 0 when the other is written.
sub remember_commit_limit
{
	my ($file) = grep { _contents($_) } map { "$VM/overcommit_$_" } qw(kbytes ratio);
	_remember($file) if $file;
	return;
}

# A file that tests make.
sub _own
{
	my ($file) = @_;
	if (!$told{$file}++)
	{
		die "$file: is there already\n" if -e $file;
		HugeInfo::Janitor::undo('rm', '-f', $file);
	}
	return;
}

# A file of sysctl's that asks for so many huge pages at the next boot, in so many lines; undef for
# none.
sub set_boot_pages
{
	my ($pages, $lines) = @_;
	# What a run has left that ended with the power.
	unlink $BOOT_FILE unless $told{$BOOT_FILE};
	_own($BOOT_FILE);
	if (defined $pages)
	{
		open my $fh, '>', $BOOT_FILE or die "$BOOT_FILE: $!\n";
		print $fh "vm.nr_hugepages = $pages\n" for 1 .. $lines // 1;
		close $fh or die "$BOOT_FILE: $!\n";
		return;
	}
	for my $file (grep { m{^/etc/} && -e } keys %told)
	{
		unlink $file or die "$file: $!\n";
	}
	return;
}

# Some file systems have no swap files: overlayfs, btrfs, those in memory.
sub add_swap
{
	my ($mb) = @_;
	my $swap_file = "/var/tmp/pg_hugeinfo_swap_$$";
	HugeInfo::Janitor::undo('remove_swap', $swap_file);
	sysopen my $fh, $swap_file, O_WRONLY | O_CREAT | O_EXCL, 0600 or die "$swap_file: $!\n";
	# without holes, of which swap can have none
	my $zeros = "\0" x (1 << 20);
	for (1 .. $mb) { (syswrite($fh, $zeros) // 0) == 1 << 20 or die "$swap_file: $!\n" }
	close $fh;
	for (qw(mkswap swapon))
	{
		my $said = qx(LC_ALL=C $_ $swap_file 2>&1 >/dev/null);
		die "no swap file here: $said" if $?;
	}
	return;
}

sub mount_hugetlbfs
{
	my ($user, $kb, $options) = @_;
	my $dir = File::Temp::tempdir('pg_hugeinfo_hugetlbfs_XXXXXX', DIR => '/run');
	HugeInfo::Janitor::undo('unmount', $dir);
	$options = join ',', "pagesize=${kb}K", 'mode=0700', 'uid=' . getpwnam($user), $options || ();
	system('mount', '-t', 'hugetlbfs', '-o', $options, 'none', $dir) == 0 or die "cannot mount hugetlbfs with $options\n";
	return $dir;
}

# Private memory of a process goes to swap (process_madvise(2), Linux 5.10).
sub page_out
{
	my ($pid) = @_;
	my ($SYS_pidfd_open, $SYS_process_madvise, $MADV_PAGEOUT) = (434, 440, 21);
	my $process = syscall $SYS_pidfd_open, $pid + 0, 0;
	die "pidfd_open: $!\n" if $process < 0;
	for (split /\n/, slurp_kernel("/proc/$pid/maps"))
	{
		next unless /^([0-9a-f]+)-([0-9a-f]+) rw.p \S+ \S+ 0\s*(?:\[heap\])?$/;
		my $range = pack 'QQ', hex $1, hex($2) - hex($1);
		syscall($SYS_process_madvise, $process, $range, 1, $MADV_PAGEOUT, 0) >= 0 or die "process_madvise: $!\n";
	}
	POSIX::close($process);
	return;
}

sub set_oom_score_adj { my ($pid, $value) = @_; return write_kernel("/proc/$pid/oom_score_adj", $value) }

# A server of the test's, in a mount namespace of its own where /proc hides the processes of other
# users. It ends like the test's other servers.
sub start_hidden
{
	my ($user, $data, $log) = @_;
	my ($uid, $gid) = (getpwnam $user)[ 2, 3 ];
	my $pid = fork // die "fork: $!\n";
	return $pid if $pid;
	$SIG{$_} = 'DEFAULT' for qw(INT TERM HUP QUIT PIPE);
	open $_, '+<', '/dev/null' or POSIX::_exit(1) for \*STDIN, \*STDOUT, \*STDERR;
	exec qw(unshare --mount --propagation private sh -c), 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', 'sh',
	  'setpriv', "--reuid=$uid", "--regid=$gid", qw(--init-groups --inh-caps=-all), 'sh', '-c', 'exec postgres -D "$0" >>"$1" 2>&1', $data, $log
	  or POSIX::_exit(1);
}

# A line of a remedy, typed as it stands. Only those whose effects are put back.
sub type_in
{
	my ($line) = @_;
	# One word, whatever is in it.
	my $top = qr{/[\w./-]*/pg_hugeinfo_test_$$};
	my $limit = qr{hugetlb\.\w+\.[\w.]+};
	my $group = qr{$top/[a-z/]+/$limit|'$top/(?:[^']|'\\'')+/$limit'};
	my $file = qr{(/etc/sysctl\.d/[\w-]+\.conf)};
	my $at_boot = qr{vm\.nr_hugepages = \d+};
	if ($line =~ m{^\(umask 022 && (?:mkdir -p /etc/sysctl\.d && )?echo '$at_boot' >> $file\)$}) { _own($1) }
	elsif ($line =~ m{^sed -i 's/\^vm\\\.nr_hugepages = \d+\$/$at_boot/' $file$})
	{
		die "nobody would type that: $line\n" unless $told{$1};
	}
	elsif ($line =~ m{^sysctl -w vm\.nr_hugepages=\d+$})
	{
		slurp_kernel('/proc/meminfo') =~ /^Hugepagesize:\s+(\d+) kB$/m or die "no huge pages\n";
		HugeInfo::Pools::remember($1);
	}
	elsif ($line =~ m{^echo \d+ > /sys/kernel/mm/hugepages/hugepages-(\d+)kB/nr_hugepages$}) { HugeInfo::Pools::remember($1) }
	elsif ($line =~ m{^echo \w+ > (\Q$THP\E/\w+)$}) { _remember($1) }
	elsif ($line !~ m{^echo \d+ > $group$} && $line ne 'echo 1 > /proc/sys/vm/compact_memory')
	{
		die "nobody would type that: $line\n";
	}
	# sysctl says what it has set
	system('sh', '-c', "exec >/dev/null; $line") == 0 or die "it fails: $line\n";
	return;
}

1;
