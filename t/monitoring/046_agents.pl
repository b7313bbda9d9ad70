# The files for Telegraf and pgwatch, as far as these tools can be run here: values are the same as
# in SQL, for a role that is only a member of pg_monitor.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use HugeInfo::Tools;
use HugeInfo::Metrics;
use HugeInfo::Arrivals;
use HugeInfo::Host;
use HugeInfo::Server;
use HugeInfo::Session;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('agents', huge_pages => 'try');
monitored($node);
my $session = watch($node);
my $conninfo = 'host=' . $node->host . ' port=' . $node->port . ' user=monitoring dbname=postgres';
my $directory = PostgreSQL::Test::Utils::tempdir();

# The queries of each file.
my %files = (
	pg_hugeinfo => [ grep { $_->{collector} ne 'findings' } queries() ],
	pg_hugeinfo_findings => [ grep { $_->{collector} eq 'findings' } queries() ]);

# Runs one round of Telegraf.
sub by_telegraf
{
	my ($file) = @_;
	append_to_file("$directory/$file.conf", "[agent]\nomit_hostname = true\nquiet = true\n[[outputs.file]]\nfiles = ['stdout']\ndata_format = 'json'\n")
	  unless -e "$directory/$file.conf";
	local $ENV{PG_HUGEINFO_ADDRESS} = $conninfo;
	my ($out, $error) = ('', '');
	IPC::Run::run([ tool('telegraf'), '--once', '--strict-env-handling', '--config', "$directory/$file.conf", '--config', source("target/monitoring/telegraf/$file.conf") ],
		'<', '/dev/null', '>', \$out, '2>', \$error) or die "telegraf: $error\n";
	die "telegraf: $error\n" if $error =~ / [EW]! /;
	my %arrived;
	for my $point (map { JSON::PP->new->decode($_) } split /\n/, $out)
	{
		# Telegraf adds the server
		delete @{ $point->{tags} }{qw(server db)};
		$arrived{ series("$point->{name}_$_", $point->{tags}) } = $point->{fields}{$_} for keys %{ $point->{fields} };
	}
	return \%arrived;
}

# pgwatch itself is not available here. This test runs its queries in the same way: each returns a
# time, tags and values.
sub by_pgwatch
{
	my ($file) = @_;
	my $definitions = python('yaml_to_json.py', [ source("target/monitoring/pgwatch/$file.yaml") ]);
	my %arrived;
	for my $metric (keys %{ $definitions->{metrics} })
	{
		for my $row ($session->rows($definitions->{metrics}{$metric}{sqls}{15}))
		{
			delete $row->{epoch_ns} > 1e18 or die "$metric: no time\n";
			my %labels = map { s/^tag_//r => delete $row->{$_} } grep { /^tag_/ } keys %$row;
			$arrived{ series("${metric}_$_", \%labels) } = $row->{$_} for keys %$row;
		}
	}
	return \%arrived;
}

for my $file (sort keys %files)
{
  SKIP:
	{
		needs_tools("Telegraf, $file", 'telegraf');
		compare_arrivals($session, $files{$file}, sub { by_telegraf($file) }, "Telegraf, $file");
	}
	compare_arrivals($session, $files{$file}, sub { by_pgwatch($file) }, "pgwatch, $file");
}

# Keys that pgwatch supports in such a file (internal/metrics/types.go of version 5).
for my $file (sort keys %files)
{
	my $definitions = python('yaml_to_json.py', [ source("target/monitoring/pgwatch/$file.yaml") ]);
	is_deeply([ sort keys %$definitions ], [qw(metrics presets)], "pgwatch, $file: its sections");
	my %known = map { $_ => 1 } qw(sqls init_sql node_status gauges is_instance_level storage_name description);
	for my $query (@{ $files{$file} })
	{
		my $metric = $definitions->{metrics}{ $query->{namespace} };
		is_deeply([ grep { !$known{$_} } keys %$metric ], [], "pgwatch, $query->{name}: only keys that it supports");
		is_deeply($metric->{gauges}, [ map { $_->{name} } grep { $_->{type} eq 'gauge' } @{ $query->{metrics} } ], "pgwatch, $query->{name}: gauges");
	}
	my ($preset) = values %{ $definitions->{presets} };
	is_deeply($preset->{metrics}, { map { $_->{namespace} => $_->{interval_seconds} } @{ $files{$file} } }, "pgwatch, $file: the preset");
}

$session->close;
$node->stop;
done_testing;
