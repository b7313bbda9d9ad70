# Without memory, a call succeeds or raises PostgreSQL's error 53200, and the backend does not
# abort, which would restart all others.
#
# Takes a minute, because each query runs with 25 limits, each time in a new backend with 30,000
# mappings.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# A library that adds this many mappings to every process of the server. Two kinds alternate, so
# that the kernel does not merge them. Reading them needs several megabytes.
my $crowd = PostgreSQL::Test::Utils::tempdir();
append_to_file("$crowd/crowd.c", <<'C');
# include <sys/mman.h>
# include <unistd.h>

__attribute__((constructor)) static void crowd(void)
{
	long page = sysconf(_SC_PAGESIZE);
	for (int i = 0; i < 30000; i++)
		mmap(0, page, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
C
system_or_bail('cc', '-shared', '-fPIC', '-o', "$crowd/crowd.so", "$crowd/crowd.c");

my $node;
{
	local $ENV{LD_PRELOAD} = "$crowd/crowd.so";
	plan(skip_all => "no library can be loaded from $crowd") unless `cat /proc/self/maps` =~ m{/crowd\.so$}m;
	$node = new_server('limited', huge_pages => 'off', restart_after_crash => 'off', log_min_messages => 'warning', max_connections => 30);
}
my $crowded = scalar(() = process_file($node->{_pid}, 'maps') =~ /^/mg);
cmp_ok($crowded, '>', 25_000, 'the processes have many mappings');
my @idle = map { HugeInfo::Session->new($node) } 1 .. 20;
my $other = $idle[0]->pid;

# Limits the memory that a backend allocates in addition to its memory at rest. Sets only the soft
# limit, which an ordinary user can raise again.
sub limit { my ($pid, $bytes) = @_; return system_log('prlimit', '--pid', $pid, '--as=' . ($bytes // 'unlimited') . ':') == 0 }

my $kb = 1024;
my @steps = (0, 4, 16, 32, 64, 100, 128, 150, 200, 256, 300, 400, 512, 700, 1024, 1500, 2048, 3000, 4096, 6000, 8192, 12_000, 16_384, 24_000, 32_768);

my %queries = (
	hugeinfo_status => 'SELECT count(*) FROM hugeinfo_status',
	hugeinfo_pools => 'SELECT count(*) FROM hugeinfo_pools',
	hugeinfo_backends => 'SELECT count(*) FROM hugeinfo_backends',
	hugeinfo_memory => "SELECT count(*) FROM hugeinfo_memory($other)",
	hugeinfo_mappings => "SELECT count(*) FROM hugeinfo_mappings($other)",
	hugeinfo_postmaster_mappings => 'SELECT count(*) FROM hugeinfo_postmaster_mappings',
	hugeinfo_fault_rates => q(SELECT count(*) FROM hugeinfo_fault_rates('1 ms')),
	hugeinfo_page_tables => 'SELECT count(*) FROM hugeinfo_page_tables',
	hugeinfo_footprint => 'SELECT count(*) FROM hugeinfo_footprint',
	hugeinfo_host => 'SELECT count(*) FROM hugeinfo_host',
	hugeinfo_meminfo => 'SELECT count(*) FROM hugeinfo_meminfo',
	hugeinfo_vmstat => 'SELECT count(*) FROM hugeinfo_vmstat',
	hugeinfo_numa => 'SELECT count(*) FROM hugeinfo_numa',
	hugeinfo_holders => 'SELECT count(*) FROM hugeinfo_holders',
	hugeinfo_sources => 'SELECT count(*) FROM hugeinfo_sources',
	hugeinfo_instances => 'SELECT count(*) FROM hugeinfo_instances',
	hugeinfo_checks => 'SELECT count(*) FROM hugeinfo_checks',
	hugeinfo_plan => 'SELECT count(*) FROM hugeinfo_plan()',
	'hugeinfo_plan, a long value' => q(SELECT count(*) FROM hugeinfo_plan(format('shared_buffers=%s', repeat('x', 60000)))),
	'hugeinfo_plan, many names' =>
	  q(SELECT count(*) FROM hugeinfo_plan((SELECT jsonb_object_agg('n' || i, i)::text FROM generate_series(1, 3000) AS i))));
# other valid results: a child had no memory, or settings are invalid
my %may = (hugeinfo_plan => qr/^38000$/);
my %must = ('hugeinfo_plan, a long value' => qr/^22023$/, 'hugeinfo_plan, many names' => qr/^22023$/);

my %seen;
for my $name (sort keys %queries)
{
	my @states;
	my $asker = HugeInfo::Session->new($node);
	my $at_rest = ($asker->error_of($queries{$name}))[0];
	like($at_rest, $must{$name} // qr/^$/, "$name: without a limit");
	$asker->close;
	my $survivors = 0;
	for my $step (@steps)
	{
		# A backend that has never run the query, because a second run can reuse memory of the first.
		my $session = HugeInfo::Session->new($node);
		my $pid = $session->pid;
		$session->value("LOAD 'pg_hugeinfo'");
		$session->value("EXPLAIN $queries{$name}");
		my ($size) = process_file($pid, 'status') =~ /^VmSize:\s+(\d+) kB$/m or last;
		limit($pid, ($size + $step) * $kb) or die "no limit can be set\n";
		my ($state) = eval { $session->error_of($queries{$name}) } or do { push @states, "the end: $@"; last };
		limit($pid);
		push @states, $state;
		$survivors++ if ($session->error_of($queries{$name}))[0] eq $at_rest && $session->value('SELECT pg_backend_pid()') == $pid;
		$session->close;
	}
	my $may = $may{$name} // qr/^(?!)/;
	my @wrong = grep { !/^(?:|53200)$/ && !/$may/ && $_ ne $at_rest } @states;
	is_deeply(\@wrong, [], "$name: a result or 53200, at each limit");
	is($survivors, scalar @steps, "$name: each backend survives, and has the same result as before");
	$seen{$_ || 'answers'}++ for @states;
}
note(join ', ', map { "$_: $seen{$_}" } sort keys %seen);
cmp_ok($seen{53200} // 0, '>', 5, 'memory did run out');
cmp_ok($seen{answers}, '>', 50, 'memory did not always run out');

# Arguments as large as PostgreSQL accepts are rejected before they are copied.
{
	my $session = HugeInfo::Session->new($node);
	my $pid = $session->pid;
	my %long = (
		'a long value' => q(format('shared_buffers=%s', repeat('x', 100000000))),
		'a long text' => q(repeat('x', 100000000)),
		'many names' => q((SELECT jsonb_object_agg('n' || i, i)::text FROM generate_series(1, 200000) AS i)),
		'deep nesting' => q(repeat('[', 3000) || repeat(']', 3000)),
		'a long name' => q(repeat('x', 60000) || '=1'));
	my %expected = ('deep nesting' => '22023', 'a long name' => '22023');
	for my $name (sort keys %long)
	{
		my ($state, $error) = $session->error_of("SELECT hugeinfo_plan($long{$name})");
		is($state, $expected{$name} // '54000', "$name: is rejected");
		cmp_ok(length $error, '<', 5000, "$name: the error is short");
	}
	is($session->value('SELECT pg_backend_pid()'), $pid, 'long arguments: the backend survives');
}

unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|memory allocation of/, 'no process has crashed');
$_->close for @idle;
$node->stop;
done_testing;
