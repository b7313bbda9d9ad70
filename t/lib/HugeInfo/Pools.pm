# The guardian's hands on the huge page pools: set them, remember what they were, put them back.
package HugeInfo::Pools;

use strict;
use warnings;

use Time::HiRes qw(sleep);

use HugeInfo::KernelFile;

my $GLOBAL = '/sys/kernel/mm/hugepages';

# file => contents before the first change
my %original;

sub _read
{
	my ($file) = @_;
	open my $fh, '<', $file or die "$file: $!\n";
	my $value = <$fh>;
	die "$file: empty\n" unless defined $value;
	chomp $value;
	return $value;
}

# Persistent pages. nr_hugepages shows surplus pages too, but what is written to it counts
# persistent ones only.
sub _persistent
{
	my ($dir) = @_;
	return _read("$dir/nr_hugepages") - _read("$dir/surplus_hugepages");
}

# Where the pages of a size are counted, node by node: writing the sum to the global file would
# spread them evenly.
sub _nodes
{
	my ($kb) = @_;
	my @nodes = glob "/sys/devices/system/node/node*/hugepages/hugepages-${kb}kB";
	return @nodes ? @nodes : ("$GLOBAL/hugepages-${kb}kB");
}

# Gives free memory back in large pieces: a page of 1 GB needs a whole one, and a single object of
# the kernel's in it is enough to deny it. Slabs whose objects have all gone are kept until they are
# asked for.
sub _make_room
{
	for my $file ('/proc/sys/vm/drop_caches', glob '/sys/kernel/slab/*/shrink')
	{
		eval { write_kernel($file, $file =~ /shrink$/ ? 1 : 3) };
	}
	eval { write_kernel('/proc/sys/vm/compact_memory', 1) };
	return;
}

# The kernel gives fewer pages than asked without an error: ask again after making room.
sub _reach
{
	my ($dir, $pages) = @_;
	for my $attempt (1 .. 60)
	{
		write_kernel("$dir/nr_hugepages", $pages);
		return if _persistent($dir) == $pages;
		_make_room();
		sleep 0.25;
	}
	die sprintf "%s/nr_hugepages: asked for %d pages, the kernel gives %d\n", $dir, $pages, _persistent($dir);
}

# Before somebody else changes them.
sub remember
{
	my ($kb) = @_;
	$original{$_} //= _persistent($_) for _nodes($kb);
	return;
}

sub set_pages
{
	my ($kb, $pages) = @_;
	remember($kb);
	_reach("$GLOBAL/hugepages-${kb}kB", $pages);
	return;
}

sub set_overcommit
{
	my ($kb, $pages) = @_;
	my $file = "$GLOBAL/hugepages-${kb}kB/nr_overcommit_hugepages";
	my $now = _read($file);
	# gigantic pages cannot be overcommitted: the kernel refuses even to write the 0 that is there
	return if $now == $pages;
	$original{$file} //= $now;
	write_kernel($file, $pages);
	return;
}

# All of it, whatever fails on the way; the failures are returned.
sub restore
{
	my @failures;
	for my $where (sort keys %original)
	{
		eval { -d $where ? _reach($where, $original{$where}) : write_kernel($where, $original{$where}) };
		push @failures, $@ if $@;
	}
	%original = ();
	return @failures;
}

1;
