# The program hugeinfo computes what SQL and real starts show, needs no data directory, and leaves
# nothing behind.
#
# Takes half a minute, because the program and PostgreSQL start hundreds of times.
use strict;
use warnings;

use File::Temp ();
use FindBin;
use IPC::Run ();
use JSON::PP ();
use POSIX ();
use lib "$FindBin::RealBin/lib";
use HugeInfo::Tools;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $program = source('target/program/hugeinfo');
my $bindir_of_server = $ENV{PATH} =~ s/:.*//r;
our $bindir = $bindir_of_server;
my $scratch = File::Temp::tempdir(CLEANUP => 1);

# Returns the exit status, the output and the errors.
sub hugeinfo
{
	my (@arguments) = @_;
	my ($out, $error);
	local $ENV{TMPDIR} = $scratch;
	IPC::Run::run([ $program, @arguments, '--bindir', $bindir ], '<', '/dev/null', '>', \$out, '2>', \$error);
	return ($? >> 8, $out, $error);
}

sub json { my ($status, $out, $error) = hugeinfo(@_); is($status, 0, "@_") or diag($error); return JSON::PP->new->decode($out) }

sub row { my ($plan) = @_; my ($row) = grep { $_->{is_default} } @{ $plan->{plan} }; return $row }

my $node = new_server('program', max_connections => 20);

# `make install`, with which tools/with-postgres has created this installation.
{
	my ($root) = $ENV{PG_CONFIG} =~ m{^(/tmp/pg_hugeinfo\.[^/]+)/};
	my @pages = map { s{.*/}{}r } glob "$root/usr/local/share/man/man1/*";
	is_deeply([ grep { !/^hugeinfo(?:-(?:[a-z]+))?\.1$/ } @pages ], [], 'make install: only manual pages of the program');
	is(scalar(grep { /^hugeinfo(?:-plan)?\.1$/ } @pages), 2, 'make install: manual pages');
	is(`$root/usr/local/bin/hugeinfo --version`, `$program --version`, 'make install: the program');
	like(`$program --version`, qr/^hugeinfo \d+\.\d+\.\d+(?:-dev)?(?: \([0-9a-f]{12}(?: with changes)?\))?$/, 'the version names the commit');
}

# The same number as in SQL, of a running and of a stopped server.
for my $settings ([], ['shared_buffers=48MB'], [ 'shared_buffers=1GB', 'max_connections=500' ])
{
	my @options = map { ('-c', $_) } @$settings;
	my $pairs = @$settings ? "'@$settings'" : '';
	my $columns = 'segment_bytes, required_pages, tail_waste_bytes, recommended_nr_hugepages';
	my $expected = $node->safe_psql('postgres', "SELECT $columns FROM hugeinfo_plan($pairs) WHERE is_default");
	my $row = row(json('plan', '-D', $node->data_dir, @options, '--format', 'json'));
	# SQL adds the pages that others hold.
	my ($bytes, $pages, $waste) = split /\|/, $expected;
	is_deeply([ @$row{qw(segment_bytes required_pages tail_waste_bytes)} ], [ $bytes, $pages, $waste ], "plan: @$settings as in SQL");
	$node->stop;
	is_deeply(row(json('plan', '-D', $node->data_dir, @options, '--format', 'json')), $row, "plan: @$settings, stopped");
	$node->start;
}

