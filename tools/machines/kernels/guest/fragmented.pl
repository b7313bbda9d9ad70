#!/usr/bin/perl
# Pools that the kernel cannot fill, because memory is too small or fragmented.
use lib '/guest/lib';
use Guest;

my $kb = default_page_kb();
my @size = (shared_buffers => '128MB');
mount_groups(2, undef, 'hugetlb', 'cpuset');

# Fragments memory. Pages in pipes cannot be moved: fills memory with pages of two sets in turn, and
# frees one set.
sub pieces
{
	my ($leave_mb) = @_;
	my $page = 'x' x base_page();
	my $open = sub {
		pipe(my $from, my $to) or die "pipe: $!\n";
		# F_SETPIPE_SZ
		fcntl($to, 1031, 32 << 20) or die "pipe: $!\n";
		return [ $from, $to ];
	};
	my (@kept, @given_back);
	while (memory_free_mb() > $leave_mb)
	{
		my ($keep, $give_back) = ($open->(), $open->());
		for my $pages (1 .. 8192)
		{
			last if $pages % 1024 == 0 && memory_free_mb() < $leave_mb;
			syswrite $_->[1], $page for $keep, $give_back;
		}
		push @kept, $keep;
		push @given_back, $give_back;
	}
	return @kept;
}

# Returns the free memory in blocks of at least one huge page.
sub whole_blocks
{
	my ($order, $blocks) = (9, 0);
	for (split /\n/, slurp('/proc/buddyinfo'))
	{
		my (undef, undef, undef, undef, @free) = split;
		$blocks += $free[$_] << ($_ - $order) for $order .. $#free;
	}
	return $blocks;
}

situation('more huge pages than fit in memory');
start(@size);
my $need = required_pages();
# The guest needs the rest for itself.
my $held = int(memory_free_mb() * 0.45);
system("dd if=/dev/zero of=/dev/shm/held bs=1M count=$held status=none");
my $asked = int(memory_free_mb() * 0.65);
my $failures = vmstat('htlb_buddy_alloc_fail');
my $given = set_pool($kb, $asked);
unlink '/dev/shm/held';
true($given < $asked, "of $asked pages the kernel gave $given");
true(vmstat('htlb_buddy_alloc_fail') > $failures, 'and the kernel counted the failures');
compare();
set_pool($kb, 0);

situation('memory as it is after boot');
my $growth = row(q(SELECT status, evidence->>'free_in_blocks_pages' AS blocks FROM hugeinfo_checks WHERE name = 'pool_growth'));
my $blocks = whole_blocks();
true(abs($growth->{blocks} - $blocks) <= 2, 'whole blocks as in buddyinfo', "SQL $growth->{blocks}, the kernel $blocks");
same($growth->{status}, 'ok', 'pool_growth');

situation('memory fragmented by pages that cannot be moved');
my @pieces = pieces(120);
# Newer kernels can move enough of the rest.
for my $leave (90, 60)
{
	push @pieces, pieces($leave) if whole_blocks() > $need / 2;
}
told(whole_blocks() . " blocks of one huge page are left");
my $check = check_of('pool_growth');
told($check->{finding});
same($check->{status}, 'warning', 'pool_growth');
mkdir '/etc/sysctl.d';
put('/etc/sysctl.d/pages.conf', "vm.nr_hugepages = $need\n");
$given = set_pool($kb, $need);
true($given < $need, "of $need pages the kernel gave $given");
compare();
same(check_of('pool_filled')->{status}, 'warning', 'pool_filled');
restart_as_said(@size);

situation('memory no longer fragmented');
stop();
@pieces = ();
start(@size);
# The remedy can be that of another check.
my $remedy = check_of('pool_filled')->{remedy} // '';
my $from = $remedy =~ /^# as (\w+)$/ ? $1 : 'pool_filled';
my @steps = rows(qq(SELECT coalesce(s->>'command', s->>'instruction') AS command FROM hugeinfo_checks, jsonb_array_elements(steps) AS s WHERE name = '$from'));
true(scalar @steps, 'pool_filled has a remedy', $remedy);
for (@steps)
{
	told($_->{command});
	if ($_->{command} =~ /^(?:sysctl|echo|sed|\(umask|\[) /) { true(!system("$_->{command} >/dev/null"), "typed: $_->{command}") }
	else { true($_->{command} =~ /^restart PostgreSQL/ && restart(), "typed: $_->{command}") }
}
same(pool($kb)->{total}, $need, 'pages in the pool');
same(check_of('pool_filled')->{status}, 'ok', 'pool_filled');
restart_as_said(@size);
compare();

finished();
