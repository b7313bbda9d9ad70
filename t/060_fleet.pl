# hugeinfo fleet with real servers in every state: lines and JSON against the status of each server,
# exit statuses, and the number of programs that run at once.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Tools;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use IO::Socket::UNIX;
use IPC::Run ();
use JSON::PP ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Socket qw(SOCK_STREAM);
use Test::More;
use Time::HiRes qw(sleep);

# Copies of a cluster have the same system identifier, and count as copies in a fleet.
delete $ENV{INITDB_TEMPLATE};

my $kb = default_page_kb();
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my @program = (source('target/program/hugeinfo'), 'fleet');
local $ENV{PGPASSFILE} = "$dir/pgpass";
local $ENV{PGSERVICEFILE} = "$dir/services";

sub write_file { my ($name, $text) = @_; append_to_file("$dir/$name", $text); chmod 0600, "$dir/$name"; return "$dir/$name" }

# Runs the program. Returns its output, with a service as its name alone, and its exit status.
sub fleet
{
	my (@arguments) = @_;
	my ($out, $error) = ('', '');
	IPC::Run::run([ @program, @arguments ], '<', '/dev/null', '>', \$out, '2>', \$error);
	my $exit = $? >> 8;
	note($out, $error);
	$out =~ s/service='(.*?)'/$1/g;
	return ($exit, $out, $error);
}

# Lets libpq use a service file. Returns connection strings for all of its services, or for some.
sub services_of
{
	my ($file, @names) = @_;
	$ENV{PGSERVICEFILE} = $file;
	return map { "service='$_'" } @names ? @names : slurp_file($file) =~ /^\[(.*)\]$/mg;
}

sub fleet_json
{
	my (@arguments) = @_;
	my ($exit, $out) = fleet(@arguments, '--format', 'json');
	my $answer = JSON::PP->new->utf8->decode($out);
	$answer->{by_name} = { map { $_->{name} => $_ } @{ $answer->{servers} } };
	return ($exit, $answer);
}

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
# a warning with any pools of this host
configure($primary, shared_buffers => '16MB', max_connections => 20, shared_memory_type => 'sysv');
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE SCHEMA "Huge Info"; CREATE EXTENSION pg_hugeinfo SCHEMA "Huge Info"; GRANT USAGE ON SCHEMA "Huge Info" TO pg_monitor;
	CREATE ROLE nobody_special LOGIN; CREATE ROLE monitoring LOGIN IN ROLE pg_monitor PASSWORD 'xyzzy'});
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby);

my $bare = PostgreSQL::Test::Cluster->new('bare');
$bare->init;
$bare->start;

# Views like those of an older version, with fewer columns, because the library rejects objects of
# another version.
my $older = new_server('older', huge_pages => 'off');
$older->safe_psql('postgres', q{
	ALTER EXTENSION pg_hugeinfo DROP VIEW hugeinfo_status;
	ALTER VIEW hugeinfo_status RENAME TO newer;
	CREATE TABLE said AS SELECT status, reason, in_use FROM newer;
	CREATE VIEW hugeinfo_status AS SELECT * FROM said;
	ALTER EXTENSION pg_hugeinfo ADD VIEW hugeinfo_status;
	UPDATE pg_extension SET extversion = '0.0.1' WHERE extname = 'pg_hugeinfo'});

my $with_password = new_server('with_password', huge_pages => 'off', 'pg_hugeinfo.muted_checks' => 'huge_pages, restart, pool_size');
$with_password->safe_psql('postgres', q(CREATE ROLE monitoring LOGIN IN ROLE pg_monitor PASSWORD 'xyzzy'));
unlink $with_password->data_dir . '/pg_hba.conf';
append_to_file($with_password->data_dir . '/pg_hba.conf', "local all monitoring scram-sha-256\nlocal all all trust\n");
$with_password->reload;
write_file('pgpass', "*:*:*:monitoring:xyzzy\n");

my $down = PostgreSQL::Test::Cluster->new('down');

