#!/usr/bin/perl
# Each size of huge pages that memory has room for: several neighbours of the default size, and on
# this architecture smaller ones, too.
use lib '/guest/lib';
use Guest;

my $default = default_page_kb();
my @size = (shared_buffers => '64MB');
mount_groups(2, undef, 'hugetlb', 'cpuset');

told(base_page() / 1024 . " kB, and huge pages of " . join(', ', page_sizes_kb()) . ' kB');
same($default, base_page() / 8 * base_page() / 1024, 'one page of page tables fills a huge page of the default size');
for my $kb (grep { $_ <= 32768 } page_sizes_kb())
{
	situation("huge_page_size = $kb kB");
	stop();
	set_pool($_, 0) for page_sizes_kb();
	my @of_size = (@size, $kb == $default ? () : (huge_page_size => "${kb}kB"));
	start(@of_size);
	compare();
	my $status = status();
	same($status->{huge_page_size_bytes}, $kb << 10, 'huge_page_size_bytes');
	same($status->{in_use}, 'f', 'in_use');
	my $need = $status->{required_huge_pages};
	same($status->{recommended_nr_hugepages}, $need, 'recommended_nr_hugepages');
	my $plan = row(q(SELECT required_huge_pages, recommended_nr_hugepages FROM hugeinfo_plan('{}')));
	same("$plan->{required_huge_pages} $plan->{recommended_nr_hugepages}", "$need $need", 'hugeinfo_plan');
	restart_as_said(@of_size);

	is_exact($kb, $need, @of_size);
	compare();
	same(status()->{status}, 'ok', 'status');
	touch(40);
	compare();

	stop();
	set_pool($kb, 0);
	start(@of_size);
	follow_runbook();
	compare();
}

finished();
