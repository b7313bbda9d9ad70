# pg_hugeinfo.muted_checks: muted checks keep their findings and raise no alerts. The setting works
# at all levels without preloading, and an unknown name is not an error.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use PostgreSQL::Test::Utils;
use Test::More;

# a warning with any pools of this host
my $node = new_server('muted', shared_memory_type => 'sysv', huge_pages => 'try');
$node->safe_psql('postgres', $_) for 'CREATE DATABASE other', 'CREATE ROLE monitor LOGIN IN ROLE pg_monitor',
  'CREATE ROLE owner LOGIN', 'ALTER DATABASE other OWNER TO owner';
$node->safe_psql('other', 'CREATE EXTENSION pg_hugeinfo');

# Returns the status in a new session, which has not loaded the library.
sub status_in
{
	my ($database, $role) = @_;
	return $node->safe_psql($database, 'SELECT status FROM hugeinfo_status', $role ? (extra_params => [ '-U', $role ]) : ());
}

sub says
{
	my ($sql, %options) = @_;
	my ($exit, $out, $error) = $node->psql($options{in} // 'postgres', $sql, on_error_stop => 0);
	return { exit => $exit, out => $out, error => $error };
}

# This test ignores idle pages of the host, other servers, and whether a restart would get huge
# pages.
my $muted = 'huge_pages, restart, pool_size, other_servers';
my $finding = $node->safe_psql('postgres', q(SELECT finding FROM hugeinfo_checks WHERE name = 'huge_pages'));
my $plain = status_of($node);
is($plain->{status}, 'warning', 'shared_memory_type = sysv: a warning');
is($plain->{reason}, $finding, 'shared_memory_type = sysv: the reason');

{
	my $name = 'muted in a session';
	my $sql = HugeInfo::Session->new($node);
	# While a check is muted, its row explains how to get a remedy.
	my $rows = q(SELECT json_agg(c) FROM (SELECT name, status, severity, CASE WHEN name NOT IN ('huge_pages', 'other_servers') THEN remedy END FROM hugeinfo_checks) AS c);
	my $before = $sql->value($rows);
	$sql->value("SET pg_hugeinfo.muted_checks = '$muted'");
	my ($status) = $sql->rows('SELECT status, reason, remedy FROM hugeinfo_status');
	is($status->{status}, 'ok', "$name: the status");
	like($status->{reason}, qr/^Muted: huge_pages \(warning\): \Q$finding\E/, "$name: the reason names the muted checks");
	is($status->{remedy}, undef, "$name: no remedy");
	is_deeply([ map { $_->{name} } $sql->rows('SELECT name FROM hugeinfo_checks WHERE is_muted') ], [qw(huge_pages restart pool_size other_servers)], "$name: is_muted");
	is($sql->value(q(SELECT finding FROM hugeinfo_checks WHERE name = 'huge_pages')), $finding, "$name: the finding does not change");
	is($sql->value($rows), $before, "$name: status of all checks, and remedies of the others, do not change");
	like($sql->value(q(SELECT remedy FROM hugeinfo_checks WHERE name = 'huge_pages')), qr/^# remove huge_pages from pg_hugeinfo\.muted_checks/,
		"$name: the row of the muted check");
	is($sql->value(q(SELECT count(*) FROM hugeinfo_runbook WHERE command ~ 'huge_pages|shared_memory_type')), 0, "$name: the runbook omits huge pages");
	my @failing = map { $_->{name} } $sql->rows(q(SELECT name FROM hugeinfo_checks WHERE severity >= 2));
	$sql->value('SET pg_hugeinfo.muted_checks = ' . join ', ', map { uc } @failing);
	is($sql->value('SELECT count(*) FROM hugeinfo_runbook'), 0, "$name: all failing checks, in upper case, as a list");
	cmp_ok($sql->value(q(SELECT count(*) FROM hugeinfo_runbook('{"shared_memory_type": "mmap"}'))), '>', 0, "$name: a plan is not affected");
	is($sql->value('SELECT count(*) FROM hugeinfo_checks WHERE severity >= 2 AND NOT is_muted'), 0, "$name: the alert of a fleet");
	$sql->value('RESET pg_hugeinfo.muted_checks');
	is($sql->value('SELECT status FROM hugeinfo_status'), 'warning', "$name: the former status after a reset");
	$sql->close;
}

{
	my $name = 'ALTER SYSTEM';
	is(says("LOAD 'pg_hugeinfo'; ALTER SYSTEM SET pg_hugeinfo.muted_checks = $muted")->{error}, '', "$name: is accepted");
	my $open = HugeInfo::Session->new($node);
	is($open->value('SELECT status FROM hugeinfo_status'), 'warning', "$name: not before a reload");
	$node->reload;
	ok($node->poll_query_until('postgres', q(SELECT status = 'ok' FROM hugeinfo_status)), "$name: after it");
	ok(until_true(sub { $open->value('SELECT status FROM hugeinfo_status') eq 'ok' }), "$name: in open sessions, too");
	is(status_in('other'), 'ok', "$name: in all databases");
	is(status_in('postgres', 'monitor'), 'ok', "$name: for all roles");
	$open->close;
	$node->restart;
	is(status_in('postgres'), 'ok', "$name: after a restart");
	says(q(LOAD 'pg_hugeinfo'; ALTER SYSTEM RESET pg_hugeinfo.muted_checks));
	$node->restart;
	is(status_in('postgres'), 'warning', "$name: the former status after a reset");
}

for my $set ([ 'ALTER DATABASE other', 'other', 'postgres' ], [ 'ALTER ROLE monitor', 'postgres', undef ],
	[ 'ALTER ROLE monitor IN DATABASE other', 'other', 'postgres' ])
{
	my ($what, $in, $elsewhere) = @$set;
	# In a session that has not loaded the library, the setting is only a name and a text.
	is(says("$what SET pg_hugeinfo.muted_checks = '$muted'")->{error}, '', "$what: is accepted");
	is(status_in($in, 'monitor'), 'ok', "$what: a role without privileges gets it");
	is(status_in($elsewhere, 'monitor'), 'warning', "$what: not elsewhere") if $elsewhere;
	is(status_in('postgres'), 'warning', "$what: not for others");
	says("$what RESET pg_hugeinfo.muted_checks");
	is(status_in($in, 'monitor'), 'warning', "$what: the former status after a reset");
}

{
	my $name = 'an unknown name';
	my $warning = qr/WARNING:  pg_hugeinfo\.muted_checks contains unknown names: "hugepages", "o'clock"\n.*HINT:  Valid names are: cgroup_fault_limit, huge_pages, /s;
	my $list = "'hugepages, o''clock, $muted'";
	my $answer = says("LOAD 'pg_hugeinfo'; SET pg_hugeinfo.muted_checks = $list; SELECT status FROM hugeinfo_status");
	like($answer->{error}, $warning, "$name: a warning in the session that sets it");
	is($answer->{out}, 'ok', "$name: the others count");
	$answer = says("LOAD 'pg_hugeinfo'; ALTER SYSTEM SET pg_hugeinfo.muted_checks = $list");
	like($answer->{error}, $warning, "$name: by ALTER SYSTEM, too");
	is($answer->{exit}, 0, "$name: it is set");
	$node->restart;
	is(says('SELECT 1')->{error}, '', "$name: no warning in a session without the library");
	$answer = says('SELECT status FROM hugeinfo_status');
	like($answer->{error}, $warning, "$name: a warning in a session that loads the library");
	is($answer->{out}, 'ok', "$name: the server has started, and the others count");
	configure($node, shared_preload_libraries => 'pg_hugeinfo');
	$node->restart;
	is(says('SELECT status FROM hugeinfo_status')->{out}, 'ok', "$name: preloaded");
	like(slurp_file($node->logfile), $warning, "$name: a warning in the server's log");
	configure($node, shared_preload_libraries => '');
	says(q(LOAD 'pg_hugeinfo'; ALTER SYSTEM RESET pg_hugeinfo.muted_checks));
	$node->restart;
	$answer = says("ALTER DATABASE other SET pg_hugeinfo.muted_checks = $list");
	is($answer->{exit}, 0, "$name: by ALTER DATABASE");
	$answer = says('SELECT status FROM hugeinfo_status', in => 'other');
	like($answer->{error}, $warning, "$name: a warning in that database");
	is($answer->{out}, 'ok', "$name: other names count in that database");
	says('ALTER DATABASE other RESET pg_hugeinfo.muted_checks');
	like(says(q(SET pg_hugeinfo.mute_checks = 'swap'; SELECT status FROM hugeinfo_status))->{error},
		qr/WARNING:  invalid configuration parameter name "pg_hugeinfo.mute_checks"/, "a setting that is none");
}

# The owner of a database must not be able to silence its alerts.
{
	my $name = 'an ordinary role';
	my $sql = "SET pg_hugeinfo.muted_checks = '$muted'; SELECT status FROM hugeinfo_status";
	my $as = sub { my ($role, $text) = @_; return says("SET SESSION AUTHORIZATION $role; $text", in => 'other') };
	my $answer = $as->('monitor', $sql);
	like($answer->{error}, qr/permission denied to set parameter "pg_hugeinfo.muted_checks"/, "$name: cannot set it");
	is($answer->{out}, 'warning', "$name: the status does not change");
	# with and without the library in its session
	says('GRANT pg_monitor TO owner', in => 'other');
	for my $before ('', 'SELECT status FROM hugeinfo_status; ')
	{
		$answer = $as->('owner', "${before}ALTER DATABASE other SET pg_hugeinfo.muted_checks = '$muted'");
		like($answer->{error}, qr/permission denied to set parameter/, "$name: cannot set it for its own database: $before");
		is(status_in('other', 'monitor'), 'warning', "$name: the status in its database does not change");
	}
	says('GRANT SET ON PARAMETER pg_hugeinfo.muted_checks TO monitor');
	is($as->('monitor', $sql)->{out}, 'ok', "$name: can set it after a grant");
}

$node->stop;
done_testing;
