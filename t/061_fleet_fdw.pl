# fleet/postgres_fdw.sql: one view over real servers. One is a standby, one is down, one has no
# extension, one has an older version, one does not respond in time, and one loses its network. The
# file rejects a schema that contains objects of other roles.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Tools;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();

# A program that starts servers, and sets the loopback interface up and down (ioctl SIOCSIFFLAGS).
my $NETWORK = <<'PERL';
use strict;
use warnings;
use Socket;
sub loopback
{
	my ($flags) = @_;
	socket my $socket, AF_INET, SOCK_DGRAM, 0 or die "socket: $!\n";
	ioctl $socket, 0x8914, my $request = pack 'a16 s x22', 'lo', $flags or die "lo: $!\n";
}
loopback(1);
my @servers = map { my $dir = $_; my $pid = fork; if (!$pid) { open STDIN, '<', '/dev/null'; exec 'postgres', '-D', $dir, '-c', 'listen_addresses=127.0.0.1' } $pid } @ARGV;
while (<STDIN>) { $_ eq "down\n" or last; loopback(0) }
kill QUIT => @servers;
waitpid $_, 0 for @servers;
PERL

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
configure($primary, shared_buffers => '16MB', huge_pages => 'try');
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE SCHEMA hugeinfo; CREATE EXTENSION pg_hugeinfo SCHEMA hugeinfo; GRANT USAGE ON SCHEMA hugeinfo TO pg_monitor;
	CREATE ROLE monitoring LOGIN IN ROLE pg_monitor});
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby);

# The view is on a server without the extension.
my $bare = PostgreSQL::Test::Cluster->new('bare');
$bare->init;
$bare->start;
$bare->safe_psql('postgres', 'CREATE ROLE monitoring LOGIN IN ROLE pg_monitor');

my $older = new_server('older', huge_pages => 'off');
$older->safe_psql('postgres', q{
	CREATE ROLE monitoring LOGIN IN ROLE pg_monitor;
	CREATE SCHEMA hugeinfo;
	CREATE VIEW hugeinfo.hugeinfo_status AS SELECT status, reason FROM public.hugeinfo_status;
	GRANT USAGE ON SCHEMA hugeinfo TO monitoring; GRANT SELECT ON hugeinfo.hugeinfo_status TO monitoring;
	CREATE SCHEMA slow;
	CREATE VIEW slow.hugeinfo_status AS SELECT * FROM public.hugeinfo_status, (SELECT pg_sleep(600)::text AS slept) AS s;
	GRANT USAGE ON SCHEMA slow TO monitoring; GRANT SELECT ON slow.hugeinfo_status TO monitoring;
	CREATE SCHEMA hostile;
	CREATE VIEW hostile.hugeinfo_status AS
		SELECT E'ok\\x1b[2J' AS status, E'a\\x1b[2J\\nforged\\u061c\\u202e\\u2028\\u009b31m' || repeat('x', 5000) AS reason,
			E'one\\x1b[2J\\r\\ntwo' AS remedy, 'ok' AS code, 'try' AS huge_pages, true AS in_use, true AS fits_after_restart, 512::bigint AS page_size_bytes,
			1::bigint AS segment_bytes, 1::bigint AS required_huge_pages, 0::bigint AS shortfall_pages;
	GRANT USAGE ON SCHEMA hostile TO monitoring; GRANT SELECT ON hostile.hugeinfo_status TO monitoring;
	CREATE SCHEMA closed;
	CREATE VIEW closed.hugeinfo_status AS SELECT * FROM public.hugeinfo_status});

my $down = new_server('down', huge_pages => 'off');
$down->safe_psql('postgres', q{CREATE ROLE monitoring LOGIN IN ROLE pg_monitor; CREATE SCHEMA hugeinfo; ALTER EXTENSION pg_hugeinfo SET SCHEMA hugeinfo;
	GRANT USAGE ON SCHEMA hugeinfo TO pg_monitor});

# Runs the file. Returns whether it succeeds, and the output of psql.
sub run_file
{
	my (%variables) = @_;
	my ($out, $error) = ('', '');
	my $done = IPC::Run::run([ 'psql', '-XAtq', '-d', $bare->connstr('postgres'), (map { ('-v', "$_=$variables{$_}") } sort keys %variables),
			'-f', source('fleet/postgres_fdw.sql') ], '>', \$out, '2>', \$error);
	return ($done, $out . $error);
}

sub register
{
	my ($name, $node, %variables) = @_;
	my ($done, $said) = run_file(server => $name, host => $node->host, port => $node->port, timeout => $PostgreSQL::Test::Utils::timeout_default, %variables);
	ok($done, "$name: registered") or diag($said);
	return;
}

