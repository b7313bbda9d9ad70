# The guardian's hands on the controllers hugetlb, memory and freezer: groups with limits, this
# test's process in and out of them, and processes frozen in them.
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

# The kernel's number of the first namespace.
my $INITIAL = 'cgroup:[4026531835]';

# By controller: version of its interface, mount, our group in it, and where this test comes from.
my %hierarchy;

sub _offers
{
	my ($controller, $dir, $file) = @_;
	return grep { $_ eq $controller } split ' ', slurp_kernel("$dir/$file");
}

# 2048 => 2MB, as the kernel names its files
sub _size_name
{
	my ($kb) = @_;
	return $kb >= 1 << 20 ? ($kb >> 20) . 'GB' : $kb >= 1 << 10 ? ($kb >> 10) . 'MB' : "${kb}KB";
}

sub _mounted
{
	my ($controller) = @_;
	my @older;
	for (split /\n/, slurp_kernel('/proc/mounts'))
	{
		my (undef, $dir, $type, $options) = split / /;
		return (2, $dir) if $type eq 'cgroup2' && _offers($controller, $dir, 'cgroup.controllers');
		@older = (1, $dir) if $type eq 'cgroup' && grep { $_ eq $controller } split /,/, $options;
	}
	return @older;
}

sub _find
{
	my ($controller) = @_;
	return $hierarchy{$controller} if $hierarchy{$controller};
	my ($version, $mount) = _mounted($controller);
	if (!$version)
	{
		slurp_kernel('/proc/cgroups') =~ /^$controller\s/m or die "this kernel has no $controller cgroup controller\n";
		# from a container it would be taken away from the whole host
		die "the $controller controller is not offered to this container\n" if (readlink('/proc/self/ns/cgroup') // $INITIAL) ne $INITIAL;
		$mount = File::Temp::tempdir('pg_hugeinfo_cgroup_XXXX', DIR => '/run');
		HugeInfo::Janitor::undo('unmount', $mount);
		system('mount', '-t', 'cgroup', '-o', $controller, 'none', $mount) == 0
		  or die "cannot mount the $controller controller\n";
		$version = 1;
	}
	if ($version == 2 && !_offers($controller, $mount, 'cgroup.subtree_control'))
	{
		HugeInfo::Janitor::undo('withdraw_controller', $mount, $controller);
		write_kernel("$mount/cgroup.subtree_control", "+$controller");
	}
	my $top = "$mount/pg_hugeinfo_test_$$";
	_make($top) unless -d $top;
	return $hierarchy{$controller} = { version => $version, mount => $mount, top => $top };
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
	my ($controller, $name) = @_;
	my $found = _find($controller);
	my $dir = $found->{top};
	for my $level (split m{/}, $name)
	{
		write_kernel("$dir/cgroup.subtree_control", "+$controller")
		  if $found->{version} == 2 && !_offers($controller, $dir, 'cgroup.subtree_control');
		$dir .= "/$level";
		_make($dir) unless -d $dir;
	}
	return "$found->{version} $dir";
}

# kind: fault or reservation
sub limit
{
	my ($name, $kind, $kb, $bytes) = @_;
	my ($version, $top) = @{ $hierarchy{hugetlb} }{qw(version top)};
	my $prefix = "$top/$name/hugetlb." . _size_name($kb) . ($kind eq 'reservation' ? '.rsvd' : '');
	write_kernel($version == 2 ? "$prefix.max" : "$prefix.limit_in_bytes",
		$bytes eq 'max' && $version == 1 ? -1 : $bytes);
	return;
}

# With next to no way out to swap. A limit on both that is not higher would be hit first, and Linux
# 6.18 does not count that.
sub limit_memory
{
	my ($name, $bytes) = @_;
	my ($version, $top) = @{ $hierarchy{memory} }{qw(version top)};
	my $prefix = "$top/$name/memory";
	write_kernel($version == 2 ? "$prefix.max" : "$prefix.limit_in_bytes", $bytes);
	my ($file, $limit) = $version == 2 ? ("$prefix.swap.max", 0) : ("$prefix.memsw.limit_in_bytes", $bytes + (4 << 20));
	write_kernel($file, $limit) if -e $file;
	return;
}

# Version 1 alone: a frozen process does not die there, whatever signal it gets.
sub freeze
{
	my ($name, @pids) = @_;
	my $dir = "$hierarchy{freezer}{top}/$name";
	HugeInfo::Janitor::undo('put_back', "$dir/freezer.state", 'THAWED');
	write_kernel("$dir/cgroup.procs", $_) for @pids;
	write_kernel("$dir/freezer.state", 'FROZEN');
	for (1 .. 1000)
	{
		return if slurp_kernel("$dir/freezer.state") eq "FROZEN\n";
		select undef, undef, undef, 0.01;
	}
	die "$dir does not freeze\n";
}

sub thaw { my ($name) = @_; return write_kernel("$hierarchy{freezer}{top}/$name/freezer.state", 'THAWED') }

sub _path_of
{
	my ($controller, $pid) = @_;
	my ($version, $mount) = @{ $hierarchy{$controller} }{qw(version mount)};
	my $controllers = $version == 2 ? qr/0::/ : qr/\d+:[^:]*\b$controller\b[^:]*:/;
	slurp_kernel("/proc/$pid/cgroup") =~ m{^$controllers(/.*)$}m or die "process $pid is in no $controller cgroup\n";
	return $mount . $1;
}

sub enter
{
	my ($pid, $controller, $name) = @_;
	my $found = $hierarchy{$controller};
	if (!defined $found->{came_from})
	{
		$found->{came_from} = _path_of($controller, $pid);
		HugeInfo::Janitor::undo('move_back', $pid, $found->{came_from});
	}
	write_kernel("$found->{top}/$name/cgroup.procs", $pid);
	return;
}

sub leave
{
	my ($pid, $controller) = @_;
	my $came_from = $hierarchy{$controller}{came_from};
	return defined $came_from && write_kernel("$came_from/cgroup.procs", $pid);
}

1;
