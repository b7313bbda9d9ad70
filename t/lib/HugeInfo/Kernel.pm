# Reads the kernel's numbers from /proc and /sys independently of the extension.
package HugeInfo::Kernel;

use strict;
use warnings;
# addresses have more than 32 bits
no warnings 'portable';

use Exporter 'import';
use IPC::Run ();
use POSIX ();

our @EXPORT = qw(base_page default_page_kb page_sizes_kb other_page_kb pool pools pool_numbers pages_of_others ram_bytes segment
  wanted_by_others next_setting meminfo_kb);

sub _lines
{
	my ($file) = @_;
	open my $fh, '<', $file or die "$file: $!\n";
	my @lines = <$fh>;
	chomp @lines;
	return @lines;
}

sub base_page { return POSIX::sysconf(POSIX::_SC_PAGESIZE()) }

sub meminfo_kb
{
	my ($key) = @_;
	for (_lines('/proc/meminfo')) { return $1 if /^\Q$key\E:\s+(\d+) kB$/ }
	return;
}

sub ram_bytes { return 1024 * meminfo_kb('MemTotal') }

sub default_page_kb { return meminfo_kb('Hugepagesize') }

sub page_sizes_kb
{
	return sort { $a <=> $b } map { /hugepages-(\d+)kB$/ } glob '/sys/kernel/mm/hugepages/hugepages-*kB';
}

# Returns the largest size other than the default one: 1 GB on most machines. Returns undef if there
# is none.
sub other_page_kb
{
	my $default = default_page_kb();
	return (grep { $_ != $default } page_sizes_kb())[-1];
}

sub pool
{
	my ($kb) = @_;
	my %file = (
		total => 'nr_hugepages', free => 'free_hugepages', reserved => 'resv_hugepages',
		surplus => 'surplus_hugepages', overcommit => 'nr_overcommit_hugepages');
	return { map { $_ => (_lines("/sys/kernel/mm/hugepages/hugepages-${kb}kB/$file{$_}"))[0] + 0 } keys %file };
}

sub pools { return { map { $_ => pool($_) } page_sizes_kb() } }

# Returns the reason why tests must not change the pools, if any. A stopped server might need idle
# pages, and tests would use them.
sub why_pools_stay
{
	return 'only root can change the pools and cgroups of the host' if $> != 0;
	my @sizes = page_sizes_kb() or return 'this kernel has no huge pages';
	return if $ENV{HUGEINFO_TEST_POOLS};
	for my $kb (@sizes)
	{
		my $pool = pool($kb);
		my $idle = $pool->{free} - $pool->{reserved};
		return "this host has $idle idle pages of $kb kB: HUGEINFO_TEST_POOLS=1 allows tests to use them" if $idle > 0;
	}
	return;
}

