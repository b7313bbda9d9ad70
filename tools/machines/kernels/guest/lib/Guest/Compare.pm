# Compares SQL results in a guest with the guest's kernel.
package Guest::Compare;

use strict;
use warnings;

use Exporter 'import';
use List::Util qw(max);
use Test::More;

use Guest::Machine;
use Guest::Server;
use HugeInfo::Kernel;
use HugeInfo::Processes;

our @EXPORT = qw(situation same true told compare compare_group_memory restart_as_said restart_unpromised is_exact
  is_for_want_of_memory follow_runbook follow_how_to_set finished);

my $situation = 'as booted';

sub situation { ($situation) = @_; note($situation); return }

sub same { my ($seen, $real, $what) = @_; return is($seen, $real, "$situation: $what") }

# With a prototype, because a failed match is nothing in a list.
sub true($$;$) { my ($holds, $what, $else) = @_; return ok($holds, "$situation: $what") || diag($else // '') && 0 }

sub told { my ($what) = @_; note("$situation: $what"); return }

# If a situation ends early, it has failed, and the reason is printed.
sub finished { stop(); done_testing(); return }

$SIG{__DIE__} = sub {
	die @_ if $^S // 1;
	fail("$situation: ended early");
	diag(@_);
	done_testing();
	exit 1;
};

# --- against the kernel

sub _sum { my $sum = 0; $sum += $_ for @_; return $sum }

sub compare
{
	my $real = segment(postmaster());
	_compare_status($real);
	_compare_pools($real);
	_compare_processes();
	_compare_nodes($real);
	_compare_rest($real);
	return;
}

sub _compare_status
{
	my ($real) = @_;
	my $status = status();
	same($status->{segment_bytes}, $real->{bytes}, 'segment_bytes as in smaps');
	same($status->{page_size_bytes}, $real->{page_bytes}, 'page_size_bytes as in smaps');
	same($status->{segment_pages}, $real->{bytes} / $real->{page_bytes}, 'segment_pages');
	same($status->{in_use}, $real->{page_bytes} > base_page() ? 't' : 'f', 'in_use');
	return;
}

sub _compare_pools
{
	my ($real) = @_;
	my $shape = sub {
		my ($rows, $kernel) = @_;
		my ($pools) = @$kernel;
		my (%seen, %expected);
		for my $row (@$rows)
		{
			my $kb = $row->{page_size_bytes} / 1024;
			my $pool = $pools->{$kb} or next;
			my $own = $real->{page_bytes} == $kb * 1024 ? $real->{bytes} / $real->{page_bytes} : 0;
			my $numbers = pool_numbers($pool, $own, $row->{required_pages});
			# Without the forecast, which restarts test.
			$expected{$kb} = {
				(map { ("${_}_pages" => $pool->{$_}) } keys %$pool),
				(map { ($_ => $numbers->{$_}) } qw(committed_pages others_pages available_pages)),
				own_pages => $own };
			$seen{$kb} = { map { $_ => $row->{$_} } keys %{ $expected{$kb} } };
		}
		return (\%seen, \%expected);
	};
	my $sql = sub { return rows('SELECT * FROM hugeinfo_pools') };
	my ($seen, $expected, @rows) = settled($sql, sub { pools() }, $shape);
	my @sizes = sort { $a <=> $b } map { $_->{page_size_bytes} / 1024 } @rows;
	same("@sizes", join(' ', page_sizes_kb()), 'sizes of huge pages');
	is_deeply($seen, $expected, "$situation: pools");
	return;
}

# Compares all processes except the session of the query, which grows during the query.
sub _compare_processes
{
	my $own = value('SELECT pg_backend_pid()');
	my $kernel = sub { return map { [ $_, $_ == $own ? {} : status_file($_) ] } family(postmaster()) };
	my $columns = join ', ', sort keys %{ status_file($own) };
	my $sql = sub { return rows("SELECT pid, $columns FROM hugeinfo_backends") };
	my $shape = sub {
		my ($rows, $processes) = @_;
		my %seen = map { my %row = %$_; my $pid = delete $row{pid}; $pid => $pid == $own ? {} : \%row } @$rows;
		return (\%seen, { map { @$_ } @$processes });
	};
	my ($seen, $expected) = settled($sql, $kernel, $shape);
	is_deeply($seen, $expected, "$situation: VmPTE and eight more figures of each process");
	return;
}

sub _compare_nodes
{
	my ($real) = @_;
	my $kernel = sub {
		my %nodes;
		for my $node (nodes())
		{
			$nodes{"$node kB"} = node_memory_kb($node);
			$nodes{"$node $_"} = node_pool($node, $_) for page_sizes_kb();
		}
		my @by_process = map { node_pages($_, $real->{starts}) } family(postmaster());
		my $most = max(map { _sum(values %$_) } @by_process);
		$nodes{segment} = [ grep { _sum(values %$_) == $most } @by_process ];
		return \%nodes;
	};
	my $sql = sub {
		my %nodes;
		for my $row (rows('SELECT * FROM hugeinfo_numa'))
		{
			my ($node, $kb) = ($row->{numa_node}, $row->{page_size_bytes} / 1024);
			$nodes{segment}{$node} += $row->{touched_segment_pages} if $row->{touched_segment_pages};
			next if $kb == base_page() / 1024;
			my %pool = map { $_ => $row->{"${_}_pages"} } qw(total free surplus);
			$nodes{"$node $kb"} = defined $pool{total} ? \%pool : undef;
		}
		$nodes{segment} //= {};
		$nodes{"$_->{numa_node} kB"} = $_->{memory_total_bytes} / 1024 for rows('SELECT * FROM hugeinfo_numa WHERE memory_total_bytes IS NOT NULL');
		return \%nodes;
	};
	# Several processes can have faulted in the most pages, each of them different ones.
	my $shape = sub {
		my ($seen, $nodes) = map { $_->[0] } @_;
		my @most = @{ $nodes->{segment} };
		my ($same) = grep { text_of($_) eq text_of($seen->{segment}) } @most;
		return ($seen, { %$nodes, segment => $same // $most[0] });
	};
	my ($seen, $expected) = settled($sql, $kernel, $shape);
	is_deeply($seen, $expected, "$situation: nodes, their pools, and the pages of the segment on them")
	  or diag(explain({ sql => $seen, kernel => $expected }));
	return;
}

sub _compare_rest
{
	my ($real) = @_;
	my $query = row(q(SELECT status FROM hugeinfo_sources WHERE source = 'PROCMAP_QUERY' LIMIT 1))->{status};
	same($query, kernel_version() >= 6011 ? 'ok' : 'missing', 'PROCMAP_QUERY exists since 6.11');
	my @failed = rows(q(SELECT source, path FROM hugeinfo_sources WHERE status = 'failed'));
	true(!@failed, 'no source has an unknown form', join ', ', map { "$_->{source} $_->{path}" } @failed);
	my $mapped = row(q(SELECT sum(size_bytes) AS bytes, max(page_size_bytes) AS page_bytes
		FROM hugeinfo_postmaster_mappings WHERE kind = 'main segment'));
	same("$mapped->{bytes} $mapped->{page_bytes}", "$real->{bytes} $real->{page_bytes}", 'mappings of the main segment');
	for my $file (qw(meminfo vmstat))
	{
		my $lines = () = slurp("/proc/$file") =~ /^./mg;
		same(row("SELECT count(*) AS n FROM hugeinfo_$file")->{n}, $lines, "each line of $file");
	}
	for my $view (qw(host instances page_tables mappings footprint memory() plan('{}')))
	{
		my $count = row("SELECT count(*) AS n FROM hugeinfo_$view")->{n};
		true($count > 0, "hugeinfo_$view answers");
	}
	return;
}

# Compares the memory of the server's cgroup, and the lowest limit of this cgroup and its parent.
sub compare_group_memory
{
	my ($group, $parent) = @_;
	my $number = sub { my ($file) = @_; my ($number) = slurp($file) =~ /^(\d+)$/; return $number };
	my $kernel = sub {
		# v1 has a large number for unlimited.
		my @limits = sort { $a <=> $b } grep { $_ < 2**62 } map { $number->("$_/memory.limit_in_bytes") } $group, $parent;
		my ($kills) = slurp("$group/memory.oom_control") =~ /^oom_kill (\d+)$/m;
		return {
			cgroup_memory_limit_bytes => $limits[0],
			cgroup_memory_used_bytes => $number->("$group/memory.usage_in_bytes"),
			cgroup_oom_kills => $kills };
	};
	my ($seen, $real) = agreeing(
		sub { row('SELECT cgroup_memory_limit_bytes, cgroup_memory_used_bytes, cgroup_oom_kills FROM hugeinfo_host') }, $kernel);
	is_deeply($seen, $real, "$situation: memory of the server's cgroup");
	return;
}

# --- forecasts, compared with the start that follows

# Compares the forecast of hugeinfo_status with a restart with huge_pages = on and otherwise these
# settings. Returns true if it got its pages.
sub restart_as_said
{
	my (%settings) = @_;
	my $status = status();
	my $got = try_start(%settings, huge_pages => 'on') ? 't' : 'f';
	same($status->{fits_after_restart}, $got, 'fits_after_restart predicts the restart')
	  or diag("reason: $status->{reason}\n", why_not());
	true(is_for_want_of_memory(), 'it does not start because pages are missing', why_not()) if $got eq 'f';
	return $got eq 't';
}

# True if the server did not start because memory, or the pool, is too small.
sub is_for_want_of_memory { return why_not() =~ /could not map anonymous shared memory: Cannot allocate memory/ }

# Like restart_as_said, for forecasts that depend on surplus pages: only the start shows whether the
# kernel can allocate them.
sub restart_unpromised
{
	my (%settings) = @_;
	same(status()->{fits_after_restart}, undef, 'fits_after_restart is unknown');
	my $got = try_start(%settings, huge_pages => 'on');
	told('a restart: ' . ($got ? 't' : 'f'));
	return $got;
}

# Tests that this many pages are enough for the pool, and that one less is not.
sub is_exact
{
	my ($kb, $pages, %settings) = @_;
	stop();
	same(set_pool($kb, $pages - 1), $pages - 1, 'pages in the pool');
	true(!try_start(%settings, huge_pages => 'on'), "with one less than $pages pages the server does not start");
	true(is_for_want_of_memory(), 'for want of pages', why_not());
	same(set_pool($kb, $pages), $pages, 'pages in the pool');
	true(try_start(%settings, huge_pages => 'on'), "with $pages pages it starts", why_not());
	return;
}

# --- the runbook, word for word

sub _runbook { return rows('SELECT * FROM hugeinfo_runbook ORDER BY step') }

# Returns the command of a step, or the instruction for a person.
sub _text { my ($row) = @_; return $row->{command} // $row->{instruction} }

# True for a change of the service, which takes effect at the next restart.
sub _is_of_service { my ($row) = @_; return _text($row) =~ /; takes effect at the next restart$/ }

sub _take
{
	my ($row) = @_;
	my $text = _text($row);
	my $where = $row->{where_to_run} // 'decision';
	told("$where: $text");
	# The condition is true here.
	$text =~ s/^(?:then, )?if no other program needs [^:]*: //;
	if ($text =~ /^start PostgreSQL with (numactl \S+);/) { placed(before => [ split / /, $1 ]) }
	elsif (_is_of_service($row) || $where eq 'by hand' && $text =~ /^(?:for the next boot, in the configuration of the boot loader: |also set it for the next boot )/) { }
	elsif ($text =~ /^(?:re)?start PostgreSQL/) { true(restart(), $text, why_not()) }
	elsif ($text =~ /^stop PostgreSQL/) { stop() }
	elsif ($where eq 'SQL') { my $answer = value($text); true($answer =~ /^t?$/, $text, $answer) }
	elsif ($where eq 'root shell') { my $error = `exec 2>&1; $text`; true(!$?, "typed: $text", $error) }
	else { return 0 }
	return 1;
}

# After each step, hugeinfo_status has to be what the step expected. At the end the server is
# healthy. Decisions that match the pattern are left to a person.
sub follow_runbook
{
	my ($decisions) = @_;
	my $is_left = sub { my ($row) = @_; return $decisions && !defined $row->{where_to_run} && _text($row) =~ $decisions };
	my @rows = _runbook();
	true(scalar @rows, 'the runbook has steps');
	# Huge pages that are turned off stay off.
	my $is_off = value('SHOW huge_pages') eq 'off';
	my $said = 0;
	for my $row (@rows)
	{
		if ($is_left->($row)) { told("left: " . _text($row)); next }
		true(_take($row), "step $row->{step} can be applied", _text($row)) or return;
		next unless is_up() && defined $row->{expected};
		$said++;
		my $status = status();
		same("$status->{status}: $status->{reason}", $row->{expected}, "after step $row->{step}: " . _text($row));
	}
	true($said > 0, 'the runbook predicts hugeinfo_status');
	my $status = status();
	same($status->{status}, 'ok', 'healthy at the end') or diag($status->{reason});
	same(segment(postmaster())->{page_bytes} > base_page() ? 1 : 0, $is_off ? 0 : 1, 'the segment is on huge pages unless they are off');
	my @left = map { _text($_) } grep { !_is_of_service($_) && !$is_left->($_) } _runbook();
	is_deeply(\@left, [], "$situation: the runbook is empty at the end");
	return;
}

# Runs the lines of how_to_set. If they contain no restart, calls the test's function before it
# restarts the server.
sub follow_how_to_set
{
	my ($kb, $before_restart) = @_;
	my $lines = value("SELECT how_to_set FROM hugeinfo_pools WHERE page_size_bytes = $kb * 1024");
	told("how_to_set: $lines");
	for my $line (split /\n/, $lines)
	{
		my ($comment) = $line =~ /^# (.*)/;
		next if defined $comment && $comment !~ /^(?:stop|start|restart) PostgreSQL/;
		my $where = defined $comment ? 'service' : 'root shell';
		true(_take({ where_to_run => $where, command => $comment // $line }), "$line succeeds");
	}
	$before_restart->() if $before_restart;
	true(restart(), 'restart', why_not());
	true(segment(postmaster())->{page_bytes} > base_page(), 'the segment is on huge pages');
	# Pages of other nodes can be idle.
	for my $check (map { check_of($_) } qw(huge_pages restart))
	{
		same($check->{status}, 'ok', $check->{name}) or told($check->{finding});
	}
	return;
}

1;
