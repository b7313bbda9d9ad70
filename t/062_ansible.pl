# The Ansible role on a primary and its standby: it only reports unless told otherwise, stops where
# the kernel gives too little, a server is not back, or the runbook says what is not its own, and
# sets pages and restarts, the standby first. Run again, it changes nothing.
#
# What the role does as root goes through this test's guardian, so that the host is put back.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Tools;
use HugeInfo::Host;
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

# A shell for root that hands each line to this test, and waits for its word.
my $listener = IO::Socket::UNIX->new(Type => SOCK_STREAM, Local => "$dir/root", Listen => 5) or die "$dir: $!\n";
append_to_file("$dir/root-shell", <<'PERL');
use IO::Socket::UNIX;
my ($path, $line) = @ARGV;
my $socket = IO::Socket::UNIX->new(Peer => $path) or die "$path: $!\n";
print $socket "$line\n";
my $answer = <$socket> // die "nobody answers\n";
die $answer if $answer ne "done\n";
PERL

# What was typed, and how: by default as it stands.
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

# Each host's counts at the end, the exit status, and all output.
sub play
{
	my ($name, @arguments) = @_;
	@typed = ();
	local @ENV{qw(LC_ALL ANSIBLE_LOCAL_TEMP ANSIBLE_REMOTE_TEMP ANSIBLE_HOME ANSIBLE_NOCOLOR ANSIBLE_RETRY_FILES_ENABLED ANSIBLE_LOCALHOST_WARNING)} =
	  ('C.UTF-8', "$dir/local", "$dir/remote", "$dir/home", 1, 0, 0);
	my $out = '';
	my $run = IPC::Run::start([ 'ansible-playbook', '-i', "$dir/inventory.json", $playbook, @arguments ], '<', '/dev/null', '>', \$out, '2>&1');
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

sub changed { my ($recap) = @_; return { map { $_ => $recap->{$_}{changed} } keys %$recap } }

my $primary = PostgreSQL::Test::Cluster->new('primary');
my $standby = PostgreSQL::Test::Cluster->new('standby');
my @nodes = ($primary, $standby);

sub started { return map { $_->safe_psql('postgres', 'SELECT pg_postmaster_start_time()') } @nodes }
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
	# It writes beside what it reads.
	system_or_bail('cp', '-r', source('fleet/ansible'), "$dir/ansible");
	local @ENV{qw(LC_ALL HOME ANSIBLE_HOME ANSIBLE_LOCAL_TEMP)} = ('C.UTF-8', $dir, "$dir/home", "$dir/local");
	my $found = '';
	my $clean = IPC::Run::run([ 'sh', '-c', "cd $dir/ansible && exec ansible-lint --offline --nocolor --profile production hugeinfo.yml" ], '>', \$found, '2>&1');
	ok($clean, 'ansible-lint') or diag($found);
}

