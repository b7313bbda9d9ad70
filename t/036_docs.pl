# Tests README.md and docs/: runs each query on a real server, and compares the output with the
# page. Objects, columns and links that a page names have to exist.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Tools;
use HugeInfo::Pages;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Server;
use PostgreSQL::Test::Utils;
use Test::More;

# Tests the comparison itself.
{
	my $shown = " name | size  | note\n------+-------+------\n a    | 41 MB | on…\n b    | 8 kB  |\n";
	my $other = sub { my ($from, $to) = @_; return $shown =~ s/\Q$from\E/$to/r };
	is_deeply([ differences($shown, $other->('on…', 'only'), {}) ], [], 'the shape: itself');
	is_deeply([ differences($shown, $other->('41 MB', '1234 kB'), {}) ], [], 'the shape: other numbers');
	for ([ 'size ', 'bytes' ], [ ' b ', ' c ' ], [ '41 MB', '' ], [ 'on…', 'no' ], [ " b    | 8 kB  |\n", '' ])
	{
		my ($from, $to) = @$_;
		isnt(scalar(() = differences($shown, $other->($from, $to), {})), 0, "the shape: not \"$to\" for \"$from\"");
	}
	isnt(scalar(() = differences($shown, "$shown c    | 1 kB  |\n", {})), 0, 'the shape: an additional row is an error');
	is_deeply([ differences("$shown …\n", "$shown c    | 1 kB  |\n", {}) ], [], 'the shape: more rows after an ellipsis');
	is_deeply([ differences($shown =~ s/^( b )/ …\n$1/mr, "$shown c    | 1 kB  |\n", {}) ], [], 'the shape: rows left out before others');
	is_deeply([ differences($shown, $other->('41 MB', ''), { size => 1 }) ], [], 'the shape: a column that varies');
}

my $kb = default_page_kb();
my $node = PostgreSQL::Test::Cluster->new('docs');
$node->init;
$node->start;
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

sub install
{
	my ($database) = @_;
	$node->safe_psql($database, 'CREATE EXTENSION pg_hugeinfo');
	return;
}
install('postgres');

sub in_postgres { my ($query) = @_; return $node->safe_psql('postgres', $query) }

# Functions that create the server that a page describes.
my %MAKE = (
	'small pages' => sub {
		if (pool($kb)->{total})
		{
			needs_host('a server on small pages, and a pool');
			pools_of_one_size($kb, 0);
		}
		$node->restart;
		is(in_postgres('SELECT in_use FROM hugeinfo_status'), 'f', 'the server is on small pages');
	},
	'pool is set, not restarted' => sub {
		needs_host('a pool');
		pools_of_one_size($kb, in_postgres('SELECT recommended_nr_hugepages FROM hugeinfo_plan() WHERE is_requested'));
	},
	'huge pages' => sub {
		needs_host('a server on huge pages');
		pools_of_one_size($kb, in_postgres('SELECT recommended_nr_hugepages FROM hugeinfo_plan() WHERE is_requested'));
		$node->restart;
		is(in_postgres('SELECT in_use FROM hugeinfo_status'), 't', 'the server is on huge pages');
	});
my $is = '';

sub make_server
{
	my ($server) = @_;
	my $make = $MAKE{$server} or die "no such server: $server\n";
	return if $server eq $is;
	$make->();
	$is = $server;
	return;
}

# Returns the output and errors of psql for a block.
sub output_of
{
	my ($database, $role, $sql, @options) = @_;
	local %ENV = (%ENV, PGCLIENTENCODING => 'UTF8');
	my ($out, $error) = ('', '');
	my @psql = ('psql', '--no-psqlrc', '--quiet', '--pset=footer=off', '--set=ON_ERROR_STOP=1', '--set=VERBOSITY=default');
	IPC::Run::run([ @psql, '-h', $node->host, '-p', $node->port, '-d', $database, $role ? ('-U', $role) : (), @options ],
		'<', \$sql, '>', \$out, '2>', \$error);
	return ($out, $error);
}

