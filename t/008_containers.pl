# Servers for which a part of the host is hidden, such as in containers. Hidden facts are unknown,
# never ok.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Contained;
use HugeInfo::Kernel;
use HugeInfo::Processes qw(until_true);
use HugeInfo::Server;
use Test::More;

my $kb = default_page_kb();
my $node = new_server('inside');
my $need = $kb && required_pages($node, $kb);
$node->stop;

SKIP:
{
	my $name = 'a container: postmaster is process 1';
	my @own = qw(--user --map-current-user --pid --fork --mount-proc);
	needs_host($name);
	needs_namespaces($name, @own);
	pools_of_one_size($kb, $need);
	in_namespace($node, $name, [ 'unshare', @own ], sub {
		my ($postmaster) = @_;
		my $status = status_of($node);
		my $real = segment($postmaster);
		is($node->safe_psql('postgres', q{SELECT pg_read_file('postmaster.pid', 0, 2)}), "1\n", "$name: postmaster.pid has PID 1");
		compare_status($status, {
				in_use => 't',
				status => 'ok',
				page_size_bytes => $real->{page_bytes},
				segment_bytes => $real->{bytes},
				shortfall_pages => 0,
			}, $name);
		# Here, its files are those of the host, which is unknown inside.
		is($node->safe_psql('postgres', q{SELECT status, finding FROM hugeinfo_checks WHERE name = 'reboot'}),
			'unknown|Cannot judge reboot: /etc is not the host\'s (as in a container).',
			"$name: the next boot");
	});
}

SKIP:
{
	my $name = 'a container, and a server that is not visible from it';
	my @own = qw(--user --map-current-user --pid --fork --mount-proc);
	needs_host($name);
	needs_namespaces($name, @own);
	my $outside = new_server('outside');
	my $others = required_pages($outside, $kb);
	$outside->stop;
	pools_of_one_size($kb, $need + $others + 300);
	$outside->start;
	in_namespace($node, $name, [ 'unshare', @own ], sub {
		my $total = pool($kb)->{total};
		my $said = $node->safe_psql('postgres', q{
			SELECT remedy FROM hugeinfo_checks UNION ALL SELECT how_to_set FROM hugeinfo_pools UNION ALL SELECT command FROM hugeinfo_runbook});
		my @fewer = grep { $_ < $total } $said =~ /nr_hugepages ?= ?(\d+)/g, $said =~ m{echo (\d+) > \S*hugepages-${kb}kB/nr_hugepages}g;
		is_deeply(\@fewer, [], "$name: no remedy removes unexplained pages") or diag($said);
		is(status_of($node)->{recommended_nr_hugepages}, $total, "$name: no smaller number is recommended");
		is($node->safe_psql('postgres', q{SELECT status FROM hugeinfo_checks WHERE name = 'pool_size'}), 'unknown', "$name: their owner is unknown");
	});

	$name = 'a container, and a pool that another server uses';
	$outside->stop;
	pools_of_one_size($kb, $others);
	$outside->start;
	my $remedy;
	in_namespace($node, $name, [ 'unshare', @own ], sub {
		my $status = status_of($node);
		is($status->{in_use}, 'f', "$name: it fell back");
		($remedy) = $status->{remedy} =~ /^(sysctl -w vm\.nr_hugepages=\d+)$/m or diag($status->{remedy});
	});
	type_in($remedy);
	in_namespace($node, $name, [ 'unshare', @own ], sub {
		my ($postmaster) = @_;
		is(segment($postmaster)->{page_bytes}, $kb * 1024, "$name: on huge pages after the remedy");
		is($outside->safe_psql('postgres', 'SELECT in_use FROM hugeinfo_status'), 't', "$name: the other server still is on huge pages");
	});
	is(pool($kb)->{total}, $need + $others + pages_of_others($kb), "$name: no more pages than both need");
	$outside->stop;
}

