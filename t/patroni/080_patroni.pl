# The recipe in docs/patroni.md, on a Patroni cluster of two members with etcd, on the loopback
# interface: `hugeinfo ensure` gives members the huge pages of their next start, from before_stop of
# Patroni through sudo, and after a boot. Without it, restarts fail or fall back.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use HugeInfo::Tools;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HTTP::Tiny ();
use IPC::Run ();
use JSON::PP ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $program = source('target/program/hugeinfo');
my $bindir = $ENV{PATH} =~ s/:.*//r;
# All processes run below the directory of this test, so that they are ended with it.
my $dir = "$ENV{TESTDIR}/patroni";
my @python = ('env', "HOME=$dir", 'PYTHONDONTWRITEBYTECODE=1', 'LC_ALL=C.UTF-8',
	'PYTHONPATH=' . source('target/tools/patroni'), '/usr/bin/python3');
my ($client, $peer) = map { 'http://127.0.0.1:' . PostgreSQL::Test::Cluster::get_free_port() } 1, 2;
my %members = map { $_ => {
		name => $_, data => "$dir/$_/data", log => "$dir/$_/log", yml => "$dir/$_/patroni.yml",
		port => PostgreSQL::Test::Cluster::get_free_port(), api => PostgreSQL::Test::Cluster::get_free_port() } } qw(one two);
my ($one, $two) = @members{qw(one two)};

# Options of ensure for a member, the same as in the rule for sudo.
sub ensure_options { my ($member) = @_; return "-D $member->{data} --bindir $bindir" }

sub write_configuration
{
	my ($member, %more) = @_;
	my %settings = (huge_pages => 'on', shared_buffers => '16MB', max_connections => 30, checkpoint_timeout => '1d');
	my $local = sub { my ($port) = @_; return "127.0.0.1:$port" };
	my %configuration = (
		scope => 'demo',
		name => $member->{name},
		restapi => { map { $_ => $local->($member->{api}) } qw(listen connect_address) },
		etcd3 => { url => $client },
		bootstrap => {
			dcs => { ttl => 20, loop_wait => 1, retry_timeout => 5, postgresql => { parameters => \%settings } },
			initdb => [ 'no-sync', { encoding => 'UTF8' }, { locale => 'C' }, { auth => 'trust' } ],
		},
		postgresql => {
			(map { $_ => $local->($member->{port}) } qw(listen connect_address)),
			data_dir => $member->{data},
			bin_dir => $bindir,
			use_unix_socket => JSON::PP::true,
			parameters => { unix_socket_directories => "$dir/$member->{name}", fsync => 'off' },
			pg_hba => [ 'local all all trust', 'host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust' ],
			authentication => { superuser => { username => 'postgres' }, replication => { username => 'replicator' } },
			%more });
	unlink $member->{yml};
	# JSON is YAML.
	return append_to_file($member->{yml}, JSON::PP->new->encode(\%configuration));
}

# Starts Patroni. Only in its mount namespace, sudo has the rule for ensure.
sub start_member
{
	my ($member) = @_;
	my $rule = "postgres ALL=(root) NOPASSWD: $program ensure --for restart " . ensure_options($member);
	my $user = getpwuid $<;
	$rule =~ s/^postgres/$user/;
	$member->{pid} = start_with_mounts($member->{log}, "mount -t tmpfs -o mode=0755 none /etc/sudoers.d && echo '$rule' >/etc/sudoers.d/hugeinfo",
		@python, qw(-m patroni), $member->{yml});
	return;
}

