# Tests that hugeinfo_instances shows every server of the host: those of the same user, of another
# user, with another program name, and in a separate PID namespace.
use strict;
use warnings;

use File::Basename qw(basename);
use File::Copy qw(copy);
use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::OtherUser;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Namespace;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use IPC::Run ();
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;

my $huge_bytes = default_page_kb() && default_page_kb() * 1024;
my $us = getpwuid $>;
my $one = new_server('one');
my $two = new_server('two', shared_buffers => '32MB');
my $sql = HugeInfo::Session->new($one);

# Returns the servers by the PID of the postmaster. Other servers of this host can be among them.
sub instances { my ($session) = @_; return map { $_->{pid} => $_ } $session->rows('SELECT * FROM hugeinfo_instances') }

# Returns all facts that the kernel shows about an accessible server.
sub open_to_us
{
	my ($node, $is_this_server, $pid) = @_;
	$pid //= $node->{_pid};
	my $real = segment($pid);
	return {
		pid => $pid,
		is_this_server => $is_this_server,
		owner => $us,
		owner_uid => $>,
		data_directory => readlink("/proc/$pid/cwd"),
		port => $node->port,
		segment_bytes => $real->{bytes},
		page_size_bytes => $real->{page_bytes},
		in_use => $real->{page_bytes} > base_page() ? 't' : 'f',
		required_pages => $huge_bytes && POSIX::ceil($real->{bytes} / $huge_bytes),
		huge_pages => 'try' };
}

{
	my $name = 'two servers of one user';
	my %seen = instances($sql);
	is_deeply($seen{ $one->{_pid} }, open_to_us($one, 't'), "$name: the queried one");
	is_deeply($seen{ $two->{_pid} }, open_to_us($two, 'f'), "$name: the other");
	is($seen{ $two->{_pid} }{data_directory}, $two->data_dir, "$name: its data directory");
	my @children = grep { $_ != $one->{_pid} && $_ != $two->{_pid} } map { family($_->{_pid}) } $one, $two;
	cmp_ok(scalar(@children), '>', 6, "$name: they have children");
	is_deeply([ grep { $seen{$_} } @children ], [], "$name: no child is listed as a server");

	my $pid = $two->{_pid};
	$two->stop;
	ok(!{ instances($sql) }->{$pid}, "$name: the other is not listed after it is stopped");
}

