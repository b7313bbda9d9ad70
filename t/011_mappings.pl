# Every mapping of a process: compares the figures with maps and smaps, and tests the kinds.
use strict;
use warnings;

use File::Copy ();
use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();

# Returns some columns of each row.
sub columns
{
	my ($like, @rows) = @_;
	my @columns = grep { !/^(?:device|inode|private_(?:clean|dirty)_bytes)$/ } keys %$like;
	return [ map { my $row = $_; +{ map { $_ => $row->{$_} } @columns } } @rows ];
}

# Compares each row with the entry of smaps at the same position, and the rows with the lines of
# maps.
sub compare
{
	my ($session, $from, $pid, $name) = @_;
	my ($seen, $smaps, @rows) = settled(
		sub { $session->rows("SELECT * FROM $from") },
		sub { smaps_file($pid) },
		sub { my ($rows, $smaps) = @_; return map { columns($smaps->[0], @$_) } $rows, $smaps });
	is_deeply($seen, $smaps, "$name: the same as in smaps, line by line");
	my @maps = maps_file($pid);
	is_deeply(columns($maps[0], @rows), columns($maps[0], @maps), "$name: the same as in maps, line by line");
	is(scalar(grep { $_->{pid} != $pid } @rows), 0, "$name: only mappings of $pid");
	# Device and inode, by which the test tells objects apart.
	return [ map { +{ %{ $maps[$_] }, %{ $rows[$_] } } } 0 .. $#rows ];
}

# Returns the ID of the server's System V segment, from the data directory. The kernel shows it as
# inode.
sub shim_id { my ($node) = @_; return (split ' ', (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[6])[1] }

# Determines the kind of each mapping in another way: the main segment is the largest shared mapping
# and all other mappings of the same object; dynamic shared memory has the name of its type.
sub kinds
{
	my ($node, $pid, $dynamic, @rows) = @_;
	my %bytes;
	$bytes{"$_->{device} $_->{inode}"} += $_->{size_bytes} for grep { $_->{permissions} =~ /s$/ } @rows;
	my ($main) = sort { $bytes{$b} <=> $bytes{$a} } keys %bytes;
	my $program = readlink "/proc/$pid/exe";
	my $shim = shim_id($node);
	return map {
		my $path = $_->{path} // '';
		"$_->{device} $_->{inode}" eq $main ? 'main segment'
		  : $path =~ m{^/SYSV} && $_->{inode} == $shim ? 'sysv shim'
		  : $path =~ $dynamic ? 'dynamic shared memory'
		  : $path eq $program ? 'executable'
		  : $path eq '[heap]' ? 'heap'
		  : $path eq '[stack]' ? 'stack'
		  : $path =~ /^\[/ ? 'kernel'
		  : $path eq '' ? 'anonymous'
		  : $path =~ m{/[^/]*\.so(?:\.[^/]*)?(?: \(deleted\))?$} ? 'library'
		  : 'file'
	} @rows;
}

sub compare_kinds
{
	my ($node, $pid, $dynamic, $rows, $name) = @_;
	my @expected = kinds($node, $pid, $dynamic, @$rows);
	my $show = sub { my (@kinds) = @_; return [ map { "$rows->[$_]{start_address} " . ($rows->[$_]{path} // '') . ": $kinds[$_]" } 0 .. $#kinds ] };
	is_deeply($show->(map { $_->{kind} } @$rows), $show->(@expected), "$name: kinds");
	my %count;
	$count{$_}++ for @expected;
	return \%count;
}

my %dynamic = (posix => qr{^/dev/shm/PostgreSQL\.\d+$}, sysv => qr{^/SYSV}, mmap => qr{/pg_dynshmem/mmap\.\d+$});

my $node = new_server('mappings', shared_memory_type => 'mmap');

# A leader and its workers, in a query that waits. The query uses dynamic shared memory.
sub parallel_query
{
	my $leader = HugeInfo::Session->new($node);
	$leader->value("SET $_ = 0") for qw(min_parallel_table_scan_size parallel_setup_cost parallel_tuple_cost);
	$leader->value('CREATE TABLE IF NOT EXISTS slow AS SELECT i FROM generate_series(1, 1000) AS i');
	$leader->ask('SELECT count(pg_sleep(3600)) FROM slow');
	return $leader;
}

# one server for each: the pages of the segment, its type, and the type of dynamic shared memory
for my $case ([ 'small pages', 'mmap', 'posix' ], [ 'huge pages', 'mmap', 'mmap' ], [ 'sysv', 'sysv', 'sysv' ])
{
	SKIP:
	{
		my ($where, $type, $dynamic_type) = @$case;
		my $name = "$where, $dynamic_type";
		needs_host($name) if $where eq 'huge pages';
		pools_of_one_size($kb, required_pages($node, $kb)) if $where eq 'huge pages';
		restarts($node,
			shared_memory_type => $type, huge_pages => $where eq 'huge pages' ? 'on' : 'off',
			dynamic_shared_memory_type => $dynamic_type);

		my $sql = HugeInfo::Session->new($node);
		my $idle = HugeInfo::Session->new($node);
		my $leader = parallel_query();
		my @workers;
		until_true(sub {
			@workers = split /\n/, $sql->value(q(SELECT pid FROM pg_stat_activity
				WHERE backend_type = 'parallel worker' AND wait_event = 'PgSleep'));
			@workers;
		});
		# A busy server might have started only one worker.
		cmp_ok(scalar @workers, '>', 0, "$name: workers");

		my $huge = $where eq 'huge pages';
		for my $process ([ 'postmaster', $node->{_pid} ], [ 'idle backend', $idle->pid ], [ 'leader', $leader->pid ],
			[ 'worker', $workers[0] ])
		{
			my ($what, $pid) = @$process;
			my $from = $what eq 'postmaster' ? 'hugeinfo_postmaster_mappings' : "hugeinfo_mappings($pid)";
			my $rows = compare($sql, $from, $pid, "$name, $what");
			my $count = compare_kinds($node, $pid, $dynamic{$dynamic_type}, $rows, "$name, $what");
			is($count->{'sysv shim'} // 0, $type eq 'sysv' ? 0 : 1, "$name, $what: one System V segment other than the main segment, or none");
			my @always = ('main segment', 'dynamic shared memory', qw(heap stack anonymous executable library kernel));
			is_deeply([ grep { !$count->{$_} } @always ], [], "$name, $what: all kinds exist");

			my $real = segment($pid);
			my @main = grep { $_->{kind} eq 'main segment' } @$rows;
			is(sum_of('size_bytes', @main), $real->{bytes}, "$name, $what: size of the main segment");
			is_deeply([ grep { $_ != $real->{page_bytes} } map { $_->{page_size_bytes} } @main ], [],
				"$name, $what: page size of the main segment");
			is($real->{page_bytes}, $huge ? $kb * 1024 : base_page(), "$name, $what: the main segment is on $where");
			if ($huge)
			{
				cmp_ok(sum_of('shared_hugetlb_bytes', @main) + sum_of('private_hugetlb_bytes', @main), '>', 0,
					"$name, $what: has huge pages");
			}
			else { cmp_ok(sum_of('rss_bytes', @main), '>', 0, "$name, $what: a part of it is resident") }
		}
		# in addition to the one that all processes have
		my $segments = sub {
			return $sql->value("SELECT count(*) FROM hugeinfo_mappings($_[0]) WHERE kind = 'dynamic shared memory'");
		};
		cmp_ok($segments->($leader->pid), '>', $segments->($idle->pid), "$name: the leader has additional dynamic shared memory");
		$_->close for $leader, $idle, $sql;
	}
}

restarts($node, shared_memory_type => 'mmap', huge_pages => 'off', dynamic_shared_memory_type => 'posix');
my $sql = HugeInfo::Session->new($node);

# A session's own mappings. A mapping that exists before and after the query also existed during the
# query, perhaps as a part of a larger one, because a query makes the heap grow and shrink.
{
	my $name = 'this backend';
	my $object = sub { my ($row) = @_; return join ' ', map { $_ // '' } @$row{qw(permissions path)} };
	my $as_text = sub { my ($row) = @_; return join ' ', @$row{qw(start_address end_address)}, $object->($row) };
	my $lies_in = sub {
		my ($line, $row) = @_;
		return $object->($line) eq $object->($row) && hex $row->{start_address} <= hex $line->{start_address}
		  && hex $line->{end_address} <= hex $row->{end_address};
	};
	my %line = map { $as_text->($_) => 1 } maps_file($sql->pid);
	for my $from ('hugeinfo_mappings', 'hugeinfo_mappings(pg_backend_pid())')
	{
		my @rows = $sql->rows("SELECT * FROM $from");
		my @stayed = grep { $line{ $as_text->($_) } } maps_file($sql->pid);
		cmp_ok(scalar @stayed, '>', 20, "$name, $from: most mappings stay");
		my @missing = grep { my $line = $_; !grep { $lies_in->($line, $_) } @rows } @stayed;
		is_deeply([ map { $as_text->($_) } @missing ], [], "$name, $from: these mappings are shown");
		is(scalar(grep { $_->{pid} != $sql->pid } @rows), 0, "$name, $from: with its PID");
	}
}

# Files can have any name. A server loads a library with any name, and the file can be removed while
# it is mapped.
{
	my $name = 'odd names';
	my $library = $node->config_data('--pkglibdir') . '/utf8_and_win.so';
	my $dir = PostgreSQL::Test::Utils::tempdir();
	my $plain = HugeInfo::Session->new($node);
	$node->safe_psql('postgres', q(CREATE DATABASE bytes ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0));
	my $bytes = HugeInfo::Session->new($node, dbname => 'bytes');
	$bytes->value('CREATE EXTENSION pg_hugeinfo');
	my %load = (
		blanks => [ $plain, "two  blanks.so" ],
		'a line feed' => [ $plain, "line\nfeed.so" ],
		'a name that looks deleted' => [ $plain, "not (deleted)" ],
		'a removed file' => [ $plain, "gone.so", 'unlink' ],
		'other letters' => [ $plain, "b\xc3\xbccher.so" ],
		'a backslash' => [ $plain, 'back\\012slash.so' ],
		'no UTF-8' => [ $bytes, "\xff\xfe.so" ]);
	for my $what (sort keys %load)
	{
		my ($session, $file, $unlink) = @{ $load{$what} };
		my $path = "$dir/$file";
		File::Copy::copy($library, $path) or die "$path: $!\n";
		chmod 0755, $path;
		my $inode = (stat $path)[1];
		$session->value('LOAD E\'' . $path =~ s/\\/\\\\/gr =~ s/\n/\\n/gr . q('));
		unlink $path if $unlink;

		my $pid = $session->pid;
		my ($expected) = grep { $_->{inode} == $inode } maps_file($pid);
		like($expected->{path}, qr/ \(deleted\)$/, "$name, $what: the kernel shows it as deleted") if $unlink;
		# Bytes that are not valid text are replaced; the replacement is unspecified.
		my $of_file = "FROM hugeinfo_mappings($pid) WHERE start_address = '$expected->{start_address}'";
		my $rows = [ $sql->rows("SELECT * $of_file") ];
		cmp_ok(scalar @$rows, '>', 0, "$name, $what: is listed");
		if ($what eq 'no UTF-8')
		{
			is($sql->value("SELECT count(DISTINCT path) $of_file AND path LIKE '%.so'"), 1,
				"$name, $what: is shown as text");
			is($bytes->value("SELECT count(DISTINCT path) $of_file AND path LIKE '%.so'"), 1,
				"$name, $what: also in a database with that encoding");
		}
		else { is($rows->[0]{path}, $expected->{path}, "$name, $what: the same as in maps") }
		isnt($rows->[0]{kind}, 'file', "$name, $what: is a library") unless $what eq 'a name that looks deleted';
	}
	$_->close for $plain, $bytes;
}

$sql->close;
$node->stop;
done_testing;
