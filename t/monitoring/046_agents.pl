# The files for Telegraf: values are the same as in SQL, for a role that is only a member of
# pg_monitor.
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

for my $file (sort keys %files)
{
  SKIP:
	{
		needs_tools("Telegraf, $file", 'telegraf');
		compare_arrivals($session, $files{$file}, sub { by_telegraf($file) }, "Telegraf, $file");
	}
}

$session->close;
$node->stop;
done_testing;
