# Settings that are too low for what a start recovers: forecasts, compared with real starts.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Server;
use HugeInfo::Session;
use JSON::PP ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $json = JSON::PP->new->canonical;

# Writes settings to an additional configuration file.
sub set_mix
{
	my ($node, %settings) = @_;
	my $file = $node->data_dir . '/mix.conf';
	unlink $file;
	append_to_file($file, join '', map { "$_ = '$settings{$_}'\n" } sort keys %settings);
	return;
}

sub question { my (%settings) = @_; return "hugeinfo_runbook('" . $json->encode(\%settings) . "')" }

# Returns the forecast of a plan: refused by PostgreSQL's program, 'would fail', 'might fail' or ok.
sub plan_of
{
	my ($node, %settings) = @_;
	my ($status, $out) = $node->psql('postgres', 'SELECT why FROM ' . question(%settings) . ' WHERE where_to_run IS NULL');
	return $status ? 'refused' : $out =~ /^The next start ((?:would|might) fail)\./m ? $1 : 'ok';
}

sub check
{
	my ($node) = @_;
	return $node->safe_psql('postgres', q(SELECT status, finding FROM hugeinfo_checks WHERE name = 'pending_settings'));
}

# Compares the forecasts of a plan and of the files with a start.
sub compare
{
	my ($node, $forecast, $start, %settings) = @_;
	my $name = $node->name . ': ' . join ', ', map { "$_ = $settings{$_}" } sort keys %settings;
	is(plan_of($node, %settings), $forecast, "$name: the plan");
	set_mix($node, %settings);
	my %check = (refused => qr/^critical\|/, 'would fail' => qr/^critical\|The next start would fail\./,
		'might fail' => qr/^warning\|The next start might fail\./, ok => qr/^(?!.*The next start (?:would|might) fail)/s);
	like(check($node), $check{$forecast}, "$name: the check");
	$node->stop;
	my ($started, $log) = starts($node);
	is($started ? 'starts' : 'fails', $start, "$name: the start") or diag($log);
	$node->stop if $started;
	set_mix($node);
	$node->start;
	return;
}

sub with_mix
{
	my ($node) = @_;
	append_to_file($node->data_dir . '/postgresql.conf', "\ninclude_if_exists = 'mix.conf'\n");
	return $node;
}

my $primary = new_server('primary',
	huge_pages => 'off', max_connections => 14, max_worker_processes => 6, max_wal_senders => 4, max_replication_slots => 6,
	max_prepared_transactions => 3, max_locks_per_transaction => 20, wal_level => 'logical');
my $major = $primary->safe_psql('postgres', q(SELECT current_setting('server_version_num')::int / 10000));
my $origins = $major < 18 ? 'max_replication_slots' : 'max_active_replication_origins';
configure($primary, max_active_replication_origins => 6) if $major >= 18;
with_mix($primary);
append_to_file($primary->data_dir . '/pg_hba.conf', "local replication all trust\n");
$primary->restart;

# PostgreSQL's own program refuses these combinations.
compare($primary, 'refused', 'fails', superuser_reserved_connections => 14);
compare($primary, 'ok', 'starts', superuser_reserved_connections => 13);
compare($primary, 'refused', 'fails', wal_level => 'minimal');

# A primary starts with lower values of these settings.
compare($primary, 'ok', 'starts', max_connections => 10, max_worker_processes => 2, max_wal_senders => 0,
	max_locks_per_transaction => 10, hot_standby => 'off');

# Slots.
compare($primary, 'might fail', 'starts', max_replication_slots => 1);
compare($primary, 'might fail', 'starts', wal_level => 'minimal', max_wal_senders => 0);
$primary->safe_psql('postgres', q(SELECT pg_create_physical_replication_slot(name) FROM unnest('{a, b}'::name[]) AS name));
compare($primary, 'might fail', 'fails', max_replication_slots => 1);
compare($primary, 'ok', 'starts', max_replication_slots => 7);
compare($primary, 'might fail', 'fails', wal_level => 'minimal', max_wal_senders => 0);
$primary->safe_psql('postgres', 'SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots');

# Prepared transactions.
$primary->safe_psql('postgres', "BEGIN; CREATE TABLE $_ (); PREPARE TRANSACTION '$_'") for qw(one two);
compare($primary, 'might fail', 'fails', max_prepared_transactions => 1);
compare($primary, 'might fail', 'starts', max_prepared_transactions => 2);
$primary->safe_psql('postgres', "ROLLBACK PREPARED '$_'") for qw(one two);

# Replication origins.
$primary->safe_psql('postgres',
	"SELECT pg_replication_origin_create('$_'); SELECT pg_replication_origin_advance('$_', '0/100')") for qw(a b c d);
compare($primary, 'might fail', 'fails', $origins => 3);
compare($primary, 'might fail', 'starts', $origins => 5);

# A standby of a copy taken now, because it cannot follow WAL of wal_level = minimal.
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby);
my %of_primary = (max_connections => 14, max_worker_processes => 6, max_wal_senders => 4, max_prepared_transactions => 3,
	max_locks_per_transaction => 20);
for my $setting (sort keys %of_primary)
{
	compare($standby, 'would fail', 'fails', $setting => $of_primary{$setting} - 1);
}
compare($standby, 'would fail', 'fails', max_connections => 12, max_locks_per_transaction => 11);
compare($standby, 'ok', 'starts', max_connections => 15);
compare($standby, $major < 16 ? 'ok' : 'might fail', 'starts', max_connections => 12, hot_standby => 'off');

# The primary raises a setting while the standby runs.
{
	my $name = 'less than the primary has now';
	like(check($standby), qr/^ok/, 'as much as the primary has');
	configure($primary, max_connections => 18);
	$primary->restart;
	$standby->poll_query_until('postgres', q(SELECT pg_get_wal_replay_pause_state() = 'paused')) or die "replay goes on\n";
	my $wrong = 'The next start would fail. max_connections would be 14; the primary has 18.';
	is(check($standby), "critical|$wrong", $name);
	my $observer = HugeInfo::Session->new($standby);
	$observer->value('SET ROLE pg_monitor');
	is($observer->value(q(SELECT finding FROM hugeinfo_checks WHERE name = 'pending_settings')), $wrong,
		"$name: a role that cannot plan sees the finding, too");
	$observer->close;
	is($standby->safe_psql('postgres', q(SELECT command FROM hugeinfo_runbook WHERE is_disruptive)), '', "$name: no restart");
	is($standby->safe_psql('postgres', q(SELECT count(*) FROM hugeinfo_runbook WHERE instruction ~ '^set max_connections to at least 18')),
		1, "$name: the runbook");
	is(plan_of($standby, max_connections => 18), 'ok', "$name: a plan with the same value");
	$standby->stop;
	ok(!(starts($standby))[0], "$name: it does not start");
	set_mix($standby, max_connections => 18);
	$standby->start;
	like(check($standby), qr/^ok/, "$name: ok after the remedy");
}

done_testing;
