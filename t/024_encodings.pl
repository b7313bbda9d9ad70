# The extension in a database with each server encoding. Installed files are ASCII, because some
# encodings reject other characters, and others convert them.
#
# Takes half a minute, because it reads every object in a database of each of 35 encodings.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Server;
use HugeInfo::Session;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('encodings', huge_pages => 'off');
my $sql = HugeInfo::Session->new($node);

# Includes the script that pgrx has generated from the sources.
{
	my $name = 'installed';
	my $directory = $node->config_data('--sharedir') . '/extension';
	my @files = glob "$directory/pg_hugeinfo.control $directory/pg_hugeinfo--*.sql";
	cmp_ok(scalar @files, '>=', 2, "$name: a control file and a script");
	for my $file (@files)
	{
		my @lines = split /\n/, slurp_file($file);
		is_deeply([ map { $_ + 1 . ": $lines[$_]" } grep { $lines[$_] =~ /[^\t\x20-\x7e]/ } 0 .. $#lines ], [], "$name: $file is ASCII");
	}
}

# Returns each object of the extension and each column, with its comment. Without row types and
# array types, which PostgreSQL 17 and newer list as objects.
my $COMMENTS = q{
	SELECT pg_describe_object(d.classid, d.objid, coalesce(a.attnum, 0)) AS object,
		CASE WHEN a.attnum > 0 THEN col_description(d.objid, a.attnum)
			ELSE obj_description(d.objid, (SELECT relname FROM pg_class WHERE oid = d.classid)) END AS comment
	FROM pg_depend AS d
	JOIN pg_extension AS e ON e.extname = 'pg_hugeinfo' AND d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
	LEFT JOIN (SELECT attrelid, attnum FROM pg_attribute WHERE attnum > 0 UNION ALL SELECT oid, 0 FROM pg_class) AS a
		ON d.classid = 'pg_class'::regclass AND a.attrelid = d.objid
	WHERE d.deptype = 'e' AND (d.classid, d.objid) NOT IN (SELECT 'pg_type'::regclass, t.oid FROM pg_type AS t
		WHERE t.typcategory = 'A' OR t.typrelid IN (SELECT oid FROM pg_class WHERE relkind = 'v'))};

# Objects that can be read without an argument, except for one that sleeps for a second.
my $READABLE = q{
	SELECT c.oid::regclass || '' AS readable FROM pg_class AS c WHERE c.relname LIKE 'hugeinfo\_%' AND c.relkind = 'v'
		AND c.relname <> 'hugeinfo_fault_rates'
	UNION ALL
	SELECT p.oid::regprocedure || '' FROM pg_proc AS p
	WHERE p.proname LIKE 'hugeinfo\_%' AND p.pronargs = 0 AND p.proname <> 'hugeinfo_fault_rates'};
my @CALLS = (
	q(hugeinfo_fault_rates('1 ms')), q(hugeinfo_plan('{"shared_buffers": "20MB"}')),
	q(hugeinfo_plan('shared_buffers=20MB')), q(hugeinfo_fit(2000, 'huge_page_size=0')), 'hugeinfo_memory(pg_backend_pid())', 'hugeinfo_mappings(pg_backend_pid())',
	'hugeinfo_report()');

sub comments { my ($session) = @_; return { map { $_->{object} => $_->{comment} } $session->rows($COMMENTS) } }

my $expected = comments($sql);
cmp_ok(scalar keys %$expected, '>', 200, 'objects and columns');
is_deeply([ grep { !defined $expected->{$_} } sort keys %$expected ], [], 'each has a comment');
my @readable = map { $_->{readable} } $sql->rows($READABLE);
cmp_ok(scalar @readable, '>', 25, 'views and functions');

# Encodings are numbered from 0; PostgreSQL has 42.
my @encodings = map { $_->{name} } $sql->rows(
	q(SELECT pg_encoding_to_char(i) AS name FROM generate_series(0, 99) AS i WHERE pg_encoding_to_char(i) <> '' ORDER BY i));
my (@servers, @clients);
for my $encoding (@encodings)
{
	my ($state) = $sql->error_of("CREATE DATABASE \"in $encoding\" ENCODING '$encoding' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
	if ($state ne '') { push @clients, "$encoding: $state"; next }
	push @servers, $encoding;

	my $session = HugeInfo::Session->new($node, dbname => "in $encoding");
	is($session->value('SHOW server_encoding'), $encoding, "$encoding: is the server encoding");
	is_deeply([ $session->error_of('CREATE EXTENSION pg_hugeinfo') ], [ '', '' ], "$encoding: the extension is created");
	is_deeply(comments($session), $expected, "$encoding: comments");
	# A plan raises a notice, because huge_pages is off here.
	$session->value(q(SET client_min_messages = warning));
	my @failures = grep { $_ } map { my ($out, $error) = $session->query("SELECT * FROM $_"); $error && "$_: $error" } @readable, @CALLS;
	is_deeply(\@failures, [], "$encoding: all views and functions can be read");
	$session->close;
	$sql->value("DROP DATABASE \"in $encoding\"");
}
# Encodings for clients only. Not each version has all of them.
my %has = map { $_ => 1 } @encodings;
is_deeply(\@clients, [ map { "$_: 42704" } grep { $has{$_} } qw(SJIS BIG5 GBK UHC GB18030 JOHAB SHIFT_JIS_2004) ], 'all others are for clients only');
cmp_ok(scalar @servers, '>=', 30, 'the encodings of servers: ' . join(' ', @servers));

# Settings are text in the encoding of the database, and so are errors about them.
for my $encoding (qw(LATIN1 UTF8 EUC_JP))
{
	$sql->value("CREATE DATABASE \"in $encoding\" ENCODING '$encoding' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
	my $session = HugeInfo::Session->new($node, dbname => "in $encoding");
	$session->value('CREATE EXTENSION pg_hugeinfo');
	# a letter that each of these encodings has
	my $letter = $encoding eq 'EUC_JP' ? '\3042' : '\00e9';
	is(($session->error_of(qq(SELECT hugeinfo_plan(U&'{"$letter": 1}'))))[0], '22023', "$encoding: an unknown name");
	is(($session->error_of(qq(SELECT hugeinfo_plan(U&'{"shared_buffers": "$letter"}'))))[0], '22023', "$encoding: an invalid value");
	is(($session->error_of(qq(SELECT hugeinfo_plan(U&'{$letter}'))))[0], '22P02', "$encoding: invalid JSON");
	is(($session->error_of(qq(SELECT hugeinfo_fault_rates(U&'$letter'))))[0], '22007', "$encoding: an invalid interval");
	$session->close;
}

$sql->close;
$node->stop;
done_testing;