{
	# As in Nix, whose `postgres` is a script.
	my $name = 'another program name';
	my $installed = $two->config_data('--bindir');
	my $copied = PostgreSQL::Test::Utils::tempdir();
	my $program = "$copied/bin/.wrapped";
	mkdir "$copied/bin" or die "$copied/bin: $!\n";
	copy("$installed/postgres", $program) && chmod 0755, $program or die "$program: $!\n";
	# A server that was built to be moved looks for its files beside the directory of its program.
	for my $beside (grep { !m{/bin$} } glob "$installed/../*")
	{
		symlink $beside, "$copied/" . basename($beside) or die "$beside: $!\n";
	}
	my $log = '';
	my $run = IPC::Run::start([ $program, '-D', $two->data_dir ], '<', \undef, '>', \$log, '2>&1', IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	$run->pump until $log =~ /ready to accept connections|redirecting log output/;
	my ($pid) = slurp_file($two->data_dir . '/postmaster.pid') =~ /^(\d+)$/m;
	unlike(process_file($pid, 'cmdline'), qr/^[^\0]*postgres/, "$name: a server that is not called postgres");
	my %seen = instances($sql);
	is_deeply($seen{$pid}, open_to_us($two, 'f', $pid), "$name: is listed");
	my @children = grep { $_ != $pid } family($pid);
	is_deeply([ grep { $seen{$_} } @children ], [], "$name: its children are not listed");
	$run->signal('INT');
	$run->finish;
}

{
	my $name = 'single-user mode';
	my ($in, $out) = ('', '');
	my $single = IPC::Run::start([ 'postgres', '--single', '-D', $two->data_dir, 'postgres' ],
		'<', \$in, '>', \$out, '2>&1', IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	$single->pump until $out =~ /backend>/;
	my ($pid) = slurp_file($two->data_dir . '/postmaster.pid') =~ /^-(\d+)$/m;
	is(readlink("/proc/$pid/cwd"), $two->data_dir, "$name: a process of that program in a data directory");
	ok(!{ instances($sql) }->{$pid}, "$name: is not listed");
	$single->finish;
}

{
	# Then only its working directory shows the data directory, which only its own user can read, and
	# not every role that can query the other server.
	my $name = 'no -D';
	$one->safe_psql('postgres', 'CREATE ROLE monitor LOGIN IN ROLE pg_monitor; CREATE ROLE reader LOGIN IN ROLE pg_monitor, pg_read_server_files');
	my %seen_by = map { my $role = $_; $role => sub {
		my $session = HugeInfo::Session->new($one, user => $role, dbname => 'postgres');
		my %seen = instances($session);
		$session->close;
		return \%seen;
	} } qw(monitor reader);
	local $ENV{PGDATA} = $two->data_dir;
	my $log = '';
	my $run = IPC::Run::start(['postgres'], '<', \undef, '>', \$log, '2>&1', IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	$run->pump until $log =~ /ready to accept connections|redirecting log output/;
	my ($pid) = slurp_file($two->data_dir . '/postmaster.pid') =~ /^(\d+)$/m;
	like(process_file($pid, 'cmdline'), qr{^[^\0]*/postgres\0$}, "$name: a server without arguments");
	my %expected = (monitor => undef, reader => $two->data_dir);
	for my $role (sort keys %expected)
	{
		my $seen = $seen_by{$role}->();
		is_deeply($seen->{$pid}, { %{ open_to_us($two, 'f', $pid) }, data_directory => $expected{$role} }, "$name: as a $role sees it");
		is($seen->{ $one->{_pid} }{data_directory}, readlink("/proc/$one->{_pid}/cwd"), "$name: a $role sees that of the queried server, as in data_directory");
	}
	$run->signal('INT');
	$run->finish;
}

{
	# A user can run any program with any arguments in a directory with such a file.
	my $name = 'a data directory with control characters';
	my $directory = "/tmp/x\e[2J\ny|z\rq\x7f\xff\xe2\x80\xae";
	my $like_a_server = 'cd "$0" && printf "%s\\n" $$ "$0" 1 5433 /run "*" "1 2" ready >postmaster.pid && echo ready; read line; true';
	my ($in, $out) = ('', '');
	my $run = IPC::Run::start([ 'sh', '-c', $like_a_server, PostgreSQL::Test::Utils::tempdir(), '-D', $directory ], '<', \$in, '>', \$out);
	$run->pump until $out =~ /ready/;
	my ($pid) = map { $_->{PID} } @{ $run->{KIDS} };
	my $session = HugeInfo::Session->new($one, user => 'monitor', dbname => 'postgres');
	my %seen = instances($session);
	is($seen{$pid}{data_directory}, '/tmp/x\033[2J\012y|z\015q\177\377\342\200\256', "$name: the name is escaped");
	$session->close;
	$run->kill_kill;
}

{
	# The kernel cannot show the path of this directory: readlink fails.
	my $name = 'a process in a very deep directory';
	my $deep = 'chdir shift; for (1 .. 400) { mkdir "x" x 200; chdir "x" x 200 } $| = 1; print "ready"; <STDIN>;'
	  . ' for (1 .. 400) { chdir ".."; rmdir "x" x 200 }';
	my ($in, $out) = ('', '');
	my $run = IPC::Run::start([ $^X, '-e', $deep, PostgreSQL::Test::Utils::tempdir() ],
		'<', \$in, '>', \$out, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	$run->pump until $out =~ /ready/;
	my ($pid) = map { $_->{PID} } @{ $run->{KIDS} };
	ok(!defined readlink("/proc/$pid/cwd"), "$name: its path cannot be read");
	my $session = HugeInfo::Session->new($one, user => 'monitor', dbname => 'postgres');
	my %seen = instances($session);
	ok($seen{ $one->{_pid} }, "$name: servers are found");
	$session->close;
	$run->finish;
}

{
	# Other processes can block reads of their files forever. Here, the copy that reads is stopped.
	my $name = 'a read that does not end';
	my $backend = $sql->pid;
	my $start = time;
	$sql->ask(HugeInfo::Session::endless('hugeinfo_instances'));
	$sql->wait_until(sub {
		my ($copy) = process_file($backend, "task/$backend/children") =~ /(\d+)/;
		kill STOP => $copy if $copy;
		return $sql->{error} =~ /ERROR/;
	});
	my (undef, $error) = $sql->answer;
	like($error, qr/PID of other processes could not be read: Connection timed out/, "$name: is an error");
	cmp_ok(time - $start, '>=', 2, "$name: after some time");
	# On a busy host, the killed copy can end after the error. The next look reaps it.
	my $is_reaped = sub { $sql->query('SELECT FROM hugeinfo_instances'); process_file($backend, "task/$backend/children") eq '' };
	ok(HugeInfo::Processes::until_true($is_reaped), "$name: no copy is left");
}

SKIP:
{
	my $name = 'namespace';
	my $missing = HugeInfo::Namespace::missing();
	cannot("$name: $missing") if $missing;
	my $inside = HugeInfo::Namespace->new($two);
	my ($outside) = grep { (readlink("/proc/$_/cwd") // '') eq $two->data_dir && title($_) !~ /^postgres: / } map { m{(\d+)$} } glob '/proc/[0-9]*';
	isnt($outside, $inside->postmaster, "$name: its postmaster has two PIDs");
	my %seen = instances($sql);
	is_deeply($seen{$outside}, open_to_us($two, 'f', $outside), "$name: listed outside with its PID there");

	# it has a separate /proc without other processes
	my $within = HugeInfo::Session->new($two);
	my @rows = $within->rows('SELECT * FROM hugeinfo_instances');
	is_deeply(\@rows, [ { %{ open_to_us($two, 't', $outside) }, pid => $inside->postmaster } ], "$name: lists only itself inside");
	$within->close;
	$inside->close;
}

SKIP:
{
	my $name = 'another user';
	my $missing = HugeInfo::OtherUser::missing();
	cannot("$name: $missing") if $missing;
	my $other = HugeInfo::OtherUser::server();
	ok(!defined readlink("/proc/$other->{pid}/cwd"), "$name: its directory is not readable");
	is(process_file($other->{pid}, 'maps'), '', "$name: its memory is not readable");
	my %closed = map { $_ => undef } qw(port segment_bytes page_size_bytes in_use required_pages huge_pages);

	my %seen = instances($sql);
	is_deeply(
		$seen{ $other->{pid} },
		{
			%closed,
			pid => $other->{pid},
			is_this_server => 'f',
			owner => $other->{user},
			owner_uid => $other->{uid},
			# from its arguments
			data_directory => $other->{data_dir},
			huge_pages => 'off',
		},
		"$name: our server lists it with its user");
	is_deeply($seen{ $one->{_pid} }, open_to_us($one, 't'), "$name: our own row is as before");

	my $theirs = HugeInfo::Session->new($one, socket => $other->{socket}, port => $other->{port}, user => 'postgres');
	$theirs->value('CREATE EXTENSION pg_hugeinfo');
	%seen = instances($theirs);
	is_deeply(
		$seen{ $one->{_pid} },
		{ %closed, pid => $one->{_pid}, is_this_server => 'f', owner => $us, owner_uid => $>, data_directory => $one->data_dir },
		"$name: the other server lists ours");
	is_deeply(
		$seen{ $other->{pid} },
		{
			pid => $other->{pid},
			is_this_server => 't',
			owner => $other->{user},
			owner_uid => $other->{uid},
			data_directory => $other->{data_dir},
			port => $other->{port},
			segment_bytes => $other->{bytes},
			page_size_bytes => $other->{page_bytes},
			in_use => 'f',
			required_pages => $huge_bytes && POSIX::ceil($other->{bytes} / $huge_bytes),
			huge_pages => 'off',
		},
		"$name: the other server lists all facts of its own");
	$theirs->close;
}

$sql->close;
$one->stop;
done_testing;
