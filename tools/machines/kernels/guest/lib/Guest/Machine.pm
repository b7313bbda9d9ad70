# The guest's kernel, and functions that change it. No change is undone, because a guest ends with
# its situation. HugeInfo::Kernel has the functions that other tests also use.
package Guest::Machine;

use strict;
use warnings;

use Exporter 'import';
use POSIX ();

use HugeInfo::Kernel;

our @EXPORT = qw(slurp put kernel_version vmstat nodes nodes_with_memory node_pool node_memory_kb node_pages set_pool
  set_node_pool set_overcommit mount_groups make_group memory_free_mb);

# Returns the contents without the last line feed, or undef if there is no such file.
sub slurp
{
	my ($file) = @_;
	open my $fh, '<', $file or return '';
	local $/;
	my $text = <$fh> // '';
	chomp $text;
	return $text =~ s/\n\z//r;
}

# Dies if the kernel rejects the value.
sub put
{
	my ($file, $value) = @_;
	open my $fh, '>', $file or die "$file: $!\n";
	defined(syswrite $fh, $value) or die "$file: cannot write $value: $!\n";
	close $fh or die "$file: $!\n";
	return;
}

# 6.12 is 6012
sub kernel_version { my ($major, $minor) = (POSIX::uname())[2] =~ /^(\d+)\.(\d+)/; return $major * 1000 + $minor }

sub vmstat { my ($name) = @_; return slurp('/proc/vmstat') =~ /^\Q$name\E (\d+)$/m ? $1 : undef }

sub memory_free_mb { return meminfo_kb('MemFree') / 1024 }

# --- nodes

my $NODES = '/sys/devices/system/node';

sub nodes { return sort { $a <=> $b } map { /node(\d+)$/ } glob "$NODES/node[0-9]*" }

sub node_memory_kb { my ($node) = @_; return slurp("$NODES/node$node/meminfo") =~ /MemTotal:\s+(\d+) kB/ ? $1 : undef }

sub nodes_with_memory { return grep { node_memory_kb($_) } nodes() }

# Returns undef if a node has no pools.
sub node_pool
{
	my ($node, $kb) = @_;
	my $dir = "$NODES/node$node/hugepages/hugepages-${kb}kB";
	return unless -d $dir;
	my %file = (total => 'nr', free => 'free', surplus => 'surplus');
	return { map { $_ => slurp("$dir/$file{$_}_hugepages") + 0 } keys %file };
}

# Pages of these mappings that a process has faulted in, by node.
sub node_pages
{
	my ($pid, $starts) = @_;
	my %is_wanted = map { $_ => 1 } @$starts;
	my %pages;
	for (split /\n/, slurp("/proc/$pid/numa_maps"))
	{
		my ($start) = /^([0-9a-f]+) / or next;
		next unless $is_wanted{$start};
		while (/ N(\d+)=(\d+)/g) { $pages{$1} += $2 }
	}
	return \%pages;
}

# --- pools: the pages that the kernel allocated

sub set_pool { my ($kb, $pages) = @_; return _set("/sys/kernel/mm/hugepages/hugepages-${kb}kB/nr_hugepages", $pages) }

sub set_node_pool
{
	my ($node, $kb, $pages) = @_;
	return _set("$NODES/node$node/hugepages/hugepages-${kb}kB/nr_hugepages", $pages);
}

sub _set { my ($file, $pages) = @_; put($file, $pages); return slurp($file) + 0 }

sub set_overcommit { my ($kb, $pages) = @_; return put("/sys/kernel/mm/hugepages/hugepages-${kb}kB/nr_overcommit_hugepages", $pages) }

# --- cgroups

my $GROUPS = '/sys/fs/cgroup';

# Mounts version 2 like systemd, or one hierarchy of version 1. Returns the mount point.
sub mount_groups
{
	my ($version, $options, @controllers) = @_;
	if ($version == 2)
	{
		system('mount', '-t', 'cgroup2', ($options ? ('-o', $options) : ()), 'none', $GROUPS) == 0 or die "no cgroup2\n";
		put("$GROUPS/cgroup.subtree_control", "+$_") for @controllers;
		return $GROUPS;
	}
	my $dir = "/run/cgroup-@controllers";
	mkdir $dir or die "$dir: $!\n";
	system('mount', '-t', 'cgroup', '-o', join(',', @controllers), 'none', $dir) == 0 or die "no cgroup version 1\n";
	return $dir;
}

sub make_group { my ($dir) = @_; mkdir $dir or die "$dir: $!\n"; return $dir }

1;
