# Files of the kernel, as the guardian reads and writes them.
package HugeInfo::KernelFile;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(slurp_kernel write_kernel);

sub slurp_kernel
{
	my ($file) = @_;
	open my $fh, '<', $file or die "$file: $!\n";
	local $/;
	return scalar <$fh>;
}

sub write_kernel
{
	my ($file, $value) = @_;
	open my $fh, '>', $file or die "$file: $!\n";
	# the kernel reports at write time: unbuffered, or the error is lost in close
	defined syswrite $fh, "$value\n" or die "$file: cannot write $value: $!\n";
	return;
}

1;
