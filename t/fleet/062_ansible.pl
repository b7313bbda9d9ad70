# Tests the Ansible role on a primary and its standby. By default, the role only reports. Otherwise
# it sets pools and restarts servers, the standby first. The run ends if the kernel allocates too
# few pages, a server does not start, commits would wait, a failover happens, or the runbook has
# an unknown step. If a step fails, the role restores pools and starts the server. Running the role
# again is a no-op. The role never executes text from psql.
#
# The role's root commands go through tools/lib/host.pl, so that the host is restored.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use HugeInfo::Tools;
use HugeInfo::Host;
use HugeInfo::Contained;
use HugeInfo::Kernel;
use HugeInfo::Server;
use IO::Select;
use IO::Socket::UNIX;
use IPC::Run ();
use JSON::PP ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Socket qw(SOCK_STREAM);
use Test::More;

my $kb = default_page_kb();
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my $playbook = source('fleet/ansible/hugeinfo.yml');

# A root shell that passes each line to this test, and waits for the result.
my $listener = IO::Socket::UNIX->new(Type => SOCK_STREAM, Local => "$dir/root", Listen => 5) or die "$dir: $!\n";
append_to_file("$dir/root-shell", <<'PERL');
use IO::Socket::UNIX;
my ($path, $line) = @ARGV;
my $socket = IO::Socket::UNIX->new(Peer => $path) or die "$path: $!\n";
print $socket "$line\n";
my $answer = <$socket> // die "no answer\n";
die $answer if $answer ne "done\n";
PERL

# The commands that were run, and the function that runs them, by default unchanged.
my @typed;
our $type;

