#!/usr/bin/perl
# Follows the runbook of broken machines exactly as written.
use lib '/guest/lib';
use Guest;

my $kb = default_page_kb();
my @size = (shared_buffers => '96MB');
mount_groups(2, undef, 'hugetlb', 'cpuset');
start(@size);
my $need = required_pages();

# Starts a server with these settings and this many pages in the pool.
sub from
{
	my ($name, $pages, %settings) = @_;
	situation($name);
	stop();
	set_overcommit($kb, 0);
	set_pool($kb, $pages);
	unlink glob '/etc/sysctl.d/*';
	start(@size, %settings);
	return;
}

from('no pool', 0);
follow_runbook();
compare();

from('off, and idle pages', $need - 3, huge_pages => 'off');
follow_runbook();
same(pool($kb)->{total}, 0, 'pages in the pool');

from('a page size that does not exist, and no pool', 0, huge_page_size => '3MB');
follow_runbook();

from('a size without pages', 0, huge_page_size => '16MB');
follow_runbook();

from('on, and the pool taken away', $need, huge_pages => 'on');
set_pool($kb, 0);
follow_runbook();
compare();

from('a pool that is too large', $need + 80);
follow_runbook();

from('on surplus pages alone', 0);
stop();
set_overcommit($kb, $need);
start(@size, huge_pages => 'on');
follow_runbook();

# Memory can hold the pool only after the server has freed its faulted-in memory, most of it by a
# backend with a high PID.
situation('no memory for a pool in addition to the running server');
stop();
set_pool($kb, 0);
start(shared_buffers => '400MB');
touch(360);
restart();
another_session('SELECT 1') for 1 .. 4;
another_session("SELECT pg_prewarm('t360', 'buffer')");
my $mb = int(meminfo_kb('MemAvailable') / 1024) - 250;
true(system("fallocate -l ${mb}M /run/ballast") == 0, "$mb MB of memory are taken");
my $remedy = status()->{remedy};
true($remedy =~ /stop PostgreSQL/, 'the server is stopped first', $remedy);
same($remedy, check_of('huge_pages')->{remedy}, 'as its check says');
follow_runbook();
unlink '/run/ballast';

my $group = make_group('/sys/fs/cgroup/server');
placed(group => $group);
from('a limit on touching below the segment', $need);
put("$group/hugetlb.2MB.max", ($need - 4) * 2 << 20);
follow_runbook();

stop();
put("$group/hugetlb.2MB.max", 'max');
put("$group/hugetlb.2MB.rsvd.max", ($need - 4) * 2 << 20);
from('a limit on reservations below the segment', $need);
follow_runbook();

finished();