SKIP:
{
	# Its PIDs belong to other processes in the host's /proc, where process 1 is not the postmaster.
	my $name = '/proc of another PID namespace';
	my @own = qw(--user --map-current-user --pid --fork);
	needs_host($name);
	needs_namespaces($name, @own);
	pools_of_one_size($kb, $need);
	make_group('low');
	limit_group('low', 'fault', $kb, 1024 * $kb * ($need - 1));
	# process 1 of the host is not in this cgroup
	in_group('low', sub {
		in_namespace($node, $name, [ 'unshare', @own ], sub {
			my $status = status_of($node);
			like($status->{in_use} // 'unknown', qr/^(t|unknown)$/, "$name: in_use is right or unknown");
			like($status->{status}, qr/^(critical|unknown)$/, "$name: the limit of the cgroup is applied or unknown")
			  or diag("reason: $status->{reason}");
		});
	});
}

SKIP:
{
	my $name = 'a cgroup namespace';
	needs_host($name);
	needs_namespaces($name, qw(--user --map-root-user --mount --cgroup));
	pools_of_one_size($kb, $need);
	my ($version) = make_group('contained');
	my $limit = 1024 * $kb * ($need - 1);
	limit_group('contained', 'fault', $kb, $limit);
	my $type = $version == 2 ? 'cgroup2' : 'cgroup -o hugetlb';
	in_group('contained', sub {
		in_namespace($node, $name, with_mounts(["-t $type none /sys/fs/cgroup"], '--cgroup'), sub {
			my ($own) = $node->safe_psql('postgres', q{SELECT pg_read_file('/proc/self/cgroup')}) =~ m{^0::(.*)$}m;
			is($own, '/', "$name: the cgroup is the root of the namespace") if $version == 2;
			my $seen = observe($node);
			is($seen->{pools}{$kb}{cgroup_limit_bytes}, $limit, "$name: the limit is visible");
			compare_status($seen->{status}, { in_use => 't', status => 'critical' }, $name);
		});
	});
}

SKIP:
{
	# As in a pod, whose limit is enforced in a cgroup above that of the container.
	my $name = 'a limit above the cgroup namespace';
	needs_host($name);
	needs_namespaces($name, qw(--user --map-root-user --mount --cgroup));
	my $bomb = new_server('bomb', shared_buffers => '32MB', restart_after_crash => 'on');
	$bomb->safe_psql('postgres', q{
		CREATE TABLE large AS SELECT i, repeat('x', 1000) AS x FROM generate_series(1, 25000) AS i;
		CREATE UNIQUE INDEX ON large (i)});
	my $pages = required_pages($bomb, $kb);
	$bomb->stop;
	pools_of_one_size($kb, $pages);
	my ($version) = make_group('above');
	make_group('above/contained');
	limit_group('above', 'fault', $kb, 1024 * $kb * 6);
	cannot("$name: only version 2 counts refusals below the limit") if $version != 2;
	my $check = q{SELECT status, code, finding, remedy FROM hugeinfo_checks WHERE name = 'cgroup_fault_limit'};
	in_group('above/contained', sub {
		in_namespace($bomb, $name, with_mounts(['-t cgroup2 none /sys/fs/cgroup'], '--cgroup'), sub {
			is($bomb->safe_psql('postgres', q{SELECT status || code FROM hugeinfo_checks WHERE name = 'cgroup_fault_limit'}),
				'oknot_limited', "$name: before a page is refused, nothing shows it");
			my ($exit) = $bomb->psql('postgres', q{
				SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
				SELECT count(x) FROM (SELECT x FROM large ORDER BY i) AS t});
			isnt($exit, 0, "$name: a query fails");
			# A process that dies of SIGBUS makes the server restart its processes.
			ok(until_true(sub { !($bomb->psql('postgres', 'SELECT 1'))[0] }), "$name: the server is up again");
			# Other queries read pages that the limit refuses.
			my ($status, $code, $finding, $remedy) = split /\|/, $bomb->safe_psql('postgres', $check);
			is("$status $code", 'warning limit_above', "$name: the counter shows it");
			like($finding, qr/^The kernel refused .* pages to this cgroup .* a hidden limit above the cgroup is too low/, "$name: the finding");
			like($remedy, qr/^# raise the limit above this cgroup to at least \d+ MB \(in Kubernetes, the pod's hugepages-/, "$name: the remedy");
		});
	});
}

SKIP:
{
	my $name = 'hidden cgroups';
	needs_host($name);
	needs_namespaces($name, qw(--user --map-root-user --mount));
	pools_of_one_size($kb, $need);
	in_namespace($node, $name, with_mounts(['-t tmpfs none /sys/fs/cgroup']), sub {
		compare_status(status_of($node), { in_use => 't', status => 'unknown' }, $name);
	});
}

SKIP:
{
	my $name = 'an empty /sys/kernel/mm/hugepages';
	needs_host($name);
	needs_namespaces($name, qw(--user --map-root-user --mount));
	pools_of_one_size($kb, $need);
	in_namespace($node, $name, with_mounts(['-t tmpfs none /sys/kernel/mm/hugepages']), sub {
		my ($postmaster) = @_;
		my $status = status_of($node);
		my $real = segment($postmaster);
		compare_status($status, {
				in_use => 't',
				status => 'unknown',
				page_size_bytes => $real->{page_bytes},
				segment_bytes => $real->{bytes},
				pool_total_pages => undef,
				pool_available_pages => undef,
			}, $name);
		is($node->safe_psql('postgres', 'SELECT count(*) FROM hugeinfo_pools'), 0, "$name: no pools");
	});
}

done_testing;
