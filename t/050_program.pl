# The program hugeinfo computes what SQL and real starts show, needs no data directory, and leaves
# nothing behind.
use strict;
use warnings;

use File::Temp ();
use FindBin;
use IPC::Run ();
use JSON::PP ();
use lib "$FindBin::RealBin/lib";
use HugeInfo::Tools;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $program = source('target/program/hugeinfo');
my $bindir = $ENV{PATH} =~ s/:.*//r;
my $scratch = File::Temp::tempdir(CLEANUP => 1);

# Returns the exit status, the output and the errors.
sub hugeinfo
{
	my (@arguments) = @_;
	my ($out, $error);
	local $ENV{TMPDIR} = $scratch;
	IPC::Run::run([ $program, @arguments, '--bindir', $bindir ], '<', '/dev/null', '>', \$out, '2>', \$error);
	return ($? >> 8, $out, $error);
}

sub json { my ($status, $out, $error) = hugeinfo(@_); is($status, 0, "@_") or diag($error); return JSON::PP->new->decode($out) }

sub row { my ($plan) = @_; my ($row) = grep { $_->{is_default} } @{ $plan->{plan} }; return $row }

my $node = new_server('program', max_connections => 20);

# The same number as in SQL, of a running and of a stopped server.
for my $settings ([], ['shared_buffers=48MB'], [ 'shared_buffers=1GB', 'max_connections=500' ])
{
	my @options = map { ('-c', $_) } @$settings;
	my $pairs = @$settings ? "'@$settings'" : '';
	my $columns = 'segment_bytes, required_pages, tail_waste_bytes, recommended_nr_hugepages';
	my $expected = $node->safe_psql('postgres', "SELECT $columns FROM hugeinfo_plan($pairs) WHERE is_default");
	my $row = row(json('plan', '-D', $node->data_dir, @options, '--format', 'json'));
	# SQL adds the pages that others hold.
	my ($bytes, $pages, $waste) = split /\|/, $expected;
	is_deeply([ @$row{qw(segment_bytes required_pages tail_waste_bytes)} ], [ $bytes, $pages, $waste ], "plan: @$settings as in SQL");
	$node->stop;
	is_deeply(row(json('plan', '-D', $node->data_dir, @options, '--format', 'json')), $row, "plan: @$settings, stopped");
	$node->start;
}

# Without a data directory, as for a new cluster.
{
	my $new = PostgreSQL::Test::Cluster->new('new');
	$new->init;
	configure($new, shared_buffers => '64MB', max_connections => 33, max_locks_per_transaction => 100, wal_level => 'logical', max_wal_senders => 10);
	my @options = map { ('-c', $_) } qw(shared_buffers=64MB max_connections=33 max_locks_per_transaction=100 wal_level=logical max_wal_senders=10);
	my $of_files = row(json('plan', '-D', $new->data_dir, '--format', 'json'));
	is_deeply(row(json('plan', @options, '--format', 'json')), $of_files, 'plan: without a data directory, as with files');

	my (undef, $text) = hugeinfo('plan', @options);
	like($text, qr/^$of_files->{required_pages} pages of .*, the default size/m, 'plan: text');
	is((hugeinfo('plan', @options, '--format', 'sysctl'))[1], "vm.nr_hugepages = $of_files->{required_pages}\n", 'plan: sysctl');
	like((hugeinfo('plan', @options, '--format', 'env'))[1], qr/^HUGEINFO_REQUIRED_PAGES=$of_files->{required_pages}$/m, 'plan: env');
	my $other = json('plan', @options, qw(--format json --page-size 1GB --host-ram 64GB))->{plan};
	is_deeply([ map { $_->{page_size_bytes} } @$other ], [ 1 << 30 ], 'plan: another page size');
}

# fit is exact: the pages suffice for a real start, and one block more does not fit.
SKIP:
{
	needs_host('fit');
	my $pages = required_pages($node, $kb) + 3;
	$node->stop;
	pools_of_one_size($kb, $pages);
	my $fit = json('fit', '--pages', $pages, '-D', $node->data_dir, '--json');
	is($fit->{required_pages}, $pages, 'fit: uses all pages');
	my $buffers = $fit->{shared_buffers_bytes} / 1024;
	configure($node, huge_pages => 'on', shared_buffers => "${buffers}kB");
	my ($started, $log) = starts($node);
	ok($started, "fit: starts with $buffers kB on $pages pages") or diag($log);
	is(segment($node->{_pid})->{bytes}, $pages * $kb * 1024, 'fit: on all pages');
	$node->stop;
	configure($node, shared_buffers => ($buffers + 8) . 'kB');
	($started, $log) = starts($node);
	ok(!$started, 'fit: does not start with one block more');
	like($log, qr/could not map anonymous shared memory/, 'fit: because huge pages are missing');
	configure($node, huge_pages => 'try', shared_buffers => '16MB');
	$node->start;

	my $bytes = $pages * $kb * 1024;
	is(json('fit', '--bytes', $bytes + 1, '-D', $node->data_dir, '--json')->{shared_buffers}, "${buffers}kB", 'fit: bytes');
}