SKIP:
{
	my $name = 'the role on real servers';
	needs_tools($name, 'ansible-playbook');
	needs_host($name);
	cannot("$name: another file asks for huge pages") if grep { -e } '/etc/sysctl.d/hugepages.conf';

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
			ansible_connection => 'local',
			ansible_python_interpreter => '/usr/bin/python3',
			hugeinfo_become => JSON::PP::false,
			hugeinfo_root_shell => [ 'perl', "$dir/root-shell", "$dir/root" ],
			hugeinfo_conninfo => $node->connstr('postgres'),
			hugeinfo_wait_seconds => 20,
			(map { ("hugeinfo_${_}_command" => [ @pg_ctl, $_ ]) } qw(stop start restart)) };
	}
	my $write_inventory = sub { unlink "$dir/inventory.json"; return append_to_file("$dir/inventory.json", JSON::PP->new->encode({ all => { hosts => \%hosts } })) };
	$write_inventory->();
	my @change = ('-e', 'hugeinfo_report_only=false');
	my @as_it_was = started();

	# Nothing is changed: not typed, no restart.
	my $is_untouched = sub {
		my ($what) = @_;
		is_deeply([ started() ], \@as_it_was, "$what: no server was restarted");
		return is_deeply([ page_bytes() ], [ base_page(), base_page() ], "$what: both are on small pages");
	};

	my ($exit, $recap, $out) = play('report');
	is($exit, 0, 'report');
	is_deeply(changed($recap), { primary => 0, standby => 0 }, 'report: nothing is changed');
	# how many depends on what else runs on this host
	my @commands = map { s/\d+/N/gr } split /\n/, $primary->safe_psql('postgres', q(SELECT where_to_run || ': ' || command FROM hugeinfo.hugeinfo_runbook));
	my $shown = $out =~ s/\d+/N/gr;
	is_deeply([ grep { index($shown, $_) < 0 } @commands ], [], 'report: it has the runbook');
	is_deeply(\@typed, [], 'report: nothing is typed');
	$is_untouched->('report');

	($exit, $recap, $out) = play('check', @change, '--check');
	is($exit, 0, '--check');
	cmp_ok($recap->{$_}{changed}, '>=', 2, "--check: $_ would be changed") for qw(primary standby);
	like($out, qr/root shell: sysctl -w .*service: restart PostgreSQL/s, '--check: says by what');
	is_deeply(\@typed, [], '--check: nothing is typed');
	$is_untouched->('--check');

	{
		local $type = sub { my ($line) = @_; return type_in($line =~ s/(nr_hugepages=)(\d+)/$1 . ($2 - 1)/er) };
		($exit, $recap, $out) = play('too few', @change);
		isnt($exit, 0, 'too few pages: an error');
		my ($asked) = "@typed" =~ /nr_hugepages=(\d+)/;
		like($out, qr/The kernel gave @{[ $asked - 1 ]} of $asked huge pages/, 'too few pages: said with the figures');
		is_deeply([ grep { !/sysctl -w|compact/ } @typed ], [], 'too few pages: nothing more is typed');
		$is_untouched->('too few pages');
		pools_of_one_size($kb, 0);
	}

	# What a database says is not obeyed.
	for my $command (
		"sysctl -w vm.nr_hugepages=1; touch $dir/owned",
		q[(umask 022 && echo 'kernel.modprobe = /tmp/owned' >> /etc/sysctl.d/touch.conf)],
		q[(umask 022 && echo 'z /etc/shadow 0666 - - - -' >> /etc/tmpfiles.d/touch.conf)],
		q[sed -i 's/^vm.nr_hugepages = 1$/kernel.core_pattern = touch/' /etc/sysctl.conf])
	{
		my $literal = $command =~ s/'/''/gr;
		$primary->safe_psql('postgres', qq{
			CREATE SCHEMA evil;
			CREATE VIEW evil.hugeinfo_status AS SELECT * FROM hugeinfo.hugeinfo_status;
			CREATE VIEW evil.hugeinfo_runbook AS SELECT 1 AS step, 'root shell' AS where_to_run, '$literal' AS command,
				'' AS why, 'ok: fine' AS expected, false AS is_disruptive});
		$primary->wait_for_catchup($standby);
		($exit, $recap, $out) = play('evil', @change, '-e', 'hugeinfo_schema=evil');
		isnt($exit, 0, 'a command that is none of the runbook: an error');
		like($out, qr/Nothing was done. These steps are for a person: .*touch/, 'a command that is none of the runbook: shown');
		is_deeply(\@typed, [], 'a command that is none of the runbook: not typed');
		$primary->safe_psql('postgres', 'DROP SCHEMA evil CASCADE');
		$primary->wait_for_catchup($standby);
	}
	# Nor are views read that somebody else has made.
	{
		$primary->safe_psql('postgres', q{
			CREATE ROLE stranger;
			CREATE SCHEMA evil AUTHORIZATION stranger;
			CREATE VIEW evil.hugeinfo_status AS SELECT 'ok' AS status, 'fine' AS reason;
			ALTER VIEW evil.hugeinfo_status OWNER TO stranger});
		$primary->wait_for_catchup($standby);
		($exit, $recap, $out) = play('strange', @change, '-e', 'hugeinfo_schema=evil');
		isnt($exit, 0, "a stranger's view: an error");
		like($out, qr/belong to a role that is no superuser/, "a stranger's view: shown");
		$primary->safe_psql('postgres', 'DROP OWNED BY stranger; DROP ROLE stranger');
		$primary->wait_for_catchup($standby);
	}

	# The standby does not come back.
	{
		local $hosts{standby}{hugeinfo_restart_command} = ['false'];
		$write_inventory->();
		($exit, $recap) = play('no restart', @change);
		isnt($exit, 0, 'a standby that is not restarted: an error');
		ok(!exists $recap->{primary} || $recap->{primary}{changed} == 0, 'a standby that is not restarted: the primary stays as it is');
		is_deeply([ started() ], \@as_it_was, 'a standby that is not restarted: no restart');
	}
	# A server is down before it begins.
	{
		local $hosts{standby}{hugeinfo_conninfo} = 'host=/no/such/place';
		$write_inventory->();
		pools_of_one_size($kb, 0);
		($exit) = play('down', @change);
		isnt($exit, 0, 'a server that is down: an error');
		is_deeply(\@typed, [], 'a server that is down: nothing is typed anywhere');
	}
	$write_inventory->();

	pools_of_one_size($kb, 0);
	set_boot_pages(undef);
	($exit, $recap, $out) = play('change', @change);
	is($exit, 0, 'change');
	is_deeply([ page_bytes() ], [ ($kb * 1024) x 2 ], 'change: both are on huge pages');
	is_deeply([ map { $_->safe_psql('postgres', 'SELECT status FROM hugeinfo.hugeinfo_status') } @nodes ], [ 'ok', 'ok' ], 'change: both are well');
	is($primary->safe_psql('postgres', q(SELECT state FROM pg_stat_replication)), 'streaming', 'change: the standby streams');
	my @epochs = map { $_->safe_psql('postgres', 'SELECT extract(epoch FROM pg_postmaster_start_time())') } @nodes;
	cmp_ok($epochs[1], '<', $epochs[0], 'change: the standby was restarted first');
	like("@typed", qr/sysctl -w.*sysctl\.d/, 'change: now, and for the next boot');

	my @after = started();
	($exit, $recap) = play('again', @change);
	is($exit, 0, 'again');
	is_deeply(changed($recap), { primary => 0, standby => 0 }, 'again: nothing is changed');
	is_deeply(\@typed, [], 'again: nothing is typed');
	is_deeply([ started() ], \@after, 'again: no restart');
	$_->stop for $standby, $primary;
}

done_testing;
