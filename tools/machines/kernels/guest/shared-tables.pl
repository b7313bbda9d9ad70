#!/usr/bin/perl
# A segment with whole gigabytes on huge pages. Processes share its page tables (mm/hugetlb.c
# huge_pmd_share), so each one shows pages that others have faulted in, and HugetlbPages counts only
# pages that it faulted in first.
use lib '/guest/lib';
use Guest;

my $kb = default_page_kb();
my @size = (shared_buffers => '2400MB');
mount_groups(2, undef, 'hugetlb', 'cpuset');

# Creates a table of that many empty pages. Its files are sparse.
sub empty_table
{
	my ($name, $mb) = @_;
	value("CREATE UNLOGGED TABLE $name (x int)");
	my $file = value('SHOW data_directory') . '/' . value("SELECT pg_relation_filepath('$name')");
	my ($uid, $gid) = (stat $file)[ 4, 5 ];
	for (my $number = 0; $mb > 0; $number++, $mb -= 1024)
	{
		my $part = $number ? "$file.$number" : $file;
		put($part, '') if $number;
		truncate $part, ($mb < 1024 ? $mb : 1024) << 20 or die "$part: $!\n";
		chown $uid, $gid, $part;
	}
	return;
}

# Returns the end of the last whole gigabyte of addresses, in MB from the start of the segment, and
# how many follow; nothing if there is none.
sub last_shared
{
	my $real = segment(postmaster());
	my $start = hex $real->{starts}[0];
	my $last = (($start + $real->{bytes}) >> 30) << 30;
	return if $last - (1 << 30) < $start;
	return (($last - $start) >> 20, ($start + $real->{bytes} - $last) >> 20);
}

sub kb_of { my ($pid) = @_; return slurp("/proc/$pid/status") =~ /^HugetlbPages:\s+(\d+) kB$/m ? $1 : undef }

sub sees { my ($pid) = @_; my $sum = 0; $sum += $_ for values %{ node_pages($pid, segment($pid)->{starts}) }; return $sum }

situation('2.4 GB, as planned');
start(shared_buffers => '32MB');
my $plan = row(q(SELECT required_pages FROM hugeinfo_plan('{"shared_buffers": "2400MB"}') WHERE is_requested));
stop();
same(set_pool($kb, $plan->{required_pages}), $plan->{required_pages}, 'pages in the pool');
start(@size, huge_pages => 'on');
same(required_pages(), $plan->{required_pages}, 'required_huge_pages');
compare();

situation('a process shows more pages than the one that faulted in most');
my ($shared_mb, $rest_mb);
for (1 .. 30)
{
	($shared_mb, $rest_mb) = last_shared();
	last if ($rest_mb // 0) > 300;
	start(@size, huge_pages => 'on');
}
true($rest_mb > 300, 'the segment continues after the shared page tables');
value('CREATE EXTENSION pg_prewarm');
# Buffers begin less than 100 MB after the start: the first table ends before the last shared MB,
# the second after it.
empty_table('early', $shared_mb - 130);
empty_table('late', 350);
my $pid = another_session("SELECT pg_prewarm('early', 'buffer')");
value('SET max_parallel_workers_per_gather = 0');
value('SELECT count(*) FROM early');
value("SELECT pg_prewarm('late', 'buffer')");
my $own = value('SELECT pg_backend_pid()');
true(kb_of($pid) > kb_of($own), 'HugetlbPages of the first is larger', kb_of($pid) . ' and ' . kb_of($own) . ' kB');
true(sees($own) > sees($pid), 'and it sees less', sees($own) . ' and ' . sees($pid));
compare();
restart_as_said(@size);

finished();
