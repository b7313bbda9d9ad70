#!/usr/bin/perl
# Tests each size of huge pages that fits in memory. This architecture has several, and the default
# one depends on the size of small pages.
use lib '/guest/lib';
use Guest;

my $default = default_page_kb();
mount_groups(2, undef, 'hugetlb', 'cpuset');

sub planned
{
	my ($kb, $settings) = @_;
	my $bytes = $kb << 10;
	return row("SELECT * FROM hugeinfo_plan('$settings') WHERE page_size_bytes = $bytes");
}

told(base_page() / 1024 . ' kB, and huge pages of ' . join(', ', page_sizes_kb()) . ' kB');
same($default, base_page() / 8 * base_page() / 1024, 'one page of page tables fills a huge page of the default size');
for my $kb (grep { $_ < 1 << 20 } page_sizes_kb())
{
	situation("huge_page_size = $kb kB");
	my @size = (shared_buffers => '64MB', $kb == $default ? () : (huge_page_size => "${kb}kB"));
	start(@size);
	compare();
	my $status = status();
	my $need = $status->{required_huge_pages};
	same($status->{huge_page_size_bytes}, $kb << 10, 'huge_page_size_bytes');
	same($status->{in_use}, 'f', 'in_use');
	same($status->{recommended_nr_hugepages}, $need, 'recommended_nr_hugepages');
	same(planned($kb, '{}')->{required_pages}, $need, 'hugeinfo_plan without changes');
	my $plan = planned($kb, '{"shared_buffers": "80MB", "max_connections": 40}');
	restart_as_said(@size);

	push @size, (shared_buffers => '80MB', max_connections => 40);
	is_exact($kb, $plan->{recommended_nr_hugepages}, @size);
	compare();
	$status = status();
	same($status->{status}, 'ok', 'status');
	same($status->{required_huge_pages}, $plan->{required_pages}, 'hugeinfo_plan predicted the required pages');
	stop();
	set_pool($kb, 0);
}

situation('the runbook');
start(shared_buffers => '64MB');
follow_runbook();
compare();

finished();
