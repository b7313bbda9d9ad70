#!/usr/bin/perl
# System V segments and shared anonymous memory are on the same internal file system of the kernel,
# and the inode of a System V segment is its ID (ipc/shm.c newseg). Therefore, a server's small
# System V segment can have the device and inode of its main segment: by chance shortly after boot,
# here on purpose.
use lib '/guest/lib';
use Guest;

my ($own_inode, $shim_inode);

# Reads both mappings of the postmaster.
sub look
{
	my %inode;
	my $own;
	for (split /\n/, slurp('/proc/' . postmaster() . '/maps'))
	{
		my ($from, $to, $inode, $path) = /^([0-9a-f]+)-([0-9a-f]+) ...s \S+ \S+ (\d+) +(.*)$/ or next;
		$inode{zero} = $inode, $own = hex($to) - hex($from) if $path =~ m{^/dev/zero};
		$inode{shim} = $inode if $path =~ m{^/SYSV};
	}
	my $status = status();
	same($status->{segment_bytes}, $own, "segment_bytes, with inodes $inode{zero} and $inode{shim}");
	my $kinds = value(q(SELECT string_agg(kind || ' ' || size_bytes, ', ' ORDER BY kind) FROM hugeinfo_postmaster_mappings
		WHERE kind IN ('main segment', 'sysv shim')));
	same($kinds, "main segment $own, sysv shim 4096", 'both mappings, each by its kind');
	return @inode{qw(zero shim)};
}

situation('restarts shortly after boot');
my $met = 0;
for (1 .. 8) { start(); my ($inode, $id) = look(); $met += $inode == $id }
told("the numbers met in $met of 8");

# A start on processor 0 uses two inodes of that processor's batch and one ID. ipcmk on processor 1
# uses an ID, and no inode of that batch.
situation('on purpose');
placed(before => [qw(taskset -c 0)]);
my $are_same;
for (1 .. 20)
{
	start();
	my ($inode, $id) = look();
	last if $are_same = $inode == $id;
	my $missing = $inode + 2 - ($id + 1);
	stop();
	# IDs are no longer behind: the inodes have to overtake them
	system('taskset -c 0 ipcmk -M 1 >/dev/null; ipcrm -a') if $missing <= 0;
	system('taskset -c 1 ipcmk -M 1 >/dev/null') for 1 .. $missing;
}
true($are_same, 'device and inode are the same');
compare() if $are_same;

finished();