sub compare_query
{
	my ($page, $query) = @_;
	my $name = "$page->{file}:$query->{line}";
	my $shown = $query->{output};
	my ($out, $error) = output_of('page', $query->{as}, $query->{text}, @{ $query->{options} // [] });
	my $expects_error = defined $shown && $shown =~ /^(?:ERROR|WARNING|NOTICE): /m;
	is($error, '', "$name: no error") unless $expects_error;
	return if !defined $shown;
	my @differences = differences($shown, $expects_error ? $error : $out, $query->{varies});
	is_deeply(\@differences, [], "$name: the output has the shape on the page") or diag($out);
	return;
}

# A query in a sentence has no output on the page. It must succeed.
sub compare_span
{
	my ($page, $span) = @_;
	return if $span eq 'SHOW huge_pages_status' && $version < 170000;
	my (undef, $error) = output_of('page', undef, $span =~ / \\gx\z/ ? "$span\n" : "$span;");
	is($error, '', "$page->{file}: $span");
	return;
}

for my $page (grep { $_->{file} =~ m{^(?:README|docs/)} } pages())
{
	next unless @{ $page->{queries} } || @{ $page->{spans} };
	$node->safe_psql('postgres', 'CREATE DATABASE page');
	# a page about the installation can contain queries before CREATE EXTENSION
	my @installs = grep { $_->{text} =~ /^CREATE EXTENSION /m } @{ $page->{queries} };
	for my $query (@installs)
	{
		make_server($query->{server}) if $query->{server};
		compare_query($page, $query);
	}
	install('page') unless @installs;
	for my $query (grep { $_->{text} !~ /^CREATE EXTENSION /m } @{ $page->{queries} })
	{
	  SKIP:
		{
			make_server($query->{server} // 'huge pages');
			compare_query($page, $query);
		}
	}
	compare_span($page, $_) for @{ $page->{spans} };

	# restores the state for the next page
	$node->safe_psql('postgres', 'DROP DATABASE page');
	my @roles = split /\n/, $node->safe_psql('postgres', q(SELECT rolname FROM pg_roles WHERE oid >= 16384));
	$node->safe_psql('postgres', qq(DROP ROLE "$_")) for @roles;
	if ($page->{text} =~ /^ALTER SYSTEM /m)
	{
		$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
		$is = '';
	}
}

my %objects = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', <<'SQL');
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
UNION SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
SQL
my %columns = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', <<'SQL');
SELECT relname || '.' || attname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relnamespace = 'public'::regnamespace
UNION SELECT proname || '.' || unnest(proargnames) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
SQL
my $extension_version = in_postgres(q(SELECT default_version FROM pg_available_extensions WHERE name = 'pg_hugeinfo'));
for my $page (pages())
{
	is_deeply($page->{broken_links}, [], "$page->{file}: every link has a target");
	is_deeply($page->{indented}, [], "$page->{file}: every query is in a block that is run");
	is_deeply([ grep { !$objects{$_} } @{ $page->{objects} } ], [], "$page->{file}: every object exists");
	is_deeply([ grep { !$columns{$_} } @{ $page->{columns} } ], [], "$page->{file}: every column exists");
	# except for the page about creating packages of other versions
	is_deeply([ grep { $_ ne $extension_version && $page->{file} ne 'CONTRIBUTING.md' } $page->{text} =~ /pg_hugeinfo(?:--|[:_-])(\d+\.\d+\.\d+(?:-dev)?)/g ], [],
		"$page->{file}: no file of another version");
}

# docs/reference.md is the output of docs/reference.sql, with every view, column and function.
{
	my $name = 'docs/reference.md';
	my ($out, $error) = output_of('postgres', undef, reference_sql(), qw(-A -t));
	is($error, '', "$name: no errors");
	my ($page) = grep { $_->{file} eq $name } pages();
	is($out, $page->{text}, "$name: the output of docs/reference.sql");
	my @missing = grep { !/\S/ } split /\n/, in_postgres(<<~'SQL');
		SELECT coalesce(col_description(attrelid, attnum), '') FROM pg_attribute JOIN pg_class AS c ON c.oid = attrelid
		WHERE relnamespace = 'public'::regnamespace AND relkind = 'v' AND attnum > 0
		SQL
	is(scalar @missing, 0, "$name: every column has a comment");
	unlike($out, qr/^\| cost \| \?/m, "$name: every view has a cost");
}

# Follows docs/server-does-not-start.md.
SKIP:
{
	needs_host('a server that does not start');
	my ($page) = grep { $_->{file} eq 'docs/server-does-not-start.md' } pages();
	my $data = $node->data_dir;
	configure($node, huge_pages => 'on');
	$node->stop;
	pools_of_one_size($kb, 0);

	my ($started, $log) = starts($node);
	ok(!$started, 'huge_pages = on and no pages: no start');
	my ($fatal) = $log =~ /(FATAL:  .*)\n/;
	my ($hint) = $log =~ /(HINT:  .*?) To reduce/;
	my $text = $page->{text} =~ s/\n/ /gr;
	isnt(index($text, $_), -1, "the page has: $_") for $fatal, $hint;

	my ($pages) = run_command([ 'postgres', '-D', $data, '-C', 'shared_memory_size_in_huge_pages' ]);
	command_ok([ 'pg_ctl', 'start', '-s', '-w', '-D', $data, '-l', $node->logfile, '-o', '-c huge_pages=try' ], 'a start with -o');
	is(in_postgres('SELECT required_huge_pages FROM hugeinfo_status'), $pages, 'postgres -C prints the same number as the status');
	my (undef, $error) = run_command([ 'postgres', '-D', $data, '-C', 'shared_memory_size_in_huge_pages' ]);
	like($error, qr/lock file "postmaster.pid" already exists/, 'postgres -C on a running server');
	command_ok([ 'pg_ctl', 'stop', '-s', '-D', $data ], 'a stop');

	my $sql = "ALTER SYSTEM SET huge_pages = 'try'\n";
	my ($out, $single_error) = ('', '');
	IPC::Run::run([ 'postgres', '--single', '-D', $data, '-c', 'huge_pages=off', 'postgres' ], '<', \$sql, '>', \$out, '2>', \$single_error);
	$node->start;
	is(in_postgres('SHOW huge_pages'), 'try', 'single-user mode changes the setting')
	  or diag($single_error);
}

$node->stop;
done_testing;
