# Zabbix: the real frontend imports the template, the real agent runs the master items, and each
# path of the template finds in their JSON what SQL says.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use HugeInfo::Tools;
use HugeInfo::Metrics;
use HugeInfo::Arrivals;
use HugeInfo::Host;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use HTTP::Tiny;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = new_server('zabbix', huge_pages => 'try', max_connections => 20);
monitored($node);
my $session = watch($node);
my $conninfo = 'host=' . $node->host . ' port=' . $node->port . ' user=monitoring dbname=postgres';
my $directory = PostgreSQL::Test::Utils::tempdir();
my @queries = grep { $_->{collector} ne 'findings' } queries();
my $json = JSON::PP->new->allow_nonref;

my ($template, @triggers);
SKIP:
{
	cannot('Zabbix: Python packages are not installed: see tools/setup') unless -d source('target/tools/python/jsonpath');
	my $export = python('yaml_to_json.py', [ source('target/monitoring/zabbix/template.yaml') ])->{zabbix_export};
	($template) = @{ $export->{templates} };
	@triggers = (@{ $export->{triggers} }, map { @{ $_->{trigger_prototypes} // [] } } @{ $template->{discovery_rules} });
}

# Runs the agent once for one key.
sub agent
{
	my ($key) = @_;
	my $file = "$directory/agent.conf";
	append_to_file($file, "Hostname=test\nServer=127.0.0.1\nLogType=console\n"
		  . slurp_file(source('target/monitoring/zabbix/pg_hugeinfo.conf')) =~ s{/etc/zabbix/pg_hugeinfo}{source('target/monitoring/zabbix/pg_hugeinfo')}ger)
	  unless -e $file;
	my ($out, $error) = ('', '');
	IPC::Run::run([ tool('zabbix_agent2'), '-c', $file, '-t', $key =~ s/\{\$PG_HUGEINFO\.CONNINFO\}/$_[1] \/\/ $conninfo/er ], '<', '/dev/null', '>', \$out, '2>', \$error);
	my ($value) = $out =~ /\[s\|(.*)\]\s*\z/s or die "zabbix_agent2: $out$error\n";
	return $value;
}

# Returns the values of the template's items, from the JSON of their master items, as series =>
# value.
sub by_zabbix
{
	my %masters = map { $_->{key} => $json->decode(agent($_->{key})) } grep { !$_->{master_item} && $_->{name} !~ /findings and remedies/ } @{ $template->{items} };
	my $all = { map { %$_ } values %masters };
	# An item of a check has no code.
	my %codes = map { $_->{name} => $_->{code} } @{ $all->{check} };
	my (@series, @paths);
	my $wanted = sub {
		my ($name, $labels, $item) = @_;
		push @series, series($name, $labels);
		push @paths, map { $_->{parameters}[0] } @{ $item->{preprocessing} };
		return;
	};
	for my $item (grep { $_->{master_item} } @{ $template->{items} })
	{
		my ($name, $check) = $item->{key} =~ /^(\w+)(?:\["(\w+)"\])?$/;
		$wanted->($name, defined $check ? { name => $check, code => $codes{$check}, muted => 'false' } : {}, $item);
	}
	for my $rule (@{ $template->{discovery_rules} })
	{
		my ($path) = $rule->{preprocessing}[0]{parameters}[0] =~ /^\$\.(\w+)$/;
		for my $row (@{ $all->{$path} })
		{
			my %macros = map { $_->{lld_macro} => $row->{ $_->{path} =~ s/^\$\.//r } } @{ $rule->{lld_macro_paths} };
			my %labels = map { (lc =~ tr/{#}//dr) => $macros{$_} } keys %macros;
			for my $item (@{ $rule->{item_prototypes} })
			{
				my $of_row = $json->decode($json->encode($item) =~ s/(\{#\w+\})/$macros{$1}/gr);
				$wanted->($item->{key} =~ s/\[.*//r, \%labels, $of_row);
			}
		}
	}
	my %arrived;
	@arrived{@series} = @{ python('find_paths.py', [], $json->encode({ json => $all, paths => \@paths })) };
	return \%arrived;
}

SKIP:
{
	my $name = 'the agent';
	last SKIP unless $template;
	needs_tools($name, 'zabbix_agent2');
	my $texts;
	my $collect = sub {
		my $arrived = by_zabbix();
		$texts = { map { $_ => delete $arrived->{$_} } grep { /_(?:setting|host_thp|reason)_/ } keys %$arrived };
		delete @$arrived{ grep { !defined $arrived->{$_} } keys %$arrived };
		return $arrived;
	};
	my @numbers = grep { $_->{metrics}[0]{unit} ne 'info' } @queries;
	compare_arrivals($session, \@numbers, $collect, $name);
	my ($row) = $session->rows(<<~'SQL');
		SELECT code AS "pg_hugeinfo_reason_code{}", huge_pages AS "pg_hugeinfo_setting_huge_pages{}", shared_memory_type AS "pg_hugeinfo_setting_shared_memory_type{}",
		       coalesce(thp_enabled, 'none') AS "pg_hugeinfo_host_thp_enabled{}", coalesce(thp_shmem_enabled, 'none') AS "pg_hugeinfo_host_thp_shmem{}"
		FROM public.hugeinfo_status, public.hugeinfo_host
		SQL
	is_deeply($texts, $row, "$name: texts");

	my ($findings) = grep { $_->{name} =~ /findings and remedies/ } @{ $template->{items} };
	my @found = $session->rows('SELECT name, finding, coalesce(remedy, $$$$) AS remedy, severity FROM public.hugeinfo_checks WHERE severity >= 2 AND NOT is_muted');
	my %remedy_of = map { $_->{name} => $_->{remedy} } @found;
	$_->{remedy} =~ s/^# as (\w+)$/$remedy_of{$1}/ for @found;
	# sort is stable, so the most important of several equally bad checks is first
	@found = map { +{ %$_{qw(name finding remedy)}, info => 1 } } sort { $b->{severity} <=> $a->{severity} } @found;
	is_deeply($json->decode(agent($findings->{key}))->{finding}, \@found, "$name: findings, the worst first");

	# Without JSON, the output is the error of psql.
	my ($status) = grep { $_->{key} =~ /status/ } @{ $template->{items} };
	like(agent($status->{key}, 'host=/nowhere'), qr/^psql: error: connection to server .* failed/, "$name: no server");
	like(agent($status->{key}, $conninfo =~ s/monitoring/postgres/r =~ s/dbname=postgres/dbname=template1/r), qr/ERROR: .*hugeinfo_status.* does not exist/, "$name: no extension");

	# A check that is muted.
	$node->safe_psql('postgres', q(ALTER ROLE monitoring SET pg_hugeinfo.muted_checks = 'huge_pages'));
	my $muted = by_zabbix();
	is_deeply([ map { $muted->{$_} } grep { /_check_severity\{.*name="huge_pages"/ } keys %$muted ], [undef], "$name: a muted check has no severity");
	$node->safe_psql('postgres', 'ALTER ROLE monitoring RESET ALL');
}

# Each alert has a trigger, except one that a template of Zabbix cannot have.
SKIP:
{
	last SKIP unless $template;
	my %alerts = map { $_->{tags}[0]{value} => 1 } @triggers;
	my @expected = grep { $_ ne 'PostgresHugePagesClusterUneven' } slurp_file(source('monitoring/alerts.toml')) =~ /^\[\[alerts\]\]\nname = "(\w+)"/mg;
	is_deeply([ sort keys %alerts ], [ sort @expected ], 'a trigger for each alert');
}

# The frontend of Zabbix, with its own database on the same server.
SKIP:
{
	my $name = 'the frontend';
	last SKIP unless $template;
	needs_tools($name, 'php');
	my ($frontend, $server) = map { source("target/tools/$_") } qw(zabbix-frontend-php zabbix-server-pgsql);
	cannot("$name: not installed: see tools/setup") unless -d $frontend && -d $server;
	my $data = "$server/usr/share/zabbix-server-pgsql";
	my ($version) = slurp_file("$frontend/usr/share/zabbix/include/defines.inc.php") =~ /'ZABBIX_VERSION',\s*'([\d.]+)/;
	# Other versions need other data before they accept a template.
	cannot("$name: Zabbix is $version here, and the test is for 6.0") if $version !~ /^6\.0\./;
	$node->safe_psql('postgres', 'CREATE DATABASE zabbix');
	# only the data of users and groups, without the hundreds of templates
	my $sql = `zcat $data/schema.sql.gz` . join '', grep { /^INSERT INTO (?:role|role_rule|users|usrgrp|users_groups|hstgrp|regexps|expressions|graph_theme|globalmacro|config) / }
	  split /^/, `zcat $data/data.sql.gz`;
	my $error = '';
	IPC::Run::run([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-h', $node->host, '-p', $node->port, '-d', 'zabbix', '-o', '/dev/null', '-f', '-' ],
		'<', \$sql, '2>', \$error) or die "schema of Zabbix: $error\n";

	# Debian's frontend reads its configuration from /etc.
	system_or_bail('cp', '-a', "$frontend/usr/share/zabbix", "$directory/frontend");
	my $class = "$directory/frontend/include/classes/core/CConfigFile.php";
	my $text = slurp_file($class) =~ s{'/etc/zabbix/zabbix\.conf\.php'}{'$directory/zabbix.conf.php'}r;
	unlink $class;
	append_to_file($class, $text);
	append_to_file("$directory/zabbix.conf.php", sprintf q(<?php
		$DB = ['TYPE' => 'POSTGRESQL', 'SERVER' => '%s', 'PORT' => '%d', 'DATABASE' => 'zabbix', 'USER' => '%s', 'PASSWORD' => '', 'SCHEMA' => '',
			'ENCRYPTION' => false, 'VERIFY_HOST' => false, 'KEY_FILE' => '', 'CERT_FILE' => '', 'CA_FILE' => '', 'CIPHER_LIST' => '',
			'VAULT_URL' => '', 'VAULT_DB_PATH' => '', 'VAULT_TOKEN' => '', 'DOUBLE_IEEE754' => true];
		), $node->host, $node->port, $node->safe_psql('postgres', 'SELECT current_user'));
	my $address = '127.0.0.1:' . PostgreSQL::Test::Cluster::get_free_port();
	my $log = '';
	# It must end with the test, even if the test is killed.
	my $php = IPC::Run::start([ qw(setpriv --pdeathsig KILL), tool('php'), '-S', $address, '-t', "$directory/frontend" ], '<', '/dev/null', '>', \$log, '2>&1');

	my $token;
	my $api = sub {
		my ($method, $params) = @_;
		my $request = $json->encode({ jsonrpc => '2.0', id => 1, method => $method, params => $params, auth => $token });
		my $answer = HTTP::Tiny->new(timeout => 60)->post("http://$address/api_jsonrpc.php", { headers => { 'Content-Type' => 'application/json-rpc' }, content => $request });
		return eval { $json->decode($answer->{content}) } // { error => { data => $answer->{content} } };
	};
	until_true(sub { $php->pump_nb; $api->('apiinfo.version', [])->{result} }, "$name: $log");
	$token = $api->('user.login', { username => 'Admin', password => 'zabbix' })->{result};
	my $all = { createMissing => JSON::PP::true, updateExisting => JSON::PP::true };
	my $import = sub {
		my ($source) = @_;
		return $api->('configuration.import', { format => 'yaml', source => $source,
			rules => { groups => { createMissing => JSON::PP::true }, map { $_ => $all } qw(templates items discoveryRules triggers valueMaps) } });
	};
	my $source = slurp_file(source('target/monitoring/zabbix/template.yaml'));
	for my $when ('imports the template', 'once more, over what is there')
	{
		my $answer = $import->($source);
		is_deeply($answer, { jsonrpc => '2.0', id => 1, result => JSON::PP::true }, "$name: $when") or diag($answer->{error}{data});
	}
	my ($there) = @{ $api->('template.get', { filter => { host => $template->{template} }, map { $_ => 'count' } qw(selectItems selectTriggers selectDiscoveries) })->{result} };
	is_deeply([ @$there{qw(items triggers discoveries)} ],
		[ scalar @{ $template->{items} }, scalar(grep { $_->{expression} !~ /\{#/ } @triggers), scalar @{ $template->{discovery_rules} } ],
		"$name: with all items, triggers and rules of discovery");
	# Only the check reports uncertain starts, which no figure shows.
	my ($unsure) = grep { $_->{expression} =~ /nodata\(.*fits_after_restart/ } @{ $api->('trigger.get', { templateids => [ $there->{templateid} ], output => ['description', 'expression'], expandExpression => JSON::PP::true })->{result} };
	like($unsure->{description} // '', qr/^The check restart of PostgreSQL/, "$name: with a trigger for an uncertain restart");
	# The import detects errors.
	ok($import->($source =~ s/min\(/minimum(/r)->{error}, "$name: rejects an unknown function");
	ok($import->($source =~ s/valuemap: \{ name: severity \}/valuemap: { name: none }/r)->{error}, "$name: rejects a missing value map");
	$php->kill_kill(grace => 5);
}

$session->close;
$node->stop;
done_testing;
