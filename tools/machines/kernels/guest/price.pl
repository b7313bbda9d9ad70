#!/usr/bin/perl
# The cost of hugeinfo_status compared with pmap, and its growth with the memory in use and with the
# segment, part of which the postmaster has faulted in since its start. Absolute times mean nothing
# in an emulated machine, but ratios do: two figures are measured side by side, and the asserted
# limits are far from the measured ratios.
use lib '/guest/lib';
use Guest;
use Time::HiRes qw(time);

my $ROUNDS = 15;
mount_groups(2, undef, 'hugetlb', 'cpuset');

sub median { my @sorted = sort { $a <=> $b } @_; return $sorted[ $#sorted / 2 ] }

sub milliseconds
{
	my ($code) = @_;
	$code->();
	return 1000 * median(map { my $began = time; $code->(); time - $began } 1 .. $ROUNDS);
}

# Opens a session for measurements. With these checks muted, a server on small pages counts as
# healthy, like one on huge pages.
sub prepare
{
	value(q(SET pg_hugeinfo.muted_checks = 'huge_pages, restart'));
	value(<<'SQL');
CREATE OR REPLACE FUNCTION pg_temp.milliseconds() RETURNS double precision LANGUAGE plpgsql AS
$$DECLARE began timestamptz := clock_timestamp(); BEGIN
FOR i IN 1 .. 10 LOOP PERFORM status, reason FROM hugeinfo_status; END LOOP;
RETURN extract(epoch FROM clock_timestamp() - began) * 1000 / 10; END$$
SQL
	return;
}

sub status_milliseconds { return median(map { value('SELECT pg_temp.milliseconds()') } 0 .. $ROUNDS) }

sub price
{
	my ($name) = @_;
	prepare();
	my $own = value('SELECT pg_backend_pid()');
	my $status = status_milliseconds();
	my $client = milliseconds(sub { value('SELECT status, reason FROM hugeinfo_status') });
	my $pmap = milliseconds(sub { system("pmap $own >/dev/null") });
	my $extended = milliseconds(sub { system("pmap -X $own >/dev/null") });
	told(sprintf '%s: hugeinfo_status %.2f ms, from a client %.2f ms, pmap %.1f ms (%.1f times), pmap -X %.1f ms (%.1f times)',
		$name, $status, $client, $pmap, $pmap / $status, $extended, $extended / $status);
	true($pmap > 10 * $status, "$name: hugeinfo_status costs less than a tenth of pmap");
	return $status;
}

situation('the cost');
start(shared_buffers => '128MB', max_wal_size => '4GB');
my $small = price('a small segment');
start(shared_buffers => '1200MB', max_wal_size => '4GB');
told('PROCMAP_QUERY is ' . row(q(SELECT status FROM hugeinfo_sources WHERE source = 'PROCMAP_QUERY' LIMIT 1))->{status});
my $fresh = price('a backend that has touched little');
my $error = touch(500);
true(!$error, 'a backend touches 500 MB', $error);
my ($in_use) = slurp('/proc/' . value('SELECT pg_backend_pid()') . '/status') =~ /^RssShmem:\s+(\d+) kB$/m;
true($in_use > 500 * 1024, "RssShmem is $in_use kB");
price('a backend that has touched 500 MB');

# The sessions alternate, so that both figures are from the same minute.
my @ratios;
for (1 .. 5)
{
	value('SELECT pg_terminate_backend(pg_backend_pid())');
	prepare();
	my $before = status_milliseconds();
	value(q(SELECT pg_prewarm('t500', 'buffer')));
	push @ratios, status_milliseconds() / $before;
}
my $ratio = median(@ratios);
told(sprintf 'hugeinfo_status: %.2f times as expensive with 500 MB touched (%s)', $ratio, join ' ', map { sprintf '%.2f', $_ } @ratios);
true($ratio < 1.5, 'the costs are about the same');
told(sprintf 'hugeinfo_status: %.2f times as expensive with a segment of 1200 MB as with one of 128 MB', $fresh / $small);
compare();

finished();
