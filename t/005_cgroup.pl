# Limits of the hugetlb controller. A fault limit below the segment is a time bomb: the server
# starts and seems healthy, but a backend gets SIGBUS when enough memory has been faulted in. A
# reservation limit only makes the server fall back.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Tools;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Server;
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $page = $kb * 1024;
my ($version, %directory);

sub group
{
	my ($name, %limits) = @_;
	($version, $directory{$name}) = make_group($name);
	limit_group($name, $_, $kb, $limits{$_}) for sort keys %limits;
	return;
}

# Reads a file of the controller.
sub in_file
{
	my ($name, $what) = @_;
	opendir my $files, $directory{$name} or die "$directory{$name}: $!\n";
	my ($file) = grep { /^hugetlb\.$what$/ } readdir $files
	  or die "no $what in $directory{$name}\n";
	return slurp_file("$directory{$name}/$file") =~ s/\n//r;
}

sub size_name { return $kb >= 1 << 20 ? ($kb >> 20) . 'GB' : $kb >= 1 << 10 ? ($kb >> 10) . 'MB' : "${kb}KB" }

sub use_files
{
	my $size = size_name();
	return $version == 2
	  ? ("$size.current", "$size.rsvd.current")
	  : ("$size.usage_in_bytes", "$size.rsvd.usage_in_bytes");
}

# Compares the cgroup columns of the pool. $where is the cgroup of the server, and the limits are
# those that the test has set for it and all ancestors.
sub compare_group
{
	my ($row, $where, $fault, $reservation, $name, $source) = @_;
	$source //= $directory{$where} if defined $fault;
	my ($used, $reserved) = map { in_file($where, $_) } use_files();
	is_deeply(
		{ map { $_ => $row->{$_} } grep { /^cgroup_/ } keys %$row },
		{
			cgroup_limit_bytes => $fault,
			cgroup_limit_source => $source,
			cgroup_used_bytes => $used,
			cgroup_reserved_limit_bytes => $reservation,
			cgroup_reserved_bytes => $reserved,
		},
		"$name: the cgroup's limits and use");
	return;
}

# The reason contains the cgroup and the limit.
sub names_limit
{
	my ($reason, $where, $bytes, $name) = @_;
	my $figure = $bytes % (1 << 30) ? ($bytes >> 20) . ' MB' : ($bytes >> 30) . ' GB';
	like($reason, qr{\Q$directory{$where}\E\b(?!/).*\b$figure\b}, "$name: the reason names group and limit");
	return;
}

sub restart_in
{
	my ($node, $group) = @_;
	$node->stop;
	in_group($group, sub { $node->start });
	return;
}

