# A small run of make experiment: its results are the same as in /proc, and the host is restored at
# any end of the run.
use strict;
use warnings;

use Fcntl qw(:flock O_CREAT O_RDWR);
use File::Temp ();
use FindBin;
use List::Util qw(max min sum0);
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep);

use lib "$FindBin::RealBin/../lib";
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Tools;
use HugeInfo::User;

# This process stays root, like the run. As in 000_harness.pl, it checks from outside that
# everything ends with the run.
sub why_not_here
{
	return 'only root can change the pools of the host' if $> != 0;
	return 'this kernel has no huge pages' unless default_page_kb();
	return;
}

sub contents { my ($file) = @_; open my $fh, '<', $file or return ''; local $/; return scalar(<$fh>) // '' }

my $THP = '/sys/kernel/mm/transparent_hugepage/shmem_enabled';
my $LOCK = '/run/pg_hugeinfo/lock';
my $user = HugeInfo::User::name();
my $scratch = File::Temp::tempdir('pg_hugeinfo_experiment_XXXXXX', DIR => '/tmp', CLEANUP => 1);
chmod 0755, $scratch;
# the directory of the runs' workspaces
my $data = "$scratch/data";
mkdir $data and chmod 01777, $data;
my $tmpdir = $data;

sub size_name { my ($kb) = @_; my @units = qw(kB MB GB); while ($kb >= 1024) { $kb /= 1024; shift @units } return "$kb$units[0]" }
my $small = size_name(base_page() / 1024);
my $huge = default_page_kb() && size_name(default_page_kb());

# No other run changes the host while this lock is held.
sub lock_host { mkdir $LOCK =~ s{/[^/]*$}{}r, 0700; sysopen my $lock, $LOCK, O_RDWR | O_CREAT, 0600 or return; flock $lock, LOCK_EX or die "lock: $!\n"; return $lock }

sub host
{
	my $pools = pools();
	delete @$_{qw(free reserved)} for values %$pools;
	return { pools => $pools, thp => contents($THP) };
}

sub host_at_rest { my $lock = lock_host(); return host() }

sub start_run
{
	my ($name, $as_user, @arguments) = @_;
	my $output = "$scratch/$name";
	mkdir $output;
	chown((getpwnam $user)[ 2, 3 ], $output) if $as_user && $> == 0;
	my $pid = fork // die "fork: $!\n";
	if (!$pid)
	{
		$ENV{TMPDIR} = $tmpdir;
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', "$scratch/$name.log";
		open STDERR, '>&', \*STDOUT;
		# Resets signals, as on a terminal, because nohup ignores some.
		$SIG{$_} = 'DEFAULT' for qw(HUP INT QUIT);
		# It must end with the test, even if the test is killed.
		my @become = $as_user && $> == 0 ? ("--reuid=$user", "--regid=$user", '--init-groups') : ();
		exec('setpriv', '--pdeathsig', 'TERM', @become, '--', source('tools/experiment/experiment'), "OUTPUT=$output", @arguments) or POSIX::_exit(127);
	}
	return { pid => $pid, name => $name, output => $output };
}

sub said { my ($run) = @_; return contents("$scratch/$run->{name}.log") }

# Returns the postmaster of the run's present server.
sub postmaster
{
	my ($file) = glob "$data/pg_hugeinfo.*/server/data/postmaster.pid";
	# just made, it is empty
	return $file && contents($file) =~ /^(\d+)\n/ ? $1 : undef;
}

# Records the present figures of a process.
sub look
{
	my ($seen, $pid) = @_;
	my $tables = status_file($pid)->{page_table_bytes} // return;
	$seen->{tables}{$pid}{$tables} = 1;
	$seen->{faults}{$pid}{ stat_file($pid)->{minor_faults} // '' } = 1;
	return;
}

# Watches the run until its end: records the figures of each process of its servers, and the pages
# of their segments.
sub watch
{
	my ($run) = @_;
	my $seen = {};
	# A connection ends soon after the run has measured it. With normal priority, this loop could
	# miss that moment on a busy machine.
	my $nice = getpriority 0, 0;
	setpriority 0, 0, -15 if $> == 0;
	until (waitpid $run->{pid}, POSIX::WNOHANG())
	{
		if (my $postmaster = postmaster())
		{
			eval { look($seen, $_) for family($postmaster); $seen->{pages}{ segment($postmaster)->{page_bytes} } = 1 };
			$seen->{thp} = 1 if grep { ($_->{shmem_thp_bytes} // 0) > 0 } map { smaps_file($_) } grep { !rand 20 } family($postmaster);
		}
		$seen->{pool} = max($seen->{pool} // 0, pool(default_page_kb())->{total}) if default_page_kb();
		$seen->{modes}{ contents($THP) } = 1;
		sleep 0.02;
	}
	$run->{status} = $?;
	setpriority 0, 0, $nice if $> == 0;
	return $seen;
}

# Parses a file of comma-separated values without quotes to rows as hashes.
sub csv
{
	my ($run, $table) = @_;
	my ($head, @lines) = split /\n/, contents("$run->{output}/$table.csv");
	my @columns = split /,/, $head // '';
	my @rows = map { my %row; @row{@columns} = split /,/, $_, -1; \%row } @lines;
	is(scalar(grep { scalar(split /,/, $_, -1) != @columns } @lines), 0, "$run->{name}, $table.csv: each row has each column");
	return @rows;
}

sub median { my @sorted = sort { $a <=> $b } @_; return ($sorted[ @sorted / 2 ] + $sorted[ $#sorted / 2 ]) / 2 }

sub compare_with_proc
{
	my ($run, $seen, $cases, $connections) = @_;
	my $name = $run->{name};
	my @processes = csv($run, 'processes');
	my @own = grep { $_->{is_connection} eq 't' } @processes;
	my (@other_tables, @other_faults);
	for (@own)
	{
		push @other_tables, "$_->{pid}: $_->{page_table_bytes}" unless $seen->{tables}{ $_->{pid} }{ $_->{page_table_bytes} };
		push @other_faults, "$_->{pid}: $_->{minor_faults}" unless $seen->{faults}{ $_->{pid} }{ $_->{minor_faults} };
	}
	is("@other_tables", '', "$name: page tables of each connection are the same as VmPTE");
	is("@other_faults", '', "$name: page faults of each connection are the same as in stat");
	cmp_ok(min(map { $_->{pss_bytes} } @own), '>', 1 << 20, "$name: each connection has PSS");

	my (%sum, %faults);
	$sum{"$_->{pages} $_->{connections}"} += $_->{page_table_bytes} for @own;
	$faults{"$_->{pages} $_->{connections}"} += $_->{minor_faults} / $_->{connections} for @own;
	my @steps = csv($run, 'connections');
	my %told = map { ("$_->{pages} $_->{connections}" => $_->{page_table_bytes}) } @steps;
	is_deeply(\%told, \%sum, "$name: the sums, too");
	is(join(' ', grep { abs($_->{one_minor_faults} - $faults{"$_->{pages} $_->{connections}"}) > 1 } @steps), '', "$name: the averages, too");
	is_deeply([ sort { $a cmp $b } keys %told ], [ sort { $a cmp $b } map { my $case = $_; map { "$case $_" } @$connections } @$cases ],
		"$name: each step of each case exists");
	return \%told;
}

sub compare_summary
{
	my ($run, $cases, $rounds, $told, $all) = @_;
	my $name = $run->{name};
	my @rounds = csv($run, 'rounds');
	is_deeply([ sort map { "$_->{round} $_->{pages}" } @rounds ], [ sort map { my $round = $_; map { "$round $_" } @$cases } 1 .. $rounds ],
		"$name: each case in each round");
	my %tps;
	$tps{ $_->{pages} }{ $_->{round} } = $_->{tps} for @rounds;
	my %summary = map { $_->{pages} => $_ } csv($run, 'summary');
	is_deeply([ sort keys %summary ], [ sort @$cases ], "$name: a row for each case");
	for my $case (@$cases)
	{
		my $row = $summary{$case};
		cmp_ok(abs($row->{tps} - median(values %{ $tps{$case} })), '<', 0.1, "$name, $case: the median of the rounds");
		my $ratio = median(map { $tps{$case}{$_} / $tps{ $cases->[0] }{$_} } keys %{ $tps{$case} });
		cmp_ok(abs($row->{tps_ratio} - $ratio), '<', 0.0001, "$name, $case: the ratio is that of each round");
		is($row->{page_table_bytes}, $told->{"$case $all"}, "$name, $case: page tables of all connections");
		like(contents("$run->{output}/experiment.md"), qr/^\|.*\b@{[ $case eq 'thp' ? 'transparent' : $case =~ s{\D+}{ $&}r ]}\b/m, "$name, $case: in the table");
	}
	return \%summary;
}

sub compare_pages
{
	my ($run, @plots) = @_;
	my @files = ('experiment.html', map { "$_.svg" } @plots);
	ok(-s "$run->{output}/$_", "$run->{name}: $_ exists") for @files, 'experiment.md';
	my $parse = 'import sys, xml.etree.ElementTree as e; [e.parse(f) for f in sys.argv[1:]]';
	is(system('python3', '-c', $parse, map { "$run->{output}/$_" } @files), 0, "$run->{name}: they are well-formed");
	my $html = contents("$run->{output}/experiment.html");
	is(scalar(() = $html =~ /<svg /g), scalar @plots, "$run->{name}: the page contains the plots");
	unlike($html, qr/<script|\b(?:src|href)=["'](?!#)|url\((?!['"]?#)/, "$run->{name}: the page needs no other file");
	return;
}

# Invalid input: an error that names it, before the run starts.
{
	my @bad = (
		[ 'SHARED_BUFFERS=much', qr/SHARED_BUFFERS=much: expected a size such as/ ], [ 'SHARED_BUFFERS=8', qr/a size such as/ ],
		[ 'SHARED_BUFFERS=31MB', qr/at least 32MB/ ], [ 'CLIENTS=0', qr/CLIENTS=0: expected a number from 1/ ],
		[ 'CLIENTS=1001', qr/from 1 to 1000/ ], [ 'SECONDS=-1', qr/SECONDS=-1: expected/ ], [ 'SECONDS=3601', qr/from 1 to 3600/ ],
		[ 'ROUNDS=1.5', qr/ROUNDS=1.5: expected/ ], [ 'PAGES=3MB', qr/3MB is not one of \Q$small\E/ ], [ 'PAGES=,', qr/PAGES=,: expected/ ],
		[ 'MINUTES=5', qr/MINUTES=5: expected NAME=VALUE/ ], [ 'quickly', qr/quickly: expected NAME=VALUE/ ],
		[ 'OUTPUT=/proc/self/nothing', qr/not writable/ ], [ 'SHARED_BUFFERS=900TB', qr/memory and \S+ have room for/ ]);
	for (@bad)
	{
		my ($argument, $error) = @$_;
		my $run = start_run('bad', 1, $argument);
		waitpid $run->{pid}, 0;
		isnt($?, 0, "$argument: refused");
		like(said($run), $error, "$argument: and told why");
		unlike(said($run), qr/loading|Traceback/, "$argument: before anything is done");
	}
	is_deeply([ glob "$data/*" ], [], 'bad input leaves nothing behind');

	if (contents('/proc/mounts') =~ m{^\S+ /dev/shm tmpfs }m)
	{
		$tmpdir = '/dev/shm';
		my $run = start_run('bad', 1, 'SHARED_BUFFERS=32MB');
		waitpid $run->{pid}, 0;
		like(said($run), qr{/dev/shm is in memory}, 'data is not put into memory');
		$tmpdir = $data;
	}
}

# The interval: the number of n values below the median has a binomial distribution.
{
	my %rank = (1 => 0, 5 => 0, 6 => 1, 8 => 1, 9 => 2, 12 => 3, 20 => 6, 100 => 40);
	my @counts = sort { $a <=> $b } keys %rank;
	my $program = 'import runpy, sys; print(*map(runpy.run_path(sys.argv[1])["interval_rank"], map(int, sys.argv[2:])))';
	open my $out, '-|', 'python3', '-c', $program, source('tools/experiment/experiment'), @counts or die;
	is(<$out>, "@rank{@counts}\n", "the intervals of @counts rounds");
}

# A user who cannot change the host.
{
	my $name = 'an ordinary user';
	my $lock = lock_host();
	my $before = host();
	my $run = start_run('user', 1, 'SHARED_BUFFERS=32MB', 'CLIENTS=2', 'SECONDS=1', 'ROUNDS=1');
	my $seen = watch($run);
	is($run->{status}, 0, "$name: measures") or diag(said($run));
	my $on_thp = $before->{thp} =~ /\[(?:always|within_size|force)\]/;
	my @cases = $on_thp ? 'thp' : $small;
	if (default_page_kb() && pool(default_page_kb())->{total} == 0)
	{
		my $left = $huge =~ s/\D+/ $&/r;
		like(contents("$run->{output}/experiment.$_"), qr/Left out: \Q$left\E pages: 0 pages are available, and .* is not writable/, "$name, $_: what is left out, and why") for qw(md html);
		like(said($run), qr/left out: \Q$left\E pages/, "$name: on screen, too");
		my $told = compare_with_proc($run, $seen, \@cases, [ 1, 2 ]);
		compare_summary($run, \@cases, 1, $told, 2);
		like(said($run), qr/^==> round 1 of 1, .*: [\d.]+ tps$/m, "$name: progress is printed to its end");
		compare_pages($run, 'page-tables');
	}
	is_deeply(host(), $before, "$name: the host is as before");
	is_deeply([ glob "$data/*" ], [], "$name: nothing is left behind");
}

SKIP:
{
	if (my $why = why_not_here())
	{
		diag("skipped: huge pages: $why");
		skip($why, 1) unless $ENV{HUGEINFO_TEST_REQUIRE_ALL};
		fail("not skipped: huge pages: $why");
		last SKIP;
	}

	my $before = host_at_rest();
	my @cases = ($small, $huge, -e $THP ? 'thp' : ());
	my $run = start_run('root', 0, 'SHARED_BUFFERS=64MB', 'CLIENTS=3', 'SECONDS=1', 'ROUNDS=2', "PAGES=@cases");
	my $seen = watch($run);
	is($run->{status}, 0, 'root: measures') or diag(said($run));
	is_deeply([ sort { $a <=> $b } keys %{ $seen->{pages} } ], [ base_page(), 1024 * default_page_kb() ], 'root: on both sizes');
	cmp_ok($seen->{pool}, '>=', 64 * 1024 / default_page_kb(), 'root: the pool was filled');
	ok(scalar(grep { /\[always\]/ } keys %{ $seen->{modes} }), 'root: transparent huge pages were enabled') if -e $THP;
	my $told = compare_with_proc($run, $seen, \@cases, [ 1, 2, 3 ]);
	my $summary = compare_summary($run, \@cases, 2, $told, 3);
	cmp_ok($summary->{$huge}{one_page_table_bytes}, '<', $summary->{$small}{one_page_table_bytes}, 'root: huge pages need smaller page tables');
	cmp_ok($summary->{$huge}{one_minor_faults}, '<', $summary->{$small}{one_minor_faults}, 'root: huge pages need fewer page faults');
	like(contents("$run->{output}/experiment.md"), qr/A 95% interval needs at least 6 rounds/, 'root: no interval of two rounds');
	compare_pages($run, 'page-tables', 'throughput');
	is_deeply(host_at_rest(), $before, 'root: the host is as before');

	for ([ INT => 'thp' ], [ KILL => $huge ])
	{
		my ($signal, $case) = @$_;
		next if $case eq 'thp' && !-e $THP;
		$before = host_at_rest();
		$run = start_run("root-$signal", 0, 'SHARED_BUFFERS=32MB', 'CLIENTS=2', 'SECONDS=600', "PAGES=$case");
		# other runs can be first
		sleep 0.2 until glob("$data/pg_hugeinfo.*") || waitpid($run->{pid}, POSIX::WNOHANG());
		ok(until_true(sub { said($run) =~ /2 connections have touched/ && postmaster() && @{ [ family(postmaster()) ] } >= 7 }),
			"$signal: it is measuring");
		isnt(HugeInfo::Processes::text_of(host()), HugeInfo::Processes::text_of($before), "$signal: the host was changed");
		my $server = postmaster();
		kill $signal => $run->{pid};
		waitpid $run->{pid}, 0;
		isnt($?, 0, "$signal: ends with an error");
		# The lock is held until all changes are undone.
		is_deeply(host_at_rest(), $before, "$signal: the host is as before");
		is(readlink("/proc/$server/exe"), undef, "$signal: the server has ended");
		is_deeply([ glob "$data/*" ], [], "$signal: its directory is removed");
		is(scalar(grep { (readlink("$_/exe") // '') =~ m{/pgbench$} && process_file(m{(\d+)$}, 'environ') =~ /\bTMPDIR=\Q$data\E/ } glob '/proc/[0-9]*'),
			0, "$signal: no pgbench is left");
	}
}

done_testing;
