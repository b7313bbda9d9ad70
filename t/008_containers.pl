# Servers that see less of the host than others: containers, and files that are hidden. What cannot
# be seen is unknown, never fine.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Contained;
use HugeInfo::Kernel;
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
		is($node->safe_psql('postgres', q{SELECT pg_read_file('postmaster.pid', 0, 2)}), "1\n", "$name: it is");
		compare_status($status, {
				in_use => 't',
				status => 'ok',
				page_size_bytes => $real->{page_bytes},
				segment_bytes => $real->{bytes},
				shortfall_pages => 0,
			}, $name);
		# Its files are those of the host here, which nobody can tell from within.
		is($node->safe_psql('postgres', q{SELECT status, finding FROM hugeinfo_checks WHERE name = 'reboot'}),
			'unknown|Cannot judge reboot: /etc is not the host\'s own here, as in a container.',
			"$name: the next boot");
	});
}

SKIP:
{
	my $name = 'a container beside a server that it does not see';
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
		is_deeply(\@fewer, [], "$name: pages that it cannot account for stay") or diag($said);
		is(status_of($node)->{recommended_nr_hugepages}, $total, "$name: nor is a smaller number recommended");
		is($node->safe_psql('postgres', q{SELECT status FROM hugeinfo_checks WHERE name = 'pool_size'}), 'unknown', "$name: whose they are is unknown");
	});

	$name = 'a container on a pool that another server has';
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
		is(segment($postmaster)->{page_bytes}, $kb * 1024, "$name: on huge pages after what it said was typed");
		is($outside->safe_psql('postgres', 'SELECT in_use FROM hugeinfo_status'), 't', "$name: the other one still is");
	});
	is(pool($kb)->{total}, $need + $others, "$name: no page more than both need");
	$outside->stop;
}

SKIP:
{
	# Its process numbers mean somebody else in the host's /proc: process 1 there is not the
	# postmaster.
	my $name = 'process numbers that /proc does not share';
	my @own = qw(--user --map-current-user --pid --fork);
	needs_host($name);
	needs_namespaces($name, @own);
	pools_of_one_size($kb, $need);
	make_group('low');
	limit_group('low', 'fault', $kb, 1024 * $kb * ($need - 1));
	# process 1 of the host is in no such group
	in_group('low', sub {
		in_namespace($node, $name, [ 'unshare', @own ], sub {
			my $status = status_of($node);
			like($status->{in_use} // 'unknown', qr/^(t|unknown)$/, "$name: in_use is right or unknown");
			like($status->{status}, qr/^(critical|unknown)$/, "$name: and so is the cgroup's limit")
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
			is($own, '/', "$name: the group is the root of what it sees") if $version == 2;
			my $seen = observe($node);
			is($seen->{pools}{$kb}{cgroup_limit_bytes}, $limit, "$name: the limit is seen");
			compare_status($seen->{status}, { in_use => 't', status => 'critical' }, $name);
		});
	});
}

SKIP:
{
	my $name = 'cgroups that cannot be seen';
	needs_host($name);
	needs_namespaces($name, qw(--user --map-root-user --mount));
	pools_of_one_size($kb, $need);
	in_namespace($node, $name, with_mounts(['-t tmpfs none /sys/fs/cgroup']), sub {
		compare_status(status_of($node), { in_use => 't', status => 'unknown' }, $name);
	});
}

SKIP:
{
	my $name = 'nothing in /sys/kernel/mm/hugepages';
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
