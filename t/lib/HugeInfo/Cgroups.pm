# The guardian's hands on the hugetlb controller: groups with limits, and this test's process in and
# out of them.
#
# Version 2 where the kernel offers it, else version 1. Mounting the controller as version 1 takes
# it away from version 2, and it may stay so until a reboot: that is done only where version 2 has
# nothing to lose.
package HugeInfo::Cgroups;

use strict;
use warnings;

use File::Temp ();

use HugeInfo::Janitor;
use HugeInfo::KernelFile;

my ($version, $mount, $top, $came_from);

sub _offers_hugetlb
{
	my ($dir, $file) = @_;
	return grep { $_ eq 'hugetlb' } split ' ', slurp_kernel("$dir/$file");
}

# 2048 => 2MB, as the kernel names its files
sub _size_name
{
	my ($kb) = @_;
	return $kb >= 1 << 20 ? ($kb >> 20) . 'GB' : $kb >= 1 << 10 ? ($kb >> 10) . 'MB' : "${kb}KB";
}

sub _find
{
	return if $top;
	for (split /\n/, slurp_kernel('/proc/mounts'))
	{
		my (undef, $dir, $type, $options) = split / /;
		if ($type eq 'cgroup2' && _offers_hugetlb($dir, 'cgroup.controllers'))
		{
			($version, $mount) = (2, $dir);
			last;
		}
		($version, $mount) = (1, $dir) if $type eq 'cgroup' && grep { $_ eq 'hugetlb' } split /,/, $options;
	}
	if (!$version)
	{
		slurp_kernel('/proc/cgroups') =~ /^hugetlb\s/m or die "this kernel has no hugetlb cgroup controller\n";
		$mount = File::Temp::tempdir('pg_hugeinfo_cgroup_XXXX', DIR => '/run');
		HugeInfo::Janitor::undo('unmount', $mount);
		system('mount', '-t', 'cgroup', '-o', 'hugetlb', 'none', $mount) == 0 or die "cannot mount the hugetlb controller\n";
		$version = 1;
	}
	if ($version == 2 && !_offers_hugetlb($mount, 'cgroup.subtree_control'))
	{
		HugeInfo::Janitor::undo('put_back', "$mount/cgroup.subtree_control", '-hugetlb');
		write_kernel("$mount/cgroup.subtree_control", '+hugetlb');
	}
	$top = "$mount/pg_hugeinfo_test_$$";
	_make($top);
	return;
}

sub _make
{
	my ($dir) = @_;
	HugeInfo::Janitor::undo('remove_group', $dir);
	mkdir $dir or die "$dir: $!\n";
	return;
}

# Make a group, its parents first; a limit on a parent holds for it too.
sub group
{
	my ($name) = @_;
	_find();
	my $dir = $top;
	for my $level (split m{/}, $name)
	{
		write_kernel("$dir/cgroup.subtree_control", '+hugetlb')
		  if $version == 2 && !_offers_hugetlb($dir, 'cgroup.subtree_control');
		$dir .= "/$level";
		_make($dir) unless -d $dir;
	}
	return "$version $dir";
}

# kind: fault or reservation
sub limit
{
	my ($name, $kind, $kb, $bytes) = @_;
	my $prefix = "$top/$name/hugetlb." . _size_name($kb) . ($kind eq 'reservation' ? '.rsvd' : '');
	write_kernel($version == 2 ? "$prefix.max" : "$prefix.limit_in_bytes",
		$bytes eq 'max' && $version == 1 ? -1 : $bytes);
	return;
}

sub _path_of
{
	my ($pid) = @_;
	my $controllers = $version == 2 ? qr/0::/ : qr/\d+:[^:]*\bhugetlb\b[^:]*:/;
	slurp_kernel("/proc/$pid/cgroup") =~ m{^$controllers(/.*)$}m or die "process $pid is in no hugetlb cgroup\n";
	return $mount . $1;
}

sub enter
{
	my ($pid, $name) = @_;
	if (!defined $came_from)
	{
		$came_from = _path_of($pid);
		HugeInfo::Janitor::undo('move_back', $pid, $came_from);
	}
	write_kernel("$top/$name/cgroup.procs", $pid);
	return;
}

sub leave
{
	my ($pid) = @_;
	return defined $came_from && write_kernel("$came_from/cgroup.procs", $pid);
}

1;
