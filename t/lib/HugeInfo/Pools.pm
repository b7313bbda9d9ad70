# The guardian's hands on the huge page pools, by the functions that the scripts have for them.
package HugeInfo::Pools;

use strict;
use warnings;

use HugeInfo::Janitor;
use HugeInfo::KernelFile;

my %told;

sub _pool { my ($kb) = @_; return "/sys/kernel/mm/hugepages/hugepages-${kb}kB" }

# What a function of scripts/lib/pages.bash says; dies with that if it fails.
sub _call
{
	my (@call) = @_;
	open my $fh, '-|', 'bash', '-c', '. "$0" && "$@" 2>&1', "$HugeInfo::Janitor::SCRIPTS/lib/pages.bash", @call or die "bash: $!\n";
	chomp(my @lines = <$fh>);
	close $fh or die join('; ', @lines), "\n";
	return @lines;
}

# Before somebody else changes them.
sub remember
{
	my ($kb) = @_;
	return if $told{$kb}++;
	HugeInfo::Janitor::undo(split / /) for _call('pool_as_it_is', _pool($kb));
	return;
}

# Gigantic pages have none: the kernel refuses even to write what is there.
sub remember_overcommit
{
	my ($kb) = @_;
	my $file = _pool($kb) . '/nr_overcommit_hugepages';
	chomp(my $now = slurp_kernel($file));
	return unless eval { write_kernel($file, $now); 1 };
	HugeInfo::Janitor::undo('put_back', $file, $now) unless $told{$file}++;
	return;
}

sub set_pages
{
	my ($kb, $pages) = @_;
	remember($kb);
	_call('pool_set', _pool($kb), $pages);
	return;
}

sub set_overcommit
{
	my ($kb, $pages) = @_;
	my $file = _pool($kb) . '/nr_overcommit_hugepages';
	chomp(my $now = slurp_kernel($file));
	# gigantic pages cannot be overcommitted: the kernel refuses even to write the 0 that is there
	return if $now == $pages;
	HugeInfo::Janitor::undo('put_back', $file, $now) unless $told{$file}++;
	write_kernel($file, $pages);
	return;
}

1;