# The page shows the output, with other numbers.
{
	my $page = slurp_file(source('docs/program.md'));
	my $shape = sub { return $_[0] =~ s/\d[\d.]*/N/gr =~ s/N (?:bytes|[kMG]B)/SIZE/gr };
	my @examples = $page =~ /^```sh\nhugeinfo ([^\n]*)\n```\n\n```text\n(.*?)^```/gms;
	cmp_ok(scalar @examples, '>=', 4, 'the page has examples');
	while (my ($command, $expected) = splice @examples, 0, 2)
	{
		my ($status, $out) = hugeinfo(split / /, $command);
		is($status, 0, "docs: $command");
		# Other hosts have other sizes in addition.
		like($shape->($out), qr/^\Q@{[ $shape->($expected) ]}\E/, "docs: $command: the output");
	}
}

# Invalid input.
for (
	[ 2, qr/invalid value for parameter "shared_buffers": "1XB"\nHINT: Valid units/, 'plan', '-c', 'shared_buffers=1XB' ],
	[ 2, qr/unrecognized configuration parameter "shared_bufers"/, 'plan', '-c', 'shared_bufers=1GB' ],
	[ 3, qr/-c shared_buffers: NAME=VALUE was expected\nHINT: /, 'plan', '-c', 'shared_buffers' ],
	[ 3, qr/could not open .*nothing: No such file/, 'plan', '-D', "$scratch/nothing" ],
	[ 3, qr/a huge page size was expected/, 'plan', '--page-size', '3MB' ],
	[ 3, qr/a size was expected/, 'plan', '--host-ram', 'much' ],
	[ 3, qr/1 pages of .* are too few/, 'fit', '--pages', '1' ],
	[ 3, qr/fit computes shared_buffers/, 'fit', '--pages', '100', '-c', 'shared_buffers=1GB' ],
	[ 3, qr/--pages <N>\|--bytes <SIZE>\|--percent-of-ram <PERCENT>/, 'fit' ])
{
	my ($expected, $message, @arguments) = @$_;
	my ($status, $out, $error) = hugeinfo(@arguments);
	is($status, $expected, "@arguments: exit status");
	like($error, $message, "@arguments: the message");
	is($out, '', "@arguments: no output");
}
is((IPC::Run::run([ $program, 'plan', '--bindir', $scratch ], '2>', \my $none), $? >> 8)[-1], 3, 'no programs of PostgreSQL');
is_deeply([ glob "$scratch/*" ], [], 'nothing is left behind');

# A signal ends the run and its children. After kill -9, the next run cleans up.
for my $signal (qw(TERM INT KILL))
{
	local $ENV{TMPDIR} = $scratch;
	my $run = IPC::Run::start([ $program, 'plan', '--bindir', $bindir ], '<', '/dev/null', '>', \my $out, '2>', \my $error);
	ok(until_true(sub { my @data = glob "$scratch/hugeinfo-scratch.*/data/*"; @data > 0 }), "$signal: initdb runs");
	$run->signal($signal);
	$run->finish;
	is(scalar(my @left = glob "$scratch/hugeinfo-scratch.*"), $signal eq 'KILL' ? 1 : 0, "$signal: the scratch directory");
}
# The initdb that lost its parent ends by itself.
until_true(sub { !grep { process_file(m{(\d+)$}, 'cmdline') =~ /\Q$scratch\E/ } glob '/proc/[0-9]*' });
is((hugeinfo('plan'))[0], 0, 'the next run');
is_deeply([ glob "$scratch/*" ], [], 'nothing is left behind');

# As root, it runs as another user.
SKIP:
{
	needs_host('root');
	my $file = "$scratch/as_root";
	my ($status, $out, $error) = hugeinfo('plan', '-D', $node->data_dir, '--format', 'sysctl');
	type_in("env -u TMPDIR $program plan --bindir $bindir -D " . $node->data_dir . " --format sysctl >$file 2>&1");
	is(slurp_file($file), $out, 'as root: the owner of the data directory');
	unlink $file;
}

done_testing;
