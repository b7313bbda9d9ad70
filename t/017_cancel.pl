# Tests that a cancel ends every query. The next result is correct, and no file stays open.
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

# Page tables to walk, in some processes.
$sql->value('CREATE TABLE large AS SELECT i, repeat(\'x\', 1000) AS x FROM generate_series(1, 50000) AS i');
my @idle = map { HugeInfo::Session->new($node) } 1 .. 3;
$_->value('SELECT count(*) FROM large') for @idle;

# None of these queries ends by itself.
my %endless = (
	(map { $_ => endless($_) } qw(hugeinfo_backends hugeinfo_instances hugeinfo_page_tables)),
	(map { $_ => endless("hugeinfo_backends() AS b, LATERAL $_(b.pid) AS m") } qw(hugeinfo_memory hugeinfo_mappings)),
	hugeinfo_fault_rates => q(SELECT count(*) FROM hugeinfo_fault_rates('1 hour')));

sub wait_until_begun
{
	my ($session, $function) = @_;
	return $session->wait_until_waiting($other) if $function eq 'hugeinfo_fault_rates';
	return $session->wait_until(sub { $session->{error} =~ /^NOTICE: .* begun$/m });
}

# Compares the idle processes, which do not change, in the canceled session with /proc.
sub is_right
{
	my ($name) = @_;
	for my $pid (map { $_->pid } @idle)
	{
		my ($seen, $expected) = settled(
			sub { $sql->rows("SELECT * FROM hugeinfo_backends() WHERE pid = $pid") },
			sub { return { %{ status_file($pid) }, %{ stat_file($pid) } } },
			sub { my ($rows, $kernel) = @_; return ({ map { $_ => $rows->[0]{$_} } keys %{ $kernel->[0] } }, $kernel->[0]) });
		is_deeply($seen, $expected, "$name: the next hugeinfo_backends is correct");
		($seen, $expected) = settled(
			sub { $sql->rows("SELECT rss_bytes, uss_bytes, (SELECT count(*) FROM hugeinfo_mappings($pid)) AS mappings FROM hugeinfo_memory($pid)") },
			sub {
				my $memory = rollup_file($pid);
				return { (map { $_ => $memory->{$_} } qw(rss_bytes uss_bytes)), mappings => scalar(() = maps_file($pid)) };
			},
			sub { my ($rows, $kernel) = @_; return ($rows->[0], $kernel->[0]) });
		is_deeply($seen, $expected, "$name: the next hugeinfo_memory and hugeinfo_mappings are correct");
	}
	# A session that has just ended might remain for a moment.
	for my $from ('hugeinfo_backends', q(hugeinfo_fault_rates('1 ms') WHERE presence = 'stayed'))
	{
		my ($seen, $expected) = settled(
			sub { $sql->rows("SELECT pid FROM $from ORDER BY pid") },
			sub { family($node->{_pid}) },
			sub { my ($rows, $pids) = @_; return ([ map { $_->{pid} } @$rows ], $pids) });
		is_deeply($seen, $expected, "$name: $from returns all processes");
	}
	return;
}

# Returns the open files, except those of its database, which a server opens and closes at any time.
sub files { return [ grep { index $_, $node->data_dir } open_files($sql->pid) ] }

for my $function (sort keys %endless)
{
	# the first call loads libraries and caches
	$sql->error_after(50, $endless{$function});
	my $files = files();
	is(($sql->error_after(50, $endless{$function}))[0], '57014', "$function: statement_timeout ends it");
	is_deeply(files(), $files, "$function: no file stays open");
	is_right("$function, statement_timeout");

	# by another session, after the query has started
	my @errors;
	for (1 .. 10)
	{
		$sql->ask($endless{$function});
		wait_until_begun($sql, $function);
		$other->value('SELECT pg_cancel_backend(' . $sql->pid . ')');
		push @errors, ($sql->answer)[1] =~ /^(ERROR:  57014: canceling statement due to user request)$/m;
	}
	is(scalar @errors, 10, "$function: pg_cancel_backend ends it each time");
	is_deeply(files(), $files, "$function: no file stays open after pg_cancel_backend");
}

# The end of the session also ends it.
for my $function (sort keys %endless)
{
	my $victim = HugeInfo::Session->new($node);
	my $pid = $victim->pid;
	$victim->ask($endless{$function});
	wait_until_begun($victim, $function);
	$other->value("SELECT pg_terminate_backend($pid)");
	ok(until_true(sub { !defined state_of($pid) }), "$function: pg_terminate_backend ends it");
	$victim->close;
}

$_->close for @idle, $sql, $other;
$node->stop;
done_testing;
