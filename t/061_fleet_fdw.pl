# fleet/postgres_fdw.sql: one view over real servers, of which one is a standby, one is down, one
# has no extension, one an older version, and one does not answer in time.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Tools;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Server;
use HugeInfo::Session;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
configure($primary, shared_buffers => '16MB', huge_pages => 'off');
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE SCHEMA hugeinfo; CREATE EXTENSION pg_hugeinfo SCHEMA hugeinfo; GRANT USAGE ON SCHEMA hugeinfo TO pg_monitor;
	CREATE ROLE monitoring LOGIN IN ROLE pg_monitor});
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby);

# The view is on a server that has no extension itself.
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
	CREATE SCHEMA closed;
	CREATE VIEW closed.hugeinfo_status AS SELECT * FROM public.hugeinfo_status});

my $down = new_server('down', huge_pages => 'off');
$down->safe_psql('postgres', q{CREATE ROLE monitoring LOGIN IN ROLE pg_monitor; CREATE SCHEMA hugeinfo; ALTER EXTENSION pg_hugeinfo SET SCHEMA hugeinfo;
	GRANT USAGE ON SCHEMA hugeinfo TO pg_monitor});

sub register
{
	my ($name, $node, %variables) = @_;
	my %all = (server => $name, host => $node->host, port => $node->port, timeout => 2, %variables);
	command_ok([ 'psql', '-XAtq', '-d', $bare->connstr('postgres'), (map { ('-v', "$_=$all{$_}") } sort keys %all), '-f', source('fleet/postgres_fdw.sql') ],
		"$name: registered");
	return;
}
register('primary', $primary, cluster => 'main');
register($_, $standby, cluster => 'main') for 'The "standby"', 'The "standby"';
register('bare', $bare);
register('older', $older);
register('down', $down);
register('closed', $older, schema => 'closed');
$down->stop;

# By name, as somebody who only monitors
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
	my @columns = $name eq 'older' ? qw(status reason) : qw(status reason in_use fits_after_restart page_size_bytes segment_bytes required_huge_pages shortfall_pages);
	my $list = join ', ', @columns;
	my $session = HugeInfo::Session->new($node);
	my ($own) = $session->rows("SELECT $list FROM ${schema}hugeinfo_status");
	$session->close;
	is_deeply({ map { $_ => $seen->{$name}{$_} } @columns }, $own, "$name: as its own SQL says");
}
is($seen->{older}{in_use}, undef, 'older: what it does not have is NULL');
like("@{ $seen->{$_->[0]} }{qw(status reason)}", $_->[1], "$_->[0]: $_->[1]")
  for [ 'bare', qr/^unknown no extension pg_hugeinfo: relation/ ], [ 'down', qr/^critical could not connect .*: connection to server/s ], [ 'closed', qr/^unknown permission denied/ ];
is($rows[0]{server}, 'down', 'the worst is first');
is(scalar(grep { $_->{is_uneven} ne 'f' } @rows), 0, 'no cluster is uneven');

# The server is there, and does not answer in time.
{
	register('slow', $older, schema => 'slow', timeout => 1);
	my $name = 'a slow server';
	is(by_name(fleet())->{slow}{status}, 'critical', "$name: is a row");
	my $session = HugeInfo::Session->new($bare);
	$session->value(q(SET statement_timeout = '300ms'));
	is(($session->error_of('SELECT * FROM fleet.status'))[0], '57014', "$name: whoever asks may stop it");
	$session->close;
	$bare->safe_psql('postgres', 'DROP SERVER fleet_slow CASCADE');
	is(scalar(fleet()), 6, "$name: is taken away");
}

$down->start;
is(by_name(fleet())->{down}{in_use}, 'f', 'a server that is back is seen to be');
is($bare->safe_psql('postgres', q(SELECT count(*) FROM pg_foreign_server WHERE srvname LIKE 'fleet_The %')), 1, 'registered twice, it is there once');
is($primary->safe_psql('postgres', q(SELECT count(*) FROM pg_stat_activity WHERE application_name = 'postgres_fdw')), 0, 'no connection stays');
is(($bare->psql('postgres', 'SET ROLE nobody; SELECT 1 FROM fleet.status'))[0] != 0, 1, 'not for everybody');

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
	is_deeply([ map { $members->{$_}{is_uneven} } 'The "standby"', 'primary', 'bare' ], [qw(t t f)], "$name: said of its members");
}

$_->stop for $bare, $older, $standby, $primary;
done_testing;