# The owner of the database can set any search_path.
$bare->safe_psql('postgres', 'CREATE SCHEMA theirs');
for my $schema (qw(no_such_schema theirs))
{
	$bare->safe_psql('postgres', "ALTER DATABASE postgres SET search_path = $schema");
	my ($done, $said) = run_file(server => 'primary', host => $primary->host, port => $primary->port);
	ok($done, "search_path = $schema: registered") or diag($said);
	my $sql = q(SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'postgres_fdw');
	is($bare->safe_psql('postgres', $sql), 'pg_catalog', "search_path = $schema: the schema of postgres_fdw");
	$bare->safe_psql('postgres', 'DROP SCHEMA fleet CASCADE; DROP EXTENSION postgres_fdw CASCADE');
}
$bare->safe_psql('postgres', 'ALTER DATABASE postgres RESET search_path; DROP SCHEMA theirs');

# Objects of other roles with the names of our objects would run.
$bare->safe_psql('postgres', 'CREATE ROLE stranger');
for (
	[ 'schema fleet', 'CREATE SCHEMA fleet AUTHORIZATION stranger' ],
	[ 'function fleet.ask()', 'CREATE SCHEMA fleet; CREATE FUNCTION fleet.ask() RETURNS text RETURN 1; ALTER FUNCTION fleet.ask() OWNER TO stranger' ],
	[ 'view fleet.status', 'CREATE SCHEMA fleet; CREATE VIEW fleet.status AS SELECT 1 AS one; ALTER VIEW fleet.status OWNER TO stranger' ])
{
	my ($object, $sql) = @$_;
	my $name = "$object of another role";
	$bare->safe_psql('postgres', $sql);
	my ($done, $said) = run_file(server => 'primary', host => $primary->host);
	ok(!$done, "$name: an error");
	like($said, qr/ERROR:  \Q$object\E belongs to stranger, which is not a superuser\nHINT:  Nothing was changed\./, "$name: the message and the hint");
	is($bare->safe_psql('postgres', q(SELECT count(*) FROM pg_foreign_server)), 0, "$name: nothing is created");
	$bare->safe_psql('postgres', 'DROP SCHEMA fleet CASCADE');
}

register('primary', $primary, cluster => 'main');
register($_, $standby, cluster => 'main') for 'The "standby"', 'The "standby"';
register('bare', $bare);
register('older', $older);
register('down', $down);
register('closed', $older, schema => 'closed');
$down->stop;

# Returns the rows by name, queried by a monitoring role.
sub fleet
{
	my $session = HugeInfo::Session->new($bare);
	$session->value('SET ROLE monitoring');
	my @rows = $session->rows('SELECT * FROM fleet.status');
	$session->close;
	return @rows;
}
sub by_name { return { map { $_->{server} => $_ } @_ } }

my @rows = fleet();
my $seen = by_name(@rows);
is(scalar @rows, 6, 'a row for each server');
for ([ primary => $primary, 'hugeinfo.' ], [ 'The "standby"' => $standby, 'hugeinfo.' ], [ older => $older, '' ])
{
	my ($name, $node, $schema) = @$_;
	my @columns = $name eq 'older' ? qw(status reason) : qw(status code reason huge_pages in_use fits_after_restart page_size_bytes segment_bytes required_huge_pages shortfall_pages);
	my $list = join ', ', @columns;
	my $session = HugeInfo::Session->new($node);
	my ($own) = $session->rows("SELECT $list FROM ${schema}hugeinfo_status");
	$session->close;
	is_deeply({ map { $_ => $seen->{$name}{$_} } @columns }, $own, "$name: the same as in its own SQL");
}
is($seen->{older}{in_use}, undef, 'older: missing columns are NULL');
like("@{ $seen->{$_->[0]} }{qw(status reason)}", $_->[1], "$_->[0]: $_->[1]")
  for [ 'bare', qr/^unknown no extension pg_hugeinfo: relation/ ], [ 'down', qr/^critical could not connect .*: connection to server/s ], [ 'closed', qr/^unknown permission denied/ ];
is($rows[0]{server}, 'down', 'the worst is first');
is(scalar(grep { $_->{is_uneven} ne 'f' } @rows), 0, 'no cluster is uneven');

