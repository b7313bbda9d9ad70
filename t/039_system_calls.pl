# Counts the system calls of hugeinfo_status, which, unlike its time, do not depend on the load of
# the machine. Their number does not grow with backends, other processes, mounts and memory in use,
# or with other servers while this one is healthy, and no file is opened twice. A session retains no
# memory or files, and notices changed mounts.
#
# Takes half a minute, because a leak shows only after thousands of calls, and a thousand file
# systems are mounted twice.
use strict;
use warnings;

use File::Temp ();
use FindBin;
use IPC::Run ();
use lib "$FindBin::RealBin/lib";
use HugeInfo::Tools;
use HugeInfo::Contained;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $BACKENDS = 200;
my $PROCESSES = 500;
my $scratch = File::Temp::tempdir(CLEANUP => 1);

# Returns the system calls of a query in the session's backend and in processes that it starts, each
# after the PID. The third execution counts, because the first ones load the library and fill caches
# of PostgreSQL.
sub calls
{
	my ($session, $query) = @_;
	$session->query($query) for 1, 2;
	my $trace = File::Temp->new;
	my $error = '';
	my @strace = (qw(strace --follow-forks --decode-fds=path), "--output=$trace", '--attach=' . $session->pid);
	my $run = IPC::Run::start(\@strace, '<', '/dev/null', '2>', \$error);
	until_true(sub { $run->pump_nb; !$run->pumpable || $error =~ /attached/ });
	$session->query($query);
	$run->signal('INT');
	$run->finish;
	cannot("strace cannot attach, see kernel.yama.ptrace_scope: $error") unless $error =~ /attached/;
	return grep { !/^\d+ +(?:[-+<]|(?:epoll_wait|recvfrom|sendto)\()/ } split /\n/, slurp_file("$trace");
}

sub count
{
	return scalar(my @calls = calls(@_));
}

# Those of the backend alone.
sub own_calls
{
	my ($session, $query) = @_;
	my $pid = $session->pid;
	return grep { /^$pid / } calls($session, $query);
}

# Checks that the backend opens no file twice. Exempt are directories, the second step of opening a
# file of a user, which begins with a lookup, and the list of cgroups, which is read for each
# controller.
sub opens_each_file_once
{
	my ($session, $query, $name) = @_;
	my %opened;
	for (grep { !/O_DIRECTORY/ } own_calls($session, $query))
	{
		my ($directory, $file) = /\bopen(?:at\(\w+(?:<([^>]*)>)?, |\()"([^"]*)".*\) = \d/ or next;
		$file = "$directory/$file" unless $file =~ m{^/};
		$opened{$file}++ unless $file =~ m{^/proc/self/fd/|^/proc/\d+/cgroup$};
	}
	cmp_ok(scalar(keys %opened), '>', 5, "$name: files are opened");
	is_deeply([ grep { $opened{$_} > 1 } sort keys %opened ], [], "$name: no file is opened twice");
	return;
}

# Checks that the number of system calls differs by at most 10%.
sub is_flat
{
	my ($calls, $before, $name) = @_;
	return cmp_ok(abs($calls - $before), '<=', $before / 10, "$name: $calls system calls, $before before");
}

# Checks that a thousand calls leave no memory allocated and no files open in the session.
sub retains_nothing
{
	my ($session, $name) = @_;
	my $calls = "DO 'BEGIN FOR i IN 1..1000 LOOP PERFORM * FROM hugeinfo_status; END LOOP; END'";
	my $kept = sub { $session->query($calls); return (status_file($session->pid)->{rss_anon_bytes}, scalar(my @files = open_files($session->pid))) };
	$kept->();
	my ($bytes, $files) = $kept->();
	my ($more_bytes, $more_files) = $kept->();
	is($more_files, $files, "$name: a thousand calls open no more files");
	cmp_ok($more_bytes - $bytes, '<', 128 << 10, "$name: a thousand calls use no more memory");
	return;
}

# Opens idle connections to the server, runs the code, and closes them.
sub with_backends
{
	my ($node, $code) = @_;
	my $script = File::Temp->new;
	print $script "SELECT 1;\n\\sleep 1000 s\n";
	$script->flush;
	local $ENV{PGAPPNAME} = 'idle';
	my $run = IPC::Run::start([ 'pgbench', '--no-vacuum', "--client=$BACKENDS", '--file', "$script", '--host', $node->host, '--port', $node->port, 'postgres' ],
		'<', '/dev/null', '>', '/dev/null', '2>&1');
	my $idle = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'idle' AND state = 'idle'";
	ok(until_true(sub { $node->safe_psql('postgres', $idle) == $BACKENDS }), "$BACKENDS connections are idle");
	$code->();
	$run->kill_kill;
	return;
}

# Starts processes that have nothing to do with PostgreSQL, runs the code, and ends them.
sub with_processes
{
	my ($code) = @_;
	my $started = '';
	my $script = "trap 'kill \$(jobs -p)' TERM; for i in \$(seq $PROCESSES); do sleep 1000 & done; echo started; wait";
	my $run = IPC::Run::start([ 'bash', '-c', $script ], '<', '/dev/null', '>', \$started);
	ok(until_true(sub { $run->pump_nb; $started =~ /started/ }), "$PROCESSES processes are started");
	$code->();
	$run->signal('TERM');
	$run->finish;
	return;
}

# Mounts an empty file system over the directory, in the server's mount namespace.
sub cover
{
	my ($directory) = @_;
	append_to_file("$scratch/request", $directory);
	rename "$scratch/request", "$scratch/cover" or die "rename: $!\n";
	ok(until_true(sub { !-e "$scratch/cover" }), "$directory is covered");
	return;
}

# Returns the cgroups of this test that can limit huge pages, from the innermost to the outermost.
# The server reads the limits of each one.
sub limiting_groups
{
	my @lines = split /\n/, slurp_file("/proc/$$/cgroup");
	my @groups;
	for (split /\n/, slurp_file('/proc/mounts'))
	{
		my (undef, $mount, $type, $options) = split / /;
		my $hierarchy = $type eq 'cgroup2' ? qr/^0::/ : qr/^\d+:(?:.*,)?hugetlb\b[^:]*:/;
		next unless $type eq 'cgroup2' || $type eq 'cgroup' && $options =~ /\bhugetlb\b/;
		my ($path) = map { s/$hierarchy//r } grep { /$hierarchy/ } @lines;
		for (; ($path // '') =~ m{/.}; $path =~ s{/[^/]*\z}{})
		{
			opendir my $files, "$mount$path" or next;
			push @groups, $path if grep { /^hugetlb\./ } readdir $files;
		}
	}
	return @groups;
}

my $STATUS = 'SELECT * FROM hugeinfo_status';
my $node = new_server('traced', max_connections => $BACKENDS + 10);
my $need = $kb && required_pages($node, $kb);
my $other = new_server('other', huge_pages => 'off');
$_->stop for $node, $other;

SKIP:
{
	needs_tools('system calls', 'strace');
	needs_host('system calls');
	needs_namespaces('system calls', qw(--user --map-current-user --ipc --mount));

	# A separate IPC namespace hides other servers on this host.
	my @alone = qw(unshare --user --map-current-user --ipc);
	for ([ 'with a remedy', 0, 'warning', 170, 31 ], [ 'healthy', $need, 'ok', 47, 18 ])
	{
		my ($name, $pages, $status, $most, $of_group) = @$_;
		$most += 10 if pages_of_others($kb);
		$most += $of_group * (() = limiting_groups());
		pools_of_one_size($kb, $pages);
		my $few;
		in_namespace($node, $name, \@alone, sub {
			my $session = HugeInfo::Session->new($node);
			is($session->value('SELECT status FROM hugeinfo_status'), $status, "$name: the status");
			$few = count($session, $STATUS);
			cmp_ok($few, '<=', $most, "$name: at most $most system calls");
			opens_each_file_once($session, $STATUS, $name);
			with_backends($node, sub { is_flat(count($session, $STATUS), $few, "$name, $BACKENDS backends") });
			with_processes(sub { is_flat(count($session, $STATUS), $few, "$name, $PROCESSES other processes") });
			$session->query('CREATE TABLE IF NOT EXISTS filler AS SELECT repeat(md5(n::text), 30) FROM generate_series(1, 10000) AS n');
			is_flat(count($session, $STATUS), $few, "$name, more memory in use");
			retains_nothing($session, $name);
		});

		# A healthy server does not read other servers. Otherwise a copy of the backend reads them.
		$other->start;
		in_namespace($node, "$name, another server", ['env'], sub {
			my $session = HugeInfo::Session->new($node);
			if ($status eq 'ok')
			{
				is_flat(count($session, $STATUS), $few, "$name, another server");
				return;
			}
			with_backends($node, sub {
				my $own = own_calls($session, $STATUS);
				my $more = $session->value('SELECT count(*) FROM hugeinfo_instances') - 2;
				cmp_ok($own, '<=', 1.3 * $few + 30 * $more, "$name, another server and $BACKENDS backends: $own system calls of the backend, $few before");
				opens_each_file_once($session, $STATUS, "$name, another server");
			});
		});
		$other->stop;

		# A shell in the server's mount namespace covers directories on request.
		my $dir = File::Temp::tempdir(CLEANUP => 1);
		my $more = "for i in \$(seq 1000); do mount -t tmpfs none $dir; done; "
		  . "(while kill -0 \$\$; do if where=\$(cat $scratch/cover); then mount -t tmpfs none \$where; rm $scratch/cover; fi; sleep 0.1; done) 2>/dev/null & "
		  . 'exec setpriv --inh-caps=-all --ambient-caps=-all -- "$0" "$@"';
		my @mounts = (qw(unshare --user --map-current-user --keep-caps --ipc --mount sh -c), $more);
		in_namespace($node, "$name, mounts", \@mounts, sub {
			my ($postmaster) = @_;
			my $session = HugeInfo::Session->new($node);
			my $lines = () = process_file($postmaster, 'mountinfo') =~ /\n/g;
			cmp_ok($lines, '>', 1000, "$name: there are $lines mounts");
			is_flat(count($session, $STATUS), $few, "$name, more mounts");

			# After a mount changes, a session does not use cached facts.
			my $remedy = 'SELECT remedy FROM hugeinfo_status';
			like($session->value($remedy), qr{/etc/sysctl\.d/}, "$name: the remedy has a line for the next boot") if $pages == 0;
			cover('/etc/sysctl.d');
			unlike($session->value($remedy), qr{/etc/sysctl\.d/\S+\.conf}, "$name: no line for a sysctl.d that is not the host's") if $pages == 0;
			is($session->value('SELECT pool_total_pages FROM hugeinfo_status'), $pages + pages_of_others($kb), "$name: the pool is visible");
			cover('/sys/kernel/mm/hugepages');
			is($session->value('SELECT pool_total_pages FROM hugeinfo_status'), '', "$name: the pool is hidden");
		});
	}
}

done_testing;
