# Where memory ran short, against the kernel's files as the test reads them: on the host, and in the
# server's control group, in which a process is killed for want of memory.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Pressure;
use HugeInfo::Host;
use HugeInfo::Server;
use HugeInfo::Session;
use JSON::PP ();
use PostgreSQL::Test::Utils;
use Test::More;

# Averages as the kernel writes them.
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

# The view, and what $kernel reads before and after it, until nothing has changed in between.
sub observe_still
{
	my ($sql, $which, $kernel) = @_;
	my $json = JSON::PP->new->canonical;
	for (1 .. 100)
	{
		my $before = $json->encode($kernel->());
		my ($row) = grep { $which->($_) } rows($sql);
		my $after = $kernel->();
		return ($row, $after) if $before eq $json->encode($after);
		sleep 0.1;
	}
	die "memory does not stand still\n";
}

my $node = new_server('pressure', shared_buffers => '32MB', huge_pages => 'off', restart_after_crash => 'off');
my $sql = HugeInfo::Session->new($node);
my ($row, $kernels) = observe_still($sql, sub { $_[0]{scope} eq 'host' }, \&kernels_host);
is_deeply($row, $kernels, 'the host');
$sql->close;

SKIP:
{
	needs_host('a control group of memory');
	my ($version, $dir) = make_group('short/inner', 'memory');
	note("memory controller of cgroup version $version");
	my ($short, $top) = map { $dir =~ s{(?:/[^/]+){$_}$}{}r } 1, 2;
	my $limit = 512 << 20;
	limit_memory('short', $limit);
	$node->stop;
	in_group('short/inner', sub { $node->start }, 'memory');
	$sql = HugeInfo::Session->new($node);
	my @groups = map { $_->{path} } grep { $_->{scope} eq 'cgroup' } rows($sql);
	is_deeply([ @groups[0 .. 2] ], [ $dir, $short, $top ], 'the group and those above it, nearest first');
	cmp_ok($top, 'eq', $groups[-1] . '/' . ($top =~ s{.*/}{}r), 'up to the mount');

	my $compare = sub {
		my ($name) = @_;
		for my $group ($dir, $short)
		{
			my ($seen, $real) = observe_still($sql, sub { ($_[0]{path} // '') eq $group }, sub { kernels_group($version, $group) });
			is_deeply($seen, $real, "$name: $group");
		}
		# What all others use changes all the time.
		my $upper = sub { my %all = %{ $_[0] }; delete $all{memory_used_bytes}; return \%all };
		my ($seen, $real) = observe_still($sql, sub { ($_[0]{path} // '') eq $groups[-1] },
			sub { $upper->(kernels_group($version, $groups[-1])) });
		is_deeply($upper->($seen), $real, "$name: $groups[-1]");
		return map { my $path = $_; (grep { ($_->{path} // '') eq $path } rows($sql))[0] } $dir, $short;
	};

	my ($inner, $outer) = $compare->('at rest');
	is($outer->{memory_limit_bytes}, $limit, 'the limit that the test has set');
	is($inner->{memory_limit_bytes}, undef, 'and none below');
	is($inner->{oom_kills}, 0, 'nothing has been killed');
	my ($before) = rows($sql);

	# Another process of the group takes more than there may be; it is the one to be killed.
	in_group('short/inner', sub {
		system($^X, '-e', q(open my $adj, '>', '/proc/self/oom_score_adj' or die; print $adj 1000; close $adj or die;
			my $much = 'x' x (1 << 30); print length $much));
	}, 'memory');
	is($? & 127, 9, 'a process was killed');
	($inner, $outer) = $compare->('after an OOM kill');
	is($inner->{oom_kills}, 1, 'it is counted in its group');
	is($outer->{oom_kills}, $version == 2 ? 1 : 0, 'above it with v2 alone');
	cmp_ok($outer->{limit_hits}, '>', 0, 'the limit was hit');
	my ($after) = rows($sql);
	is($after->{oom_kills} - $before->{oom_kills}, 1, 'and it is counted on the host');
	is($sql->value('SELECT 1'), 1, 'the server lives on');

	my $file = "$dir/" . ($version == 2 ? 'memory.events' : 'memory.oom_control');
	is_deeply([ $sql->rows(q(SELECT path, status FROM hugeinfo_sources WHERE source = 'memory control group')) ],
		[ { path => $file, status => 'ok' } ], 'hugeinfo_sources has the file');
	$sql->close;
}

$node->stop;
done_testing;