sub serve_root
{
	my $socket = $listener->accept or return;
	chomp(my $line = <$socket>);
	push @typed, $line;
	my $done = eval { ($type // \&type_in)->($line); 1 };
	print $socket $done ? "done\n" : "$@\n";
	return close $socket;
}

# Returns a command that runs Ansible with its own mounts.
our @within;

# Runs the playbook. Returns the recap of each host, the exit status, and the output.
sub play
{
	my ($name, @arguments) = @_;
	@typed = ();
	local @ENV{qw(LC_ALL ANSIBLE_LOCAL_TEMP ANSIBLE_REMOTE_TEMP ANSIBLE_HOME)} =
	  ('C.UTF-8', "$dir/local", "$dir/remote", "$dir/home");
	local @ENV{
		qw(ANSIBLE_NOCOLOR ANSIBLE_RETRY_FILES_ENABLED ANSIBLE_LOCALHOST_WARNING PYTHONDONTWRITEBYTECODE)
	} = (1, 0, 0, 1);
	my $out = '';
	my $run = IPC::Run::start([ @within, 'ansible-playbook', '-i', "$dir/inventory.json", $playbook, @arguments ], '<', '/dev/null', '>', \$out, '2>&1');
	my $select = IO::Select->new($listener);
	while ($run->pumpable)
	{
		$run->pump_nb;
		serve_root() if $select->can_read(0.1);
	}
	$run->finish;
	note($out);
	my %recap = map { /^(\S+)\s+: (ok=.*)/ ? ($1 => { map { split /=/ } split ' ', $2 }) : () } split /\n/, $out;
	return ($run->result(0), \%recap, $out);
}

my $refused = qr/Nothing was done, because the runbook has steps that this role does not run:/;

# Adds these variables to each host.
sub write_inventory
{
	my (%hosts) = @_;
	for my $host (values %hosts)
	{
		$host = {
			ansible_connection => 'local',
			ansible_python_interpreter => '/usr/bin/python3',
			hugeinfo_become => JSON::PP::false,
			hugeinfo_root_shell => [ 'perl', "$dir/root-shell", "$dir/root" ],
			%$host };
	}
	unlink "$dir/inventory.json";
	my $inventory = { all => { hosts => \%hosts } };
	return append_to_file("$dir/inventory.json", JSON::PP->new->encode($inventory));
}

# Creates a fake psql that prints this answer of a primary.
mkdir "$dir/fake" or die "$dir/fake: $!\n";
sub fake_psql
{
	my (%answer) = @_;
	unlink "$dir/answer.json";
	append_to_file(
		"$dir/answer.json",
		JSON::PP->new->ascii->encode({
			status => { status => 'warning', reason => 'as it is' },
			runbook => [],
			is_standby => JSON::PP::false,
			is_streaming => JSON::PP::false,
			spares_a_standby => JSON::PP::true,
			system_identifier => '1', started => '2020-01-01', %answer }));
	return if -e "$dir/fake/psql";
	append_to_file("$dir/fake/psql", <<"SH");
#!/bin/sh
[ "\$6" = -c ] || cat >/dev/null
exec cat $dir/answer.json
SH
	return chmod 0755, "$dir/fake/psql";
}

# Returns a row of hugeinfo_runbook with a harmless member "whole". A step of the service is an
# instruction.
sub runbook_row
{
	my ($where, $text) = @_;
	my $is_instruction = ($where // 'service') eq 'service';
	return {
		step => 1,
		where_to_run => $where,
		command => $is_instruction ? undef : $text,
		instruction => $is_instruction ? $text : undef,
		whole => 'root shell: echo 1 > /proc/sys/vm/compact_memory',
		expected => 'ok: fine',
		can_wait => JSON::PP::false };
}

sub changed { my ($recap) = @_; return { map { $_ => $recap->{$_}{changed} } keys %$recap } }

my $primary = PostgreSQL::Test::Cluster->new('primary');
my $standby = PostgreSQL::Test::Cluster->new('standby');
my @nodes = ($primary, $standby);

sub started_of { my ($node) = @_; return $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()') }
sub started { return map { started_of($_) } @nodes }
sub page_bytes { return map { $_->_update_pid(1); segment($_->{_pid})->{page_bytes} } @nodes }

SKIP:
{
	needs_tools('the Ansible role', 'ansible-playbook');
	append_to_file("$dir/inventory.json", '{}');
	my ($exit) = play('syntax', '--syntax-check');
	is($exit, 0, 'ansible-playbook --syntax-check');
}

SKIP:
{
	needs_tools('its style', 'ansible-lint');
	# ansible-lint writes files next to the files that it reads.
	system_or_bail('cp', '-r', source('fleet/ansible'), "$dir/ansible");
	local @ENV{qw(LC_ALL HOME ANSIBLE_HOME ANSIBLE_LOCAL_TEMP)} = ('C.UTF-8', $dir, "$dir/home", "$dir/local");
	my $found = '';
	my $clean = IPC::Run::run([ 'sh', '-c', "cd $dir/ansible && exec ansible-lint --offline --nocolor --profile production hugeinfo.yml" ], '>', \$found, '2>&1');
	ok($clean, 'ansible-lint') or diag($found);
}

SKIP:
{
	needs_tools('hostile answers', 'ansible-playbook');
	local $type = sub { };
	write_inventory(db => { hugeinfo_psql => ["$dir/fake/psql"], hugeinfo_restart_command => [ 'touch', "$dir/owned" ] });
	my ($memory_kb) = slurp_file('/proc/meminfo') =~ /^MemTotal:\s+(\d+) kB$/m;
	my ($too_many, $half) = map { int($memory_kb * $_ / $kb) } 0.91, 0.46;
	my $why = qr{leaves less than 10% of this host's memory};
	my $boot_line = "echo 'vm.nr_hugepages = $too_many'";
	my $pool = "hugepages/hugepages-${kb}kB/nr_hugepages";
	for (
		[ 'an arbitrary command', qr/id > /, [ 'root shell', "id > $dir/owned" ] ],
		[ 'a template', qr/lookup/, [ 'root shell', qq({{ lookup("pipe", "touch $dir/owned") }}) ] ],
		[ 'a newline at the end', qr/nr_hugepages=1  \(/, [ 'root shell', "sysctl -w vm.nr_hugepages=1\n" ] ],
		[ 'digits that are not ASCII', qr/nr_hugepages=\S+ \(/, [ 'root shell', "sysctl -w vm.nr_hugepages=\x{0663}" ] ],
		[ 'a number of 5000 digits', qr/=999/, [ 'root shell', 'sysctl -w vm.nr_hugepages=' . '9' x 5000 ] ],
		[ 'more pages than memory', $why, [ 'root shell', "sysctl -w vm.nr_hugepages=$too_many" ] ],
		[ 'two pools that use all memory', $why,
			[ 'root shell', "sysctl -w vm.nr_hugepages=$half" ],
			[ 'root shell', "echo $half > /sys/devices/system/node/node0/$pool" ] ],
		[ 'a lower limit on commitments', qr/could lower the commit limit/, [ 'root shell', 'sysctl -w vm.overcommit_ratio=1' ] ],
		[ 'all memory at boot', $why, [ 'root shell', "(umask 022 && $boot_line >> /etc/sysctl.d/x.conf)" ] ],
		[ 'a setting that runs a program', qr/archive_command/, [ 'SQL', q(ALTER SYSTEM SET archive_command = 'touch';) ] ],
		[ 'a decision', qr/decision: lower shared_buffers/, [ undef, 'lower shared_buffers to 1MB' ] ],
		[ 'a step for the node of a container', qr/root shell of the node: sysctl/, [ 'root shell of the node', 'sysctl -w vm.nr_hugepages=1' ] ],
		[ 'a command in the wrong place', qr/SQL: sysctl/, [ 'SQL', 'sysctl -w vm.nr_hugepages=1' ] ],
		[ 'more than a restart', qr/restart PostgreSQL; id/, [ 'service', 'restart PostgreSQL; id' ] ])
	{
		my ($name, $shown, @steps) = @$_;
		fake_psql(runbook => [ map { runbook_row(@$_) } @steps ]);
		my ($exit, $recap, $out) = play($name, '-e', 'hugeinfo_report_only=false');
		isnt($exit, 0, "$name: an error");
		like($out, qr/$refused .*$shown/, "$name: the message");
		is_deeply(changed($recap), { db => 0 }, "$name: nothing is changed");
		is_deeply([ \@typed, -e "$dir/owned" ], [ [], undef ], "$name: nothing is run");
	}

	for (
		[ 'an array instead of an object', [] ],
		[ 'a string instead of a Boolean', { is_standby => 'no' } ],
		[ 'a number instead of a runbook', { runbook => 5 } ],
		[ 'a number instead of a command', { runbook => [ runbook_row('root shell', 5) ] } ],
		[ 'too many steps', { runbook => [ (runbook_row('root shell', 'echo 1 > /proc/sys/vm/compact_memory')) x 65 ] } ],
		[ 'a template instead of an identifier', { system_identifier => qq({{ lookup("pipe", "touch $dir/owned") }}) } ])
	{
		my ($name, $answer) = @$_;
		if (ref $answer eq 'HASH') { fake_psql(%$answer) }
		else { unlink "$dir/answer.json"; append_to_file("$dir/answer.json", '[]') }
		my ($exit, undef, $out) = play($name, '-e', 'hugeinfo_report_only=false');
		isnt($exit, 0, "$name: an error");
		like($out, qr/psql printed an unexpected answer/, "$name: the message");
		is_deeply([ \@typed, -e "$dir/owned" ], [ [], undef ], "$name: nothing is run");
	}

	# A server can print any amount of text.
	my $name = 'a long answer';
	unlink "$dir/answer.json";
	append_to_file("$dir/answer.json", 'x' x (3 << 20));
	my ($status, undef, $printed) = play($name);
	isnt($status, 0, "$name: an error");
	like($printed, qr/psql printed more than 1 MB/, "$name: the message");

	$name = 'every form of a step';
	my $size = "/sys/kernel/mm/$pool";
	my $thp = '/sys/kernel/mm/transparent_hugepage';
	my $sysctl = q(sed -i 's/^vm\.nr_hugepages=1$/vm.nr_hugepages = 2/' /etc/sysctl);
	my @forms = (
		(map { [ 'root shell', $_ ] } 'sysctl -w vm.nr_hugepages=2', "echo 2 > $size",
			"echo 0 > /sys/devices/system/node/node0/$pool", 'echo 1 > /proc/sys/vm/compact_memory',
			$size =~ s/^(.*)nr_hugepages$/echo 1 > $1demote/r, 'sysctl -w vm.overcommit_ratio=70',
			(map { "echo madvise > $thp/$_" } 'enabled', 'hugepages-64kB/shmem_enabled'),
			"(umask 022 && echo 'vm.nr_hugepages = 2' >> /etc/sysctl.d/60-hugepages.conf)",
			"(umask 022 && mkdir -p /etc/sysctl.d && echo 'vm.overcommit_ratio = 70' >> /etc/sysctl.d/60-hugepages.conf)",
			"(umask 022 && mkdir -p /etc/tmpfiles.d && echo 'w $thp/enabled - - - - madvise' >> /etc/tmpfiles.d/60-hugepages.conf)",
			"$sysctl.conf", "$sysctl.d/99-x.conf",
			"sed -i 's,^w $thp/enabled - - - - always\$,w $thp/enabled - - - - madvise,' /etc/tmpfiles.d/x.conf"),
		(map { [ SQL => $_ ] } q(ALTER SYSTEM SET huge_pages = 'try';), q(ALTER SYSTEM SET shared_memory_type = 'mmap';),
			'ALTER SYSTEM SET huge_page_size = 0;', q(ALTER SYSTEM SET huge_page_size = '2MB';), 'SELECT pg_reload_conf();'));
	fake_psql(runbook => [ map { runbook_row(@$_) } @forms ]);
	my (undef, $planned, $steps) = play($name, '-e', 'hugeinfo_report_only=false', '-e', 'hugeinfo_pools_may_shrink=true', '--check');
	is($planned->{db}{changed}, scalar @forms, "$name: would be run");
	for (@forms)
	{
		my ($where, $command) = @$_;
		my $shown = "$where: " . $command =~ s/\\/\\\\/gr;
		is(scalar(() = $steps =~ /"msg": "\Q$shown\E(?: \(makes a pool smaller\))?"/g), 1, "$name: $command");
	}

	$name = 'control characters';
	my $template = qq({{ lookup('pipe', 'touch $dir/owned') }});
	fake_psql(
		status => { status => "warning\e[2J", reason => "$template\x{202e}\nforged\x{9b}31m" },
		runbook => [ runbook_row('root shell', "id\e[2J\x{202e}\nforged") ]);
	my ($exit, undef, $out) = play($name);
	utf8::decode($out);
	is($exit, 0, "$name: a report");
	like($out, qr/warning \[2J: \Q$template\E  forged 31m/, "$name: the other characters are printed");
	like($out, qr/root shell: id \[2J  forged \(for a person\)/, "$name: removed from a step");
	unlike($out, qr/(?!\n)[\p{Cc}\p{Cf}]/, "$name: are not printed");
	ok(!-e "$dir/owned", "$name: a template is not evaluated");

	# The user of psql could make a module that runs as this user return variables of this role.
	$name = 'users of modules and psql';
	fake_psql();
	append_to_file("$dir/fake/sudo", <<"SH");
#!/bin/sh
while [ "\$1" != /bin/sh ]; do [ "\$1" != -u ] || echo "\$2" >>$dir/became; shift; done
exec "\$@"
SH
	append_to_file("$dir/fake/runuser", <<"SH");
#!/bin/sh
[ "\$1 \$2 \$3" = '-u somebody --' ] || exit 1
echo psql >>$dir/became
shift 3
exec "\$@"
SH
	chmod 0755, "$dir/fake/sudo", "$dir/fake/runuser";
	write_inventory(
		db => {
			ansible_become_exe => "$dir/fake/sudo",
			hugeinfo_become => JSON::PP::true,
			hugeinfo_postgres_user => 'somebody',
			hugeinfo_psql => ["$dir/fake/psql"] });
	{
		local $ENV{PATH} = "$dir/fake:$ENV{PATH}";
		($exit, undef, $out) = play($name);
	}
	is($exit, 0, "$name: a report");
	is(slurp_file("$dir/became"), "root\npsql\n", "$name: a module of root starts psql");
}

# A host with 1,000,000 kB of memory and pools of two sizes, of 20,480 kB and 655,360 kB. Its kernel
# does not report the size of all pools in /proc/meminfo.
SKIP:
{
	needs_tools('hostile answers and pools', 'ansible-playbook');
	needs_namespaces('hostile answers and pools', qw(--user --map-current-user --keep-caps --mount));
	my $set = sub {
		my ($size, $pages) = @_;
		unlink "$dir/pools/hugepages-${size}kB/nr_hugepages";
		return append_to_file("$dir/pools/hugepages-${size}kB/nr_hugepages", "$pages\n");
	};
	append_to_file("$dir/meminfo", "MemTotal:        1000000 kB\nHugepagesize:       2048 kB\n");
	mkdir "$dir/$_" or die "$dir/$_: $!\n" for qw(pools pools/hugepages-2048kB pools/hugepages-32768kB);
	write_inventory(db => { hugeinfo_psql => ["$dir/fake/psql"] });

	my $sysfs = '/sys/kernel/mm/hugepages';
	my ($small, $large) = map { "$sysfs/hugepages-${_}kB/nr_hugepages" } 2048, 32768;
	my $compact = 'echo 1 > /proc/sys/vm/compact_memory';
	my $boot = sub { my ($pages) = @_; return "(umask 022 && echo 'vm.nr_hugepages = $pages' >> /etc/sysctl.d/x.conf)" };
	my $edit = q(sed -i 's/^vm\.nr_hugepages=50$/vm.nr_hugepages = 49/' /etc/sysctl.conf);
	my $too_much = qr/$refused .*leaves less than 10% of this host's memory/;
	my $smaller = qr/Nothing was done, because the runbook makes pools smaller\. .*\(makes a pool smaller\)/;
	my $ran = qr/The server needs attention: warning/;
	my @pools = ("--bind $dir/meminfo /proc/meminfo", "--bind $dir/pools $sysfs");
	my @shrink = ('-e', 'hugeinfo_pools_may_shrink=true');
	for (
		# name, message, steps, steps that run, options, and what changes during the first step
		[ 'as many pages as the pool of another size leaves', $ran, ["echo 119 > $small"], 1 ],
		[ 'more pages than the pool of another size leaves', $too_much, ["echo 120 > $small"], 0 ],
		[ 'as many pages at boot', $ran, [ $boot->(119) ], 1 ],
		[ 'more pages at boot', $too_much, [ $boot->(120) ], 0 ],
		[ 'a pool that grows meanwhile', qr/119 huge pages would leave less than 10%/, [ $compact, "echo 119 > $small" ], 1, [], [ 32768, 23 ] ],
		[ 'a smaller pool', $smaller, ["echo 9 > $small"], 0 ],
		[ 'a smaller pool, allowed', $ran, ["echo 9 > $small"], 1, \@shrink ],
		[ 'a pool whose pages are split', $smaller, [ $large =~ s/^(.*)nr_hugepages$/echo 1 > $1demote/r ], 0 ],
		[ 'a pool that grows and then shrinks', $smaller, [ "echo 12 > $small", "echo 11 > $small" ], 0 ],
		[ 'a smaller pool at boot', $smaller, [ $boot->(9) ], 0 ],
		[ 'a smaller pool at boot, by a changed line', $smaller, [$edit], 0 ],
		[ 'a smaller pool at boot, allowed', $ran, [ $boot->(9) ], 1, \@shrink ],
		[ 'less pages than a pool has meanwhile', qr/12 huge pages are fewer than the 15/, [ $compact, "echo 12 > $small" ], 1, [], [ 2048, 15 ] ],
		[ 'pools that cannot be read', $too_much, ['sysctl -w vm.nr_hugepages=11'], 0, [], undef, "-t tmpfs none $sysfs" ])
	{
		my ($name, $message, $steps, $runs, $options, $meanwhile, @mounts) = @$_;
		$set->(2048, 10);
		$set->(32768, 20);
		local $type = sub {
			my ($line) = @_;
			$set->(@$meanwhile) if $meanwhile;
			return $line =~ m{^echo (\d+) > \S+-(\d+)kB/} && $set->($2, $1);
		};
		local @within = @{ with_mounts([ @pools, @mounts ]) };
		fake_psql(runbook => [ map { runbook_row('root shell', $_) } @$steps ]);
		my ($exit, undef, $out) = play($name, '-e', 'hugeinfo_report_only=false', @{ $options // [] });
		isnt($exit, 0, "$name: an error");
		like($out, $message, "$name: the message");
		is_deeply(\@typed, [ @$steps[ 0 .. $runs - 1 ] ], "$name: " . ($runs ? 'steps are run' : 'nothing is run'));
	}
}

SKIP:
{
	my $name = 'the role on real servers';
	needs_tools($name, 'ansible-playbook');
	needs_host($name);
	cannot("$name: another file requests huge pages") if -e '/etc/sysctl.d/60-hugepages.conf';

	$primary->init(allows_streaming => 1);
	configure($primary, shared_buffers => '16MB', huge_pages => 'try');
	pools_of_one_size($kb, 0);
	$primary->start;
	$primary->safe_psql('postgres', 'CREATE SCHEMA hugeinfo; CREATE EXTENSION pg_hugeinfo SCHEMA hugeinfo');
	$primary->backup('copy');
	$standby->init_from_backup($primary, 'copy', has_streaming => 1);
	$standby->start;
	$primary->wait_for_catchup($standby);

	my %hosts;
	for my $node (@nodes)
	{
		my @pg_ctl = ('pg_ctl', '-s', '-w', '-D', $node->data_dir, '-l', $node->logfile);
		$hosts{ $node->name } = {
			hugeinfo_conninfo => $node->connstr('postgres'),
			hugeinfo_wait_seconds => 20,
			(map { ("hugeinfo_${_}_command" => [ @pg_ctl, $_ ]) } qw(stop start restart)) };
	}
	my $write_inventory = sub { return write_inventory(%hosts) };
	$write_inventory->();
	my @change = ('-e', 'hugeinfo_report_only=false');
	my @as_it_was = started();

	# Tests that nothing was changed: no command, no restart.
	my $is_untouched = sub {
		my ($what) = @_;
		is_deeply([ started() ], \@as_it_was, "$what: no server was restarted");
		return is_deeply([ page_bytes() ], [ base_page(), base_page() ], "$what: both are on small pages");
	};

	my ($exit, $recap, $out) = play('report');
	is($exit, 0, 'report');
	is_deeply(changed($recap), { primary => 0, standby => 0 }, 'report: nothing is changed');
	# the number depends on other servers on this host
	my @commands = map { s/\d+/N/gr } split /\n/, $primary->safe_psql('postgres', q(SELECT coalesce(where_to_run, 'decision') || ': ' || coalesce(command, instruction) FROM hugeinfo.hugeinfo_runbook));
	my $shown = $out =~ s/\d+/N/gr;
	is_deeply([ grep { index($shown, $_) < 0 } @commands ], [], 'report: contains the runbook');
	is_deeply(\@typed, [], 'report: no command is run');
	$is_untouched->('report');

	($exit, $recap, $out) = play('check', @change, '--check');
	is($exit, 0, '--check');
	cmp_ok($recap->{$_}{changed}, '>=', 2, "--check: $_ would be changed") for qw(primary standby);
	like($out, qr/root shell: sysctl -w .*service: restart PostgreSQL/s, '--check: the commands');
	is_deeply(\@typed, [], '--check: no command is run');
	$is_untouched->('--check');

	{
		local $type = sub { my ($line) = @_; return type_in($line =~ s/(nr_hugepages=)([1-9]\d*)/$1 . ($2 - 1)/er) };
		($exit, $recap, $out) = play('too few', @change);
		isnt($exit, 0, 'too few pages: an error');
		my ($asked) = "@typed" =~ /nr_hugepages=(\d+)/;
		like($out, qr/The kernel allocated @{[ $asked - 1 ]} of $asked huge pages/, 'too few pages: the message has the numbers');
		is_deeply([ grep { !/sysctl -w|compact/ } @typed ], [], 'too few pages: no other command is run');
		$is_untouched->('too few pages');
		like($out, qr/the pools were restored/, 'too few pages: the message reports the restored pools');
		is(pool($kb)->{total}, 0, 'too few pages: the pool is restored');
	}

	# Commands from a database are not run, even if they are from the extension's view.
	my $evil = sub {
		my ($command) = @_;
		my $literal = $command =~ s/'/''/gr;
		return qq{
			CREATE SCHEMA evil;
			CREATE VIEW evil.hugeinfo_status AS SELECT * FROM hugeinfo.hugeinfo_status;
			CREATE VIEW evil.hugeinfo_runbook AS SELECT 1 AS step, 'root shell' AS where_to_run, '$literal' AS command,
				'' AS why, 'ok: fine' AS expected, false AS is_disruptive, NULL::text AS instruction;
			ALTER EXTENSION pg_hugeinfo ADD VIEW evil.hugeinfo_status;
			ALTER EXTENSION pg_hugeinfo ADD VIEW evil.hugeinfo_runbook};
	};
	my $on_both = sub { my ($sql) = @_; $primary->safe_psql('postgres', $sql); return $primary->wait_for_catchup($standby) };
	my $no_evil = sub {
		return $on_both->(join ';', (map { "ALTER EXTENSION pg_hugeinfo DROP VIEW evil.$_" } @_), 'DROP SCHEMA evil CASCADE');
	};
	my @both_views = qw(hugeinfo_status hugeinfo_runbook);
	for my $command (
		"sysctl -w vm.nr_hugepages=1; touch $dir/owned",
		q[(umask 022 && echo 'kernel.modprobe = /tmp/owned' >> /etc/sysctl.d/touch.conf)],
		q[(umask 022 && echo 'z /etc/shadow 0666 - - - -' >> /etc/tmpfiles.d/touch.conf)],
		q[sed -i 's/^vm.nr_hugepages = 1$/kernel.core_pattern = touch/' /etc/sysctl.conf])
	{
		$on_both->($evil->($command));
		($exit, $recap, $out) = play('evil', @change, '-e', 'hugeinfo_schema=evil');
		isnt($exit, 0, 'a command that is not in the runbook: an error');
		like($out, qr/$refused .*touch/, 'a command that is not in the runbook: printed');
		is_deeply(\@typed, [], 'a command that is not in the runbook: not run');
		$no_evil->(@both_views);
	}
	# Views that do not belong to the extension, or that another role could replace, are not read.
	$primary->safe_psql('postgres', 'CREATE ROLE stranger');
	for (
		[ "another role's view", 'ALTER EXTENSION pg_hugeinfo DROP VIEW evil.hugeinfo_runbook; ALTER VIEW evil.hugeinfo_runbook OWNER TO stranger', 'hugeinfo_status' ],
		[ "a superuser's view that is not the extension's", 'ALTER EXTENSION pg_hugeinfo DROP VIEW evil.hugeinfo_runbook', 'hugeinfo_status' ],
		[ "the extension's view, owned by another role", 'ALTER VIEW evil.hugeinfo_runbook OWNER TO stranger', @both_views ])
	{
		my ($name, $sql, @members) = @$_;
		$on_both->($evil->('sysctl -w vm.nr_hugepages=1') . "; $sql");
		($exit, $recap, $out) = play($name, @change, '-e', 'hugeinfo_schema=evil');
		isnt($exit, 0, "$name: an error");
		like($out, qr/in the schema evil are not those of the extension pg_hugeinfo/, "$name: shown");
		is_deeply(\@typed, [], "$name: no command is run");
		$no_evil->(@members);
	}
	# A function of a superuser replaces a built-in function.
	{
		my $name = 'a function of a superuser';
		my $row = JSON::PP->new->canonical->encode([ runbook_row('root shell', "id > $dir/owned") ]);
		my @arguments = qw(record hugeinfo.hugeinfo_runbook);
		my $sql = join "\n", map { <<"SQL" } @arguments;
CREATE FUNCTION pg_catalog.hostile(json, $_) RETURNS json LANGUAGE plpgsql
	AS \$\$BEGIN RETURN '$row'; END\$\$;
CREATE AGGREGATE pg_catalog.json_agg($_) (sfunc = pg_catalog.hostile, stype = json);
SQL
		$on_both->($sql);
		($exit, $recap, $out) = play($name, @change);
		isnt($exit, 0, "$name: an error");
		like($out, qr/$refused root shell: id > /, "$name: shown");
		is_deeply([ \@typed, -e "$dir/owned" ], [ [], undef ], "$name: nothing is run");
		$on_both->("DROP AGGREGATE pg_catalog.json_agg($_); DROP FUNCTION pg_catalog.hostile(json, $_)") for @arguments;
	}
	$write_inventory->();
	# Objects in the extension's schema with names of PostgreSQL are not used.
	{
		my $name = "another role's function in the schema of the extension";
		$on_both->(qq{
			GRANT ALL ON SCHEMA hugeinfo TO stranger; SET ROLE stranger;
			CREATE FUNCTION hugeinfo.pg_is_in_recovery() RETURNS text RETURN 'strange'});
		($exit, $recap, $out) = play($name);
		is($exit, 0, "$name: is not called");
		$on_both->('DROP OWNED BY stranger; DROP ROLE stranger');
	}

	# Commits on the primary would wait.
	{
		my $name = 'the only synchronous standby';
		$primary->safe_psql('postgres', q(ALTER SYSTEM SET synchronous_standby_names = '*'; SELECT pg_reload_conf()));
		$primary->poll_query_until('postgres', q(SELECT sync_state = 'sync' FROM pg_stat_replication)) or die "$name: does not exist\n";
		($exit, $recap, $out) = play($name, @change);
		isnt($exit, 0, "$name: an error");
		like($out, qr/Nothing was done. While this standby restarts, commits on its primary would wait/, "$name: the message");
		is_deeply(\@typed, [], "$name: no command is run");
		$is_untouched->($name);
		($exit) = play("$name, allowed", @change, '--check', '-e', 'hugeinfo_commits_may_wait=true');
		is($exit, 0, "$name: no error if commits may wait");
		$primary->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names; SELECT pg_reload_conf()');
	}

	# systemctl would restart more than this server, or another one. A fake systemctl restarts the
	# standby.
	make_group('standby.service');
	my $in_unit = sub {
		$standby->stop;
		in_group('standby.service', sub { $standby->start });
		return $primary->wait_for_catchup($standby);
	};
	$in_unit->();
	@as_it_was = started();
	append_to_file("$dir/systemctl", <<"SH");
#!/bin/sh
[ "\$*" = 'restart standby.service' ] || { echo "\$*" >> $dir/unexpected; exit 1; }
exec pg_ctl -s -w -D '@{[ $standby->data_dir ]}' -l '@{[ $standby->logfile ]}' restart
SH
	chmod 0755, "$dir/systemctl";
	my $with_systemctl = sub {
		my ($host, %set) = @_;
		my %vars = %{ $hosts{$host} };
		delete $vars{"hugeinfo_${_}_command"} for qw(stop start restart);
		return { %vars, %set };
	};
	my $options = [qw(env systemctl --quiet restart a.service b)];
	for (
		[ 'all clusters in one unit', primary => {}, 'postgresql, but this server is in no unit of systemd' ],
		[ 'the unit of another server', standby => { hugeinfo_service => 'another' }, 'another, but this server is in the unit standby' ],
		[ 'additional units', standby => { hugeinfo_service => 'standby', hugeinfo_restart_command => $options }, 'standby a b, but this server is in the unit standby' ])
	{
		my ($name, $host, $set, $said) = @$_;
		local $ENV{PATH} = "$dir:$ENV{PATH}";
		local $hosts{$host} = $with_systemctl->($host, %$set);
		$write_inventory->();
		($exit, $recap, $out) = play($name, @change, '--limit', $host);
		isnt($exit, 0, "$name: an error");
		like($out, qr/\[hugeinfo : Stop here\].*Nothing was done\. systemctl would stop, start or restart $said/s, "$name: the message");
		is_deeply(\@typed, [], "$name: no command is run");
		$is_untouched->($name);
	}

	# The restart of the standby fails.
	{
		local $hosts{standby}{hugeinfo_restart_command} = ['false'];
		$write_inventory->();
		($exit, $recap) = play('no restart', @change);
		isnt($exit, 0, 'a standby that is not restarted: an error');
		ok(!exists $recap->{primary} || $recap->{primary}{changed} == 0, 'a standby that is not restarted: the primary does not change');
		is_deeply([ started() ], \@as_it_was, 'a standby that is not restarted: no restart');
		is(pool($kb)->{total}, 0, 'a standby that is not restarted: the pool is as it was');
	}
	# A restart that leaves the standby down, and the role starts it with this command.
	my $stop = [ 'sh', '-c', "pg_ctl -s -D '@{[ $standby->data_dir ]}' stop; false" ];
	my $start = $hosts{standby}{hugeinfo_start_command};
	my $without_pool = [ 'sh', '-c', q([ "$(cat /proc/sys/vm/nr_hugepages)" = 0 ] && exec "$@"), 'sh', @$start ];
	for (
		[ 'a standby left down', $start, qr/; the server was down, and was started again(?!; the pools)/, $kb * 1024 ],
		[ 'a standby that starts only with the old pool', $without_pool, qr/; the server was down, and was started again; the pools were restored/, base_page() ],
		[ 'a standby that does not start', ['false'], qr/PostgreSQL IS DOWN, and does not start: .*; the pools were restored/, undef ])
	{
		my ($name, $command, $said, $bytes) = @$_;
		local @{ $hosts{standby} }{qw(hugeinfo_restart_command hugeinfo_start_command hugeinfo_wait_seconds)} = ($stop, $command, 4);
		$write_inventory->();
		set_boot_pages(undef);
		my $of_primary = started_of($primary);
		($exit, $recap, $out) = play($name, @change);
		isnt($exit, 0, "$name: an error");
		like($out, $said, "$name: the message");
		$standby->_update_pid(-1);
		my $is_up = defined $standby->{_pid};
		is($is_up, defined $bytes, "$name: the standby is up or down");
		is(segment($standby->{_pid})->{page_bytes}, $bytes, "$name: the pages of the standby") if $is_up && $bytes;
		is(pool($kb)->{total} > 0, defined $bytes && $bytes > base_page(), "$name: the pool is kept if it is used");
		is(started_of($primary), $of_primary, "$name: the primary does not change");
		$standby->stop if $is_up;
		pools_of_one_size($kb, 0);
		$standby->start;
		$write_inventory->();
	}
	@as_it_was = started();
	# A server is down before the run.
	{
		local $hosts{standby}{hugeinfo_conninfo} = 'host=/no/such/place';
		$write_inventory->();
		pools_of_one_size($kb, 0);
		($exit) = play('down', @change);
		isnt($exit, 0, 'a server that is down: an error');
		is_deeply(\@typed, [], 'a server that is down: no command is run on any server');
	}
	$write_inventory->();

	pools_of_one_size($kb, 0);
	set_boot_pages(undef);
	{
		# the standby by systemctl
		local $ENV{PATH} = "$dir:$ENV{PATH}";
		local $hosts{standby} = $with_systemctl->('standby', hugeinfo_service => 'standby.service');
		$in_unit->();
		$write_inventory->();
		($exit, $recap, $out) = play('change', @change);
	}
	$write_inventory->();
	ok(!-e "$dir/unexpected", 'systemctl restarts the standby, and does nothing else');
	is($exit, 0, 'change');
	is_deeply([ page_bytes() ], [ ($kb * 1024) x 2 ], 'change: both are on huge pages');
	is_deeply([ map { $_->safe_psql('postgres', 'SELECT status FROM hugeinfo.hugeinfo_status') } @nodes ], [ 'ok', 'ok' ], 'change: both are healthy');
	is($primary->safe_psql('postgres', q(SELECT state FROM pg_stat_replication)), 'streaming', 'change: the standby streams');
	my @epochs = map { $_->safe_psql('postgres', 'SELECT extract(epoch FROM pg_postmaster_start_time())') } @nodes;
	cmp_ok($epochs[1], '<', $epochs[0], 'change: the standby was restarted first');
	like("@typed", qr/sysctl -w.*sysctl\.d/, 'change: commands for now, and for the next boot');

	my @after = started();
	($exit, $recap) = play('again', @change);
	is($exit, 0, 'again');
	is_deeply(changed($recap), { primary => 0, standby => 0 }, 'again: nothing is changed');
	is_deeply(\@typed, [], 'again: no command is run');
	is_deeply([ started() ], \@after, 'again: no restart');

	# The standby is promoted while its pool is set.
	{
		my $name = 'a failover between two steps';
		$_->stop for $standby, $primary;
		pools_of_one_size($kb, 0);
		set_boot_pages(undef);
		$_->start for $primary, $standby;
		@as_it_was = started();
		my $promoted;
		local $type = sub { my ($line) = @_; $standby->promote unless $promoted++; return type_in($line) };
		($exit, $recap, $out) = play($name, @change);
		isnt($exit, 0, "$name: an error");
		like($out, qr/This server was a standby and is now a\s+primary\. The run stops here/, "$name: the message");
		is_deeply([ started() ], \@as_it_was, "$name: no server was restarted");
		is(pool($kb)->{total}, 0, "$name: the pool is as it was");
	}
	$_->stop for $standby, $primary;
}

done_testing;
