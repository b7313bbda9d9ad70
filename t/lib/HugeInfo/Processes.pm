# Reads facts about processes from /proc and ps independently of the extension.
#
# Sizes are in bytes. Values that the kernel does not report are undef, as in SQL.
package HugeInfo::Processes;

use strict;
use warnings;
# addresses have more than 32 bits
no warnings 'portable';

use Exporter 'import';
use Time::HiRes qw(clock_gettime sleep CLOCK_MONOTONIC);

our @EXPORT = qw(family status_file stat_file oom_files rollup_file smaps_file maps_file process_file title open_files
  is_logger sum_of state_of until_true agreeing settled misfits text_of);

# The server's processes from ps: the postmaster and its children.
sub family
{
	my ($postmaster) = @_;
	my @children = `ps --no-headers -o pid --ppid $postmaster` =~ /(\d+)/g;
	return sort { $a <=> $b } $postmaster, @children;
}

# Returns '' if the process has ended or access is denied.
sub process_file
{
	my ($pid, $name) = @_;
	open my $fh, '<:raw', "/proc/$pid/$name" or return '';
	local $/;
	return scalar(<$fh>) // '';
}

# The title from ps, which PostgreSQL writes over its arguments.
sub title
{
	my ($pid) = @_;
	return process_file($pid, 'cmdline') =~ s/\0.*//sr;
}

# Recognizes the logger by its type or the end of its title. PostgreSQL 19 has renamed it.
sub is_logger { my ($type) = @_; return ($type // '') =~ /^(?:sys)?logger$/ }

my %OF_STATUS = (
	page_table_bytes => 'VmPTE',
	virtual_bytes => 'VmSize',
	virtual_peak_bytes => 'VmPeak',
	rss_bytes => 'VmRSS',
	rss_anon_bytes => 'RssAnon',
	rss_file_bytes => 'RssFile',
	rss_shmem_bytes => 'RssShmem',
	hugetlb_bytes => 'HugetlbPages',
	swap_bytes => 'VmSwap');

my %OF_SMAPS = (
	page_size_bytes => 'KernelPageSize',
	rss_bytes => 'Rss',
	pss_bytes => 'Pss',
	private_clean_bytes => 'Private_Clean',
	private_dirty_bytes => 'Private_Dirty',
	anon_thp_bytes => 'AnonHugePages',
	shmem_thp_bytes => 'ShmemPmdMapped',
	shared_hugetlb_bytes => 'Shared_Hugetlb',
	private_hugetlb_bytes => 'Private_Hugetlb',
	swap_bytes => 'Swap');

my %OF_ROLLUP = (
	rss_bytes => 'Rss',
	pss_bytes => 'Pss',
	pss_anon_bytes => 'Pss_Anon',
	pss_file_bytes => 'Pss_File',
	pss_shmem_bytes => 'Pss_Shmem',
	swap_pss_bytes => 'SwapPss',
	anon_thp_bytes => 'AnonHugePages',
	shmem_thp_bytes => 'ShmemPmdMapped',
	shared_hugetlb_bytes => 'Shared_Hugetlb',
	private_hugetlb_bytes => 'Private_Hugetlb');

sub _kilobytes
{
	my ($text) = @_;
	my %kb = $text =~ /^(\w+):\s+(\d+) kB$/mg;
	return map { $_ => $kb{$_} * 1024 } keys %kb;
}

# The columns of hugeinfo_backends that come from the file.
sub status_file
{
	my ($pid) = @_;
	my %bytes = _kilobytes(process_file($pid, 'status'));
	return { map { $_ => $bytes{ $OF_STATUS{$_} } } keys %OF_STATUS };
}

sub stat_file
{
	my ($pid) = @_;
	# the name in parentheses can contain any characters
	my @from_third = split / /, process_file($pid, 'stat') =~ s/^.*\) //sr;
	return { minor_faults => $from_third[7], major_faults => $from_third[9] };
}

# One letter: S sleeps, T is stopped, Z is a zombie; undef if there is no such process.
sub state_of { my ($pid) = @_; return process_file($pid, 'stat') =~ /.*\) (\S)/s ? $1 : undef }

sub oom_files
{
	my ($pid) = @_;
	return { map { my ($value) = process_file($pid, $_) =~ /^(-?\d+)$/; $_ => $value } qw(oom_score oom_score_adj) };
}

# The columns of hugeinfo_memory.
sub rollup_file
{
	my ($pid) = @_;
	my %bytes = _kilobytes(process_file($pid, 'smaps_rollup'));
	return {
		(map { $_ => $bytes{ $OF_ROLLUP{$_} } } keys %OF_ROLLUP),
		uss_bytes => $bytes{Private_Clean} + $bytes{Private_Dirty} };
}

# A line of maps as columns of hugeinfo_mappings, with the device and the inode.
sub _mapping
{
	my ($line) = @_;
	my ($start, $end, $permissions, $device, $inode, $path) =
	  $line =~ /^([0-9a-f]+)-([0-9a-f]+) (\S{4}) [0-9a-f]+ ([0-9a-f]+:[0-9a-f]+) (\d+) *(.*)$/s
	  or die "not a line of maps: $line\n";
	return {
		start_address => $start,
		end_address => $end,
		size_bytes => hex($end) - hex($start),
		permissions => $permissions,
		device => $device,
		inode => $inode,
		path => $path eq '' ? undef : $path };
}

