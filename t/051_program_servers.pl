# The program hugeinfo has the same answers as SQL for a running server. It also reads stopped
# servers, and servers whose files have changed, as root and as another user.
use strict;
use warnings;

use File::Temp ();
use FindBin;
use IPC::Run ();
use JSON::PP ();
use lib "$FindBin::RealBin/lib";
use HugeInfo::Tools;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $program = source('target/program/hugeinfo');
my $bindir = $ENV{PATH} =~ s/:.*//r;
my $scratch = File::Temp::tempdir(CLEANUP => 1);
chmod 0755, $scratch;

# Returns the exit status, the output and the errors.
sub hugeinfo
{
	my (@arguments) = @_;
	my ($out, $error);
	IPC::Run::run([ $program, @arguments, '--bindir', $bindir ], '<', '/dev/null', '>', \$out, '2>', \$error);
	return ($? >> 8, $out, $error);
}

sub decoded { my ($text) = @_; return JSON::PP->new->decode($text) }

# Like hugeinfo(), as root.
sub as_root
{
	my ($arguments) = @_;
	my $file = "$scratch/as_root";
	type_in("$program $arguments --bindir $bindir >$file 2>$file.err; echo \$? >$file.status");
	my @result = map { slurp_file($_) } "$file.status", $file, "$file.err";
	unlink glob "$file*";
	chomp $result[0];
	return @result;
}

my $node = new_server('servers', max_connections => 20);
my @here = ('-D', $node->data_dir);
my $need = required_pages($node, $kb);
my $is_only = $node->safe_psql('postgres', 'SELECT count(*) = 1 FROM hugeinfo_instances') eq 't';

# Removes figures that change all the time, and names that only SQL has.
sub shape
{
	my ($text) = @_;
	return undef unless defined $text;
	return $text =~ s/\s+/ /gr =~ s/ \((?:\w+, )*shared_buffers\)//gr =~ s/\d[\d.]*/N/gr =~ s/N (?:bytes|[kMGT]B)/SIZE/gr;
}

# Compares the program with SQL, until both have seen the same host.
sub same
{
	my ($program, $sql, $name) = @_;
	my ($seen, $expected) = agreeing($program, $sql);
	is_deeply($seen, $expected, $name);
	return $expected;
}

# Runs the program as a plugin for Nagios. Returns its exit status, its first line, the performance
# data, and the other lines.
sub as_plugin
{
	my (@options) = @_;
	my ($status, $out) = hugeinfo('check', @here, '--format', 'nagios', @options);
	my ($first, $figures, $more) = $out =~ /\A([^|\n]*) \| ([^|\n]*)\n([^|]*)\z/;
	return [ $status, shape($first), $figures, shape($more), findings($more) ];
}

# Returns the findings without their remedies.
sub findings { my ($text) = @_; return shape(join "\n", $text =~ /^[A-Z]+: .*$/mg) }

# Returns the status by SQL. The program always reads other servers, as hugeinfo_pools does, and a
# healthy hugeinfo_status does not.
sub status_by_sql
{
	my $row = decoded($node->safe_psql('postgres', 'SELECT row_to_json(s) FROM hugeinfo_status AS s'));
	$row->{recommended_nr_hugepages} = $node->safe_psql('postgres', "SELECT recommended_nr_hugepages FROM hugeinfo_pools WHERE page_size_bytes = $row->{huge_page_size_bytes}")
	  if $row->{status} eq 'ok';
	return $row;
}

