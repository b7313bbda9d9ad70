# Memory shortage of the host and of the server's cgroup, in which the OOM killer kills a process,
# compared with the kernel's files.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Pressure;
use HugeInfo::Host;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use PostgreSQL::Test::Utils;
use Test::More;

# Formats averages like the kernel.
sub rows
{
	my ($sql) = @_;
	my @rows = $sql->rows('SELECT * FROM hugeinfo_pressure');
	for my $row (@rows)
	{
		$row->{$_} = sprintf '%.2f', $row->{$_} for grep { /_percent$/ && defined $row->{$_} } keys %$row;
	}
	return @rows;
}

# Compares a row of the view with the numbers that $kernel reads before and after the query.
sub compare
{
	my ($sql, $which, $kernel, $name) = @_;
	my $see = sub { return (grep { $which->($_) } rows($sql))[0] };
	is_deeply([ sort keys %{ $see->() } ], [ sort keys %{ $kernel->() } ], "$name: all columns");
	is(join("\n", misfits($kernel, $see)), '', "$name: each equals the kernel's number");
	return;
}

my $node = new_server('pressure', shared_buffers => '32MB', huge_pages => 'off', restart_after_crash => 'off');
my $sql = HugeInfo::Session->new($node);
compare($sql, sub { $_[0]{scope} eq 'host' }, \&kernels_host, 'the host');
$sql->close;

SKIP:
{
	needs_host('a cgroup of memory');
	my ($version, $dir) = make_group('short/inner', 'memory');
	note("memory controller of cgroup version $version");
	my ($short, $top) = map { $dir =~ s{(?:/[^/]+){$_}$}{}r } 1, 2;
	my $limit = 512 << 20;
	limit_memory('short', $limit);
	$node->stop;
	in_group('short/inner', sub { $node->start }, 'memory');
	$sql = HugeInfo::Session->new($node);
	my @groups = map { $_->{path} } grep { $_->{scope} eq 'cgroup' } rows($sql);
	is_deeply([ @groups[0 .. 2] ], [ $dir, $short, $top ], 'the cgroup and its ancestors, nearest first');
	cmp_ok($top, 'eq', $groups[-1] . '/' . ($top =~ s{.*/}{}r), 'up to the mount');

	my $compare = sub {
		my ($name) = @_;
		for my $group ($dir, $short, $groups[-1])
		{
			compare($sql, sub { ($_[0]{path} // '') eq $group }, sub { kernels_group($version, $group) }, "$name: $group");
		}
		return map { my $path = $_; (grep { ($_->{path} // '') eq $path } rows($sql))[0] } $dir, $short;
	};

	my ($inner, $outer) = $compare->('at rest');
	is($outer->{memory_limit_bytes}, $limit, 'the limit that the test has set');
	is($inner->{memory_limit_bytes}, undef, 'the inner cgroup has no limit');
	is($inner->{oom_kills}, 0, 'nothing has been killed');
	my ($before) = rows($sql);

	# Another process of the cgroup exceeds the limit, and is killed.
	in_group('short/inner', sub {
		system($^X, '-e', q(open my $adj, '>', '/proc/self/oom_score_adj' or die; print $adj 1000; close $adj or die;
			my $much = 'x' x (1 << 30); print length $much));
	}, 'memory');
	is($? & 127, 9, 'a process was killed');
	($inner, $outer) = $compare->('after an OOM kill');
	is($inner->{oom_kills}, 1, 'its cgroup counts it');
	is($outer->{oom_kills}, $version == 2 ? 1 : 0, 'the outer cgroup counts it only in v2');
	cmp_ok($outer->{limit_hits}, '>', 0, 'the limit was hit');
	my ($after) = rows($sql);
	# Other processes on the host might have been killed meanwhile.
	cmp_ok($after->{oom_kills}, '>', $before->{oom_kills}, 'the host counts it, too');
	is($sql->value('SELECT 1'), 1, 'the server survives');

	my $file = "$dir/" . ($version == 2 ? 'memory.events' : 'memory.oom_control');
	is_deeply([ $sql->rows(q(SELECT path, status FROM hugeinfo_sources WHERE source = 'memory control group')) ],
		[ { path => $file, status => 'ok' } ], 'hugeinfo_sources has the file');
	$sql->close;
}

$node->stop;
done_testing;