sub stop_member
{
	my ($member) = @_;
	kill TERM => $member->{pid};
	return until_true(sub { (state_of($member->{pid}) // 'Z') eq 'Z' });
}

# Runs patronictl. Returns its output.
sub patronictl
{
	my (@arguments) = @_;
	my $out = '';
	IPC::Run::run([ @python, source('target/tools/patroni/bin/patronictl'), '-c', $one->{yml}, @arguments ], '<', '/dev/null', '>', \$out, '2>&1');
	note("patronictl @arguments:\n$out");
	return $out;
}

# What Patroni reports about a member.
sub reported
{
	my ($member) = @_;
	my $answer = HTTP::Tiny->new(timeout => 5)->get("http://127.0.0.1:$member->{api}/patroni");
	return eval { JSON::PP->new->decode($answer->{content}) } // {};
}

sub until_state
{
	my ($member, $state) = @_;
	return until_true(sub { (reported($member)->{state} // '') eq $state }) || diag(slurp_file($member->{log}) =~ s/\A.*(.{6000})\z/$1/sr);
}

# Changes settings of the cluster, and waits until they are pending.
sub edit_config
{
	my (@settings) = @_;
	patronictl(qw(edit-config demo --force --quiet), map { ('-p', $_) } @settings);
	for my $member ($one, $two)
	{
		until_true(sub { reported($member)->{pending_restart} }) or diag("$member->{name}: nothing is pending");
	}
	return;
}

sub restart { my ($member) = @_; return patronictl(qw(restart demo), $member->{name}, '--force') }

sub query
{
	my ($member, $sql) = @_;
	my $out = '';
	IPC::Run::run([ 'psql', '-XAtq', '-h', "$dir/$member->{name}", '-p', $member->{port}, '-U', 'postgres', '-d', 'postgres', '-c', $sql ],
		'<', '/dev/null', '>', \$out, '2>&1');
	chomp $out;
	return $out;
}

sub need { my ($member) = @_; return query($member, 'SHOW shared_memory_size_in_huge_pages') }

sub page_bytes
{
	my ($member) = @_;
	my ($pid) = split /\n/, slurp_file("$member->{data}/postmaster.pid");
	return segment($pid)->{page_bytes};
}

# Waits until the server of a member answers again, on huge pages.
sub is_on_huge_pages
{
	my ($member, $name) = @_;
	until_state($member, 'running');
	return is(page_bytes($member), $kb * 1024, "$name: $member->{name} is on huge pages");
}

# Runs it as root. Returns the exit status and the output.
sub as_root
{
	my ($arguments) = @_;
	type_in("$program $arguments >$dir/out 2>&1; echo \$? >$dir/status");
	my ($status, $out) = map { slurp_file("$dir/$_") } qw(status out);
	unlink "$dir/out", "$dir/status";
	return ($status + 0, $out);
}

# Reservations of earlier runs count for two minutes.
sub forget { return type_in("rm -rf /run/hugeinfo >$dir/removed") }

sub total { return pool($kb)->{total} - pages_of_others($kb) }

SKIP:
{
	my $name = 'Patroni';
	needs_host($name);
	needs_tools($name, qw(etcd sudo));
	cannot("$name: not installed: see tools/setup") unless -e source('target/tools/patroni/patroni');
	mkdir $_ or die "$_: $!\n" for $dir, map { "$dir/$_" } qw(etcd one two);
	forget();
	start_with_mounts("$dir/etcd/log", 'true', tool('etcd'), '--data-dir', "$dir/etcd/data", '--unsafe-no-fsync',
		(map { ($_, $client) } '--listen-client-urls', '--advertise-client-urls'),
		(map { ($_, $peer) } '--listen-peer-urls', '--initial-advertise-peer-urls'), '--initial-cluster', "default=$peer");

	# Before the first start, there is no data directory.
	my $plan = '';
	IPC::Run::run([ $program, 'plan', '--bindir', $bindir, '--format', 'json', map { ('-c', $_) } qw(huge_pages=on shared_buffers=16MB max_connections=30) ], '>', \$plan);
	my $need = (grep { $_->{page_size_bytes} == $kb * 1024 } @{ JSON::PP->new->decode($plan)->{plan} })[0]{required_pages};
	pools_of_one_size($kb, 2 * $need);
	write_configuration($_) for $one, $two;
	start_member($one);
	until_state($one, 'running');
	start_member($two);
	for my $member ($one, $two)
	{
		is_on_huge_pages($member, 'the first start');
		is(need($member), $need, "the first start: $member->{name} needs the pages of the plan");
	}

	# Without the hook
	edit_config('shared_buffers=48MB');
	my $printed = restart($two);
	ok(until_state($two, 'start failed'), 'no hook, huge_pages = on: the restart fails') or diag($printed);
	my ($status, $out) = as_root('ensure ' . ensure_options($two));
	is($status, 0, 'no hook: ensure by hand: exit status') or diag($out);
	is_on_huge_pages($two, 'no hook: after ensure by hand');

	edit_config('huge_pages=try', 'shared_buffers=64MB');
	restart($two);
	until_state($two, 'running');
	is(page_bytes($two), base_page(), 'no hook, huge_pages = try: it falls back');

	# With the hook
	for my $member ($one, $two)
	{
		write_configuration($member, before_stop => "sudo -n $program ensure --for restart " . ensure_options($member));
		kill HUP => $member->{pid};
	}
	edit_config('huge_pages=on', 'shared_buffers=80MB');
	for my $member ($one, $two)
	{
		restart($member);
		is_on_huge_pages($member, 'shared_buffers');
		like(slurp_file($member->{log}), qr/will get \d+ huge pages of .* after the restart; \d+ were added to the pool/, "shared_buffers: the log of $member->{name}");
		like(slurp_file($member->{log}), qr/before_stop script .* exited with 0/, "shared_buffers: the hook of $member->{name}");
	}
	is(total(), need($one) + need($two), 'shared_buffers: no more pages than needed');
	is(reported($one)->{role}, 'primary', 'shared_buffers: no failover');

	# Patroni passes this setting on the command line of the server. The standby first: with a lower
	# value than its primary, it would shut down without the hook.
	edit_config('max_connections=200');
	for my $member ($two, $one)
	{
		restart($member);
		is_on_huge_pages($member, 'max_connections');
		is(query($member, 'SHOW max_connections'), 200, "max_connections: $member->{name} has it");
	}
	is(total(), need($one) + need($two), 'max_connections: no more pages than needed');

	# A standby keeps the value of its primary.
	edit_config('max_connections=50', 'shared_buffers=96MB');
	restart($two);
	is_on_huge_pages($two, 'max_connections is lowered');
	is(query($two, 'SHOW max_connections'), 200, 'max_connections is lowered: the standby has that of the primary');
	restart($one);
	is_on_huge_pages($one, 'max_connections is lowered');
	is(total(), need($one) + need($two), 'max_connections is lowered: no more pages than needed');
	restart($two);

	# Both at once need the pages of both.
	edit_config('shared_buffers=160MB');
	my @runs = map {
		IPC::Run::start([ @python, '-c', 'import sys, urllib.request as r; r.urlopen(r.Request(sys.argv[1], data=b"{}", method="POST"))', "http://127.0.0.1:$_->{api}/restart" ],
			'<', '/dev/null', '>', '/dev/null', '2>', '/dev/null') } $one, $two;
	$_->finish for @runs;
	is_on_huge_pages($_, 'both at once') for $one, $two;
	is(query($_, 'SHOW shared_buffers'), '160MB', "both at once: $_->{name} was restarted") for $one, $two;
	is(total(), need($one) + need($two), 'both at once: no more pages than needed');

	# A boot with pending settings. The standby first, so that there is no failover.
	edit_config('max_connections=300', 'shared_buffers=176MB');
	ok(stop_member($_), "boot: $_->{name} is stopped") for $two, $one;
	forget();
	set_pool($kb, 0);
	for my $member ($one, $two)
	{
		($status, $out) = as_root('ensure --for boot ' . ensure_options($member));
		is($status, 0, "boot: ensure for $member->{name}: exit status") or diag($out);
	}
	my $total = total();
	start_member($_) for $one, $two;
	is_on_huge_pages($_, 'boot') for $one, $two;
	is($total, need($one) + need($two), 'boot: no more pages than needed');

	# The hook never prevents a stop: with more than the host has, it prints a warning.
	($status, $out) = as_root('ensure --for restart --wait 1s -c shared_buffers=' . int(ram_bytes() / 2**20) . 'MB ' . ensure_options($one));
	is($status, 2, 'too much: exit status');
	like($out, qr/critical: A restart would fail/, 'too much: says why');
	is(total(), $total, 'too much: the pool is as it was');
	stop_member($_) for $two, $one;
	forget();
}

done_testing;
