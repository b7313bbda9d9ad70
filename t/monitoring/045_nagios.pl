# monitoring/check_pg_hugeinfo, run like Nagios and Icinga do: compares exit status, texts and
# figures with SQL, for servers that are healthy, need attention, are in danger, or are down.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use HugeInfo::Tools;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Server;
use HugeInfo::Session;
use IO::Socket::INET;
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

my $plugin = source('monitoring/check_pg_hugeinfo');
my $kb = default_page_kb();
my $node = new_server('nagios', huge_pages => 'off');
$node->safe_psql('postgres', 'CREATE ROLE monitor LOGIN IN ROLE pg_monitor; CREATE ROLE "no one" LOGIN; CREATE DATABASE "an other"');
my $sql;
sub connect_anew { $sql->close if $sql; $sql = HugeInfo::Session->new($node, user => 'monitor'); return }
connect_anew();
my @monitor = ('--hostname', $node->host, '-p', $node->port, '--username=monitor');

# Runs the plugin with these options. Returns the first line without perfdata, perfdata, and the
# rest.
sub run_plugin
{
	my (@options) = @_;
	my ($out, $error) = ('', '');
	IPC::Run::run([ $plugin, @options ], '<', '/dev/null', '>', \$out, '2>', \$error);
	my ($first, $more) = split /\n/, $out, 2;
	my ($line, $perfdata) = split / \| /, $first, 2;
	return { exit => $? >> 8, line => $line, perfdata => $perfdata // '', more => $more // '', out => $out, error => $error };
}

my %WORDS = (0 => 'OK', 1 => 'WARNING', 2 => 'CRITICAL', 3 => 'UNKNOWN');

sub answers
{
	my ($answer, $exit, $line, $name) = @_;
	is($answer->{error}, '', "$name: nothing on standard error");
	is($answer->{exit}, $exit, "$name: the exit status") or diag($answer->{out});
	like($answer->{line}, qr/^HUGEPAGES $WORDS{$exit} - $line/, "$name: the status line");
	return;
}

# Compares all output with SQL. A condition selects the checks that count.
sub compare_with_sql
{
	my ($name, $condition, @options) = @_;
	my $answer = run_plugin(@monitor, @options);
	my @checks = $sql->rows("SELECT name, status, severity, finding, remedy FROM hugeinfo_checks WHERE NOT is_muted AND $condition");
	# sort is stable, so the most important of several equally bad checks is first
	my ($worst, @others) = sort { $b->{severity} <=> $a->{severity} } @checks;
	my @names = map { $_->{name} } grep { $_->{severity} > 0 } @others;
	my $more = @names ? ' (and ' . @names . ' more: ' . join(', ', @names) . ')' : '';
	my %exits = (ok => 0, unknown => 3, warning => 1, critical => 2);
	my $first = "$worst->{name}: $worst->{finding}";
	# The verdict on the server, if all is well and no checks were chosen
	my ($server) = $sql->rows('SELECT status, reason FROM hugeinfo_status');
	$first = $server->{reason} if !$worst->{severity} && $server->{status} eq 'ok' && !grep { /^-c|^--check/ } @options;
	answers($answer, $exits{ $worst->{status} }, qr/\Q$first$more\E$/, $name);
	# A remedy that refers to a check that does not count
	my %all = map { $_->{name} => $_->{remedy} } $sql->rows('SELECT name, remedy FROM hugeinfo_checks');
	my %counts = map { $_->{name} => 1 } @checks;
	for my $check (@checks) { $check->{remedy} = $all{$1} if ($check->{remedy} // '') =~ /^# as (\w+)$/ && !$counts{$1} }
	for my $check (grep { $_->{severity} > 0 } @checks)
	{
		my $remedy = join '', map { "    $_\n" } split /\n/, $check->{remedy} // '';
		my $shown = uc($check->{status}) . ": $check->{name}: $check->{finding}\n$remedy";
		isnt(index($answer->{more}, $shown =~ s/\|/¦/gr), -1, "$name: $check->{name} is in the long output");
	}
	my @shown = $answer->{more} =~ /^[A-Z]+: (\w+): /mg;
	is_deeply(\@shown, [ $worst->{severity} > 0 ? $worst->{name} : (), @names ], "$name: the worst first, and no other checks");
	compare_perfdata($answer, \@checks, $name);
	return $answer;
}

sub compare_perfdata
{
	my ($answer, $checks, $name) = @_;
	my ($status) = $sql->rows(<<~'SQL');
		SELECT in_use::int AS in_use, fits_after_restart::int AS fits_after_restart, segment_bytes, required_huge_pages AS required_pages,
		       shortfall_pages, recommended_nr_hugepages AS recommended_pages
		FROM hugeinfo_status
		SQL
	for my $word (qw(critical warning unknown))
	{
		$status->{"checks_$word"} = grep { $_->{status} eq $word } @$checks;
	}
	my %shown = $answer->{perfdata} =~ /(\S+?)=(\d+)B?;\S*/g;
	is_deeply(\%shown, $status, "$name: perfdata");
  SKIP:
	{
		cannot("$name: perfdata in other programs: Monitoring::Plugin is not installed: see tools/setup") unless eval { require Monitoring::Plugin::Performance; 1 };
		my @read = Monitoring::Plugin::Performance->parse_perfstring($answer->{perfdata});
		is_deeply({ map { $_->label => $_->value } @read }, $status, "$name: perfdata parsed by Monitoring::Plugin");
		is_deeply([ map { $_->label } grep { $_->uom eq 'B' } @read ], ['segment_bytes'], "$name: its units");
		my %alerts = map { $_->label => $_->threshold->get_status($_->value) } @read;
		my %expected = map { $_ => 0 } keys %$status;
		$expected{checks_critical} = 2 if $status->{checks_critical};
		$expected{checks_warning} = 1 if $status->{checks_warning};
		is_deeply(\%alerts, \%expected, "$name: its thresholds");
	}
	return;
}

# Figures have the same names in all tools.
{
	my %names = map { $_ => 1 } slurp_file(source('target/monitoring/metrics.json')) =~ /"full_name": "pg_hugeinfo_(\w+)"/g;
	my ($figures) = map { s/B?;\S*//gr } run_plugin(@monitor)->{perfdata};
	my @labels = map { s/=.*//r } split / /, $figures;
	is_deeply([ grep { !/^checks_/ && !$names{$_} } @labels ], [], 'figures have the names of metrics');
}

{
	my $name = 'huge_pages = off';
	compare_with_sql($name, 'true');
	compare_with_sql("$name, one check", q(name = 'huge_pages'), '--check', 'huge_pages');
	compare_with_sql("$name, some checks", q(name IN ('huge_page_size', 'swap', 'memlock')), '--check=huge_page_size,swap', '-c', 'memlock');
	compare_with_sql("$name, not one", q(name <> 'huge_pages'), '-i', 'huge_pages');
	compare_with_sql("$name, neither", q(name NOT IN ('huge_pages', 'oom_protection')), '--ignore=huge_pages', '--ignore', 'oom_protection');

	$name = 'muted';
	$node->safe_psql('postgres', q(ALTER ROLE monitor SET pg_hugeinfo.muted_checks = 'huge_pages, no_such_check'));
	connect_anew();
	compare_with_sql($name, q(name <> 'huge_pages'));
	answers(run_plugin(@monitor, '-c', 'huge_pages'), 0, qr/all checks are muted or ignored$/, "$name, the only check");
	$node->safe_psql('postgres', 'ALTER ROLE monitor RESET ALL');
	connect_anew();
}

SKIP:
{
	my $name = 'fallen back';
	needs_host($name);
	pools_of_one_size($kb, 0);
	restarts($node, huge_pages => 'try');
	connect_anew();
	answers(compare_with_sql($name, 'true'), 1, qr/huge_pages: On 4 kB pages: huge_pages = try fell back/, $name);

	$name = 'on huge pages';
	pools_of_one_size($kb, required_pages($node, $kb));
	restarts($node, huge_pages => 'on');
	connect_anew();
	compare_with_sql($name, 'true');
	my $ignored = join ',', map { $_->{name} } $sql->rows('SELECT name FROM hugeinfo_checks WHERE severity > 0');
	answers(run_plugin(@monitor, "--ignore=$ignored"), 0, qr/On \d+ huge pages of .*\. A restart would get them again\.$/, "$name, all well");
	answers(run_plugin(@monitor, '-c', 'huge_pages,restart'), 0, qr/huge_pages: On \d+ huge pages/, $name);

	$name = 'a restart would lose them';
	restarts($node, huge_pages => 'try');
	connect_anew();
	# pages in use are not removed, but they cease to exist at a restart
	set_pool($kb, 0);
	answers(compare_with_sql($name, 'true'), 1, qr/restart: A restart would lose huge pages\. /, $name);

	$name = 'a restart would fail';
	set_pool($kb, required_pages($node, $kb));
	restarts($node, huge_pages => 'on');
	connect_anew();
	set_pool($kb, 0);
	answers(compare_with_sql($name, 'true'), 2, qr/restart: A restart would fail/, $name);
}

# The output has a valid format with any finding.
{
	my $name = 'odd findings';
	$node->safe_psql('an other', <<~SQL);
		CREATE SCHEMA "od'd |";
		CREATE EXTENSION pg_hugeinfo SCHEMA "od'd |";
		GRANT USAGE ON SCHEMA "od'd |" TO pg_monitor;
		CREATE OR REPLACE VIEW "od'd |".hugeinfo_checks AS
		SELECT name, status, ''::text AS code, finding, remedy, '{}'::jsonb AS evidence, NULL::jsonb AS steps,
		       severity, false AS is_muted
		FROM (VALUES ('huge_pages', 'unknown', 1, E'a | x=1\\r\\n\\tOK: "b" \\\\ \$(c) \\x1b[2J', E'd | e\\nOK: f\\x1b[2J'), ('swap', 'ok', 0, 'well', NULL))
		     AS c (name, status, severity, finding, remedy);
		SQL
	my $answer = run_plugin(@monitor, '-d', 'an other');
	answers($answer, 3, qr/huge_pages: a ¦ x=1 OK: "b" \\ \$\(c\) \[2J$/, $name);
	is($answer->{more}, qq(UNKNOWN: huge_pages: a ¦ x=1 OK: "b" \\ \$(c) [2J\n    d ¦ e\n    OK: f [2J\n), "$name: the long output");
	like($answer->{perfdata}, qr/^checks_critical=0;;0;0; checks_warning=0;0;;0; checks_unknown=1;/, "$name: perfdata");
	answers(run_plugin(@monitor, '--dbname=an other', '-i', 'huge_pages'), 0, qr/swap: well$/, "$name, ignored");
}

# Servers and checks that cannot be queried.
answers(run_plugin(@monitor, '-d', 'template1'), 3, qr/no extension pg_hugeinfo in database template1: .*CREATE EXTENSION pg_hugeinfo$/, 'no extension');
answers(run_plugin(@monitor, '-U', 'no one'),
	3, qr/role "no one" cannot read public\.hugeinfo_checks: GRANT USAGE ON SCHEMA public TO "no one"; GRANT pg_monitor TO "no one"$/, 'no rights');
$node->safe_psql('postgres', $_) for run_plugin(@monitor, '-U', 'no one')->{line} =~ /checks: (.*)/;
is(run_plugin(@monitor, '-U', 'no one')->{line}, run_plugin(@monitor)->{line}, 'no rights: the plugin works after these grants');
answers(run_plugin(@monitor, @$_), 3, qr/.*/, "not an option: @$_")
  for [ '--frequency', '1' ], ['-x'], ['more'], ['--port'], [ '-t', '' ], [ '-t', '0' ], [ '-t', '1.5' ], [ '--timeout=1; id' ], ['--check'];
answers(run_plugin(@monitor, '-c', q(huge_pages,it's)), 3, qr/unknown check it's; the checks are cgroup_fault_limit, huge_pages, .*hugetlb_shm_group$/, 'no such check');
like(run_plugin('--help')->{out}, qr/^Usage: check_pg_hugeinfo /m, 'help');
is(run_plugin('--version')->{out}, "check_pg_hugeinfo (not from a package)\n", '--version: only packages have a version');
{
	my $empty = PostgreSQL::Test::Utils::tempdir();
	symlink "/usr/bin/$_", "$empty/$_" for qw(sed tr timeout);
	local $ENV{PATH} = $empty;
	answers(run_plugin(@monitor), 3, qr/no psql/, 'no psql');
}

# If the server cannot be queried, the output is one line without control characters, whatever psql
# prints and whatever the names contain.
{
	my $odd = "x\e[2J\r\nHUGEPAGES OK - forged | x 1 \xc2\x9b31m\xe2\x80\xae\xe2\x80\xa8\xd8\x9c\xef\xbb\xbf\xc2\xad";
	my $is_one_line = sub {
		my ($name, $exit, @options) = @_;
		my $answer = run_plugin(@options);
		utf8::decode($answer->{out});
		is($answer->{exit}, $exit, "$name: the exit status");
		like($answer->{out}, qr/\AHUGEPAGES $WORDS{$exit} - \P{C}+\n\z/, "$name: one line");
		unlike($answer->{out}, qr/[|\x{2028}]/, "$name: no perfdata");
		return;
	};
	my $identifier = $odd =~ s/"/""/gr;
	$node->safe_psql('postgres', qq(CREATE DATABASE "$identifier"; CREATE ROLE "$identifier" LOGIN));
	$is_one_line->('a database name with control characters', 3, @monitor, '-d', $odd);
	$is_one_line->('a role name with control characters', 3, @monitor, '-U', $odd);
	$is_one_line->('no such database', 2, @monitor, '-d', "$odd-");
	$is_one_line->('no such host', 2, '-H', "/$odd");
	$is_one_line->('a check name with control characters', 3, @monitor, '-c', $odd);
	$is_one_line->('an ignored check name with control characters', 3, @monitor, '-i', $odd);
	$is_one_line->('an option with control characters', 3, $odd, 'x');
	$is_one_line->('a timeout with control characters', 3, '-t', $odd);
	$node->safe_psql('postgres', qq(DROP DATABASE "$identifier"; DROP ROLE "$identifier"));

	my $fake = PostgreSQL::Test::Utils::tempdir();
	# The shell needs minutes for a line of 1 MB.
	my $long_line = q(printf '%20000s' x; exit 2);
	for my $script ([ 2, qq(printf '%s' "\$ODD"; exit 2) ], [ 3, 'exec yes' ], [ 3, $long_line ])
	{
		my ($exit, $line) = @$script;
		unlink "$fake/psql";
		append_to_file("$fake/psql", "#!/bin/sh\n$line\n");
		chmod 0755, "$fake/psql";
		local @ENV{qw(PATH ODD)} = ("$fake:$ENV{PATH}", $odd);
		$is_one_line->("a psql: $line", $exit);
	}
}

# A connection by a service, and additional options.
{
	my $file = PostgreSQL::Test::Utils::tempdir() . '/pg_service.conf';
	append_to_file($file, sprintf "[well]\nhost=%s\nport=%s\ndbname=postgres\nuser=monitor\n", $node->host, $node->port);
	local %ENV = (%ENV, PGSERVICEFILE => $file);
	delete @ENV{qw(PGHOST PGPORT PGDATABASE PGUSER)};
	is(run_plugin('--service', 'well')->{line}, run_plugin(@monitor)->{line}, 'a service');
	answers(run_plugin('--service=well', '-d', 'template1'), 3, qr/no extension/, 'a service: options override it');
	answers(run_plugin('--service', 'ill'), 2, qr/no connection: .*"ill"/, 'no such service');
}

# A server that accepts the connection and sends nothing.
{
	my $silent = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die "no socket: $@\n";
	answers(run_plugin('-H', '127.0.0.1', '-p', $silent->sockport, '-t', 1), 2, qr/no answer within 1 s$/, 'a silent server');
}

# A query that hangs, because another session has locked the view.
{
	my $holder = HugeInfo::Session->new($node);
	$holder->value('BEGIN; LOCK hugeinfo_checks IN ACCESS EXCLUSIVE MODE');
	answers(run_plugin(@monitor, '-t', 1), 2, qr/no answer within 1 s$/, 'a lock');
	$holder->close;
}

# check_postgres, a common plugin, with one number.
SKIP:
{
	my $name = 'check_postgres';
	needs_tools($name, 'check_postgres');
	my $severity = $sql->value('SELECT max(severity) FROM hugeinfo_checks WHERE NOT is_muted');
	for ([ 2, 3 ], [ 0, $severity ], [ $severity, 4 ], [ 4, 5 ])
	{
		my ($warning, $critical) = @$_;
		my $out;
		IPC::Run::run([ tool('check_postgres'), '--action=custom_query', '--host=' . $node->host, '--port=' . $node->port, '--dbuser=monitor', '--dbname=postgres',
				'--query=SELECT max(severity) AS result FROM hugeinfo_checks WHERE NOT is_muted', '--valtype=integer', "--warning=$warning", "--critical=$critical" ],
			'<', '/dev/null', '>', \$out, '2>&1');
		my $exit = $severity >= $critical ? 2 : $severity >= $warning ? 1 : 0;
		is($? >> 8, $exit, "$name, $warning and $critical: the exit status");
		like($out, qr/^POSTGRES_CUSTOM_QUERY $WORDS{$exit}: .*\b$severity\b/, "$name, $warning and $critical: the figure");
	}
}

$sql->close;
$node->stop;
answers(run_plugin(@monitor), 2, qr/no connection: psql: error: connection to server on socket .* failed: /, 'no server');
done_testing;
