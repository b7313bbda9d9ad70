# Memory shortage from kernel files: the expected columns of hugeinfo_pressure.
package HugeInfo::Pressure;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(kernels_host kernels_group);

# Returns nothing if there is no such file.
sub _contents
{
	my ($file) = @_;
	open my $fh, '<', $file or return '';
	local $/;
	return <$fh>;
}

sub _number { my ($file) = @_; return _contents($file) =~ /^(\d+)$/ ? $1 : undef }

sub _counter { my ($file, $name) = @_; return _contents($file) =~ /^\Q$name\E (\d+)$/m ? $1 : undef }

# Parses a pressure file to columns.
sub _waiting
{
	my ($file) = @_;
	my %waiting = map {
		my $kind = $_;
		my %figure = _contents($file) =~ /^$kind (.*)$/m ? map { split /=/ } split / /, $1 : ();
		("${kind}_stall_microseconds" => $figure{total},
			map { ("${kind}_avg${_}_percent" => $figure{"avg$_"}) } 10, 60, 300)
	} qw(some full);
	return %waiting;
}

sub kernels_host
{
	return {
		scope => 'host', path => undef, memory_limit_bytes => undef, memory_used_bytes => undef,
		limit_hits => undef, high_hits => undef, oom_kills => _counter('/proc/vmstat', 'oom_kill'),
		_waiting('/proc/pressure/memory') };
}

sub kernels_group
{
	my ($version, $dir) = @_;
	my $limit = _number("$dir/" . ($version == 2 ? 'memory.max' : 'memory.limit_in_bytes'));
	my $events = "$dir/memory.events";
	return {
		scope => 'cgroup', path => $dir,
		# v1 has a large number for unlimited
		memory_limit_bytes => defined $limit && $limit < 2**62 ? $limit : undef,
		memory_used_bytes => _number("$dir/" . ($version == 2 ? 'memory.current' : 'memory.usage_in_bytes')),
		limit_hits => $version == 2
		  ? _counter($events, 'max')
		  : _number("$dir/memory.failcnt") + (_number("$dir/memory.memsw.failcnt") // 0),
		high_hits => $version == 2 ? _counter($events, 'high') : undef,
		oom_kills => _counter($version == 2 ? $events : "$dir/memory.oom_control", 'oom_kill'),
		_waiting("$dir/memory.pressure") };
}

1;