# A stopped server starts from its files. A notice lists the options of its last start.
{
	my $data = $node->data_dir;
	my $of_files = row(json('plan', '-D', $data, '--format', 'json'));
	$node->stop;
	system_or_bail('pg_ctl', '-w', '-D', $data, '-l', $node->logfile, '-o', '-c huge_pages=off -c shared_buffers=48MB', 'start');
	my ($status, $out, $error) = hugeinfo('plan', '-D', $data, '--format', 'json');
	cmp_ok(row(JSON::PP->new->decode($out))->{segment_bytes}, '>', $of_files->{segment_bytes}, 'options: a restart keeps them');
	like($error, qr/^NOTICE:  \Q$data\E: the server has -c huge_pages=off -c shared_buffers=48MB on its command line/m, 'options: of the running server');
	system_or_bail('pg_ctl', '-w', '-D', $data, '-s', 'stop');
	($status, $out, $error) = hugeinfo('plan', '-D', $data, '--format', 'json');
	is_deeply(row(JSON::PP->new->decode($out)), $of_files, 'options: a start from the files does not use them');
	like($error, qr/^NOTICE:  \Q$data\E: the last start had -c huge_pages=off -c shared_buffers=48MB on its command line/m, 'options: of the last start');
	# The files decide, and the last of them names the place of a change.
	SKIP:
	{
		needs_host('options: the place of a change');
		my $auto = slurp_file("$data/postgresql.auto.conf");
		append_to_file("$data/postgresql.auto.conf", "huge_pages = 'on'\n");
		set_pool($kb, 0);
		my $at_log = sub { return hugeinfo('why', '-D', $data, '--log', $node->logfile) };
		for my $verb ([ 'status', sub { return hugeinfo('status', '-D', $data) } ], [ 'why', $at_log ], [ 'ensure', sub { return hugeinfo('ensure', '--dry-run', '-D', $data) } ])
		{
			($status, $out, $error) = $verb->[1]->();
			unlike($out, qr/huge_pages = off|does not ask/, "options: $verb->[0] does not use those of the last start");
			like($error, qr/^NOTICE:  .*the last start had -c huge_pages=off/m, "options: $verb->[0] names those of the last start");
			like($out, qr/set huge_pages = try in \Q$data\E\/postgresql\.auto\.conf, line \d/, 'options: the file and the line that decide') if $verb->[0] eq 'status';
		}
		unlink "$data/postgresql.auto.conf";
		append_to_file("$data/postgresql.auto.conf", $auto);
	}
	$node->start;
}

# why plans for this server alone. Warnings are printed only below a cause that is about them.
my $other = new_server('other');
SKIP:
{
	needs_host('why');
	my $data = $node->data_dir;
	my $log = "$scratch/failed.log";
	$node->stop;
	set_pool($kb, 0);
	my ($io_uring, $map) = ('could not setup io_uring queue: Cannot allocate memory', 'could not map anonymous shared memory: Out of memory');
	for (
		[ $io_uring, 'try', 'locked_memory', qr/^Now: A start would not get huge pages\. .* It would use \d+ kB pages\.$/m ],
		[ $io_uring, 'on', 'locked_memory', qr/^  critical: A start would fail.*^    sysctl -w/ms ],
		[ $map, 'try', 'no_memory_for_segment', qr/^  warning: A start would not get huge pages.*^    sysctl -w/ms ],
		[ 'LOG:  server process (PID 7) was terminated by signal 7: Bus error', 'off', 'bus_error', qr/^Now: The next start uses huge_pages = off\.$/m ])
	{
		my ($message, $value, $code, $now) = @$_;
		append_to_file($log, $message =~ /^LOG/ ? "$message\n" : "FATAL:  $message\n");
		my @why = ('why', '-D', $data, '--log', $log, '-c', "huge_pages=$value");
		my ($status, $out) = hugeinfo(@why);
		is($status, { try => $code eq 'locked_memory' ? 2 : 1, on => 2, off => 3 }->{$value}, "why: $code, $value: exit status");
		like($out, $now, "why: $code, $value");
		unlike($out, qr/@{[ $other->port ]}|restart the server/, "why: $code, $value: no other server");
		unlike($out, qr/sysctl/, "why: $code, $value: no step") if $now !~ /sysctl/;
		is(JSON::PP->new->decode((hugeinfo(@why, '--format', 'json'))[1])->{code}, $code, "why: $code, $value: the code");
		unlink $log;
	}
	$node->start;
}

# Processes of a killed postmaster keep its memory. No other step is possible before they have
# ended.
{
	my $data = $other->data_dir;
	my $busy = IPC::Run::start([ 'psql', '-X', '-d', $other->connstr('postgres'), '-c', 'DO $$ BEGIN LOOP END LOOP; END $$' ], '<', '/dev/null', '>', \my $none, '2>', \my $ended);
	my $pid;
	until_true(sub { $pid = $other->safe_psql('postgres', q(SELECT pid FROM pg_stat_activity WHERE query LIKE 'DO %')) });
	my $postmaster = $other->{_pid};
	$other->kill9;
	# It is still visible while it ends.
	ok(until_true(sub { !-e "/proc/$postmaster/cwd" }), 'killed postmaster: it ends');
	for my $verb (['status'], ['why'], ['preflight'], [ 'ensure', '--dry-run' ])
	{
		my ($status, $out, $error) = hugeinfo(@$verb, '-D', $data);
		is($status, 2, "killed postmaster: @$verb: exit status");
		like("$out$error", qr/processes of this server still run \(PID [^)]*\b$pid\b[^)]*\) and hold its memory\n.*End them, then start the server/, "killed postmaster: @$verb");
		unlike("$out$error", qr/sysctl|huge pages|4 kB/, "killed postmaster: @$verb: nothing else");
	}
	my ($started, $log) = starts($other);
	ok(!$started, 'killed postmaster: it does not start');
	like($log, qr/pre-existing shared memory block|"postmaster\.pid" already exists/, 'killed postmaster: why it does not start');
	kill 'TERM', $pid;
	$busy->finish;
	ok(until_true(sub { !-e "/proc/$pid/cwd" }), 'killed postmaster: the last process ends');
	my ($status, $out) = hugeinfo('why', '-D', $data, '--log', $other->logfile, '--format', 'json');
	is(JSON::PP->new->decode($out)->{code}, 'still_running', 'killed postmaster: the cause');
	# The failed start has left the number of the killed process, which would be stopped at the end.
	undef $other->{_pid};
}

