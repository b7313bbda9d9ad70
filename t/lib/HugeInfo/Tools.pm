# Programs of others, which only tests use: in PATH, or below target/tools, where `scripts/setup tests`
# unpacks them.
package HugeInfo::Tools;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter 'import';
use File::Basename qw(dirname);

use HugeInfo::Host;

our @EXPORT = qw(tool needs_tools);

my $unpacked = abs_path(dirname(__FILE__) . '/../../..') . '/target/tools';

# Where it is, if it is.
sub tool
{
	my ($name) = @_;
	my ($path) = grep { -x } map { "$_/$name" } split(/:/, $ENV{PATH}), glob "$unpacked/*/usr/{bin,sbin}";
	return $path;
}

# Within SKIP.
sub needs_tools
{
	my ($scenario, @names) = @_;
	my @missing = grep { !tool($_) } @names;
	cannot("$scenario: there is no @missing: scripts/setup tests") if @missing;
	return;
}

1;
