# An extension that was upgraded from any release equals a new one. Grants are kept, and so are
# views of users, unless they depend on objects whose columns changed.
use strict;
use warnings;

use Digest::SHA ();
use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Tools;
use HugeInfo::Host;
use HugeInfo::Server;
use HugeInfo::Session;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('upgrade', huge_pages => 'off');

# Returns descriptions of all catalog entries of the extension.
my $CATALOGUE = <<'SQL';
WITH member AS (
	SELECT classid, objid
	FROM pg_depend
	WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
		AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_hugeinfo')
), said (object, what, text) AS (
	SELECT pg_describe_object(classid, objid, 0), 'is there', '' FROM member
	UNION ALL
	SELECT pg_describe_object(classid, objid, 0), 'comment', obj_description(objid, classid::regclass::name) FROM member
	UNION ALL
	SELECT pg_describe_object(d.classid, d.objid, d.objsubid), 'depends on ' || pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid), d.deptype::text
	FROM member JOIN pg_depend AS d USING (classid, objid)
	UNION ALL
	SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid), concat_ws('; ', p.proowner::regrole, p.proacl, p.procost, p.prorows)
	FROM pg_proc AS p JOIN member ON classid = 'pg_proc'::regclass AND objid = p.oid
	UNION ALL
	SELECT c.oid::regclass::text, pg_get_viewdef(c.oid), concat_ws('; ', c.relkind, c.relowner::regrole, c.reloptions, c.relacl)
	FROM pg_class AS c JOIN member ON classid = 'pg_class'::regclass AND objid = c.oid
	UNION ALL
	SELECT c.oid::regclass::text, concat_ws(' ', a.attnum, a.attname, format_type(a.atttypid, a.atttypmod)), concat_ws('; ', a.attacl, col_description(c.oid, a.attnum))
	FROM pg_class AS c JOIN member ON classid = 'pg_class'::regclass AND objid = c.oid
	JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
	UNION ALL
	SELECT pg_describe_object(classoid, objoid, objsubid), 'rights at first', initprivs::text
	FROM pg_init_privs JOIN member ON classid = classoid AND objid = objoid
	UNION ALL
	SELECT 'pg_hugeinfo', extversion, concat_ws('; ', extowner::regrole, extrelocatable, extnamespace::regnamespace, extconfig)
	FROM pg_extension WHERE extname = 'pg_hugeinfo'
)
SELECT concat_ws(' | ', object, what, text) FROM said ORDER BY 1
SQL

sub catalogue
{
	my ($database) = @_;
	return [ split /\n/, $node->safe_psql($database, $CATALOGUE) ];
}

# Returns privileges on objects of the oldest release.
sub grants
{
	my ($database) = @_;
	my @grants = split /\n/, $node->safe_psql($database, q{
		SELECT concat_ws(' ', p.oid::regprocedure, a.grantee::regrole, a.privilege_type, a.is_grantable)
		FROM pg_proc AS p, aclexplode(p.proacl) AS a WHERE p.proname LIKE 'hugeinfo%'
		UNION ALL
		SELECT concat_ws(' ', c.oid::regclass, a.grantee::regrole, a.privilege_type, a.is_grantable)
		FROM pg_class AS c, aclexplode(c.relacl) AS a WHERE c.relname LIKE 'hugeinfo%'
		UNION ALL
		SELECT concat_ws(' ', c.oid::regclass, t.attname, a.grantee::regrole, a.privilege_type, a.is_grantable)
		FROM pg_class AS c JOIN pg_attribute AS t ON t.attrelid = c.oid, aclexplode(t.attacl) AS a WHERE c.relname LIKE 'hugeinfo%'
		ORDER BY 1});
	s/^hugeinfo_own_mappings /hugeinfo_mappings / for @grants;
	# New objects have no privileges to keep.
	return [ sort grep { !/^hugeinfo_(?:text|fit\([^)]*\)|report\((?:jsonb|text)?\)|footprint\((?:text|boolean)\)|(?:plan|memory) )/ } @grants ];
}

# Returns functions of the library with the types of their arguments and columns, in order, because
# rows have no column names.
sub functions
{
	my ($database) = @_;
	return split /\n/, $node->safe_psql($database, q{
		SELECT concat_ws(' ', p.oid::regprocedure, pg_get_function_result(p.oid), p.probin, p.prosrc)
		FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
		WHERE l.lanname = 'c' AND p.proname LIKE 'hugeinfo%'});
}