# Accepts connections, and sends nothing.
my $silent = IO::Socket::UNIX->new(Type => SOCK_STREAM, Local => "$dir/.s.PGSQL.5432", Listen => 100) or die "$dir: $!\n";

sub service { my ($name, $node, $more) = @_; return "[$name]\nhost=" . $node->host . "\nport=" . $node->port . "\n" . ($more // '') . "\n" }
my $services = write_file('services',
	"# comment\n" . service('primary', $primary) . service('standby', $standby, "user=monitoring\n") . service('bare', $bare) . service('older', $older)
	  . service('authenticated', $with_password, "user=monitoring\n") . service('down', $down)
	  . service('stranger', $primary, "user=xyzzy\n") . service('not a monitor', $primary, "user=nobody_special\n"));
# Only a server that never answers should reach the time limit, even on a busy host.
my @patient = ('--timeout', $PostgreSQL::Test::Utils::timeout_default);

my ($exit, $answer) = fleet_json(services_of($services), @patient);
my $seen = $answer->{by_name};
is($exit, 2, 'the worst is a server that is down');
is($answer->{status}, 'critical', 'the JSON has the worst status');
is($answer->{schema}, 1, 'the JSON has the version of its form');
is(scalar @{ $answer->{servers} }, 8, 'a line for each server');

sub as_on
{
	my ($name, $node, $where) = @_;
	my $status = JSON::PP->new->decode($node->safe_psql('postgres', "SELECT to_json(s) FROM ${where}hugeinfo_status AS s"));
	# these depend on other servers of this host, which start and stop at any time
	delete @$status{qw(recommended_nr_hugepages remedy)};
	is_deeply({ map { $_ => $seen->{$name}{$_} } keys %$status }, $status, "$name: the same as in its own SQL");
	is($seen->{$name}{is_standby} ? 't' : 'f', $node->safe_psql('postgres', 'SELECT pg_is_in_recovery()'), "$name: its role");
	return;
}
as_on('primary', $primary, '"Huge Info".');
as_on('standby', $standby, '"Huge Info".');
as_on('authenticated', $with_password, '');
is("@{ $seen->{'authenticated'} }{qw(status code)}", 'ok turned_off', 'a password in ~/.pgpass, and huge_pages = off');
is("@{ $seen->{primary} }{qw(status code)}", 'warning sysv', 'a server that cannot use huge pages');
as_on('older', $older, '');
like("@{ $seen->{$_->[0]} }{qw(status reason)}", $_->[1], "$_->[0]: $_->[1]")
  for [ 'bare', qr/^unknown no extension pg_hugeinfo in database postgres$/ ], [ 'down', qr/^critical .*(?:No such file|refused)/ ],
  [ 'stranger', qr/^unknown .*role "xyzzy" does not exist/ ], [ 'not a monitor', qr/^unknown missing privilege: GRANT USAGE ON SCHEMA "Huge Info" TO pg_monitor/ ];
{
	my (undef, $alone) = fleet_json(services_of(write_file('silent', "[silent]\nhost=$dir\n")), '--timeout', 1);
	like("@{ $alone->{by_name}{silent} }{qw(status reason)}", qr/^critical .*(?:no answer within 1 s|timeout expired)/, 'silent: the time limit');
}

my ($text_exit, $text) = fleet(services_of($services), @patient);
my @lines = split /\n/, $text;
is($text_exit, $exit, 'the same exit status as text');
my %weight = (OK => 0, UNKNOWN => 1, WARNING => 2, CRITICAL => 3);
my @weights = map { $weight{ (split)[0] } } @lines[ 0 .. 7 ];
is_deeply(\@weights, [ sort { $b <=> $a } @weights ], 'the worst are first');
is_deeply([ map { /^\w+ +(\S.*?)  / } @lines[ 0 .. 7 ] ], [ map { $_->{name} } @{ $answer->{servers} } ], 'in the order of the JSON');
like($lines[-1], qr/^CRITICAL: 8 servers: 1 critical, /, 'the summary is last');
like($text, qr/ older .*; version 0\.0\.1: this program has \Q$seen->{primary}{version}\E$/m, 'another version is named');

for (
	[ 0, 'ok', 'authenticated' ], [ 1, 'warning', 'primary' ], [ 2, 'critical', 'down' ], [ 3, 'unknown', 'bare' ], [ 1, 'warning', 'bare', 'primary' ],
	[ 3, 'unknown', 'authenticated', 'bare' ])
{
	my ($expected, $status, @names) = @$_;
	is((fleet(services_of($services, @names)))[0], $expected, "@names: exit status for $status");
}
for (
	[ 'an unknown option', qr/unexpected argument '--xyzzy'/, '--xyzzy' ],
	[ 'no jobs', qr/invalid value '0' for '--jobs/, '--jobs', 0 ],
	[ 'no servers', qr/\Ahugeinfo: no servers\nHINT: Name the servers, / ])
{
	my ($what, $message, @arguments) = @$_;
	my ($wrong, $out, $error) = fleet(@arguments);
	is($wrong, 3, "$what: exit status 3");
	like($error, $message, "$what: a message");
	is($out, '', "$what: nothing else");
}

# Connection strings.
{
	my @conninfos = (map { 'host=' . $_->host . ' port=' . $_->port } $primary, $bare);
	my $address = $primary->host . ':' . $primary->port;
	my @secrets = ("host=db1 password = 'xy zzy'", 'postgres://u:xyzzy@db2/postgres', 'postgres://u:xy/zzy@db3/postgres',
		'postgres://u%40v:xyzzy@db6/postgres', 'postgres://db4/?pass%77ord=xyzzy', 'host=db5 oauth_client_secret=xyzzy');
	my (undef, $conninfos) = fleet_json(@conninfos, $address, @secrets, 'no-such-host.invalid:5433');
	is($conninfos->{by_name}{$_}{in_use} ? 't' : 'f', 'f', "$_: has a status") for $conninfos[0], $address;
	my @refused = grep { $_->{reason} =~ /pgpass/ } @{ $conninfos->{servers} };
	is_deeply([ sort map { $_->{name} } @refused ], [ map { "host $_" } 4 .. 9 ], 'passwords are not used');
	unlike(JSON::PP->new->encode($conninfos), qr/zzy/, 'passwords are not shown');
	is($conninfos->{by_name}{'no-such-host.invalid:5433'}{status}, 'critical', 'a single name is a host');
}

# Creates a fake psql that prints the file named like the service, and logs its command line.
mkdir "$dir/$_" or die "$dir/$_: $!\n" for qw(fake answers);
write_file('fake/psql', <<"SH");
#!/bin/sh
printf '%s\\n' "\$@" >>$dir/arguments
for last in "\$@"; do case \$last in service=*) name=\${last#*=\\'} name=\${name%\\'}; esac; done
case \$name in
endless) exec yes ;;
closed) exec sleep 61707 >&- 2>&- ;;
held) sleep 61707 & exit ;;
esac
exec cat "$dir/answers/\$name"
SH
chmod 0755, "$dir/fake/psql";

