# Attacks by mallory, a member of pg_monitor who can create objects in the extension's schema: code
# that a superuser could run, and facts that could leak.
use strict;
use warnings;
# addresses have more than 32 bits
no warnings 'portable';

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('hostile', huge_pages => 'off');
my $root = HugeInfo::Session->new($node);
my $watch = HugeInfo::Session->new($node);
$root->value(q(CREATE ROLE mallory LOGIN IN ROLE pg_monitor));
$root->value(q(GRANT CREATE ON SCHEMA public TO mallory));
my $mallory = HugeInfo::Session->new($node, user => 'mallory');
# Each object of mallory that another role runs adds a line here.
$mallory->value(q(CREATE TABLE captured (who text, what text)));
$mallory->value(q(GRANT ALL ON captured TO PUBLIC));

sub captured
{
	my ($session) = @_;
	my $lines = $session->value('SELECT string_agg(DISTINCT what, chr(10)) FROM public.captured');
	$session->value('DELETE FROM public.captured');
	return $lines;
}

# Creates a function of mallory. Returns the SQLSTATE if that fails.
sub overload
{
	my ($session, $schema, $function, $arguments) = @_;
	return ($session->error_of(qq{CREATE FUNCTION $schema.$function($arguments) RETURNS integer LANGUAGE plpgsql AS
		\$\$ BEGIN INSERT INTO public.captured VALUES (current_user, '$schema.$function($arguments)'); RETURN 1; END \$\$}))[0];
}

# The signatures of functions with arguments.
my %owned = (
	hugeinfo_plan => 'text',
	hugeinfo_fit => 'bigint, text',
	hugeinfo_fault_rates => 'interval',
	hugeinfo_footprint => 'boolean',
	hugeinfo_mappings => 'integer',
	hugeinfo_memory => 'integer');
my @functions = sort keys %owned;

# Objects that come first in a superuser's search_path do not replace those in the views.
{
	my $name = 'search_path';
	$root->value('CREATE SCHEMA trap AUTHORIZATION mallory');
	for my $type (qw(integer bigint oid name text boolean "char" regclass oidvector timestamptz))
	{
		my $function = 'op_' . $type =~ s/\W//gr;
		overload($mallory, 'trap', $function, "x $type, y $type");
		$mallory->value(qq{CREATE FUNCTION trap.yes_$function(x $type, y $type) RETURNS boolean LANGUAGE plpgsql AS
			\$\$ BEGIN INSERT INTO public.captured VALUES (current_user, 'operator of $type'); RETURN true; END \$\$});
		$mallory->value("CREATE OPERATOR trap.$_ (LEFTARG = $type, RIGHTARG = $type, FUNCTION = trap.yes_$function)") for '=', '<>', '<', '>=';
	}
	overload($mallory, 'trap', $_, '') for qw(pg_backend_pid pg_postmaster_start_time pg_show_all_file_settings hugeinfo_postmaster_mappings
	  hugeinfo_status hugeinfo_checks hugeinfo_backends version now);
	overload($mallory, 'trap', $_, 'x oidvector') for qw(oidvectortypes);
	overload($mallory, 'trap', 'has_function_privilege', $_) for 'x oid, y text', 'x text, y text';
	overload($mallory, 'trap', 'has_table_privilege', 'x text, y text');
	$mallory->value("CREATE VIEW trap.$_ AS SELECT trap.version() AS pid") for qw(pg_stat_activity pg_extension pg_proc pg_file_settings pg_settings);
	$mallory->value('GRANT ALL ON SCHEMA trap TO PUBLIC');

	my @views = map { $_->{view} } $root->rows(
		q(SELECT 'public.' || relname AS view FROM pg_class WHERE relname LIKE 'hugeinfo\_%' AND relkind = 'v' AND relnamespace = 'public'::regnamespace));
	cmp_ok(scalar @views, '>=', 13, "$name: views");
	my @answers = map { $root->value("SELECT count(*) > 0 FROM $_") } @views;
	$root->value('SET search_path = trap, pg_catalog, public');
	is_deeply([ map { ($root->error_of("SELECT * FROM $_"))[0] } @views ], [ ('') x @views ], "$name: all views can be read");
	is(captured($root), '', "$name: nothing of mallory is run");
	$root->query('SELECT 1 = 1');
	isnt(captured($root), '', "$name: the trap works");
	$root->value('RESET search_path');
	is_deeply([ map { $root->value("SELECT count(*) > 0 FROM $_") } @views ], \@answers, "$name: views as before");
}

