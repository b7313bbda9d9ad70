# Whether a start finds room for what it brings back: what is said before, beside real starts.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use JSON::PP ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $json = JSON::PP->new->canonical;

# What differs from the settings that a server has for good, in a file of its own.
sub set_mix
{
	my ($node, %settings) = @_;
	my $file = $node->data_dir . '/mix.conf';
	unlink $file;
	append_to_file($file, join '', map { "$_ = '$settings{$_}'\n" } sort keys %settings);
	return;
}

sub question { my (%settings) = @_; return "hugeinfo_runbook('" . $json->encode(\%settings) . "'::jsonb)" }

# What the runbook says of a plan that would not start: a decision, or PostgreSQL's own error.
sub refusal
{
	my ($node, %settings) = @_;
	my ($status, $out, $error) = $node->psql('postgres',
		'SELECT instruction FROM ' . question(%settings) . q( WHERE why LIKE 'The next start would fail. %'));
	return $status ? $error : $out;
}

sub check
{
	my ($node) = @_;
	return $node->safe_psql('postgres', q(SELECT status, finding FROM hugeinfo_checks WHERE name = 'pending_settings'));
}

# With $least undefined the server has to start; $plan is left out where a setting can't be planned.
sub compare
{
	my ($node, $least, $plan, %settings) = @_;
	my $name = $node->name . ': ' . (join(', ', map { "$_ = $settings{$_}" } sort keys %settings) || 'lines are gone');
	my $refusal = $plan ? refusal($node, %settings) : undef;
	set_mix($node, %settings);
	my $check = check($node);
	$node->stop;
	my ($started, $log) = starts($node);
	is($started ? 'starts' : 'fails', defined $least ? 'fails' : 'starts', "$name: as the test expects") or diag($log);
	if ($started)
	{
		is($refusal // '', '', "$name: a plan for it is accepted");
		unlike($check, qr/^critical/, "$name: the check has nothing against it");
		$node->stop;
	}
	else
	{
		like($refusal, $least, "$name: a plan for it is refused") if $plan;
		like($check, qr/^critical/, "$name: the check says so");
	}
	set_mix($node);
	$node->start;
	return;
}

sub at_least { my ($setting, $least) = @_; return qr/\bset $setting to (?:at least )?$least\b/ }

# Each of these values, of a setting that has to be so much at least.
sub compare_number
{
	my ($node, $setting, $least, @values) = @_;
	compare($node, $_ < $least ? at_least($setting, $least) : undef, 1, $setting => $_) for @values;
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

# Combinations that PostgreSQL looks at before anything else: its program says them itself.
compare($primary, qr/must be less than/, 1, superuser_reserved_connections => 14);
compare($primary, undef, 1, superuser_reserved_connections => 13);
compare($primary, qr/requires .*wal_level/, 1, wal_level => 'minimal');
compare($primary, qr/WAL archival cannot be enabled/, 0, wal_level => 'minimal', max_wal_senders => 0, archive_mode => 'on');
compare($primary, undef, 1, wal_level => 'minimal', max_wal_senders => 0);

# Slots.
$primary->safe_psql('postgres', q(SELECT pg_create_physical_replication_slot(name) FROM unnest('{a, b}'::name[]) AS name));
$primary->safe_psql('postgres', q(SELECT pg_create_logical_replication_slot('logical', 'pgoutput')));
compare_number($primary, 'max_replication_slots', 3, 0, 2, 3, 4);
{
	my $session = HugeInfo::Session->new($primary);
	$session->value(q(SELECT pg_create_physical_replication_slot('temporary', temporary => true)));
	is(refusal($primary, max_replication_slots => 3), '', 'a temporary slot takes no room');
	$session->close;
}
compare($primary, $major < 19 ? at_least('wal_level', 'logical') : undef, 1, wal_level => 'replica');
compare($primary, at_least('wal_level', $major < 19 ? 'logical' : 'replica'), 1, wal_level => 'minimal', max_wal_senders => 0);
$primary->safe_psql('postgres', q(SELECT pg_drop_replication_slot('logical')));
compare($primary, undef, 1, wal_level => 'replica');
compare($primary, at_least('wal_level', 'replica'), 1, wal_level => 'minimal', max_wal_senders => 0);
$primary->safe_psql('postgres', 'SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots');

# Prepared transactions.
$primary->safe_psql('postgres', "BEGIN; CREATE TABLE $_ (); PREPARE TRANSACTION '$_'") for qw(one two);
compare_number($primary, 'max_prepared_transactions', 2, 0, 1, 2);
$primary->safe_psql('postgres', "ROLLBACK PREPARED 'two'");
compare_number($primary, 'max_prepared_transactions', 1, 0, 1);

# Replication origins, of which 0 brings back none.
$primary->safe_psql('postgres',
	"SELECT pg_replication_origin_create('$_'); SELECT pg_replication_origin_advance('$_', '0/100')") for qw(a b c d);
compare_number($primary, $origins, 4, 1, 3, 4, 5);
compare($primary, undef, 1, $origins => 0);

{
	my $name = 'who may plan, and not see origins';
	$primary->safe_psql('postgres', 'CREATE ROLE planner IN ROLE pg_monitor');
	$primary->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION hugeinfo_plan(jsonb), hugeinfo_runbook(jsonb) TO planner');
	my $planner = HugeInfo::Session->new($primary);
	$planner->value('SET ROLE planner');
	my $decisions = ' WHERE where_to_run IS NULL';
	like($planner->value('SELECT why FROM ' . question($origins => 5) . $decisions),
		qr/^The next start might fail\. $origins = 5; the number of replication origins is unknown/, $name);
	is($planner->value(q(SELECT count(*) FROM ) . question($origins => 6) . $decisions . q( AND why LIKE 'The next start%')),
		0, "$name: as many as now do");
	set_mix($primary, $origins => 5);
	is($planner->value(q(SELECT status FROM hugeinfo_checks WHERE name = 'pending_settings')), 'unknown', "$name: the check");
	like(check($primary), qr/^ok/, 'who may see them is told');
	set_mix($primary);
	$planner->close;
}

# A standby, of a copy taken now: WAL of wal_level = minimal can't be followed.
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby);
my %of_primary = (max_connections => 14, max_worker_processes => 6, max_wal_senders => 4, max_prepared_transactions => 3,
	max_locks_per_transaction => 20);
for my $setting (sort keys %of_primary)
{
	my $least = $of_primary{$setting};
	compare_number($standby, $setting, $least, $least - 1, $least);
}
compare($standby, at_least('max_connections', 14), 1, max_connections => 12, max_locks_per_transaction => 11);
compare($standby, undef, 1, max_connections => 12, hot_standby => 'off');
like($standby->safe_psql('postgres', 'SELECT why FROM ' . question(max_prepared_transactions => 2, hot_standby => 'off')),
	qr/^The next start might fail\. max_prepared_transactions = 2; the number of/, 'nobody counts prepared transactions there');

SKIP:
{
	skip 'a standby has no logical slots', 1 if $major < 16;
	# Until it has ended, no logical slot is ready.
	$primary->safe_psql('postgres', q(ROLLBACK PREPARED 'one'));
	my $session = HugeInfo::Session->new($standby);
	$session->ask(q(SELECT pg_create_logical_replication_slot('logical', 'pgoutput')));
	# It waits for what the primary says of its transactions.
	ok(until_true(sub {
			$primary->safe_psql('postgres', 'SELECT pg_log_standby_snapshot()');
			$standby->safe_psql('postgres', 'SELECT count(*) FROM pg_replication_slots WHERE confirmed_flush_lsn IS NOT NULL');
		}), 'a logical slot of a standby');
	$session->answer;
	$session->close;
	like(refusal($standby, hot_standby => 'off'), at_least('hot_standby', 'on'), 'logical slots want a hot standby');
	$standby->safe_psql('postgres', q(SELECT pg_drop_replication_slot('logical')));
}

# The primary gets more while the standby runs.
{
	my $name = 'less than the primary has got';
	like(check($standby), qr/^ok/, 'as much as the primary has');
	configure($primary, max_connections => 18);
	$primary->restart;
	$standby->poll_query_until('postgres', q(SELECT pg_get_wal_replay_pause_state() = 'paused')) or die "replay goes on\n";
	my $wrong = 'The next start would fail. max_connections = 14; the primary has 18.';
	is(check($standby), "critical|$wrong", $name);
	my $observer = HugeInfo::Session->new($standby);
	$observer->value('SET ROLE pg_monitor');
	is($observer->value(q(SELECT finding FROM hugeinfo_checks WHERE name = 'pending_settings')), $wrong,
		"$name: who may not plan is told, too");
	$observer->close;
	is($standby->safe_psql('postgres', q(SELECT command FROM hugeinfo_runbook WHERE is_disruptive)), '', "$name: no restart");
	is($standby->safe_psql('postgres', q(SELECT count(*) FROM hugeinfo_runbook WHERE instruction ~ '^set max_connections to at least 18')),
		1, "$name: what to do");
	is(refusal($standby, max_connections => 18), '', "$name: a plan with as much is accepted");
	$standby->stop;
	ok(!(starts($standby))[0], "$name: it does not start");
	set_mix($standby, max_connections => 18);
	$standby->start;
	like(check($standby), qr/^ok/, "$name: cured");
}

done_testing;
