# monitoring/metrics.json, and a server as those who monitor it find it: with the extension as
# docs/install.md installs it, and a role that may do nothing but look.
package HugeInfo::Metrics;

use strict;
use warnings;

use Exporter 'import';
use JSON::PP ();
use PostgreSQL::Test::Utils;

use HugeInfo::Tools;

our @EXPORT = qw(queries monitored watch samples_of);

# As the list has them: name, labels, metrics, sql and so on.
sub queries { return @{ JSON::PP->new->decode(slurp_file(source('monitoring/metrics.json'))) } }

# The extension in its own schema, in the database postgres, and the role "monitoring".
sub monitored
{
	my ($node) = @_;
	$node->safe_psql('postgres', <<~'SQL');
		DROP EXTENSION IF EXISTS pg_hugeinfo;
		CREATE SCHEMA hugeinfo;
		CREATE EXTENSION pg_hugeinfo SCHEMA hugeinfo;
		GRANT USAGE ON SCHEMA hugeinfo TO pg_monitor;
		CREATE ROLE monitoring LOGIN IN ROLE pg_monitor;
		SQL
	return;
}

# A session of that role.
sub watch { my ($node) = @_; return HugeInfo::Session->new($node, user => 'monitoring') }

# What a query says now, as Prometheus writes it: series => value.
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
