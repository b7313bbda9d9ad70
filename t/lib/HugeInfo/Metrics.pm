# target/monitoring/metrics.json, and a server that is set up for monitoring: the extension is
# installed as in docs/install.md, and a role has only the necessary privileges.
package HugeInfo::Metrics;

use strict;
use warnings;

use Exporter 'import';
use JSON::PP ();
use PostgreSQL::Test::Utils;

use HugeInfo::Tools;

our @EXPORT = qw(queries monitored watch samples_of);

# The queries of the file: name, labels, metrics, sql and so on.
sub queries { return @{ JSON::PP->new->decode(slurp_file(source('target/monitoring/metrics.json'))) } }

# Installs the extension in the database postgres, and creates the role "monitoring".
sub monitored
{
	my ($node) = @_;
	$node->safe_psql('postgres', <<~'SQL');
		DROP EXTENSION IF EXISTS pg_hugeinfo;
		CREATE EXTENSION pg_hugeinfo;
		CREATE ROLE monitoring LOGIN IN ROLE pg_monitor;
		SQL
	return;
}

# Opens a session of that role.
sub watch { my ($node) = @_; return HugeInfo::Session->new($node, user => 'monitoring') }

# Runs a query and returns series => value, formatted as in Prometheus.
sub samples_of
{
	my ($session, $query) = @_;
	my %samples;
	for my $row ($session->rows($query->{sql}))
	{
		my $labels = join ',', map { "$_=\"" . ($row->{$_} =~ s/([\\"])/\\$1/gr =~ s/\n/\\n/gr) . '"' } sort @{ $query->{labels} };
		$samples{"$_->{full_name}\{$labels\}"} = $row->{ $_->{name} } for @{ $query->{metrics} };
	}
	return \%samples;
}

1;
