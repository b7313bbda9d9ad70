# A cancel ends whatever is asked, at once and without a trace: the next answer is right, and
# nothing stays open.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use Test::More;

my $node = new_server('cancel', huge_pages => 'off', shared_buffers => '128MB', max_connections => 20);
my $sql = HugeInfo::Session->new($node);
my $other = HugeInfo::Session->new($node);

# Something to walk, in some processes.
$sql->value('CREATE TABLE large AS SELECT i, repeat(\'x\', 1000) AS x FROM generate_series(1, 50000) AS i');
my @idle = map { HugeInfo::Session->new($node) } 1 .. 3;
$_->value('SELECT count(*) FROM large') for @idle;

# None of them would end before this test is long over: each process a million times, or an hour.
my $over_all = 'SELECT count(*) FROM generate_series(1, 1000000) AS i, hugeinfo_backends() AS b,';
my %endless = (
	hugeinfo_backends => 'SELECT count(*) FROM generate_series(1, 100000000) AS i, LATERAL (SELECT i FROM hugeinfo_backends() OFFSET 0) AS b',
	hugeinfo_page_tables => q{SELECT count(*) FROM generate_series(1, 100000000) AS i,
		LATERAL (SELECT i FROM hugeinfo_page_tables() WHERE i > 0 OFFSET 0) AS t},
	hugeinfo_memory => "$over_all LATERAL hugeinfo_memory(b.pid + 0 * i) AS m",
	hugeinfo_mappings => "$over_all LATERAL hugeinfo_mappings(b.pid + 0 * i) AS m",
	hugeinfo_fault_rates => q(SELECT count(*) FROM hugeinfo_fault_rates('1 hour')));

# What stands still: the idle processes as the session that is cancelled sees them, and as /proc has
# them.
sub is_right
{
	my ($name) = @_;
	for my $pid (map { $_->pid } @idle)
	{
		my ($seen, $expected) = settled(
			sub { $sql->rows("SELECT * FROM hugeinfo_backends() WHERE pid = $pid") },
			sub { return { %{ status_file($pid) }, %{ stat_file($pid) } } },
			sub { my ($rows, $kernel) = @_; return ({ map { $_ => $rows->[0]{$_} } keys %{ $kernel->[0] } }, $kernel->[0]) });
		is_deeply($seen, $expected, "$name: hugeinfo_backends is right after it");
		($seen, $expected) = settled(
			sub { $sql->rows("SELECT rss_bytes, uss_bytes, (SELECT count(*) FROM hugeinfo_mappings($pid)) AS mappings FROM hugeinfo_memory($pid)") },
			sub {
				my $memory = rollup_file($pid);
				return { (map { $_ => $memory->{$_} } qw(rss_bytes uss_bytes)), mappings => scalar(() = maps_file($pid)) };
			},
			sub { my ($rows, $kernel) = @_; return ($rows->[0], $kernel->[0]) });
		is_deeply($seen, $expected, "$name: hugeinfo_memory and hugeinfo_mappings, too");
	}
	is_deeply([ map { $_->{pid} } $sql->rows('SELECT pid FROM hugeinfo_backends ORDER BY pid') ], [ family($node->{_pid}) ],
		"$name: all processes are there");
	is($sql->value(q(SELECT count(*) FROM hugeinfo_fault_rates('1 ms') WHERE presence = 'stayed')), scalar(() = family($node->{_pid})),
		"$name: hugeinfo_fault_rates goes on");
	return;
}

# But for those of its own database, of which a server opens and closes what it likes.
sub files { return [ grep { index $_, $node->data_dir } open_files($sql->pid) ] }

for my $function (sort keys %endless)
{
	# what is loaded once has been loaded after the first
	my @states;
	$sql->value('SET statement_timeout = 50');
	$sql->error_of($endless{$function});
	my $files = files();
	push @states, ($sql->error_of($endless{$function}))[0] for 1 .. 10;
	$sql->value('RESET statement_timeout');
	is_deeply(\@states, [ ('57014') x 10 ], "$function: statement_timeout ends it, each time");
	is_deeply(files(), $files, "$function: no file stays open");
	is_right("$function, statement_timeout");

	# by another session, which knows that it is under way
	my $pid = $sql->pid;
	$sql->ask($endless{$function});
	until_true(sub {
		$other->value("SELECT count(*) FROM pg_stat_activity WHERE pid = $pid AND state = 'active' AND query LIKE '%$function%'");
	}) or die "it does not begin\n";
	$other->value("SELECT pg_cancel_backend($pid)");
	like(($sql->answer)[1], qr/^ERROR:  57014: canceling statement due to user request$/m, "$function: pg_cancel_backend ends it");
	is_deeply(files(), $files, "$function: no file stays open then");
}

# The end of the session ends it, too.
for my $function (sort keys %endless)
{
	my $victim = HugeInfo::Session->new($node);
	my $pid = $victim->pid;
	$victim->ask($endless{$function});
	until_true(sub { $other->value("SELECT count(*) FROM pg_stat_activity WHERE pid = $pid AND state = 'active' AND query LIKE '%$function%'") })
	  or die "it does not begin\n";
	$other->value("SELECT pg_terminate_backend($pid)");
	ok(until_true(sub { !defined state_of($pid) }), "$function: pg_terminate_backend ends it");
	$victim->close;
}

$_->close for @idle, $sql, $other;
$node->stop;
done_testing;