{
	local $ENV{PATH} = "$dir/fake:$ENV{PATH}";
	my @secrets = map { ("host=db $_=xyzzy", "host = db $_ = 'xyzzy'", "postgres://db/?$_=xyzzy", "postgres://db/d%3Fuser=u?$_=xyzzy") }
	  qw(password sslpassword scram_client_key scram_server_key oauth_client_secret secret_of_a_later_version);
	my $public = 'host=db options=-ca.b=c  sslkey=/k sslmode=require';
	my $uri = 'postgres://u@db/d?sslmode=require';
	my $quoted = q(host='a b' sslmode=require);
	my (undef, $out) = fleet(@secrets, 'host=db password', $public, $uri, $quoted);
	is(scalar(() = $out =~ /^UNKNOWN  host \d+ .*pgpass/mg), @secrets + 1, 'secrets: each is rejected');
	my $arguments = slurp_file("$dir/arguments");
	unlike($arguments, qr/xyzzy/, 'secrets: no command line has one');
	like($arguments, qr/^\Q$_\E$/m, "to psql as it is: $_") for $public, $uri, $quoted;
}

# Each malformed or hostile answer results in one line, and does not change lines of other servers.
{
	my ($true, $false) = (JSON::PP::true, JSON::PP::false);
	# Other versions have a note of their own.
	my ($version) = slurp_file(source('Cargo.toml')) =~ /^version = "(.*)"$/m;
	my %where = (
		schema => 's', database => 'd', version => $version, system_identifier => '1',
		is_standby => $false, may_look => $true, is_muted => $false);
	my %status = (status => 'ok', code => 'on_huge_pages', reason => 'fine', in_use => $true, page_size_bytes => 2097152);
	my $forged = "\e[2J\e]0;x\a\nCRITICAL good  primary\x{202e}\x{2028}\x{9b}31m";
	my %names = map { $_ => $forged } qw(name conninfo);
	my %answers = (
		good => [ \%where, { %status, status => 'critical', code => 'would_not_start', reason => 'as it is' } ],
		small => [ \%where, { %status, page_size_bytes => 512 } ],
		forged => [ { %where, database => $forged, %names }, { %status, reason => $forged, %names } ],
		unnamed => [ \%where, { %status, name => undef, is_uneven => $true } ],
		long => [ \%where, { %status, reason => 'x' x 5000, remedy => "$forged\n" x 5000 } ],
		sql => [ { %where, schema => qq(a" TO mallory; --$forged), may_look => $false } ],
		none => [ { %where, schema => undef, database => $forged } ],
		(map { $_->[0] => [ { %where, %{ $_->[1] } }, { %status, %{ $_->[2] } } ] }
			  [ 'text size', {}, { page_size_bytes => 'x' } ],
			[ 'list', {}, { reason => ['x'] } ],
			[ 'code', {}, { code => $forged x 100 } ],
			[ 'identifier', { system_identifier => $forged }, {} ],
			[ 'version', { version => $forged }, {} ],
			[ 'number', {}, { in_use => 1 } ],
			[ 'negative', {}, { shortfall_pages => -1 } ],
			[ 'large', {}, { segment_bytes => '9' x 400 } ]));
	for my $name (keys %answers)
	{
		write_file("answers/$name", join '', map { JSON::PP->new->ascii->encode($_) . "\n" } @{ $answers{$name} });
	}
	write_file('answers/nested', '{"a":' x 10000);
	write_file('answers/bytes', "{\xff\x9b\0\e[2J\nERROR:  \xc2\x9b\e[2J\n");
	my @names = sort 'endless', 'nested', 'bytes', keys %answers;
	my $hostile = write_file('hostile', join '', map { "[$_]\n" } @names);
	local $ENV{PATH} = "$dir/fake:$ENV{PATH}";

	my ($exit, $out, $error) = fleet(services_of($hostile));
	utf8::decode($out);
	is($exit, 2, 'hostile servers: the good server, which is critical, determines the exit status');
	is($error, '', 'hostile servers: no message on standard error');
	my @lines = split /\n/, $out;
	is_deeply([ sort map { /^[A-Z]+ +(.*?)  / } @lines[ 0 .. $#names ] ], \@names, 'hostile servers: one line for each');
	like($lines[0], qr/^CRITICAL  good +primary  2 MB +would_not_start +as it is$/, 'hostile servers: the line of the good server is unchanged');
	like($lines[-1], qr/^CRITICAL: @{[ scalar @names ]} servers: /, 'hostile servers: the summary is last');
	is(scalar @lines, @names + 1, 'hostile servers: no additional lines');
	unlike($out, qr/(?!\n)\p{C}/, 'hostile servers: no control characters');
	is(scalar(grep { length > 1100 } @lines), 0, 'hostile servers: lines have a maximum length');
	like($out, qr/^OK +small +primary  512 bytes/m, 'hostile servers: a small page');
	like($out, qr/^UNKNOWN +endless +psql printed more than/m, 'hostile servers: endless output');
	like($out, qr/^UNKNOWN +sql .*ON SCHEMA "a"" TO mallory; --\\033/m, 'hostile servers: the schema is quoted as an SQL identifier');
	for my $name ('text size', 'list', 'number', 'negative', 'large', 'bytes', 'nested')
	{
		like($out, qr/^UNKNOWN +$name +unexpected answer: /m, "hostile servers: $name");
	}

	my (undef, $json) = fleet_json(services_of($hostile));
	is_deeply([ sort map { $_->{name} } @{ $json->{servers} } ], \@names, 'hostile servers: names in JSON');
	unlike(JSON::PP->new->encode($json), qr/\\u00|\p{Cf}/, 'hostile servers: no control characters in JSON');
	is(scalar(split /\n/, $json->{by_name}{long}{remedy}), 100, 'hostile servers: 100 lines of a remedy');

	# Programs that close their output, and that leave it open.
	my $endings = write_file('endings', "[closed]\n[held]\n");
	($exit, $out) = fleet(services_of($endings), '--timeout', 1);
	like($out, qr/^CRITICAL +closed +no answer within 1 s$/m, 'hostile programs: the time limit');
	like($out, qr/^UNKNOWN +held +psql printed nothing$/m, 'hostile programs: only one that has ended');
	my $sleepers = sub { return grep { process_file(m{(\d+)$}, 'cmdline') eq "sleep\x{0}61707\0" } glob '/proc/[0-9]*' };
	ok(until_true(sub { !$sleepers->() }), 'hostile programs: all have ended');
}

# An error that looks like an answer affects only its own server.
{
	$bare->safe_psql('postgres', q(
		CREATE SCHEMA odd;
		CREATE EXTENSION pg_hugeinfo SCHEMA odd;
		ALTER EXTENSION pg_hugeinfo DROP VIEW odd.hugeinfo_status;
		ALTER VIEW odd.hugeinfo_status RENAME TO other;
		CREATE FUNCTION odd.fail() RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION E'first\n{ second'; END$$;
		CREATE VIEW odd.hugeinfo_status AS SELECT odd.fail() AS status));
	my (undef, $odd) = fleet_json(services_of($services), @patient);
	is(scalar @{ $odd->{servers} }, 8, 'an odd error: a line for each server');
	like($odd->{by_name}{bare}{reason}, qr/first/, 'an odd error: the message');
	# The owner of a schema can drop it with the extension, and create a view with the same name.
	$bare->safe_psql('postgres', 'DROP VIEW odd.other CASCADE; DROP EXTENSION pg_hugeinfo');
	(undef, $odd) = fleet_json(services_of($services), @patient);
	like($odd->{by_name}{bare}{reason}, qr/^no extension/, 'a view without the extension: not used');
	$bare->safe_psql('postgres', 'DROP SCHEMA odd CASCADE');
}

# Packages of yum.postgresql.org have psql in PATH, but not pg_isready.
{
	my ($psql) = grep { -x } map { "$_/psql" } split /:/, $ENV{PATH};
	mkdir "$dir/bin" and symlink $psql, "$dir/bin/psql" or die "$dir/bin: $!\n";
	local $ENV{PATH} = "$dir/bin";
	my ($status, $without) = fleet_json(services_of($services, qw(authenticated down stranger)), @patient);
	is($status, 3, 'no pg_isready: exit status');
	is($without->{by_name}{'authenticated'}{status}, 'ok', 'no pg_isready: not needed for a server that answers');
	like("@{ $without->{by_name}{$_} }{qw(status reason)}", qr/^unknown cannot check whether it is down without pg_isready in PATH: connection to/, "no pg_isready: $_")
	  for qw(down stranger);
}

# A thread starts each program.
sub children { my ($pid) = @_; return map { split ' ', eval { slurp_file($_) } // '' } glob "/proc/$pid/task/*/children" }
my $many = write_file('many', join '', map { "[silent$_]\nhost=$dir\n" } 1 .. 12);

{
	my ($most, $out) = (0, '');
	my $run = IPC::Run::start([ @program, services_of($many), '--jobs', 4, '--timeout', 1 ], '>', \$out);
	my $pid = $run->{KIDS}[0]{PID};
	while ($run->pumpable)
	{
		$run->pump_nb;
		my $now = () = children($pid);
		$most = $now if $now > $most;
		sleep 0.02;
	}
	$run->finish;
	is($most, 4, '--jobs: exactly this many programs at once');
	is(scalar(() = $out =~ /^CRITICAL  service='silent/mg), 12, '--jobs: each server has a line');
}

for my $name (qw(INT TERM HUP))
{
	my $run = IPC::Run::start([ @program, services_of($many), '--jobs', 12, '--timeout', 600 ], '>', \my $out, '2>', \my $error);
	my $pid = $run->{KIDS}[0]{PID};
	my @children;
	# each child becomes psql
	until_true(sub { @children = children($pid); 12 == grep { (eval { slurp_file("/proc/$_/comm") } // '') eq "psql\n" } @children })
	  or die "psql does not run\n";
	kill $name, $pid;
	$run->finish;
	is($run->result(0), 3, "SIG$name: exit status");
	is($out . $error, "hugeinfo: interrupted by a signal\n", "SIG$name: only a message");
	is_deeply([ grep { -e "/proc/$_" } @children ], [], "SIG$name: all children have ended");
}

{
	my $hundreds = write_file('hundreds', join '', map { service("primary$_", $primary) } 1 .. 200);
	my ($status, $fleet) = fleet_json(services_of($hundreds), @patient);
	is($status, 1, '200 servers: exit status');
	is_deeply([ map { $_->{in_use} ? $_->{name} : () } @{ $fleet->{servers} } ], [], '200 servers: all are on small pages');
	is(scalar(grep { defined $_->{in_use} } @{ $fleet->{servers} }), 200, '200 servers: all have answered');
}

SKIP:
{
	my $name = 'an uneven cluster';
	needs_host($name);
	configure($_, shared_memory_type => 'mmap', huge_pages => 'try') for $primary, $standby;
	$_->stop for $with_password, $older, $standby, $primary;
	pools_of_one_size($kb, 0);
	$primary->start;
	set_pool($kb, 60);
	$standby->start;
	is(segment($standby->{_pid})->{page_bytes}, 1024 * $kb, "$name: the standby is on huge pages");
	is(segment($primary->{_pid})->{page_bytes}, base_page(), "$name: the primary is not on huge pages");
	(undef, my $uneven) = fleet_json(services_of($services, qw(primary standby)));
	my ($cluster) = @{ $uneven->{clusters} };
	is_deeply([ @$cluster{qw(is_uneven on_huge_pages on_small_pages)} ], [ JSON::PP::true, ['standby'], ['primary'] ], "$name: the JSON reports it");
	like((fleet(services_of($services, qw(primary standby))))[1],
		qr/^WARNING  cluster \d+ is uneven: standby on huge pages, primary not. A failover loses huge pages.$/m, "$name: a line reports it");
	configure($_, 'pg_hugeinfo.muted_checks' => 'restart, pool_size') for $primary, $standby;
	configure($primary, 'pg_hugeinfo.muted_checks' => 'huge_pages, restart, pool_size');
	$_->reload for $primary, $standby;
	(my $even, $uneven) = fleet_json(services_of($services, qw(primary standby)));
	is_deeply([ $even, $uneven->{clusters}[0]{is_uneven} ], [ 0, JSON::PP::false ], "$name: not if the check is muted");
	configure($_, 'pg_hugeinfo.muted_checks' => 'restart, pool_size') for $primary;
	configure($primary, huge_pages => 'off');
	$primary->restart;
	($even, $uneven) = fleet_json(services_of($services, qw(primary standby)));
	is_deeply([ $even, $uneven->{clusters}[0]{is_uneven} ], [ 0, JSON::PP::false ], "$name: not with huge_pages = off");
}

$_->stop for $bare, $with_password, $older, $standby, $primary;
done_testing;