# The pages that other programs of this host used or reserved when the test began. The test adds its
# pages to them.
my %of_others;
sub pages_of_others { my ($kb) = @_; return $of_others{$kb} // 0 }

sub remember_others
{
	for my $kb (page_sizes_kb())
	{
		my $pool = pool($kb);
		$of_others{$kb} = $pool->{total} - $pool->{free} + $pool->{reserved};
	}
	return;
}

sub _max { return $_[0] > $_[1] ? $_[0] : $_[1] }

# Computes the expected numbers of a pool independently. $own: pages of the server's segment in this
# pool; $required: pages that the segment needs in this pool.
sub pool_numbers
{
	my ($pool, $own, $required) = @_;
	my $committed = $pool->{total} - $pool->{free} + $pool->{reserved};
	my $others = $committed - $own;
	# Persistent pages stay, and the kernel can add surplus ones up to the overcommit limit. Present
	# surplus pages cease to exist when they are freed, so they are available to a restart only as far
	# as overcommit allows new ones.
	my $obtainable = _max(0, $pool->{total} - $pool->{surplus} + $pool->{overcommit} - $others);
	# pages that exist already; the kernel might fail to allocate the rest
	my $sure = _max(0, $pool->{total} - $pool->{surplus} + _max(0, $pool->{surplus} - $own) - $others);
	return {
		committed_pages => $committed,
		others_pages => $others,
		available_pages =>
		  $pool->{free} - $pool->{reserved} + _max(0, $pool->{overcommit} - $pool->{surplus}),
		shortfall_pages => _max(0, $required - $obtainable),
		recommended_nr_hugepages => $others + $required,
		fits_after_restart => $required <= $sure ? 't' : $required <= $obtainable ? undef : 'f',
	};
}

# Pages of others, and the pages of the default pool that other servers on small pages request at
# their next start. $own: the postmaster of the server under test. Servers that this user cannot
# read do not count.
sub wanted_by_others
{
	my ($kb, $own) = @_;
	my $pages = pages_of_others($kb);
	return $pages if $kb != default_page_kb();
	for my $pid (map { m{(\d+)$} } glob '/proc/[0-9]*')
	{
		# A postmaster is a postgres whose parent is not one.
		my $segment = eval {
			my ($comm, $parent) = "@{[ _lines(qq(/proc/$pid/stat)) ]}" =~ /^\d+ \((.*)\) \S (\d+)/ or die;
			die if $pid == $own || $comm ne 'postgres' || "@{[ _lines(qq(/proc/$parent/comm)) ]}" eq 'postgres';
			segment($pid);
		} or next;
		next if $segment->{page_bytes} != base_page();
		next if next_setting($pid, 'huge_pages') !~ /^(?:try|on)$/ || next_setting($pid, 'shared_memory_type') ne 'mmap';
		$pages += POSIX::ceil($segment->{bytes} / ($kb * 1024));
	}
	return $pages;
}

# The value of a setting at the next start of a running server: runs its program with its command
# line, so that it reads its configuration files again. Empty if that fails.
sub next_setting
{
	my ($pid, $name) = @_;
	my @command = split /\0/, join "\n", eval { _lines("/proc/$pid/cmdline") };
	my $directory = readlink "/proc/$pid/cwd" // return '';
	return '' unless @command;
	my ($out, $error) = ('', '');
	# Relative paths on the command line are relative to another directory.
	eval { IPC::Run::run([ "/proc/$pid/exe", @command[ 1 .. $#command ], '-D', $directory, '-C', $name ], '<', \undef, '>', \$out, '2>', \$error) };
	return $out =~ s/\n\z//r;
}

# Finds the main segment of a server in maps and smaps without its name or an address: the largest
# shared mapping of the postmaster, adding up all parts of the same object. Device and inode do not
# identify an object, because a System V segment can have those of shared anonymous memory. Its name
# does.
sub segment
{
	my ($pid) = @_;
	my $shared = qr/^([0-9a-f]+)-([0-9a-f]+) ...s \S+ (\S+ \d+) *(.*)$/;
	my (%bytes, %page_kb, %starts, $object);
	for (_lines("/proc/$pid/smaps"))
	{
		if (/$shared/)
		{
			$object = "$3 $4";
			$bytes{$object} += hex($2) - hex($1);
			push @{ $starts{$object} }, $1;
		}
		elsif (/^[0-9a-f]+-/) { undef $object }
		elsif ($object && /^KernelPageSize:\s+(\d+) kB$/) { $page_kb{$object}{$1} = 1 }
	}
	my ($largest) = sort { $bytes{$b} <=> $bytes{$a} } keys %bytes or die "process $pid has no shared mapping\n";
	my @kb = keys %{ $page_kb{$largest} };
	die "one segment, several page sizes: @kb kB\n" if @kb != 1;

	# maps lists the same mappings without walking page tables
	my $sum = 0;
	for (_lines("/proc/$pid/maps"))
	{
		$sum += hex($2) - hex($1) if /$shared/ && "$3 $4" eq $largest;
	}
	die "maps says $sum bytes, smaps $bytes{$largest}\n" if $sum != $bytes{$largest};
	return { bytes => $sum, page_bytes => 1024 * $kb[0], starts => $starts{$largest} };
}

1;
