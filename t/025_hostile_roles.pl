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

# A function for the check of a domain.
sub make_capture
{
	$mallory->value(q{CREATE FUNCTION capture(text) RETURNS boolean LANGUAGE plpgsql AS
		$$ BEGIN INSERT INTO public.captured VALUES (current_user, 'domain'); RETURN true; END $$});
	return;
}

my $pid = $root->pid;
my %calls = (
	hugeinfo_plan => [
		'', q('{}'), q('{"shared_buffers": "20MB"}'), q(settings => '{}'), q(settings := '{}'), q('{}'::jsonb), q(jsonb '{}'), q(CAST('{}' AS jsonb)),
		q(jsonb_build_object('shared_buffers', '20MB')), q(settings => jsonb_build_object('max_connections', 30)), q('{}'::text), q(text '{}'),
		q(format('{"max_connections": %s}', 30)), q('{}'::jsonb || '{"max_connections": 30}'), q($${"max_connections": 30}$$), q(E'{}'), q(U&'{}') ],
	hugeinfo_fit => [
		q(2000, 'host_huge_page_sizes=2MB'), q(pages => 2000, settings => '{"host_huge_page_sizes": "2MB"}'), q(2000, settings => 'host_huge_page_sizes=2MB'),
		q(2000, jsonb_build_object('host_huge_page_sizes', '2MB')), q(2000, '{"host_huge_page_sizes": "2MB"}'::jsonb), q(2000, format('host_huge_page_sizes=%sMB', 2)),
		q(2000::bigint, 'host_huge_page_sizes=2MB'), q(2000::bigint, '{"host_huge_page_sizes": "2MB"}'::jsonb),
		default_page_kb() ? (q(2000), q(pages => 2000), q(2000::bigint), q(1999 + 1), q(2000, '{}')) : () ],
	hugeinfo_fault_rates => [
		'', q('1 ms'), q(duration => '1 ms'), q(interval '1 ms'), q('1 ms'::interval), q(make_interval(secs => 0.001)), q('1 ms'::text), '1',
		'duration => 1', '0.001', 'duration => 0.001', '1e-3', '.001', '+1', '2 / 2', 'ceil(0.5)', q(interval '1 s' / 1000),
		'0.001::float8', '0.001::real', 'sqrt(1e-6::float8)', '1::smallint', '1::bigint', 'duration => 1::int2' ],
	hugeinfo_footprint => [ '', 'true', q('true'), 'exact => true', q(exact => 'true'), q('t'::text) ],
	hugeinfo_mappings => [ '', $pid, "pid => $pid", 'pg_backend_pid()' ],
	hugeinfo_memory => [ '', $pid, "pid => $pid", 'pg_backend_pid()' ]);
# Arguments with which our function sleeps for a second. A call that waits has reached our function.
my %sleeps = map { $_ => 1 } '', '1', 'duration => 1', '+1', '2 / 2', 'ceil(0.5)', '1::smallint', '1::bigint', 'duration => 1::int2';
my @functions = sort keys %calls;
my %owned = (
	hugeinfo_plan => [ '', 'jsonb', 'text' ],
	hugeinfo_fit => [ map { ($_, "$_, jsonb", "$_, text") } 'integer', 'bigint' ],
	hugeinfo_fault_rates => [ '', 'interval', 'text', 'smallint', 'integer', 'bigint', 'real', 'double precision', 'numeric' ],
	hugeinfo_footprint => [ '', 'boolean', 'text' ],
	hugeinfo_mappings => [ '', 'integer' ],
	hugeinfo_memory => [ '', 'integer' ]);