# Texts from a hostile server are truncated and printable.
{
	my $name = 'a hostile server';
	register('hostile', $older, schema => 'hostile');
	my $row = by_name(fleet())->{hostile};
	is($row->{status}, 'unknown', "$name: status");
	like($row->{reason}, qr/^a \[2J forged {4}31mx+$/, "$name: reason");
	is(length $row->{reason}, 1000, "$name: the reason is truncated");
	is($row->{remedy}, "one [2J \ntwo", "$name: remedy");
	is($row->{page_size_bytes}, 512, "$name: page size");
	$bare->safe_psql('postgres', 'DROP SERVER fleet_hostile CASCADE');
}

# The server runs, but does not respond in time.
{
	register('slow', $older, schema => 'slow', timeout => 1);
	my $name = 'a slow server';
	is(by_name(fleet())->{slow}{status}, 'critical', "$name: has a row");
	my $session = HugeInfo::Session->new($bare);
	$session->value(q(SET statement_timeout = '300ms'));
	is(($session->error_of('SELECT * FROM fleet.status'))[0], '57014', "$name: the user can cancel the query");
	$session->close;
	$bare->safe_psql('postgres', 'DROP SERVER fleet_slow CASCADE');
	is(scalar(fleet()), 6, "$name: is removed");
}

# The network fails during a query. Without the limits in the file, TCP would wait for hours, much
# longer than this session.
SKIP:
{
	my $name = 'a network that fails';
	my @own = qw(unshare --user --map-current-user --keep-caps --net);
	my ($out, $error);
	IPC::Run::run([ @own, 'true' ], '>', \$out, '2>', \$error) or cannot("$name: ordinary users cannot create network namespaces here: $error");
	register('dying', $older, schema => 'slow', host => '127.0.0.1', timeout => 5);
	$_->stop for $bare, $older;
	# Both servers are in a separate network namespace, in which a command sets the loopback interface
	# up or down.
	my $in = '';
	my $run = IPC::Run::start([ @own, $^X, '-e', $NETWORK, map { $_->data_dir } $bare, $older ], '<', \$in, '>', \$out, '2>&1');
	my $is_up = sub { my ($node) = @_; return !system_log('pg_isready', '-q', '-h', $node->host, '-p', $node->port) };
	ok(until_true(sub { $run->pump_nb; return $is_up->($bare) && $is_up->($older) }), "$name: both are up") or diag($out);
	my $session = HugeInfo::Session->new($bare);
	my $there = HugeInfo::Session->new($older);
	$session->value(q(SET statement_timeout = '100s'));
	$session->ask(q(SELECT status, reason FROM fleet.status WHERE server = 'dying'));
	my $asks = q(SELECT count(*) FROM pg_stat_activity WHERE usename = 'monitoring' AND client_addr IS NOT NULL AND wait_event = 'PgSleep');
	until_true(sub { return $there->value($asks) > 0 }) or diag("no query is running");
	$in .= "down\n";
	$run->pump until $in eq '';
	# postgres_fdw itself does not commit a transaction in which a connection broke.
	my (undef, $why) = $session->answer;
	like($why, qr/ERROR:  08\w+: .*fleet_dying/, "$name: the query fails and names the server");
	my ($row) = $session->rows(q(SELECT status, reason FROM fleet.status WHERE server = 'dying'));
	like("@$row{qw(status reason)}", qr/^critical could not connect/, "$name: the next query has a row for it");
	$_->close for $session, $there;
	$in .= "end\n";
	$run->finish;
	$_->start for $bare, $older;
	$bare->safe_psql('postgres', 'DROP SERVER fleet_dying CASCADE');
}

$down->start;
is(by_name(fleet())->{down}{in_use}, 'f', 'a restarted server has its status again');
is($bare->safe_psql('postgres', q(SELECT count(*) FROM pg_foreign_server WHERE srvname LIKE 'fleet_The %')), 1, 'a server that is registered twice exists once');
is($primary->safe_psql('postgres', q(SELECT count(*) FROM pg_stat_activity WHERE usename = 'monitoring')), 0, 'no connection stays');
is(($bare->psql('postgres', 'SET ROLE nobody; SELECT 1 FROM fleet.status'))[0] != 0, 1, 'the view is not accessible to PUBLIC');

SKIP:
{
	my $name = 'an uneven cluster';
	needs_host($name);
	$_->stop for $down, $standby;
	pools_of_one_size($kb, 0);
	set_pool($kb, 60);
	configure($standby, huge_pages => 'on');
	$standby->start;
	my $members = by_name(fleet());
	is($members->{'The "standby"'}{in_use}, 't', "$name: the standby is on huge pages");
	is_deeply([ map { $members->{$_}{is_uneven} } 'The "standby"', 'primary', 'bare' ], [qw(t t f)], "$name: its members are marked");

	$name = 'a cluster with a server that has muted the check';
	# a setting in the file of this server, because settings of roles are replicated
	configure($primary, 'pg_hugeinfo.muted_checks' => 'reboot, huge_pages');
	$primary->reload;
	$members = by_name(fleet());
	is_deeply([ map { $members->{$_}{is_muted} } 'The "standby"', 'primary', 'bare' ], [ 'f', 't', undef ], "$name: the server that muted the check");
	is_deeply([ map { $members->{$_}{is_uneven} } 'The "standby"', 'primary' ], [qw(f f)], "$name: is not uneven");

	$name = 'a cluster with a server that has huge_pages = off';
	configure($primary, 'pg_hugeinfo.muted_checks' => '', huge_pages => 'off');
	$primary->restart;
	$members = by_name(fleet());
	is_deeply([ map { $members->{$_}{is_muted} } 'The "standby"', 'primary' ], [ 'f', 'f' ], "$name: nothing is muted");
	is($members->{primary}{code}, 'turned_off', "$name: the code");
	is_deeply([ map { $members->{$_}{is_uneven} } 'The "standby"', 'primary' ], [qw(f f)], "$name: is not uneven");
}

$_->stop for $bare, $older, $standby, $primary;
done_testing;