# Returns the names that queries of users contain: relations, functions, and their columns and
# arguments.
sub names
{
	my ($database) = @_;
	return split /\n/, $node->safe_psql($database, q{
		SELECT relname FROM pg_class WHERE relkind = 'v' AND relname LIKE 'hugeinfo%'
		UNION SELECT c.relname || '.' || a.attname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
			WHERE relkind = 'v' AND relname LIKE 'hugeinfo%'
		UNION SELECT oid::regprocedure::text FROM pg_proc WHERE proname LIKE 'hugeinfo%'
		UNION SELECT proname || '.' || unnest(proargnames) FROM pg_proc WHERE proname LIKE 'hugeinfo%'
		ORDER BY 1});
}

# Returns the names in the first column of the first table of each page about an upgrade.
sub listed
{
	my %listed;
	for my $page (glob source('docs/upgrade-*.md'))
	{
		my ($rows) = slurp_file($page) =~ /^\|[-|]+\|\n((?:\|.*\n)+)/m or die "$page has no table\n";
		/^\|(.*?)\|/ && map { $listed{$_} = 1 } $1 =~ /`([^`]+)`/g for split /\n/, $rows;
	}
	return %listed;
}

# The same version as in the tests of the other files.
my $fresh = catalogue('postgres');
cmp_ok(scalar(@$fresh), '>', 500, 'catalog entries of a new extension');

my @released = split /\n/, $node->safe_psql('postgres', q(
	SELECT version FROM pg_available_extension_versions WHERE name = 'pg_hugeinfo' AND NOT installed ORDER BY 1));
ok((grep { $_ eq '0.1.0' } @released), 'the first release can still be created') or diag("@released");
for my $version (@released)
{
	my $name = "from $version";
	my $database = "from_$version";
	$node->safe_psql('postgres', qq(CREATE DATABASE "$database"));
	$node->safe_psql($database, qq(
		CREATE EXTENSION pg_hugeinfo VERSION '$version';
		CREATE VIEW my_host AS SELECT base_page_size_bytes FROM hugeinfo_host;
		CREATE VIEW my_mappings AS SELECT count(*) > 0 AS some FROM hugeinfo_own_mappings;
		CREATE VIEW my_runbook AS SELECT * FROM hugeinfo_runbook;
		CREATE VIEW my_status AS SELECT in_use, segment_bytes FROM hugeinfo_status;
		CREATE VIEW my_forecast AS SELECT command FROM hugeinfo_runbook('{}'::jsonb);
		CREATE ROLE "reader $version";
		CREATE ROLE "columns $version";
		GRANT SELECT ON hugeinfo_status, hugeinfo_pools, hugeinfo_runbook TO "reader $version";
		GRANT EXECUTE ON FUNCTION hugeinfo_status(), hugeinfo_runbook(jsonb) TO "reader $version" WITH GRANT OPTION;
		GRANT SELECT (name, status) ON hugeinfo_checks TO "columns $version";
		GRANT SELECT ON hugeinfo_instances TO PUBLIC;
		REVOKE SELECT ON hugeinfo_checks FROM pg_monitor));
	my %new = map { $_ => 1 } names('postgres');
	my %listed = listed();
	# A row for a view includes its columns.
	is_deeply([ grep { !$new{$_} && !$listed{$_} && !$listed{s/\..*//r} } names($database) ], [], "$name: the page about the upgrade lists each name that is gone");
	is_deeply([ grep { $new{$_} } sort keys %listed ], [], "$name: the page lists no name that still exists");
	my $before = catalogue($database);
	my $grants = grants($database);
	# A package installs the library before ALTER EXTENSION.
	my $session = HugeInfo::Session->new($node, dbname => $database);
	my ($state, $error) = $session->error_of('SELECT * FROM hugeinfo_status');
	if ($state eq '55000')
	{
		like($error, qr/ALTER EXTENSION pg_hugeinfo UPDATE/, "$name: the hint of the new library");
	}
	else
	{
		my %new = map { $_ => 1 } functions('postgres');
		my @served = functions($database);
		cmp_ok(scalar(@served), '>', 10, "$name: functions of the library");
		is_deeply([ grep { !$new{$_} } @served ], [], "$name: the new library rejects functions that it lacks or has with other columns");
		is(($session->error_of("SELECT * FROM $_"))[0], '', "$name: $_ works with the new library")
		  for split /\n/, $node->safe_psql($database, q(SELECT viewname FROM pg_views WHERE schemaname = 'public' AND viewname LIKE 'hugeinfo%'));
	}
	ok((grep { /^pg_hugeinfo \| \Q$version\E \|/ } @$before), "$name: the version before");

	my $update = 'ALTER EXTENSION pg_hugeinfo UPDATE';
	for ([ my_status => 'view hugeinfo_status' ], [ my_forecast => 'function hugeinfo_runbook(jsonb)' ])
	{
		my ($view, $object) = @$_;
		($state, $error) = $session->error_of($update);
		is($state, '2BP01', "$name: a user's view on $object prevents the update");
		like($error, qr/DETAIL:.*view $view depends on \Q$object\E/, "$name: the error names it");
		is_deeply(catalogue($database), $before, "$name: after the error, nothing has changed");
		$session->value("DROP VIEW $view");
	}
	is(($session->error_of($update))[0], '', "$name: the update succeeds without them");
	$session->close;

	# Rows come from the new library.
	is($node->safe_psql($database, "SELECT * FROM my_$_->[0]"), $node->safe_psql('postgres', "SELECT $_->[1] FROM hugeinfo_$_->[0]"), "$name: my_$_->[0] is kept, and works")
	  for [ host => 'base_page_size_bytes' ], [ mappings => 'count(*) > 0' ], [ runbook => 'step, where_to_run, command, why, expected, is_disruptive' ];
	is_deeply(grants($database), $grants, "$name: grants are kept");
	is($node->safe_psql($database, qq(SET ROLE "reader $version"; SELECT in_use FROM hugeinfo_status)), 'f', "$name: grants work");
	# pg_dump saves only privileges that differ from these.
	is_deeply([ grep { /rights at first/ } @{ catalogue($database) } ], [ grep { /rights at first/ } @$fresh ], "$name: grants of users are not those of the extension");

	$node->safe_psql($database, qq(
		DROP EXTENSION pg_hugeinfo CASCADE;
		CREATE EXTENSION pg_hugeinfo VERSION '$version';
		CREATE TABLE captured (what text)));
	# Others could create exact matches for calls without a schema.
	my $body = q(LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.captured VALUES ('captured'); RETURN NULL; END $$);
	my @types = map { [ split / / ] } ('oid regclass', 'oid integer', 'oid text', 'text regclass', 'text regprocedure', 'text name', 'name name');
	for (@types)
	{
		my ($left, $right) = @$_;
		$node->safe_psql($database, "CREATE FUNCTION format($left, $right) RETURNS text $body; CREATE FUNCTION captures($left, $right) RETURNS boolean $body");
		$node->safe_psql($database, "CREATE OPERATOR $_ (LEFTARG = $left, RIGHTARG = $right, FUNCTION = captures)") for '=', '<>', '||';
	}
	is($node->safe_psql($database, qq(SELECT 'x' || 'pg_class'::regclass; SELECT count(*) FROM captured)), "\n1", "$name: without a schema, they would be called");
	is($node->safe_psql($database, qq(DELETE FROM captured; $update; SELECT count(*) FROM captured)), 0, "$name: the update calls none of them");
	$node->safe_psql($database, "DROP FUNCTION format($_->[0], $_->[1]), captures($_->[0], $_->[1]) CASCADE") for @types;
	is_deeply(catalogue($database), $fresh, "$name: equals a new extension");
}

# The script of a release never changes, including that of a release in preparation.
my %sha256 = (
	'0.1.0' => 'b80d35a900957a730d12f5bdd37dca378cd830af93152d4f0a0592ae683e4000',
	'0.2.0' => '179124466937de0e80c6cb9f350646d2189602604f74b4081fb4de7c166deea2',
);
my %kept = map { m{/pg_hugeinfo--([\d.]+)\.sql$} ? ($1 => $_) : () } glob source('sql/pg_hugeinfo--*.sql');
chomp(my $shared = `pg_config --sharedir`);
for my $of ({ %kept }, { map { $_ => "$shared/extension/pg_hugeinfo--$_.sql" } keys %kept })
{
	is_deeply({ map { $_ => Digest::SHA->new(256)->addfile($of->{$_})->hexdigest } keys %$of }, \%sha256,
		'scripts of releases have not changed, and are installed');
}
is_deeply([ grep { !$kept{$_} } @released ], [], 'only releases can be created');

$node->stop;
done_testing();