# Runs calls in a query's FROM and in its select list, with a prefix before the name. Groups them by
# their result: rows, or an error.
sub said_of
{
	my ($session, $prefix) = @_;
	my %said;
	for my $function (@functions)
	{
		for my $argument (@{ $calls{$function} })
		{
			my $call = "$prefix$function($argument)";
			my $sleeps = $function eq 'hugeinfo_fault_rates' && $sleeps{$argument};
			for my $sql ("SELECT count(*) > 0 FROM $call", "SELECT count(*) > 0 FROM (SELECT $call OFFSET 0) AS t",
				"SELECT count(*) > 0 FROM generate_series(1, 1), LATERAL $call")
			{
				$session->ask($sql);
				if ($sleeps && $session->wait_until_waiting($watch))
				{
					$session->cancel;
					push @{ $said{t} }, $sql;
					next;
				}
				my ($out, $error) = $session->answer;
				my ($state) = $error =~ /^ERROR:\s+(\w{5}):/m;
				push @{ $said{ $state // $out } }, $sql;
			}
		}
	}
	return \%said;
}

sub all_answered_by_us
{
	my ($session, $prefix, $name) = @_;
	my $said = said_of($session, $prefix);
	my $rows = delete $said->{t};
	is_deeply($said, {}, "$name: each call succeeds");
	cmp_ok(scalar @{ $rows // [] }, '>', 100, "$name: there are many calls");
	is(captured($session), '', "$name: all calls run our functions");
	return;
}

# The catalog has every function, even if the list above lacks it. With these rules, each call of a
# function with an argument is an exact match.
{
	my $name = 'signatures';
	my @numbers = ('bigint', 'double precision', 'integer', 'numeric', 'real', 'smallint');
	my @found = $root->rows(q{
		WITH member AS (
			SELECT classid, objid FROM pg_depend
			WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
				AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_hugeinfo'))
		SELECT p.proname AS function, string_agg(oidvectortypes(p.proargtypes), ';') AS signatures,
			sum(p.pronargdefaults) AS defaults, count(*) FILTER (WHERE p.provariadic <> 0) AS variadics,
			(SELECT count(*) FROM pg_type AS t JOIN member AS m ON m.objid IN (t.oid, t.typrelid)
				WHERE t.typname = p.proname AND t.typnamespace = p.pronamespace AND t.typtype = 'c') AS types,
			bool_or(EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_rewrite'::regclass AND d.refobjid = p.oid)) AS has_view
		FROM pg_proc AS p JOIN member ON classid = 'pg_proc'::regclass AND objid = p.oid
		GROUP BY p.proname, p.pronamespace});
	my (%wrong, %with_arguments);
	for my $of (@found)
	{
		my ($function, @signatures) = ($of->{function}, split /;/, $of->{signatures}, -1);
		my %has = map { $_ => 1 } @signatures;
		# Another user can capture a call without its argument: see docs/security.md.
		next if $function eq 'hugeinfo_report';
		my @complaints;
		push @complaints, 'a default makes a call inexact' if $of->{defaults};
		push @complaints, 'a variadic argument makes a call inexact' if $of->{variadics};
		if (grep { $_ ne '' } @signatures)
		{
			$with_arguments{$function} = [ sort @signatures ];
			# Only the view uses this function, and refers to it by OID.
			next if $function eq 'hugeinfo_oom_scores' && $of->{has_view} eq 't' && !@complaints;
			push @complaints, 'no type reserves its name: another type could convert a literal' if !$of->{types};
			if (grep { /,/ } @signatures)
			{
				my @complete = map { ($_, "$_, jsonb", "$_, text") } 'integer', 'bigint';
				push @complaints, 'not a number alone, and with both types of settings' if "@{[ sort @signatures ]}" ne "@{[ sort @complete ]}";
				$wrong{$function} = \@complaints if @complaints;
				next;
			}
			push @complaints, 'no signature without arguments: a function with a default could replace it' if !$has{''};
			# PostgreSQL parses unquoted digits, such as a PID, as integer. Quoted numbers are documented
			# as unsafe.
			my @others = grep { $_ ne '' && $_ ne 'integer' } @signatures;
			push @complaints, 'no text signature: another function could match quoted literals and NULL' if @others && !$has{text};
			my @missing = grep { !$has{$_} } @numbers;
			push @complaints, "no @missing signature: another function could match such numbers" if @missing && @missing < 6 && @others;
		}
		$wrong{$function} = \@complaints if @complaints;
	}
	is_deeply(\%wrong, {}, "$name: no call can be captured") or diag(explain(\%wrong));
	delete @with_arguments{qw(hugeinfo_oom_scores hugeinfo_runbook)};
	is_deeply(\%with_arguments, { map { $_ => [ sort @{ $owned{$_} } ] } @functions }, "$name: the attacks below cover every signature")
	  or diag(explain(\%with_arguments));
}

# Types to which a literal, a number or any argument could be resolved.
my @types = (
	qw(varchar bpchar name "char" json jsonpath xml bytea bit varbit smallint bigint real money oid regclass regtype boolean date time timestamp
	  timestamptz uuid inet point int4range tsvector pg_lsn refcursor record anyelement anynonarray anyarray anyenum anyrange anycompatible
	  anycompatiblenonarray text[] integer[] my_text my_jsonb my_interval my_integer my_enum my_row),
	'double precision', map { "VARIADIC $_" } qw(text[] jsonb[] json[] interval[] integer[] bigint[] numeric[] varchar[] anyarray anycompatiblearray my_text[]));
my @schemas = ('public', 'pg_temp');
$mallory->value($_) for 'CREATE DOMAIN my_text AS text', 'CREATE DOMAIN my_jsonb AS jsonb', 'CREATE DOMAIN my_interval AS interval',
  'CREATE DOMAIN my_integer AS integer', q(CREATE TYPE my_enum AS ENUM ('{}', '1 ms', '1')), 'CREATE TYPE my_row AS (x text)';

{
	my $name = 'overloads of other types';
	for my $schema (@schemas)
	{
		for my $function (@functions)
		{
			is_deeply([ grep { overload($mallory, 'public', $function, $_) ne '42723' } @{ $owned{$function} } ], [], "$name: signatures of $function are taken");
			my @others = grep { my $type = $_; !grep { $_ eq $type } @{ $owned{$function} } } qw(text jsonb interval integer numeric), @types;
			is_deeply([ grep { overload($mallory, $schema, $function, "x $_") ne '' } grep { !/VARIADIC/ } @others ], [], "$name: other signatures can be created in $schema");
			is_deeply([ grep { overload($mallory, $schema, $function, s/VARIADIC/VARIADIC x/r) !~ /^(?:42723)?$/ } grep { /VARIADIC/ } @others ], [],
				"$name: variadic ones can be created, too");
		}
	}
	# With the same argument names, for calls by name.
	overload($mallory, 'public', 'hugeinfo_plan', "settings $_, y text") for qw(varchar json text jsonb);
	for my $first ('integer', 'bigint')
	{
		is_deeply([ grep { overload($mallory, 'public', 'hugeinfo_fit', "pages $first, settings $_") ne '' } grep { !/VARIADIC/ } @types ], [],
			"$name: hugeinfo_fit($first) with other settings");
	}
	is_deeply([ grep { overload($mallory, 'public', 'hugeinfo_fit', "pages $_, settings text") ne '' } qw(smallint numeric real text oid my_integer anyelement) ], [],
		"$name: hugeinfo_fit with other pages");
	all_answered_by_us($root, '', $name);
	all_answered_by_us($root, 'public.', "$name, qualified");
	# The test detects calls of mallory's functions.
	$root->value(q(SELECT count(*) FROM hugeinfo_plan('{}'::json)));
	is(captured($root), 'public.hugeinfo_plan(x json)', "$name: mallory's functions exist");

	# Parameters without a type, which the parser determines.
	$root->value(q(PREPARE plan AS SELECT count(*) > 0 FROM hugeinfo_plan($1)));
	$root->value(q(PREPARE rates AS SELECT count(*) > 0 FROM hugeinfo_fault_rates($1)));
	is($root->value(q(EXECUTE plan('{}'))) . $root->value(q(EXECUTE rates('1 ms'))), 'tt', "$name: parameters without a type");
	is(captured($root), '', "$name: parameters resolve to our functions");
}

# If the only argument is a quoted literal, PostgreSQL prefers a type with that name to any
# function.
{
	my $name = 'types of the same name';
	make_capture();
	my @kinds = ('DOMAIN public.%s AS text CHECK (capture(VALUE))', q(TYPE public.%s AS ENUM ('{}')), 'TYPE public.%s AS RANGE (SUBTYPE = integer)', 'TYPE public.%s AS (x text)',
		'VIEW public.%s AS SELECT 1', 'TABLE public.%s (x integer)');
	for my $function (@functions)
	{
		my @states = map { ($mallory->error_of(sprintf "CREATE $_", $function))[0] } @kinds;
		is_deeply([ grep { !/^42(?:710|P07)$/ } @states ], [], "$name: the name $function is taken") or diag("@states");
		is(($mallory->error_of(sprintf $_, "public.$function"))[0], '42501', "$name: mallory cannot drop or rename the type $function") for 'DROP TYPE %s', 'ALTER TYPE %s RENAME TO x';
		$mallory->value(sprintf 'CREATE DOMAIN pg_temp.%s AS text CHECK (capture(VALUE))', $function);
	}
	all_answered_by_us($root, '', $name);
	$mallory->value('CREATE DOMAIN another AS text CHECK (capture(VALUE))');
	$root->value(q(SELECT another('{}')));
	is(captured($root), 'domain', "$name: a type with another name would be used");
}

# Such calls are ambiguous: they raise an error, and do not run mallory's functions.
{
	my $name = 'defaults';
	for my $function (@functions)
	{
		is(overload($mallory, 'public', $function, $_), '', "$name: $function($_)")
		  for 'x line DEFAULT NULL', map { "x $_, y integer DEFAULT 1" } qw(text jsonb interval integer numeric);
	}
	my $said = said_of($root, '');
	is(captured($root), '', "$name: nothing is captured");
	is_deeply([ grep { !/^(?:t|42725)$/ } keys %$said ], [], "$name: calls succeed or are ambiguous");
	is(scalar(grep { /_(?:plan|mappings|memory|fault_rates)\(\)/ } @{ $said->{42725} }), 4 * 3, "$name: ambiguous without arguments, as expected");
	for my $function (@functions)
	{
		$mallory->value("DROP FUNCTION public.$function($_)") for 'line', map { "$_, integer" } qw(text jsonb interval integer numeric);
	}
	all_answered_by_us($root, '', "$name, dropped");
}

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
	overload($mallory, 'trap', $_, '') for qw(pg_backend_pid pg_postmaster_start_time pg_show_all_file_settings hugeinfo_postmaster_pid hugeinfo_mappings
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
	for my $argument ('', q('{}'), q('{}'::jsonb))
	{
		is(($mallory->error_of("SELECT public.hugeinfo_plan($argument)"))[0], '42501', "$name: mallory cannot call hugeinfo_plan($argument)");
		$mallory->value("CREATE OR REPLACE FUNCTION plans() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
			\$\$ BEGIN PERFORM count(*) FROM public.hugeinfo_plan($argument); END \$\$");
		is(($root->error_of('SELECT public.plans()'))[0], '42501', "$name: mallory's function cannot call it for a superuser");
	}
	is(($mallory->error_of("SELECT public.hugeinfo_fit($_)"))[0], '42501', "$name: mallory cannot call hugeinfo_fit($_)") for @{ $calls{hugeinfo_fit} };
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
	is_deeply([ grep { !$seen{$_} } 'hugeinfo_mappings()', 'hugeinfo_mappings', 'hugeinfo_postmaster_mappings', map { "hugeinfo_mappings($_)" } @family ], [],
		"$name: a superuser sees them");
}

# In a separate schema, as recommended: public comes after it in the search_path.
{
	my $name = 'a separate schema';
	$root->value($_) for 'CREATE TABLE captured (who text, what text)', 'GRANT ALL ON captured TO PUBLIC';
	make_capture();
	$root->value($_) for 'CREATE SCHEMA hugeinfo', 'ALTER EXTENSION pg_hugeinfo SET SCHEMA hugeinfo', 'GRANT USAGE ON SCHEMA hugeinfo TO pg_monitor';
	for my $function (@functions)
	{
		is(overload($mallory, 'hugeinfo', $function, 'x json'), '42501', "$name: mallory cannot create $function there");
		is(overload($mallory, 'public', $function, $_), '', "$name: $function($_) in public") for @{ $owned{$function} }, qw(varchar oid);
		$mallory->value("CREATE DOMAIN public.$function AS text CHECK (capture(VALUE))");
	}
	all_answered_by_us($root, 'hugeinfo.', "$name, qualified");
	$root->value('SET search_path = hugeinfo, public');
	all_answered_by_us($root, '', "$name, in front");
	# A documented limitation.
	$root->value('SET search_path = public, hugeinfo');
	$root->query('SELECT * FROM hugeinfo_memory()');
	is(captured($root), 'public.hugeinfo_memory()', "$name: does not help if public comes first");

	# It does not protect the rest of a query, unless the search_path contains nothing else.
	overload($mallory, 'public', 'jsonb_build_object', 'x text, y text');
	overload($mallory, 'public', 'joined', 'x bigint, y text');
	$mallory->value('CREATE OPERATOR public.|| (LEFTARG = bigint, RIGHTARG = text, FUNCTION = public.joined)');
	my %captured = (
		'hugeinfo, public' => "public.joined(x bigint, y text)\npublic.jsonb_build_object(x text, y text)",
		'hugeinfo' => '');
	for my $path (sort keys %captured)
	{
		$root->value("SET search_path = $path");
		$root->value(q(SELECT required_huge_pages * 2 || 'Mi', jsonb_build_object('shared_buffers', '1GB') FROM hugeinfo_status));
		is(captured($root), $captured{$path}, "$name: the rest of a query with search_path $path");
		$root->value('RESET search_path');
	}
	is($mallory->value('SELECT count(*) FROM hugeinfo.hugeinfo_status'), 1, "$name: pg_monitor reads it");
}

# Objects from before the extension: CREATE EXTENSION fails, or does not use them.
{
	my $name = 'prepared';
	$root->value($_) for 'DROP OWNED BY mallory CASCADE', 'GRANT CREATE ON SCHEMA public TO mallory', 'DROP EXTENSION pg_hugeinfo';
	my $create = 'CREATE EXTENSION pg_hugeinfo';
	for my $function (@functions)
	{
		for my $arguments (@{ $owned{$function} })
		{
			is(overload($mallory, 'public', $function, $arguments), '', "$name: $function($arguments)");
			is(($root->error_of($create))[0], '42723', "$name: CREATE EXTENSION fails because of a function");
			$mallory->value("DROP FUNCTION public.$function($arguments)");
		}
		$mallory->value("CREATE DOMAIN public.$function AS text");
		is(($root->error_of($create))[0], '42710', "$name: CREATE EXTENSION fails because of a type");
		$mallory->value("DROP DOMAIN public.$function");
	}
	overload($mallory, 'public', $_, 'x varchar') for @functions, 'hugeinfo_status', 'pg_backend_pid';
	overload($mallory, 'public', $_, '') for qw(pg_backend_pid pg_postmaster_start_time);
	is_deeply([ $root->error_of($create) ], [ '', '' ], "$name: CREATE EXTENSION does not use other objects");
	$root->value("SELECT * FROM $_") for qw(hugeinfo_status hugeinfo_backends hugeinfo_mappings hugeinfo_postmaster_mappings hugeinfo_checks);
	is(captured($root), '', "$name: the views do not use them");
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
