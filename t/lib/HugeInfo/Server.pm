# Clusters for the tests, and comparisons of SQL results with the kernel.
package HugeInfo::Server;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run ();
use JSON::PP ();
use POSIX ();
use Test::More;

use HugeInfo::Kernel;
use HugeInfo::Processes;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;

our @EXPORT = qw(new_server configure with_little_room why_no_mounts restarts status_of observe starts required_pages compare_pools compare_segment
  compare_status);

# From PostgreSQL 17 on, Cluster.pm copies INITDB_TEMPLATE if initdb has no other options.
{
	no warnings 'redefine';
	my $system_or_bail = \&PostgreSQL::Test::Utils::system_or_bail;
	*PostgreSQL::Test::Utils::system_or_bail = sub {
		my (@command) = @_;
		@command = ('cp', '-RPp', $ENV{INITDB_TEMPLATE}, $1) if $ENV{INITDB_TEMPLATE} && "@command" =~ /^initdb -D (\S+) -A trust -N$/;
		return $system_or_bail->(@command);
	};
}

# Settings without background activity such as autovacuum and timed checkpoints.
my %SMALL = (shared_buffers => '16MB', max_connections => 10, autovacuum => 'off', checkpoint_timeout => '1d');

# Starts a server with the extension. Settings are as in postgresql.conf.
sub new_server
{
	my ($name, %settings) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	configure($node, %SMALL, %settings);
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_hugeinfo');
	return $node;
}

# The last line for a setting wins, so settings are only ever added.
sub configure
{
	my ($node, %settings) = @_;
	$node->append_conf('postgresql.conf', join "\n", map { "$_ = '$settings{$_}'" } sort keys %settings);
	return;
}

sub restarts
{
	my ($node, %settings) = @_;
	configure($node, %settings);
	$node->restart;
	return;
}

# Programs in a separate mount namespace do not affect the host.
my @OWN_MOUNTS = qw(unshare --user --map-current-user --keep-caps --mount);

# Returns the reason why an ordinary user cannot mount anything there, if any.
sub why_no_mounts
{
	my ($directory) = @_;
	my ($out, $error);
	IPC::Run::run([ @OWN_MOUNTS, 'mount', '-t', 'tmpfs', 'none', $directory ], '>', \$out, '2>', \$error) and return;
	return "no mounts for ordinary users here: $error";
}

# Runs code while a stopped server runs with a directory on a file system of this many bytes.
sub with_little_room
{
	my ($node, $directory, $bytes, $code) = @_;
	my $data = $node->data_dir;
	my $run = IPC::Run::start([
			@OWN_MOUNTS, 'sh', '-c', 'mount -t tmpfs -o size="$1" none "$2" && exec postgres -D "$3"',
			'sh', $bytes, $directory, $data ],
		'<', '/dev/null', '>>', $node->logfile, '2>&1');
	until_true(sub { !$run->pumpable || !system_log('pg_isready', '-q', '-h', $node->host, '-p', $node->port) });
	$code->();
	system_or_bail('pg_ctl', '-D', $data, '-m', 'fast', '-s', 'stop');
	$run->finish;
	return;
}

# Starts a stopped server. Returns true, or false and the reason.
sub starts
{
	my ($node) = @_;
	my $log_size = -s $node->logfile // 0;
	my $started = $node->start(fail_ok => 1);
	return ($started, substr slurp_file($node->logfile), $log_size);
}

sub _rows
{
	my ($node, $relation) = @_;
	my $json = $node->safe_psql('postgres', "SELECT to_json(r) FROM $relation AS r");
	my @rows = map { JSON::PP->new->decode($_) } split /\n/, $json;
	for my $row (@rows)
	{
		# booleans as psql shows them
		$_ = $_ ? 't' : 'f' for grep { JSON::PP::is_bool($_) } values %$row;
	}
	return @rows;
}

sub status_of
{
	my ($node) = @_;
	my @rows = _rows($node, 'hugeinfo_status');
	die scalar(@rows) . " rows in hugeinfo_status\n" if @rows != 1;
	return $rows[0];
}

# Reads the view of pools and the kernel's numbers at the same time. Servers can fault in pages at
# any time, so the kernel is read before and after, until both reads agree.
sub observe
{
	my ($node) = @_;
	# The recommendation includes other servers on small pages, which start and stop at any time.
	my $others = sub { return default_page_kb() ? wanted_by_others(default_page_kb(), $node->{_pid}) : 0 };
	return until_true(sub {
		my ($before, $others_before) = (pools(), $others->());
		my $status = status_of($node);
		my %pools = map { $_->{page_size_bytes} / 1024 => $_ } _rows($node, 'hugeinfo_pools');
		my ($after, $others_after) = (pools(), $others->());
		return text_of([ $before, $others_before ]) eq text_of([ $after, $others_after ])
		  && { status => { %$status, requested_by_others => $others_after - pages_of_others(default_page_kb()) }, pools => \%pools, kernel => $after, wanted_by_others => $others_after };
	}) || die "the pools of this host never stopped changing\n";
}

