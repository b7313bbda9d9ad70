#!/usr/bin/perl
# Transparent huge pages: they do not count as huge pages of the pool, and the extension reports the
# part of the main segment on them.
use lib '/guest/lib';
use Guest;

my $THP = '/sys/kernel/mm/transparent_hugepage';
my $kb = default_page_kb();
# A start fills wal_buffers with zeroes, and thus faults in most of it.
my @size = (shared_buffers => '32MB', wal_buffers => '128MB');
mount_groups(2, undef, 'hugetlb', 'cpuset');

# Bytes of the main segment on transparent huge pages in the postmaster.
sub transparent_bytes
{
	my $bytes = 0;
	for (split /^(?=[0-9a-f]+-[0-9a-f]+ )/m, slurp('/proc/' . postmaster() . '/smaps'))
	{
		next unless m{^\S+ ...s .* /dev/zero}m;
		$bytes += $1 * 1024 if /^ShmemPmdMapped:\s+(\d+) kB$/m;
	}
	return $bytes;
}

sub shared_check
{
	return row(q(SELECT status, finding, (evidence->>'segment_thp_bytes')::bigint AS bytes FROM hugeinfo_checks WHERE name = 'thp_shared'));
}

my %gives = map { $_ => 1 } qw(within_size always force);
for my $shmem (qw(never advise within_size always deny force))
{
	for my $enabled ($shmem eq 'always' ? qw(always madvise never) : 'madvise')
	{
		situation("shmem_enabled = $shmem, enabled = $enabled");
		stop();
		put("$THP/shmem_enabled", $shmem);
		put("$THP/enabled", $enabled);
		start(@size);
		compare();
		my $host = row('SELECT thp_enabled, thp_shmem_enabled FROM hugeinfo_host');
		same("$host->{thp_enabled} $host->{thp_shmem_enabled}", "$enabled $shmem", 'modes');
		my $check = shared_check();
		told($check->{finding});
		# since 6.11 each size has its own mode
		my $is_given = $gives{$shmem} && ($shmem eq 'force' || -e "$THP/hugepages-2048kB/shmem_enabled"
			? $shmem eq 'force' || slurp("$THP/hugepages-2048kB/shmem_enabled") =~ /\[inherit\]/ : 1);
		same($check->{status}, $is_given ? 'warning' : 'ok', 'thp_shared');
		if ($is_given)
		{
			same($check->{bytes}, transparent_bytes(), 'bytes on transparent huge pages');
			# within_size allocates no huge page beyond the end of the segment
			true($check->{bytes} > 0, 'some bytes are transparent') unless $shmem eq 'within_size';
		}
		else { same(transparent_bytes(), 0, 'none where none are given') }
		same(check_of('thp_private')->{status}, $enabled eq 'always' ? 'warning' : 'ok', 'thp_private');
	}
}

situation('on huge pages of the pool');
my $need = required_pages();
stop();
put("$THP/shmem_enabled", 'always');
set_pool($kb, $need);
start(@size, huge_pages => 'on');
compare();
same(shared_check()->{status}, 'ok', 'thp_shared');
stop();
set_pool($kb, 0);

for my $file (grep { -e } map { "$THP/hugepages-${_}kB/shmem_enabled" } 64, 2048)
{
	my ($size_kb) = $file =~ /hugepages-(\d+)kB/;
	situation("only $size_kb kB");
	stop();
	put("$THP/shmem_enabled", 'never');
	put($_, 'never') for glob "$THP/hugepages-*/shmem_enabled";
	put($file, 'always');
	start(@size);
	compare();
	my $check = shared_check();
	told($check->{finding});
	same($check->{status}, 'warning', 'thp_shared');
	same($check->{bytes}, transparent_bytes(), 'bytes on transparent huge pages');
	# the kernel counts only 2 MB pages
	same($check->{bytes} > 0 ? 1 : 0, $size_kb == 2048 ? 1 : 0, 'some bytes are transparent if the pages are large');
}

finished();
