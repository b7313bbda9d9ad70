# Servers that see less of the host than others: containers, and files that are hidden. What cannot
# be seen is unknown, never fine.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Server;
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $kb = default_page_kb();
my $node = new_server('inside');
my $need = $kb && required_pages($node, $kb);
$node->stop;

# A server started in namespaces of its own. Runs the command until the code is done.
sub in_namespace
{
	my ($name, $command, $code) = @_;
	my $run = IPC::Run::start([ @$command, 'postgres', '-D', $node->data_dir ],
		'<', '/dev/null', '>', $node->logfile, '2>&1');
	my $up;
	for (1 .. 600)
	{
		last if $up = !system_log('pg_isready', '-q', '-h', $node->host, '-p', $node->port);
		last unless $run->pumpable;
		sleep 0.1;
	}
	ok($up, "$name: the server is up");
	# the innermost process that the command has become: the postmaster
	my ($postmaster) = grep { (readlink("/proc/$_/cwd") // '') eq $node->data_dir } _descendants($run->{KIDS}[0]{PID});
	$code->($postmaster) if $up;
	kill INT => $postmaster if $postmaster;
	$run->finish;
	return;
}

sub _descendants
{
	my ($pid) = @_;
	my %children;
	for (glob '/proc/[0-9]*/stat')
	{
		my $stat = eval { slurp_file($_) } // next;
		push @{ $children{$2} }, $1 if $stat =~ /^(\d+) \(.*\) \S (\d+)/s;
	}
	my @all = ($pid);
	for (my $i = 0; $i < @all; $i++) { push @all, @{ $children{ $all[$i] } // [] } }
	return @all;
}

sub namespaces_missing
{
	my ($out, $error);
	return IPC::Run::run([ 'unshare', @_, 'true' ], '>', \$out, '2>', \$error)
	  ? undef : "no namespaces for ordinary users here: $error";
}

SKIP:
{
	my $name = 'a container: postmaster is process 1';
	my @own = qw(--user --map-current-user --pid --fork --mount-proc);
	needs_host($name);
	my $missing = namespaces_missing(@own);
	cannot("$name: $missing") if $missing;
	pools_of_one_size($kb, $need);
	in_namespace($name, [ 'unshare', @own ], sub {
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
			'unknown|cannot determine what the next boot sets up: /etc is not the host\'s own here, as in a container',
			"$name: the next boot");
	});
}

SKIP:
{
	# Its process numbers mean somebody else in the host's /proc: process 1 there is not the
	# postmaster.
	my $name = 'process numbers that /proc does not share';
	my @own = qw(--user --map-current-user --pid --fork);
	needs_host($name);
	my $missing = namespaces_missing(@own);
	cannot("$name: $missing") if $missing;
	pools_of_one_size($kb, $need);
	make_group('low');
	limit_group('low', 'fault', $kb, 1024 * $kb * ($need - 1));
	# process 1 of the host is in no such group
	in_group('low', sub {
		in_namespace($name, [ 'unshare', @own ], sub {
			my $status = status_of($node);
			like($status->{in_use} // 'unknown', qr/^(t|unknown)$/, "$name: in_use is right or unknown");
			like($status->{status}, qr/^(critical|unknown)$/, "$name: and so is the cgroup's limit")
			  or diag("reason: $status->{reason}");
		});
	});
}

# A command that mounts something over a directory, for what it starts only. It takes two steps:
# mounting needs root of a user namespace, and PostgreSQL refuses to run as root of one.
sub with_mount
{
	my ($mount, @unshare) = @_;
	my ($uid, $gid) = ($>, $) + 0);
	return [
		qw(unshare --user --map-root-user --mount), @unshare, 'sh', '-c', qq(mount $mount && exec "\$0" "\$@"),
		'unshare', '--user', "--map-user=$uid", "--map-group=$gid" ];
}

SKIP:
{
	my $name = 'a cgroup namespace';
	needs_host($name);
	my $missing = namespaces_missing(qw(--user --map-root-user --mount --cgroup));
	cannot("$name: $missing") if $missing;
	pools_of_one_size($kb, $need);
	my ($version) = make_group('contained');
	my $limit = 1024 * $kb * ($need - 1);
	limit_group('contained', 'fault', $kb, $limit);
	my $type = $version == 2 ? 'cgroup2' : 'cgroup -o hugetlb';
	in_group('contained', sub {
		in_namespace($name, with_mount("-t $type none /sys/fs/cgroup", '--cgroup'), sub {
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
	my $missing = namespaces_missing(qw(--user --map-root-user --mount));
	cannot("$name: $missing") if $missing;
	pools_of_one_size($kb, $need);
	in_namespace($name, with_mount('-t tmpfs none /sys/fs/cgroup'), sub {
		compare_status(status_of($node), { in_use => 't', status => 'unknown' }, $name);
	});
}

SKIP:
{
	my $name = 'nothing in /sys/kernel/mm/hugepages';
	needs_host($name);
	my $missing = namespaces_missing(qw(--user --map-root-user --mount));
	cannot("$name: $missing") if $missing;
	pools_of_one_size($kb, $need);
	in_namespace($name, with_mount('-t tmpfs none /sys/kernel/mm/hugepages'), sub {
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