sub maps_file { my ($pid) = @_; return map { _mapping($_) } split /\n/, process_file($pid, 'maps') }

# Also parses memory.
sub smaps_file
{
	my ($pid) = @_;
	my @rows;
	for my $entry (split /^(?=[0-9a-f]+-[0-9a-f]+ )/m, process_file($pid, 'smaps'))
	{
		my ($line, $rest) = split /\n/, $entry, 2;
		my %bytes = _kilobytes($rest);
		push @rows, { %{ _mapping($line) }, map { $_ => $bytes{ $OF_SMAPS{$_} } } keys %OF_SMAPS };
	}
	return @rows;
}

# Adds up one column over rows; undef if no row has it.
sub sum_of
{
	my ($column, @rows) = @_;
	my $sum;
	$sum += $_ for grep { defined } map { $_->{$column} } @rows;
	return $sum;
}

# Files that a process has open, without relations: PostgreSQL opens a catalog when it first needs
# it.
sub open_files
{
	my ($pid) = @_;
	return sort grep { defined && !m{/(?:base/\d+|global)/\d+} } map { readlink } glob "/proc/$pid/fd/*";
}

# Converts data to text, because JSON and /proc format the same value differently.
sub text_of
{
	my ($data) = @_;
	my $ref = ref $data;
	return $ref eq 'HASH' ? '{' . join(',', map { "$_=" . text_of($data->{$_}) } sort keys %$data) . '}'
	  : $ref eq 'ARRAY' ? '[' . join(',', map { text_of($_) } @$data) . ']'
	  : defined $data ? "<$data>" : 'undef';
}

# Seconds after which a wait fails. PostgreSQL::Test::Utils has the same default, but tests that
# stay root cannot load it.
our $TIMEOUT = $ENV{PG_TEST_TIMEOUT_DEFAULT} || 180;

# Polls until the code returns a true value, and returns that value. Returns 0 after the timeout.
sub until_true
{
	my ($code) = @_;
	my $end = clock_gettime(CLOCK_MONOTONIC) + $TIMEOUT;
	my $pause = 0.001;
	while (1)
	{
		my $result = $code->();
		return $result if $result;
		return 0 if clock_gettime(CLOCK_MONOTONIC) > $end;
		sleep $pause;
		$pause = 0.05 if ($pause *= 2) > 0.05;
	}
}

# Calls two functions until their results agree, because other programs change figures of the host
# between the calls. Returns the last two results.
sub agreeing
{
	my ($first, $second) = @_;
	my @both;
	until_true(sub { @both = (scalar $first->(), scalar $second->()); return text_of($both[0]) eq text_of($both[1]) });
	return @both;
}

# Compares SQL results with the kernel while nothing changes. Reads the kernel before and after the
# query, and repeats until both reads and the result agree. Repetition is necessary because any
# program that starts on this host changes some numbers for a moment, such as the shared memory of
# the C library. Returns the last attempt if they never agree.
#
# `shape` converts rows and the kernel's numbers to comparable values.
sub settled
{
	my ($sql, $kernel, $shape) = @_;
	my ($seen, $expected, @rows);
	until_true(sub {
		my @before = $kernel->();
		@rows = $sql->();
		my @after = $kernel->();
		return 0 if text_of(\@before) ne text_of(\@after);
		($seen, $expected) = $shape->(\@rows, \@after);
		return text_of($seen) eq text_of($expected);
	});
	die "the kernel's numbers never stopped changing\n" unless defined $expected;
	return ($seen, $expected, @rows);
}

# Compares numbers that other processes can change at any time. Each number must lie between two
# reads of the kernel at least once. `read` and `see` return hashes by name. `slack` is the maximum
# that the query itself adds to a number for a moment, by name. Returns a line for each number that
# never fits.
sub misfits
{
	my ($read, $see, %slack) = @_;
	my (%wrong, %fits);
	until_true(sub {
		my $before = $read->();
		my $seen = $see->();
		my $after = $read->();
		for my $name (keys %{ { %$before, %$seen, %$after } })
		{
			my ($one, $is, $other) = map { $_->{$name} } $before, $seen, $after;
			$fits{$name} ||= _lies_between($one, $is, $other, $slack{$name} // 0);
			$wrong{$name} = sprintf '%s: SQL has %s, the kernel %s, then %s', $name, map { $_ // 'nothing' } $is, $one, $other;
		}
		return !grep { !$fits{$_} } keys %wrong;
	});
	return map { $wrong{$_} } grep { !$fits{$_} } sort keys %wrong;
}

sub _lies_between
{
	my ($one, $is, $other, $slack) = @_;
	return !defined $is && (!defined $one || !defined $other) if grep { !defined } $one, $is, $other;
	return $is eq $one || $is eq $other if grep { !/^-?\d+(?:\.\d+)?$/ } $one, $is, $other;
	my ($low, $high) = sort { $a <=> $b } $one, $other;
	return $is >= $low - $slack && $is <= $high + $slack;
}

1;
