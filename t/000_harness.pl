# The tests put the host back, however they end.
use strict;
use warnings;

use Fcntl qw(:flock O_CREAT O_RDONLY);
use FindBin;
use File::Temp qw(tempdir);
use IPC::Open2 qw(open2);
use POSIX qw(WNOHANG);
use Test::More;

use lib "$FindBin::RealBin/lib";
use HugeInfo::Kernel;

if ($> != 0)
{
	my $why = 'only root can change the pools and cgroups of the host';
	plan skip_all => $why unless $ENV{HUGEINFO_TEST_REQUIRE_ALL};
	fail("not skipped: $why");
	done_testing;
	exit;
}

sub contents { my ($file) = @_; open my $fh, '<', $file or die "$file: $!\n"; local $/; return scalar <$fh> }

# What the host looks like, as far as a test may touch it. Free and reserved pages come and go by
# themselves.
sub host
{
	my %state = (pools => pools(), groups => [ glob '/sys/fs/cgroup{,/*}/pg_hugeinfo_test_*' ]);
	delete @$_{qw(free reserved)} for values %{ $state{pools} };
	$state{nodes} = { map { $_ => contents($_) } glob '/sys/devices/system/node/node*/hugepages/*/nr_hugepages' };
	$state{controllers} = { map { $_ => contents($_) } grep { -e } glob '/sys/fs/cgroup{,/*}/cgroup.subtree_control' };
	my @settings = ('/sys/kernel/mm/transparent_hugepage/{enabled,shmem_enabled}', '/proc/sys/vm/overcommit_{memory,ratio}', '/proc/swaps');
	$state{settings} = { map { $_ => contents($_) } grep { -e } map { glob } @settings };
	$state{files} = [ glob '/etc/sysctl.d/* /var/tmp/pg_hugeinfo_*' ];
	# mounts of others may change meanwhile
	$state{mounts} = [ grep { /pg_hugeinfo/ } split /\n/, contents('/proc/mounts') ];
	return \%state;
}

# The same while nobody else's run has changed it.
sub host_at_rest
{
	sysopen my $lock, '/run/lock/pg_hugeinfo-host.lock', O_RDONLY | O_CREAT or die "lock: $!\n";
	flock $lock, LOCK_EX or die "lock: $!\n";
	return host();
}

for my $ending ('KILL', 'INT', 'TERM', 'KILL of the guardian, too,')
{
	my $before = host_at_rest();
	my $test = open2(my $from, undef, $^X, "$FindBin::RealBin/lib/victim.pl");
	# PostgreSQL's modules may have something to note before
	my ($ready, $no_swap) = '#';
	while ($ready =~ /^#/)
	{
		$ready = <$from> // '';
		($no_swap) = $ready =~ /^# (.*swap.*)/ unless $no_swap;
	}
	my ($server, $dir) = $ready =~ /^ready (\d+) (.*)$/
	  or BAIL_OUT('the victim does not come up: ' . join '', $ready, <$from>);

	is(pool(default_page_kb())->{total}, 65, "$ending: the pool was changed");
	isnt(readlink("/proc/$server/exe"), undef, "$ending: a server was running");
	is(HugeInfo::Kernel::segment($server)->{page_bytes}, 1024 * default_page_kb(), "$ending: on huge pages");
	isnt(scalar(@{ host()->{groups} }), scalar(@{ $before->{groups} }), "$ending: a cgroup was made");
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
	is("@same", '', "$ending: so was every setting");
	isnt("@{ $changed->{files} }", "@{ $before->{files} }", "$ending: and files were made");
	sysopen my $lock, '/run/lock/pg_hugeinfo-host.lock', O_RDONLY or die "lock: $!\n";
	ok(!flock($lock, LOCK_EX | LOCK_NB), "$ending: the host was locked");
	close $lock;

	my ($signal, $and_guardian) = $ending =~ /^(\w+)( of)?/;
	my @guardians = grep { readlink("/proc/$_/exe") eq readlink("/proc/$test/exe") } split ' ', contents("/proc/$test/task/$test/children");
	is(scalar(@guardians), 1, "$ending: there was a guardian");
	kill $signal => @guardians if $and_guardian;
	kill $signal => $test;
	waitpid $test, 0;
	# the guardian holds the other end until the janitor is done, which else keeps the lock
	my @rest = <$from>;

	is_deeply(host_at_rest(), $before, "$ending: the host is as before");
	# init may be slow to bury it: a dead process has no program
	is(readlink("/proc/$server/exe"), undef, "$ending: the server has ended");
	ok(!-e $dir, "$ending: its directory is gone");
	my @shm = grep { (split)[4] eq $server } grep { /\d/ } split /\n/, contents('/proc/sysvipc/shm');
	is("@shm", '', "$ending: no System V segment is left behind");
}

# As of programs, the kernel tells no symbolic link.
{
	my $place = tempdir(DIR => '/var/tmp', CLEANUP => 1);
	chmod 0755, $place;
	symlink '.', "$place/link" or die "link: $!\n";
	local $ENV{TMPDIR} = "$place/link";
	my $janitor = open2(my $from, my $to, "$FindBin::RealBin/../scripts/janitor");
	chomp(my $dir = <$from>);
	mkdir "$dir/data" or die "$dir/data: $!\n";
	my $program = fork // die "fork: $!\n";
	exec qw(env -C), "$dir/data", qw(sleep 600) or die "env: $!\n" if !$program;
	close $to;
	waitpid $janitor, 0;
	is($?, 0, 'TMPDIR is a symbolic link: all is undone');
	ok(!-e $dir, 'TMPDIR is a symbolic link: the directory is gone');
	is(waitpid($program, WNOHANG), $program, 'TMPDIR is a symbolic link: so is a program that worked there');
	kill KILL => $program;
}

done_testing;