# Returns the same by SQL, for the checks with some names, or for all.
sub plugin_by_sql
{
	my (@names) = @_;
	my @all = @{ decoded($node->safe_psql('postgres', 'SELECT json_agg(c) FROM hugeinfo_checks AS c')) };
	my $row = status_by_sql();
	my %is_chosen = map { $_ => 1 } @names ? @names : map { $_->{name} } @all;
	my @chosen = grep { $is_chosen{ $_->{name} } } @all;
	# sort is stable, so the most important of several equally bad checks is first
	my ($worst, @others) = sort { $b->{severity} <=> $a->{severity} } @chosen;
	my @bad = grep { $_->{severity} > 0 } $worst, @others;
	# Checks with the same remedy are one problem.
	my %cause = map { $_->{name} => ($_->{remedy} // '') =~ /^# as (\w+)$/ ? $1 : $_->{name} } @all;
	my (@problems, %problem);
	for my $check (@bad)
	{
		my $cause = $cause{ $check->{name} };
		push @problems, $problem{$cause} = [] unless $problem{$cause};
		push @{ $problem{$cause} }, $check;
	}
	my $names = sub { join ', ', map { $_->{name} } @_ };
	my $same = sub { my ($problem) = @_; return @$problem > 1 ? 'same cause: ' . $names->(@$problem[ 1 .. $#$problem ]) : () };

	my $first = !@bad && !@names && $row->{status} eq 'ok' ? $row->{reason} : "$worst->{name}: $worst->{finding}";
	my @also = @problems ? $same->($problems[0]) : ();
	push @also, "and $#problems more: " . $names->(map { $_->[0] } @problems[ 1 .. $#problems ]) if @problems > 1;
	$first .= ' (' . join('; ', @also) . ')' if @also;
	my %count = map { my $status = $_; $status => scalar grep { $_->{status} eq $status } @chosen } qw(critical warning unknown);
	my $figures = join ' ', "checks_critical=$count{critical};;0;0;", "checks_warning=$count{warning};0;;0;", "checks_unknown=$count{unknown};;;0;",
	  map { my ($label, $value, $most) = @$_; "$label=" . ($value // 'U') . ";;;0;$most" }
	  [ 'in_use', $row->{in_use} + 0, 1 ], [ 'fits_after_restart', $row->{fits_after_restart} + 0, 1 ], [ 'segment_bytes', "$row->{segment_bytes}B", '' ],
	  map { [ $_->[0], $row->{ $_->[1] }, '' ] } [ required_pages => 'required_huge_pages' ], [ shortfall_pages => 'shortfall_pages' ],
	  [ recommended_pages => 'recommended_nr_hugepages' ];

	my %remedy = map { $_->{name} => $_->{remedy} // '' } @all;
	my $more = '';
	for my $problem (@problems)
	{
		# A remedy can refer to that of a check that is not in the output.
		my $check = $problem->[0];
		my $remedy = join "\n", grep { $_ ne '' } $remedy{ $cause{ $check->{name} } }, map { "# $_" } $same->($problem);
		$more .= uc($check->{status}) . ": $check->{name}: $check->{finding}\n$remedy\n";
	}
	my ($line, $rest) = map { shape(s/\|/¦/gr) } $first, $more;
	my %statuses = (ok => 0, warning => 1, critical => 2, unknown => 3);
	return [ $statuses{ $worst->{status} }, shape('HUGEPAGES ' . uc($worst->{status}) . ' - ') . $line, $figures, $rest, findings($more =~ s/\|/¦/gr) ];
}

sub compare
{
	my ($what) = @_;
	my $status;
	my $row = sub {
		($status, my $out) = hugeinfo('status', @here, '--format', 'json');
		return decoded($out);
	};
	my $sql = same($row, sub { +{ %{ status_by_sql() }, schema => 1, state => 'running' } },
		"$what: status as in SQL");
	is($status, { ok => 0, warning => 1, critical => 2, unknown => 3 }->{ $sql->{status} }, "$what: exit status");

	my $shapes = sub { return [ map { [ @$_{qw(name status code)}, shape($_->{finding}), shape($_->{remedy}) ] } @{ $_[0] } ] };
	same(sub { $shapes->(decoded((hugeinfo('check', @here, '--format', 'json'))[1])->{checks}) },
		sub { $shapes->(decoded($node->safe_psql('postgres', 'SELECT json_agg(c) FROM hugeinfo_checks AS c'))) }, "$what: checks as in SQL");
	same(sub { decoded((hugeinfo('runbook', @here, '--format', 'json'))[1])->{runbook} },
		sub { decoded($node->safe_psql('postgres', "SELECT coalesce(json_agg(r), '[]') FROM hugeinfo_runbook AS r")) }, "$what: runbook as in SQL");
	same(sub { as_plugin() }, sub { plugin_by_sql() }, "$what: nagios as in SQL");
	same(sub { shape((hugeinfo('status', @here))[1]) }, sub { shape($node->safe_psql('postgres', 'SELECT hugeinfo_text()')) . ' ' }, "$what: text as in SQL");
	return;
}

SKIP:
{
	needs_host('pools');
	pools_of_one_size($kb, 0);
	$node->restart;
	compare('on small pages');

	# Settings that are pending a restart: the files have changed since the start.
	configure($node, shared_buffers => '32MB');
	compare('larger at the next start');
	configure($node, huge_pages => 'on');
	compare('would not start');

	# Only SQL knows whether the running server has the new value already.
	configure($node, shared_buffers => '16MB', huge_pages => 'off');
	my $off = decoded((hugeinfo('status', @here, '--format', 'json'))[1]);
	is("$off->{status}|$off->{code}", $node->safe_psql('postgres', 'SELECT status, code FROM hugeinfo_status'), 'turned off: status as in SQL');
	configure($node, huge_pages => 'try');

	# As root, the owner of the directory reads the files.
	my ($status, $out) = as_root("status -D " . $node->data_dir . " --format json");
	is($status, 1, 'as root: exit status');
	is_deeply(decoded($out), decoded((hugeinfo('status', @here, '--format', 'json'))[1]), 'as root: the same');

	# In the same second, the files could be newer than the start.
	sleep 2;
	pools_of_one_size($kb, $need);
	$node->restart;
	compare('on huge pages');
	is((hugeinfo('status'))[0], (hugeinfo('status', @here))[0], 'without -D: the only server') if $is_only;

	# Colors only if wanted: the output is no terminal.
	{
		local $ENV{CLICOLOR_FORCE} = 1;
		my $colored = (hugeinfo('status', @here))[1];
		like($colored, qr/\A\e\[1m\e\[\d+m[A-Z]+  \e\[0m/, 'status: colors');
		local $ENV{NO_COLOR} = 1;
		is($colored =~ s/\e\[\d+m//gr, (hugeinfo('status', @here))[1], 'status: the same text without colors');
	}

	# A report compares a saved row.
	append_to_file("$scratch/before", $node->safe_psql('postgres', 'SELECT to_jsonb(f) FROM hugeinfo_footprint AS f'));
	append_to_file("$scratch/no_row", '[]');
	my ($done, $compared) = hugeinfo('report', @here, '--before', "$scratch/before");
	is($done, 0, 'report: exit status');
	like($compared, qr/>Before and now</, 'report: compares');
	my ($failed, undef, $why) = hugeinfo('report', @here, '--before', "$scratch/no_row");
	is($failed, 3, 'report: exit status with another file');
	like($why, qr/no_row is not a row of hugeinfo_footprint/, 'report: message with another file');

	# A server on huge pages costs no program of PostgreSQL, only searches for other servers.
	my $trace = "$scratch/trace";
	system('strace', '-f', '-e', 'trace=execve', '-o', $trace, $program, 'status', @here, '--format', 'json') if -x '/usr/bin/strace';
	my @children = grep { !/"internal-search"/ } slurp_file($trace) =~ /execve\(.*/g;
	is(scalar @children, 1, 'healthy: no program of PostgreSQL runs');

	# A link to a file that is older than the start, and a clock that was set back since.
	my $data = $node->data_dir;
	for my $name (qw(small large))
	{
		mkdir "$data/$name";
		append_to_file("$data/$name/one.conf", $name eq 'large' ? "shared_buffers = 32MB\n" : '');
	}
	symlink 'small', "$data/now";
	append_to_file("$data/postgresql.conf", "include 'now/one.conf'\n");
	sleep 2;
	$node->restart;
	unlink "$data/now";
	symlink 'large', "$data/now";
	is(decoded((hugeinfo('status', @here, '--format', 'json'))[1])->{code}, 'would_lose_at_restart', 'a link that has changed');
	unlink "$data/now";
	symlink 'small', "$data/now";
	my $lock = slurp_file("$data/postmaster.pid");
	open my $file, '>', "$data/postmaster.pid" or die;
	print {$file} $lock =~ s/\A(.*\n.*\n)(\d+)/$1 . ($2 + 3600)/er;
	close $file;
	$node->adjust_conf('postgresql.conf', 'include', undef);
	configure($node, shared_buffers => '32MB');
	compare('after the clock was set back');
	configure($node, shared_buffers => '16MB');

	# A report of root has no text of a file that only root can read.
	append_to_file("$scratch/secret", "root:secret\n");
	rename "$data/PG_VERSION", "$scratch/PG_VERSION";
	symlink "$scratch/secret", "$data/PG_VERSION";
	my ($exit, $page) = as_root("report -D $data");
	unlike($page, qr/root:secret/, 'report: PG_VERSION is a link');
	unlink "$data/PG_VERSION";
	rename "$scratch/PG_VERSION", "$data/PG_VERSION";
	$node->stop;

	# Stopped: the status is that of the next start.
	my $row = decoded((hugeinfo('status', @here, '--format', 'json'))[1]);
	is_deeply([ @$row{qw(state status code in_use required_huge_pages)} ], [ 'stopped', 'ok', 'fits', undef, $need ], 'stopped: it would start on huge pages');
	pools_of_one_size($kb, $need - 1);
	($status, $out) = hugeinfo('status', @here, '-c', 'huge_pages=on');
	is($status, 2, 'stopped, one page short, on: exit status');
	like($out =~ s{\s+}{ }gr, qr{^CRITICAL The server is stopped\. A start would fail, because huge_pages = on\. Needs $need huge pages}, 'stopped: the finding');
	unlike($out, qr/restart|ALTER SYSTEM/i, 'stopped: nothing about a running server') if $is_only;
	my %names = map { $_->{name} => 1 } @{ decoded((hugeinfo('check', @here, '--format', 'json'))[1])->{checks} };
	is_deeply([ @names{qw(restart huge_pages swap page_tables)} ], [ 1, undef, undef, undef ], 'stopped: checks that apply');
	my ($command) = (hugeinfo('runbook', @here))[1] =~ /if no other program needs .*: (sysctl -w vm\.nr_hugepages=\d+)$/m;
	type_in($command);
	is((hugeinfo('status', @here))[0], 0, 'stopped: after the first command of the runbook');
	configure($node, huge_pages => 'on');
	ok((starts($node))[0], 'stopped: it starts');
	configure($node, huge_pages => 'try');

	# A file that PostgreSQL refuses.
	append_to_file($node->data_dir . '/postgresql.conf', "max_connections = many\n");
	like((hugeinfo('status', @here))[1], qr/CRITICAL .*max_connections/s, 'an invalid file: the message, while it runs');
	unlike((hugeinfo('report', @here))[1], qr/\b0 connections/, 'an invalid file: nothing about 0 connections');
	$node->stop;
	like((hugeinfo('status', @here))[1], qr/CRITICAL .*max_connections/s, 'an invalid file: the message, stopped');
	$node->adjust_conf('postgresql.conf', 'max_connections', '20');
	$node->start;
}

# An empty directory could be that of a server whose file system is not mounted.
{
	my $new = "$scratch/new";
	mkdir $new or die;
	for my $verb (qw(status check runbook why report))
	{
		my ($status, $out, $error) = hugeinfo($verb, '-D', $new);
		is($status, 3, "an empty directory, $verb: exit status");
		is($out, '', "an empty directory, $verb: no answer");
		like($error, $verb eq 'report' ? qr/does not run/ : qr/\Q$new\E is empty\nHINT: Is its file system mounted/, "an empty directory, $verb: the message");
	}
	like((as_root("ensure --dry-run -D $new"))[1], qr/is empty/, 'an empty directory, ensure');
	my ($status, $out, $error) = hugeinfo('preflight', '-D', $new, '-c', 'huge_pages=off');
	is($status, 0, 'a new server: preflight') or diag($out);
	like($error, qr/^NOTICE:  \Q$new\E is empty: the answer is for a new server$/m, 'a new server: the notice');
	rmdir $new or die "$new: $!\n";
}

# All servers.
{
	my ($out) = (hugeinfo('status', '--all', '--format', 'json'))[1];
	my ($this) = grep { $_->{server} eq $node->data_dir } @{ decoded($out)->{servers} };
	my $alone = decoded((hugeinfo('status', @here, '--format', 'json'))[1]);
	is($this->{reason}, $alone->{reason}, 'all servers: this one');
}

# A server with more processes than the limit on open files.
{
	restarts($node, max_connections => 60);
	my @sessions = map { HugeInfo::Session->new($node) } 1 .. 45;
	my $limit = () = family($node->{_pid});
	cmp_ok($limit, '>=', 50, 'many processes');
	my ($out, $error);
	IPC::Run::run([ 'sh', '-c', "ulimit -n $limit; exec \"\$@\"", 'sh', $program, 'report', @here, '--bindir', $bindir ], '>', \$out, '2>', \$error);
	is($?, 0, 'many processes: exit status') or diag($error);
	like($out, qr/client backend/, 'many processes: they are shown');
	$_->close for @sessions;
	configure($node, max_connections => 20);
}

# The command line of the server sets what a later start from the files alone does not have, as after
# an emergency start.
SKIP:
{
	needs_host('options on the command line');
	my $data = $node->data_dir;
	my $codes = sub { my ($status, $out) = @_; return { status => $status, map { $_->{name} => $_->{code} } @{ decoded($out)->{checks} } } };
	for (
		[ 'off, and on in the files', { huge_pages => 'on' }, '-c huge_pages=off', 0, 'needs_command_line', 'not_set_at_boot' ],
		[ 'off, and try in the files', { huge_pages => 'try' }, '-c huge_pages=off', 0, 'nothing_pending', 'does_not_ask' ],
		[ 'on, and off in the files', { huge_pages => 'off' }, '-c huge_pages=on', 1, 'nothing_pending', 'not_set_at_boot' ],
		[ 'more connections than the files allow', { huge_pages => 'off', max_connections => 3 }, '-c max_connections=20', 0, 'needs_command_line', 'does_not_ask' ])
	{
		my ($name, $in_files, $options, $has_pool, @expected) = @$_;
		$node->stop;
		pools_of_one_size($kb, $has_pool ? $need : 0);
		configure($node, %$in_files);
		# In the same second, the files could be newer than the start.
		sleep 2;
		system_or_bail('pg_ctl', '-w', '-D', $data, '-l', $node->logfile, '-o', $options, 'start');
		$node->_update_pid(1);
		compare($name);
		my $own = $codes->(hugeinfo('check', @here, '--format', 'json'));
		is_deeply([ @$own{qw(pending_settings reboot)} ], \@expected, "$name: codes");
		is_deeply($codes->(as_root("check @here --format json")), $own, "$name: as root");
		configure($node, max_connections => 20);
	}
	$node->stop;
	configure($node, huge_pages => 'try');
	$node->start;
}

# A server that the search finds, and whose files have changed: its user computes the next start.
# Root does not, unless the directory is named, but answers from /proc.
{
	configure($node, shared_buffers => '32MB');
	my $of_all = sub { my ($out) = @_; my ($this) = grep { $_->{server} eq $node->data_dir } @{ decoded($out)->{servers} }; return $this };
	my $own = $of_all->((hugeinfo('status', '--all', '--format', 'json'))[1]);
	my $of_root = $of_all->((as_root('status --all --format json'))[1]);
	my $named = decoded((as_root("status @here --format json"))[1]);
	is($own->{reason}, $named->{reason}, 'files have changed: as its user');
	is_deeply([ @$of_root{qw(segment_bytes in_use error)} ], [ @$named{qw(segment_bytes in_use error)} ], 'files have changed: as root, what runs');
	is_deeply([ @$of_root{qw(required_huge_pages shortfall_pages fits_after_restart recommended_nr_hugepages)} ], [ (undef) x 4 ], 'files have changed: as root, the next start is unknown');
	isnt($named->{required_huge_pages}, undef, 'files have changed: as root, named');
	like((as_root('status --all'))[1] =~ s/\s+/ /gr, qr/let PostgreSQL compute its next start: hugeinfo status @here --bindir /, 'files have changed: as root, the command');
	configure($node, shared_buffers => '16MB');
}

# The search has no answer, as when a process of any user makes it hang. The server of a directory
# with the configuration is then that of the data directory.
SKIP:
{
	needs_host('a search without an answer');
	my ($data, $conf) = ($node->data_dir, "$scratch/conf");
	mkdir $conf or die "$conf: $!\n";
	append_to_file("$conf/postgresql.conf", slurp_file("$data/postgresql.conf") . "data_directory = '$data'\nhba_file = '$data/pg_hba.conf'\nident_file = '$data/pg_ident.conf'\n");
	my ($out, $file) = ('', "$scratch/no_search");
	my $state = sub {
		my ($command) = @_;
		type_in("unshare --mount sh -c 'mount -t tmpfs none /proc/sysvipc && $command' >$file 2>$file.err; true");
		my @found = map { slurp_file($_) } $file, "$file.err";
		unlink $file, "$file.err";
		return @found;
	};
	like(($state->("$program status --all --bindir $bindir"))[1], qr/the search for servers failed/, 'a search without an answer: all servers');
	($out) = $state->("$program status -D $conf --format json --bindir $bindir");
	is(decoded($out)->{state}, 'running', 'a search without an answer: a directory with configuration');
	unlink "$conf/postgresql.conf";
	rmdir $conf;
}

# As a plugin for Nagios.
{
	my @checks = split /\n/, $node->safe_psql('postgres', 'SELECT name FROM hugeinfo_checks');
	same(sub { as_plugin() }, sub { plugin_by_sql() }, 'nagios: all checks');
	for my $names ([qw(huge_pages)], [qw(huge_page_size swap restart)])
	{
		same(sub { as_plugin('--only', join ',', @$names) }, sub { plugin_by_sql(@$names) }, "nagios: only @$names");
	}
	for my $names ([qw(huge_pages)], [qw(huge_pages oom_protection)])
	{
		my %ignored = map { $_ => 1 } @$names;
		# The list has names, so the verdict on the server is not expected. A remedy does without
		# the steps of an ignored check.
		my @others = grep { !$ignored{$_} } @checks;
		my $ignore = sub { my $seen = as_plugin('--ignore', join ',', @$names); return [ @$seen[ 0, 2, 4 ] ] };
		same($ignore, sub { my $sql = plugin_by_sql(@others); return [ @$sql[ 0, 2, 4 ] ] }, "nagios: without @$names");
	}
	my $reason = $node->safe_psql('postgres', q(SELECT reason FROM hugeinfo_status WHERE status = 'ok'));
	my $bad = $node->safe_psql('postgres', q(SELECT string_agg(name, ',') FROM hugeinfo_checks WHERE severity > 0));
	like(as_plugin('--ignore', $bad)->[1], qr/^HUGEPAGES OK - \Q@{[ shape($reason) ]}\E/, 'nagios: all others are ok') if $bad;
	my ($status, $out) = hugeinfo('check', @here, '--format', 'nagios', '--only', 'swap', '--ignore', 'swap');
	is($status, 0, 'nagios: no check: exit status');
	like($out, qr/^HUGEPAGES OK - all checks are ignored \| /, 'nagios: no check');
	is((hugeinfo('check', @here, '--format', 'nagios', '--only', 'hugetlb_shm_group'))[0], 0, 'nagios: one check');
	is(scalar(() = (hugeinfo('check', @here, '--only', 'hugetlb_shm_group,huge_page_size'))[1] =~ /^ok /mg), 2, 'check: two checks');

	# An error is one line without performance data, whatever the names contain.
	my $odd = "$scratch/x\e[2J\r\nHUGEPAGES OK - forged | x \xc2\x9b31m\xe2\x80\xae\xe2\x80\xa8\xd8\x9c\xef\xbb\xbf\xc2\xad";
	for my $directory ($scratch, $odd)
	{
		($status, $out) = hugeinfo('check', '-D', $directory, '--format', 'nagios');
		utf8::decode($out);
		is($status, 3, 'nagios: unknown');
		like($out, qr/\AHUGEPAGES UNKNOWN - \P{C}+\n\z/, 'nagios: why');
		unlike($out, qr/[|\x{2028}]/, 'nagios: why, without performance data');
	}
}

# Another user sees that the rights are missing.
SKIP:
{
	needs_host('other user');
	my $file = "$scratch/nobody";
	type_in("setpriv --reuid=65534 --regid=65534 --clear-groups $program status -D " . $node->data_dir . " >$file 2>&1; echo \$? >>$file");
	like(slurp_file($file), qr/^hugeinfo: .*\nHINT: Run this as the user of the server, or as root\n3\n\z/, 'another user: the hint');
	unlink $file;
}

# Invalid input.
for (
	[ qr/the checks are cgroup_fault_limit, /, 'check', '--only', 'nothing' ],
	[ qr/cannot be used with/, 'status', '-D', $scratch, '--all' ],
	[ qr/could not open .*nothing/, 'status', '-D', "$scratch/nothing" ],
	[ qr/could not open .*no such cluster/, 'status', '--cluster', '15/no such cluster' ])
{
	my ($message, @arguments) = @$_;
	my ($status, $out, $error) = hugeinfo(@arguments);
	is($status, 3, "@arguments: exit status");
	like($error, $message, "@arguments: the message");
}

done_testing;