# Without a data directory, as for a new cluster.
{
	my $new = PostgreSQL::Test::Cluster->new('new');
	$new->init;
	configure($new, shared_buffers => '64MB', max_connections => 33, max_locks_per_transaction => 100, wal_level => 'logical', max_wal_senders => 10);
	my @options = map { ('-c', $_) } qw(shared_buffers=64MB max_connections=33 max_locks_per_transaction=100 wal_level=logical max_wal_senders=10);
	my $of_files = row(json('plan', '-D', $new->data_dir, '--format', 'json'));
	is_deeply(row(json('plan', @options, '--format', 'json')), $of_files, 'plan: without a data directory, as with files');

	my (undef, $text) = hugeinfo('plan', @options);
	like($text, qr/^$of_files->{required_pages} huge pages of .*, the default size/m, 'plan: text');
	is((hugeinfo('plan', @options, '--format', 'sysctl'))[1], "vm.nr_hugepages = $of_files->{required_pages}\n", 'plan: sysctl');
	my $mb = $kb / 1024;
	my $resource = sprintf 'hugepages-%dMi: %dMi', $mb, $mb * $of_files->{required_pages};
	my @resources = (hugeinfo('plan', @options, '--format', 'k8s'))[1] =~ /^  (?:requests|limits): \{ memory: \w+, (.*) \}$/mg;
	is_deeply(\@resources, [ ($resource) x 2 ], 'plan: k8s');
	my $other = json('plan', @options, qw(--format json --page-size 1GB --host-ram 64GB))->{plan};
	is_deeply([ map { $_->{page_size_bytes} } @$other ], [ 1 << 30 ], 'plan: another page size');
	my $other_size = $kb == 1 << 20 ? '2MB' : '1GB';
	like((hugeinfo('plan', @options, '--page-size', $other_size, qw(--host-ram 64GB)))[1], qr/^    # postgresql\.conf: huge_page_size = $other_size$/m, 'plan: the setting for another page size');
	like((hugeinfo('fit', '--pages', 40, '--page-size', $other_size))[1], qr/^huge_page_size = $other_size$/m, 'fit: the setting for another page size') if $other_size eq '1GB';
	like((hugeinfo('plan', @options, qw(--host-ram 16MB)))[1], qr/, more than the RAM of 16 MB$/m, 'plan: more than the RAM');

	# The number for one server would take the pages of others.
	SKIP:
	{
		needs_host('plan: the command');
		set_pool($kb, 0);
		like((hugeinfo('plan', @options))[1], qr/^    sysctl -w vm\.nr_hugepages=$of_files->{required_pages}$/m, 'plan: the command') unless pages_of_others($kb);
		set_pool($kb, 3);
		my $here = (hugeinfo('plan', @options))[1];
		like($here, qr/^    # this host has huge pages, which others might use: see hugeinfo preflight, or hugeinfo status if the server runs$/m, 'plan: pages of others');
		unlike($here, qr/sysctl|echo/, 'plan: no command that takes them');
		like((hugeinfo('plan', @options, qw(--host-ram 64GB)))[1], qr/^    sysctl -w/m, 'plan: the command for another host');
		set_pool($kb, 0);
	}
}

# fit is exact: the pages suffice for a real start, and one block more does not fit.
SKIP:
{
	needs_host('fit');
	my $pages = required_pages($node, $kb) + 3;
	$node->stop;
	pools_of_one_size($kb, $pages);
	my $fit = json('fit', '--pages', $pages, '-D', $node->data_dir, '--format', 'json');
	is($fit->{required_pages}, $pages, 'fit: uses all pages');
	my $buffers = $fit->{shared_buffers_bytes} / 1024;
	configure($node, huge_pages => 'on', shared_buffers => "${buffers}kB");
	my ($started, $log) = starts($node);
	ok($started, "fit: starts with $buffers kB on $pages pages") or diag($log);
	is(segment($node->{_pid})->{bytes}, $pages * $kb * 1024, 'fit: on all pages');
	$node->stop;
	configure($node, shared_buffers => ($buffers + 8) . 'kB');
	($started, $log) = starts($node);
	ok(!$started, 'fit: does not start with one block more');
	like($log, qr/could not map anonymous shared memory/, 'fit: because huge pages are missing');
	configure($node, huge_pages => 'try', shared_buffers => '16MB');
	$node->start;

	my $bytes = $pages * $kb * 1024;
	my @of_share = map { json('fit', @$_, '--format', 'json') } [qw(--percent-of-ram 25 --host-ram 64GB)], [ '--bytes', 16 << 30 ];
	is($of_share[0]{shared_buffers}, $of_share[1]{shared_buffers}, 'fit: a share of RAM');
	is(json('fit', '--bytes', $bytes + 1, '-D', $node->data_dir, '--format', 'json')->{shared_buffers}, "${buffers}kB", 'fit: bytes');
}

# preflight forecasts real starts.
SKIP:
{
	needs_host('preflight');
	my $stopped = sub { return hugeinfo('preflight', '-D', $node->data_dir, @_) };
	like(($stopped->())[2], qr/is running \(PID $node->{_pid}\)\nHINT: Use hugeinfo status/, 'preflight: of a running server');
	my $need = required_pages($node, $kb);
	$node->stop;
	pools_of_one_size($kb, $need - 1);
	is(($stopped->('-c', "huge_pages=$_->[0]"))[0], $_->[1], "preflight: one page short, $_->[0]") for [ 'try', 1 ], [ 'on', 2 ], [ 'off', 0 ];
	my ($status, $text) = $stopped->('-c', 'huge_pages=on');
	like($text, qr/^critical: A start would fail, because huge_pages = on\. Needs $need huge pages of .*; @{[ $need - 1 ]} are available\.$/m, 'preflight: the finding');
	my ($line) = $text =~ /^    # if no other program needs .*: (sysctl -w vm\.nr_hugepages=\d+)$/m;
	configure($node, huge_pages => 'on');
	ok(!(starts($node))[0], 'preflight: it does not start');
	type_in($line);
	is(($stopped->())[0], 0, 'preflight: after the remedy');
	ok((starts($node))[0], 'preflight: it starts');
	is(segment($node->{_pid})->{page_bytes}, $kb * 1024, 'preflight: on huge pages');
	$node->stop;

	# Limits of the cgroup in which the program runs.
	limit_group('small', 'fault', $kb, $kb * 1024);
	in_group('small', sub {
		my $json = JSON::PP->new->decode(($stopped->('--format', 'json'))[1]);
		is($json->{checks}[0]{code}, 'cgroup_bomb_at_restart', 'preflight: a cgroup that would crash the server');
		is(($stopped->())[0], 1, 'preflight: exit status there');
	});
	configure($node, huge_pages => 'try');
	$node->start;
}

# Odd input that is accepted.
{
	my $large = json('fit', '--pages', 1 << 62, '--format', 'json');
	is($large->{shared_buffers_bytes}, 1073741823 * 8192, 'fit: at most the maximum of shared_buffers');
	like((hugeinfo('plan', '-c', 'huge_pages=off'))[2], qr/^NOTICE:  huge_pages = off: figures are for huge_pages = try$/m, 'plan: a notice');
	my $requested = json('plan', qw(-c huge_page_size=1GB --format json));
	is_deeply([ map { $_->{page_size_bytes} } grep { $_->{is_requested} } @{ $requested->{plan} } ], [ 1 << 30 ], 'plan: the requested size');
	is((hugeinfo('plan', qw(-c huge_page_size=1GB --format sysctl)))[0], 3, 'plan: no sysctl for another size');
	my $data = $node->data_dir;
	# A library can write any amount of text before the result.
	my $noisy = "$scratch/noisy";
	mkdir $noisy;
	symlink "$bindir/initdb", "$noisy/initdb";
	append_to_file("$noisy/postgres", "#!/bin/sh\nseq 1000000 1020000\nexec $bindir/postgres \"\$@\"\n");
	chmod 0755, "$noisy/postgres";
	local $bindir = $noisy;
	is((hugeinfo('plan', '-D', $data, '--format', 'json'))[1], do { local $bindir = $bindir_of_server; (hugeinfo('plan', '-D', $data, '--format', 'json'))[1] }, 'plan: after much other output');
	unlink glob "$noisy/*";
	rmdir $noisy;
}

# A file that would never end.
{
	my $odd = "$scratch/odd";
	mkdir $odd, 0700;
	append_to_file("$odd/postgresql.conf", '');
	POSIX::mkfifo("$odd/PG_VERSION", 0600) or die "mkfifo: $!\n";
	my ($status, undef, $error) = hugeinfo('plan', '-D', $odd);
	is($status, 3, 'a FIFO: exit status');
	like($error, qr/could not read .*PG_VERSION: not a regular file/, 'a FIFO: the message');
	unlink glob "$odd/*";
	rmdir $odd;
}

# The page shows the output, with other numbers.
{
	my $page = slurp_file(source('docs/program.md'));
	my $shape = sub { return $_[0] =~ s/^PostgreSQL \K[^:]+/N/gmr =~ s/\d[\d.]*/N/gr =~ s/N (?:bytes|[kMG]B)/SIZE/gr };
	my @examples = $page =~ /^```sh\nhugeinfo ([^\n]*)\n```\n\n```text\n(.*?)^```/gms;
	cmp_ok(scalar @examples, '>=', 4, 'the page has examples');
	while (my ($command, $expected) = splice @examples, 0, 2)
	{
		my ($status, $out) = hugeinfo(split / /, $command);
		is($status, 0, "docs: $command");
		# Other hosts have other sizes in addition.
		like($shape->($out), qr/^\Q@{[ $shape->($expected) ]}\E/, "docs: $command: the output");
	}
}

# The page names the keys of each object.
{
	my ($table) = slurp_file(source('docs/program.md')) =~ /^## JSON\n(.*?)^## /ms;
	my @columns = split /\n/, $node->safe_psql('postgres', "SELECT attname FROM pg_attribute WHERE attrelid = 'hugeinfo_status'::regclass AND attnum > 0");
	my $connection = $node->connstr('postgres');
	my $of_server = sub { my ($options) = @_; return [ split(/ /, "$options -D"), $node->data_dir, '--bindir', $bindir ] };
	my %runs = (
		'status' => $of_server->('status'), 'check' => $of_server->('check'), 'runbook' => $of_server->('runbook'),
		'why' => $of_server->('why --log ' . $node->logfile), 'plan' => $of_server->('plan'), 'fit' => $of_server->('fit --pages 40'),
		'status --all' => [qw(status --all)], 'preflight' => [ qw(preflight --bindir), $bindir ], 'fleet' => [ 'fleet', $connection ]);
	for my $verb (sort keys %runs)
	{
		my ($row) = $table =~ /^\| `\Q$verb\E` \| (.*) \|$/m;
		# After a colon: the value of the key.
		my @keys = map { my ($named) = /^([^:]*)/; $named =~ /`(\w+)`/g } grep { !/columns of/ } split /[;] |, and /, $row;
		push @keys, @columns if $row =~ /the columns of `hugeinfo_status`$/;
		# It explains only servers that do not run.
		$node->stop if $verb eq 'why';
		IPC::Run::run([ $program, @{ $runs{$verb} }, '--format', 'json' ], '<', '/dev/null', '>', \my $out, '2>', \my $error);
		my $object = JSON::PP->new->utf8->decode($out);
		is_deeply([ sort keys %$object ], [ sort 'schema', @keys ], "docs: $verb --format json") or diag($error);
		is($object->{schema}, 1, "docs: $verb --format json: schema");
		$node->start if $verb eq 'why';
	}
}

# Invalid input.
for (
	[ 2, qr/invalid value for parameter "shared_buffers": "1XB"\nHINT: Valid units/, 'plan', '-c', 'shared_buffers=1XB' ],
	[ 3, qr/unrecognized subcommand 'setings'(?!.*similar)/s, 'setings' ],
	[ 2, qr/unrecognized configuration parameter "shared_bufers"\nHINT: Did you mean "shared_buffers"\?$/m, 'plan', '-c', 'shared_bufers=1GB' ],
	[ 3, qr/-c shared_buffers: expected NAME=VALUE\nHINT: /, 'plan', '-c', 'shared_buffers' ],
	[ 3, qr/could not open .*nothing: No such file/, 'plan', '-D', "$scratch/nothing" ],
	[ 3, qr/expected a huge page size/, 'plan', '--page-size', '3MB' ],
	[ 3, qr/expected a size/, 'plan', '--host-ram', 'much' ],
	[ 3, qr/1 huge page of .* is too few/, 'fit', '--pages', '1' ],
	[ 3, qr/this setting cannot be planned/, 'plan', '-c', "data-directory=$scratch" ],
	[ 3, qr/expected NAME=VALUE/, 'plan', '-c', 'shared_buffers = 1GB' ],
	[ 3, qr/is not a data directory of this user/, 'plan', '-D', '/' ],
	[ 3, qr/\Q$scratch\E is empty\nHINT: Is its file system mounted/, 'plan', '-D', $scratch ],
	[ 3, qr/95% of 64 GB leaves too little memory for other programs\nHINT: Use --percent-of-ram 8\d or less/, 'fit', qw(--percent-of-ram 95 --host-ram 64GB) ],
	[ 3, qr/fit computes shared_buffers/, 'fit', '--pages', '100', '-c', 'shared_buffers=1GB' ],
	[ 3, qr/--pages <N>\|--bytes <SIZE>\|--percent-of-ram <PERCENT>/, 'fit' ])
{
	my ($expected, $message, @arguments) = @$_;
	my ($status, $out, $error) = hugeinfo(@arguments);
	is($status, $expected, "@arguments: exit status");
	like($error, $message, "@arguments: the message");
	is($out, '', "@arguments: no output");
}
is((IPC::Run::run([ $program, 'plan', '--bindir', $scratch ], '2>', \my $none), $? >> 8)[-1], 3, 'no programs of PostgreSQL');
is_deeply([ glob "$scratch/*" ], [], 'nothing is left behind');

# A signal ends the run and its children. After kill -9, the next run cleans up.
for my $signal (qw(TERM INT KILL))
{
	local $ENV{TMPDIR} = $scratch;
	my $run = IPC::Run::start([ $program, 'plan', '--bindir', $bindir ], '<', '/dev/null', '>', \my $out, '2>', \my $error);
	ok(until_true(sub { my @data = glob "$scratch/pg_hugeinfo-plan.*/data/*"; @data > 0 }), "$signal: initdb runs");
	$run->signal($signal);
	$run->finish;
	is(scalar(my @left = glob "$scratch/pg_hugeinfo-plan.*"), $signal eq 'KILL' ? 1 : 0, "$signal: the scratch directory");
}
# initdb ends with its parent.
ok(until_true(sub { !grep { process_file(m{(\d+)$}, 'cmdline') =~ /\Q$scratch\E/ } glob '/proc/[0-9]*' }), 'kill -9: no process is left');
is((hugeinfo('plan'))[0], 0, 'the next run');
is_deeply([ glob "$scratch/*" ], [], 'nothing is left behind');

# As root, PostgreSQL and the libraries in the configuration run as the owner of the directory.
SKIP:
{
	needs_host('root');
	my $file = "$scratch/as_root";
	my $data = $node->data_dir;
	for my $verb ('plan', 'fit --pages 40')
	{
		for my $of ('', " -D $data")
		{
			type_in("$program $verb --bindir $bindir$of >$file 2>&1");
			is(slurp_file($file), (hugeinfo(split / /, "$verb$of"))[1], "as root: $verb$of: the same");
		}
	}
	my $noisy = "$scratch/noisy";
	mkdir $noisy;
	symlink "$bindir/initdb", "$noisy/initdb";
	append_to_file("$noisy/postgres", "#!/bin/sh\nid -u >>$scratch/ids\n(: >/dev/tty) 2>/dev/null && echo terminal >>$scratch/ids\nexec $bindir/postgres \"\$@\"\n");
	chmod 0755, "$noisy/postgres";
	type_in("$program plan --bindir $noisy -D $data >$file 2>&1");
	my %ids = map { $_ => 1 } split /\n/, slurp_file("$scratch/ids");
	is_deeply([ keys %ids ], [$<], 'as root: PostgreSQL runs as the owner');
	unlink "$scratch/ids";
	type_in("$program fit --pages 40 --bindir $noisy >$file 2>&1");
	%ids = map { $_ => 1 } split /\n/, slurp_file("$scratch/ids");
	is_deeply([ keys %ids ], [ scalar getpwnam 'postgres' ], 'as root: PostgreSQL runs as its user without a data directory');
	unlink $file, "$scratch/ids", glob "$noisy/*";
	rmdir $noisy;
}

done_testing;