SKIP:
{
	needs_host('limits of cgroups');
	pools_of_one_size($kb, 0);
	my $node = new_server('limited', shared_buffers => '32MB');
	my $need = required_pages($node, $kb);
	$node->safe_psql('postgres', q{
		CREATE TABLE large AS SELECT i, repeat('x', 1000) AS x FROM generate_series(1, 25000) AS i;
		CREATE UNIQUE INDEX ON large (i)});
	# with an index, because a sequential scan of a large table uses only a few buffers
	my $touch = q{
		SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
		SELECT count(x) FROM (SELECT x FROM large ORDER BY i) AS t};

	group('wide', fault => $need * $page);
	note("hugetlb controller of cgroup version $version");
	set_pool($kb, $need);

	my $name = 'a fault limit that just suffices';
	restart_in($node, 'wide');
	my $seen = observe($node);
	compare_group($seen->{pools}{$kb}, 'wide', $need * $page, undef, $name);
	compare_status($seen->{status}, { in_use => 't', status => 'ok', fits_after_restart => 't' }, $name);
	is($node->safe_psql('postgres', $touch), 25000, "$name: all memory can be faulted in");

	$name = 'no limit';
	group('free');
	restart_in($node, 'free');
	$seen = observe($node);
	compare_group($seen->{pools}{$kb}, 'free', undef, undef, $name);
	compare_status($seen->{status}, { in_use => 't', status => 'ok' }, $name);

	# As in a pod, whose limit is enforced in a cgroup above that of the container.
	{
		my $size = $kb >= 1 << 20 ? ($kb >> 20) . 'Gi' : $kb >= 1 << 10 ? ($kb >> 10) . 'Mi' : "${kb}Ki";
		my $variable = "PG_HUGEINFO_LIMIT_HUGEPAGES_$size";
		my $check = q(SELECT status, finding FROM hugeinfo_checks WHERE name = 'cgroup_fault_limit');
		$name = "the pod's limit in an environment variable";
		local $ENV{$variable} = 6 * $page;
		restart_in($node, 'wide');
		$seen = observe($node);
		compare_group($seen->{pools}{$kb}, 'wide', 6 * $page, undef, $name, $variable);
		compare_status($seen->{status}, { in_use => 't', status => 'critical', fits_after_restart => 't' }, $name);
		like($seen->{status}{reason}, qr/^The pod's limit \(environment variable $variable\) allows /, "$name: the reason names its source");
		like($seen->{status}{remedy}, qr/raise the pod's limit on 2 MB pages \(hugepages-2Mi: \d+Mi\)/, "$name: the remedy");
		delete local $ENV{$variable};
		my ($printed) = run_command([ source('target/program/hugeinfo'), 'status', '-D', $node->data_dir ]);
		like($printed, qr/^CRITICAL +The pod's limit \(environment variable $variable\)\s+allows /, "$name: the program reads the server's environment");

		$name = "the pod's limit, higher than that of the container";
		local $ENV{$variable} = ($need + 10) * $page;
		restart_in($node, 'wide');
		$seen = observe($node);
		compare_group($seen->{pools}{$kb}, 'wide', $need * $page, undef, $name);
		compare_status($seen->{status}, { in_use => 't', status => 'ok' }, $name);

		$name = "the pod's limit in an invalid notation";
		local $ENV{$variable} = '550 pages';
		restart_in($node, 'wide');
		is($node->safe_psql('postgres', $check),
			qq(unknown|Cannot judge cgroup_fault_limit: the server's environment variable $variable is not a number of bytes: "550 pages".),
			"$name: the check reports it");

		$name = "the pod's limit, larger than any Kubernetes quantity";
		local $ENV{$variable} = 18446744073707454464;
		restart_in($node, 'wide');
		is($node->safe_psql('postgres', 'SELECT DISTINCT required_pages FROM hugeinfo_plan() WHERE is_requested'), $need, "$name: a plan");
		like($node->safe_psql('postgres', $check), qr/^unknown.* is not a number of bytes: "18446744073707454464"\.$/, "$name: the check reports it");
	}

	$name = 'the bomb, one page below';
	group('tight', fault => ($need - 1) * $page);
	restart_in($node, 'tight');
	$seen = observe($node);
	compare_group($seen->{pools}{$kb}, 'tight', ($need - 1) * $page, undef, $name);
	compare_status($seen->{status}, { in_use => 't', status => 'critical' }, $name);

	$name = 'the bomb';
	my $limit = 6 * $page;
	group('bomb', fault => $limit);
	restart_in($node, 'bomb');
	is($node->safe_psql('postgres', 'SELECT 1'), 1, "$name: the server seems healthy");
	$seen = observe($node);
	compare_segment($node, $seen->{status}, $name);
	compare_pools($node, $seen, $name);
	compare_group($seen->{pools}{$kb}, 'bomb', $limit, undef, $name);
	compare_status($seen->{status}, {
			in_use => 't',
			status => 'critical',
			shortfall_pages => 0,
			# mmap would succeed again
			fits_after_restart => 't',
		}, $name);
	names_limit($seen->{status}{reason}, 'bomb', $limit, $name);
	like($seen->{status}{remedy}, qr{\Q$directory{bomb}\E/hugetlb\.}, "$name: the remedy names the limit");
	my @figures = map { "evidence ->> '$_'" } qw(page_size_bytes cgroup cgroup_limit_bytes wanted_bytes);
	is($node->safe_psql('postgres', sprintf q(SELECT %s FROM hugeinfo_checks WHERE name = 'cgroup_fault_limit'), join ', ', @figures),
		join('|', $page, $directory{bomb}, $limit, $need * $page), "$name: the evidence");
	my ($exit, undef, $error) = $node->psql('postgres', $touch);
	isnt($exit, 0, "$name: a query fails");
	like($error, qr/could not read blocks? \d+|connection to server was lost|terminat/, "$name: with this error");
	note("the bomb: $error");
	$node->stop('immediate', fail_ok => 1);
	$node->{_pid} = undef;

	# Users who can create cgroups choose their names, and root runs the remedy.
	my @objects = qw(hugeinfo_status hugeinfo_checks hugeinfo_runbook hugeinfo_host hugeinfo_sources hugeinfo_pools hugeinfo_report());
	my $texts = join ' UNION ALL ', map { "SELECT o::text AS text FROM $_ AS o" } grep { !/report/ } @objects;
	my %odd = (
		'a name that contains a command' => [ q(x';touch PWNED;echo '), undef ],
		'a name with control characters' => [ "x\e[2J\ry", 'x\033[2J\015y' ],
		'a name that is not UTF-8' => [ "x\xff\xe2\x80\xae", 'x\377\342\200\256' ]);
	for (sort keys %odd)
	{
		$name = $_;
		my ($group, $escaped) = @{ $odd{$name} };
		# too low, but enough for these queries in every version
		group($group, fault => ($need - 1) * $page);
		restart_in($node, $group);
		is(join('', map { scalar $node->psql('postgres', "SELECT count(*) FROM $_") } @objects), '0' x @objects, "$name: all objects can be queried");
		my $hidden = $node->safe_psql('postgres', "SELECT text FROM ($texts) AS t WHERE text ~ '[\\x01-\\x09\\x0b-\\x1f\\x7f\\u202e]'");
		is($hidden, '', "$name: no hidden characters in any text");
		my $status = status_of($node);
		is($status->{status}, 'critical', "$name: its limit is read");
		my $shown = $escaped // $group;
		like($status->{reason}, qr{^Cgroup \S+/\Q$shown\E allows }, "$name: the escaped name in the reason");
		my ($where, $command) = split /\|/, $node->safe_psql('postgres', 'SELECT where_to_run, coalesce(command, instruction) FROM hugeinfo_runbook LIMIT 1'), 2;
		is($where, $escaped ? 'by hand' : 'root shell', "$name: the kind of the step");
		if ($escaped) { like($command, qr{^write \d+ into \S+/\Q$escaped\E/hugetlb\.\S+ by hand}, "$name: an instruction instead of a command") }
		else
		{
			type_in($command);
			my $bytes = $need * $page;
			is(in_file($group, size_name() . ($version == 2 ? '.max' : '.limit_in_bytes')), $bytes, "$name: the command sets the limit");
			ok(!-e '/PWNED', "$name: the command does nothing else");
			is(status_of($node)->{status}, 'ok', "$name: the remedy works");
		}
	}

	$name = 'the bomb after a restart';
	set_pool($kb, 0);
	restart_in($node, 'bomb');
	set_pool($kb, $need);
	$seen = observe($node);
	compare_group($seen->{pools}{$kb}, 'bomb', $limit, undef, $name);
	compare_status($seen->{status}, { in_use => 'f', status => 'warning', fits_after_restart => 't' }, $name);
	names_limit($seen->{status}{reason}, 'bomb', $limit, $name);

	$name = 'a limit of an ancestor';
	group('outer', fault => $limit, reservation => ($need + 20) * $page);
	group('outer/inner', fault => ($need + 5) * $page, reservation => ($need + 30) * $page);
	restart_in($node, 'outer/inner');
	$seen = observe($node);
	compare_group($seen->{pools}{$kb}, 'outer/inner', $limit, ($need + 20) * $page, $name, $directory{outer});
	compare_status($seen->{status}, { in_use => 't', status => 'critical' }, $name);
	names_limit($seen->{status}{reason}, 'outer', $limit, $name);

	$name = 'a reservation limit';
	group('reservation', reservation => ($need - 1) * $page);
	restart_in($node, 'reservation');
	$seen = observe($node);
	compare_segment($node, $seen->{status}, $name);
	compare_group($seen->{pools}{$kb}, 'reservation', undef, ($need - 1) * $page, $name);
	compare_status($seen->{status},
		{ in_use => 'f', status => 'warning', pool_available_pages => $need, fits_after_restart => 'f' }, $name);
	like($seen->{status}{reason}, qr/reserv/i, "$name: the reason names the kind of limit");
	names_limit($seen->{status}{reason}, 'reservation', ($need - 1) * $page, $name);

	$name = 'a reservation limit that just suffices';
	limit_group('reservation', 'reservation', $kb, $need * $page);
	is(status_of($node)->{fits_after_restart}, 't', "$name: forecast");
	restart_in($node, 'reservation');
	$seen = observe($node);
	compare_group($seen->{pools}{$kb}, 'reservation', undef, $need * $page, $name);
	compare_status($seen->{status}, { in_use => 't', status => 'ok', fits_after_restart => 't' }, $name);

	# mmap fails before any page is faulted in
	$name = 'both limits below';
	group('both', fault => $limit, reservation => $limit);
	restart_in($node, 'both');
	$seen = observe($node);
	compare_group($seen->{pools}{$kb}, 'both', $limit, $limit, $name);
	compare_status($seen->{status}, { in_use => 'f', status => 'warning', fits_after_restart => 'f' }, $name);
	is($node->safe_psql('postgres', $touch), 25000, "$name: all memory can be faulted in");

	# Pages that one server has reserved are not available to the other.
	my $second = new_server('second');
	my $need_second = required_pages($second, $kb);
	my $both = ($need + $need_second) * $page;
	set_pool($kb, $need + $need_second);
	group('shared', fault => $both - $page);

	$name = 'a fault limit for one of two servers';
	restart_in($node, 'shared');
	is(status_of($node)->{status}, 'ok', "$name: the first is safe without the second");
	restart_in($second, 'shared');
	for my $each ($node, $second)
	{
		$seen = observe($each);
		my $from = $each->name;
		compare_pools($each, $seen, "$name, seen from $from");
		compare_status($seen->{status}, { in_use => 't', status => 'critical' }, "$name, seen from $from");
	}

	$name = 'a reservation limit for one of two servers';
	$node->stop;
	$second->stop;
	limit_group('shared', 'fault', $kb, 'max');
	limit_group('shared', 'reservation', $kb, $both - $page);
	in_group('shared', sub { $_->start for $node, $second });
	compare_status(observe($node)->{status}, { in_use => 't', status => 'ok', fits_after_restart => 't' },
		"$name, seen from the first");
	compare_status(observe($second)->{status}, { in_use => 'f', status => 'warning', fits_after_restart => 'f' },
		"$name, seen from the second");
}

done_testing;