# Pages of a size that the server's segment needs, from PostgreSQL's own figure (whole megabytes,
# rounded up).
sub required_pages
{
	my ($node, $kb) = @_;
	return POSIX::ceil(shared_memory_bytes($node) / 1024 / $kb);
}

sub shared_memory_bytes
{
	my ($node) = @_;
	return $node->safe_psql('postgres',
		q(SELECT setting::bigint << 20 FROM pg_settings WHERE name = 'shared_memory_size'));
}

# Compares columns of the status in one test, so that a mismatch shows all of them. The expected
# pool is that of the test, without pages of others.
sub compare_status
{
	my ($status, $expected, $name) = @_;
	my %seen = map { $_ => $status->{$_} } keys %$expected;
	$seen{pool_total_pages} -= pages_of_others($status->{huge_page_size_bytes} / 1024) if defined $seen{pool_total_pages};
	# A healthy server does not read what other servers request, unless it has to explain idle pages.
	$seen{recommended_nr_hugepages} += $status->{requested_by_others} // 0
	  if $status->{status} eq 'ok' && defined $seen{recommended_nr_hugepages} && $seen{recommended_nr_hugepages} < $expected->{recommended_nr_hugepages};
	is_deeply(\%seen, $expected, "$name: status")
	  or diag("reason: $status->{reason}");
	return;
}

# Compares the segment in the status with maps and smaps of the postmaster.
sub compare_segment
{
	my ($node, $status, $name) = @_;
	my $real = segment($node->{_pid});
	my $huge = $real->{page_bytes} > base_page();
	is($status->{in_use}, $huge ? 't' : 'f', "$name: in_use is the same as in smaps");
	is($status->{page_size_bytes}, $real->{page_bytes}, "$name: page size is the same as in smaps");
	is($status->{segment_bytes}, $real->{bytes}, "$name: segment size is the same as in maps");
	is($status->{segment_pages}, $real->{bytes} / $real->{page_bytes}, "$name: pages of the segment");
	# PostgreSQL 17 and newer have a setting for this
	my ($version, $own_word) = split /\|/, $node->safe_psql('postgres',
		q(SELECT current_setting('server_version_num'), current_setting('huge_pages_status', true)));
	is($own_word, $huge ? 'on' : 'off', "$name: huge_pages_status") if $version >= 170000;
	return $real;
}

# Compares every pool of the view with /sys.
sub compare_pools
{
	my ($node, $seen, $name) = @_;
	my $real = segment($node->{_pid});
	is_deeply([ sort { $a <=> $b } keys %{ $seen->{pools} } ], [ page_sizes_kb() ], "$name: a row for each size");
	for my $kb (page_sizes_kb())
	{
		my ($row, $kernel) = ($seen->{pools}{$kb}, $seen->{kernel}{$kb});
		my $ours = $real->{page_bytes} == $kb * 1024;
		my $own = $ours ? $real->{bytes} / $real->{page_bytes} : 0;
		# PostgreSQL pads a segment on huge pages to whole pages, so only the setting shows the need on
		# smaller pages.
		my $required =
		  $real->{page_bytes} > $kb * 1024
		  ? required_pages($node, $kb)
		  : POSIX::ceil($real->{bytes} / ($kb * 1024));
		my $numbers = pool_numbers($kernel, $own, $required);
		$numbers->{recommended_nr_hugepages} += $seen->{wanted_by_others} - pages_of_others($kb) if $kb == default_page_kb();
		# A server that keeps huge pages off is no demand.
		$numbers->{recommended_nr_hugepages} -= $required
		  if $seen->{status}{huge_pages} eq 'off' || $seen->{status}{shared_memory_type} eq 'sysv';
		my %expected = (
			(map { ("${_}_pages" => $kernel->{$_}) } qw(total free reserved surplus overcommit)),
			%$numbers,
			own_pages => $own,
			required_pages => $required,
			is_default => $kb == default_page_kb() ? 't' : 'f',
			is_used_by_server => $ours ? 't' : 'f');
		is_deeply({ map { $_ => $row->{$_} } keys %expected }, \%expected, "$name: pool of $kb kB pages");
		# unused bytes of the last page; PostgreSQL reports its need in whole megabytes, rounded up
		my $waste = $row->{tail_waste_bytes} - ($required * $kb * 1024 - shared_memory_bytes($node));
		ok($waste >= 0 && $waste < 1 << 20, "$name: tail of the last $kb kB page")
		  or diag("$row->{tail_waste_bytes} bytes are said to be unused of $required pages");
	}
	return;
}

1;
