# Finds programs that only tests use, in PATH or in the directory where tools/setup unpacks them.
package HugeInfo::Tools;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(source tool needs_tools);

# A file or folder of this project.
sub source { my ($path) = @_; return "$ENV{HUGEINFO_SOURCES}/$path" }

# Returns the path of a program, if it is installed.
sub tool
{
	my ($name) = @_;
	my ($path) = grep { -x } map { "$_/$name" } split(/:/, $ENV{PATH}), glob source('target/tools/*/usr/{bin,sbin}');
	return $path;
}

# Leaves the SKIP block if a program is missing.
sub needs_tools
{
	my ($scenario, @names) = @_;
	my @missing = grep { !tool($_) } @names;
	HugeInfo::Host::cannot("$scenario: @missing not installed: see tools/setup") if @missing;
	return;
}

1;