# In a function with SECURITY DEFINER, the privileges of its owner count.
{
	my $name = 'SECURITY DEFINER';
	my $look = q{LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
		SELECT count(start_address) + count(path) FROM public.hugeinfo_mappings $$};
	$mallory->value("CREATE FUNCTION looks_of_mallory() RETURNS bigint $look");
	$root->value("CREATE FUNCTION looks_of_root() RETURNS bigint $look");
	is($root->value('SELECT public.looks_of_mallory()'), 0, "$name: mallory's function shows a superuser only mallory's facts");
	cmp_ok($mallory->value('SELECT public.looks_of_root()'), '>', 0, "$name: a superuser's function shows mallory the owner's facts");
	is(($mallory->error_of('SELECT * FROM public.hugeinfo_plan'))[0], '42501', "$name: mallory cannot read the view hugeinfo_plan");
	for my $argument ('', q('{}'))
	{
		is(($mallory->error_of("SELECT public.hugeinfo_plan($argument)"))[0], '42501', "$name: mallory cannot call hugeinfo_plan($argument)");
		$mallory->value("CREATE OR REPLACE FUNCTION plans() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
			\$\$ BEGIN PERFORM count(*) FROM public.hugeinfo_plan($argument); END \$\$");
		is(($root->error_of('SELECT public.plans()'))[0], '42501', "$name: mallory's function cannot call it for a superuser");
	}
	is(($mallory->error_of("SELECT public.$_"))[0], '42501', "$name: mallory cannot call $_") for 'hugeinfo_fit(2000)', q(hugeinfo_runbook('max_connections=30'));
}

# Without mallory's objects: nothing that mallory reads has an address or a path of a mapping.
{
	my $name = 'places';
	$root->value('DROP OWNED BY mallory CASCADE');
	$root->value('GRANT CREATE ON SCHEMA public TO mallory');
	$root->value('SET client_min_messages = warning');
	my @family = family($node->{_pid});
	my (%places, %paths);
	my $add = sub {
		for my $mapping (map { maps_file($_) } @family)
		{
			# also as numbers, and without trailing zeros
			$places{$_} = $places{ hex $_ } = $places{ s/000$//r } = 1 for @$mapping{qw(start_address end_address)};
			$paths{ $mapping->{path} } = 1 if ($mapping->{path} // '') =~ m{^(?:/(?!dev/zero)|\[)};
		}
	};
	my @readable = map { $_->{readable} } $root->rows(q{
		SELECT c.oid::regclass || '' AS readable FROM pg_class AS c WHERE c.relname LIKE 'hugeinfo\_%' AND c.relkind = 'v' AND c.relname <> 'hugeinfo_plan'
		UNION ALL SELECT p.oid::regprocedure || '' FROM pg_proc AS p WHERE p.proname LIKE 'hugeinfo\_%' AND p.proname <> 'hugeinfo_plan' AND p.pronargs = 0});
	push @readable, q(hugeinfo_fault_rates('1 ms')), map { ("hugeinfo_mappings($_)", "hugeinfo_memory($_)") } @family;
	my $hits = sub {
		my ($session) = @_;
		$add->();
		my %text = map { my ($out, $error) = $session->query("SELECT to_json(r) FROM $_ AS r"); $_ => $out . $error } @readable;
		$add->();
		is_deeply([ grep { $text{$_} =~ /ERROR:/ } sort keys %text ], [], "$name: all can be read");
		# Perl searches for all alternatives at once if they are literal text.
		my ($place) = map { qr/(?<![0-9a-f])(?:$_)/ } join '|', grep { length >= 8 } sort keys %places;
		my ($path) = map { qr/$_/ } join '|', map { quotemeta } sort keys %paths;
		return [ map { my $what = $_; $text{$what} =~ /($place|$path)/ ? "$what: $1" : () } sort keys %text ];
	};
	is_deeply($hits->($mallory), [], "$name: mallory sees none");
	cmp_ok(scalar keys %places, '>', 300, "$name: there are many");
	my %seen = map { s/:.*//sr => 1 } @{ $hits->($root) };
	is_deeply([ grep { !$seen{$_} } 'hugeinfo_mappings', 'hugeinfo_postmaster_mappings()', 'hugeinfo_postmaster_mappings', map { "hugeinfo_mappings($_)" } @family ], [],
		"$name: a superuser sees them");
}

# Objects from before the extension: CREATE EXTENSION fails, or does not use them.
{
	my $name = 'prepared';
	$root->value($_) for 'DROP OWNED BY mallory CASCADE', 'GRANT CREATE ON SCHEMA public TO mallory', 'DROP EXTENSION pg_hugeinfo';
	my $create = 'CREATE EXTENSION pg_hugeinfo';
	$root->value($_) for 'CREATE TABLE captured (who text, what text)', 'GRANT ALL ON captured TO PUBLIC';
	for my $function (@functions)
	{
		is(overload($mallory, 'public', $function, $owned{$function}), '', "$name: $function($owned{$function})");
		is(($root->error_of($create))[0], '42723', "$name: CREATE EXTENSION fails because of a function");
		$mallory->value("DROP FUNCTION public.$function($owned{$function})");
	}
	$mallory->value('CREATE DOMAIN public.hugeinfo_plan AS text');
	is(($root->error_of($create))[0], '42710', "$name: CREATE EXTENSION fails because of a type");
	$mallory->value('DROP DOMAIN public.hugeinfo_plan');
	overload($mallory, 'public', $_, '') for @functions;
	overload($mallory, 'public', $_, 'x varchar') for @functions, 'hugeinfo_status';
	overload($mallory, 'public', $_, '') for qw(pg_backend_pid pg_postmaster_start_time);
	my ($state, $text) = $root->error_of($create);
	is($state, '', "$name: CREATE EXTENSION does not use other objects");
	like($text, qr/^WARNING: .*roles other than superusers can create objects in schema public$/m, "$name: a warning about the schema");
	like($text, qr/^DETAIL: .*\bmallory\b/m, "$name: with the role");
	like($text, qr/^HINT: .*SET SCHEMA/m, "$name: with a hint");
	my @views = map { $_->{view} } $root->rows(q(SELECT 'public.' || relname AS view FROM pg_class WHERE relname LIKE 'hugeinfo\_%' AND relkind = 'v'));
	$root->value("SELECT * FROM $_") for @views;
	is(captured($root), '', "$name: the views do not use them");

	# Superusers, and pg_database_owner as such, are no reason for a warning; the owner of a database is.
	$root->value($_) for 'CREATE ROLE app', 'CREATE DATABASE of_app OWNER app', 'CREATE DATABASE of_root';
	for my $case ([ of_app => qr/^DETAIL:  Roles \(1\): app$/m ], [ of_root => qr/^$/ ])
	{
		my ($database, $expected) = @$case;
		my $session = HugeInfo::Session->new($node, dbname => $database);
		($state, $text) = $session->error_of($create);
		is($state, '', "$name: created in $database");
		like($text, $expected, "$name: who can create objects in $database");
		$session->close;
		$root->value("DROP DATABASE $database");
	}
	$root->value('DROP ROLE app');
}

# If the server would not start with its files, PostgreSQL's error quotes them. Only roles that can
# plan see it.
{
	my $name = 'pending_settings';
	my $secret = 'xyzzy_passphrase';
	append_to_file($node->data_dir . '/postgresql.conf', "\nssl_passphrase_command = 'echo' $secret\n");
	# The result does not depend on mallory's objects.
	my $checks = q(SELECT pg_catalog.to_json(c) FROM public.hugeinfo_checks AS c);
	like($root->value($checks), qr/$secret/, "$name: a superuser sees the error");
	my $checks_in_all = $root->value('SELECT count(*) FROM public.hugeinfo_checks');
	my $is_kept = sub {
		my ($what) = @_;
		my $answer = $mallory->value($checks);
		is(scalar(() = $answer =~ /^\{/mg), $checks_in_all, "$name: $what succeeds");
		like($answer, qr/The next start would fail because .*a superuser can see the reason/, "$name: mallory sees that the start would fail");
		ok($answer !~ /$secret/, "$name: mallory does not see the reason") or diag($&, grep { /$secret/ } split /^/, $answer);
		return;
	};
	$is_kept->('the view');
	# mallory's type has the name jsonb, and mallory's schemas come first.
	$mallory->value($_) for 'CREATE TEMP TABLE jsonb (x integer)', 'CREATE TEMP TABLE text (x integer)', 'CREATE DOMAIN public.jsonb AS integer';
	for my $type ('integer', 'pg_temp.jsonb', 'pg_temp.text', 'public.jsonb', 'pg_temp.jsonb[]')
	{
		is(overload($mallory, 'public', 'hugeinfo_plan', $type), '', "$name: a function of $type");
		for my $path ('DEFAULT', 'pg_temp, public, pg_catalog', 'public, pg_catalog, pg_temp')
		{
			$mallory->value("SET search_path = $path");
			$is_kept->("hugeinfo_plan($type), search_path $path,");
		}
		$mallory->value('RESET search_path');
	}
	# The name of the extension is reliable, because only superusers can create it.
	isnt(($mallory->error_of('CREATE EXTENSION pg_hugeinfo SCHEMA pg_temp'))[0], '', "$name: mallory cannot create the extension");
}

$node->stop;
done_testing;
