# The metrics, queried by pg_monitor: each query returns the columns in the list, without values
# that tools cannot parse, and a server has a limited number of series.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Tools;
use HugeInfo::Metrics;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Server;
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $node = new_server('metrics', huge_pages => 'try');
monitored($node);
my $root = HugeInfo::Session->new($node);
$root->value('SET search_path = hugeinfo, public');
my $monitoring = watch($node);
my @queries = queries();

# Returns for each column its name, whether it is text, and whether one of its values is NULL.
sub columns_of
{
	my ($query) = @_;
	my $sql = $query->{sql};
	my @columns;
	$root->value("CREATE OR REPLACE TEMPORARY VIEW asked AS $sql");
	for my $column ($root->rows(q(SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute WHERE attrelid = 'asked'::regclass AND attnum > 0 ORDER BY attnum)))
	{
		my $nulls = $monitoring->value("SELECT count(*) FROM ($sql) AS q WHERE \"$column->{attname}\" IS NULL");
		push @columns, { name => $column->{attname}, type => $column->{type} =~ /^(?:bigint|integer|double precision)$/ ? 'number' : $column->{type}, nulls => $nulls };
	}
	$root->value('DROP VIEW asked');
	return \@columns;
}

sub compare_queries
{
	my ($name) = @_;
	my ($series, @rare) = (0);
	for my $query (@queries)
	{
		my @expected = ((map { { name => $_, type => 'text', nulls => 0 } } @{ $query->{labels} }),
			(map { { name => $_->{name}, type => 'number', nulls => 0 } } @{ $query->{metrics} }));
		is_deeply(columns_of($query), \@expected, "$name, $query->{name}: its columns");
		my $samples = samples_of($monitoring, $query);
		my $rows = $monitoring->value("SELECT count(*) FROM ($query->{sql}) AS q");
		is(scalar keys %$samples, $rows * @{ $query->{metrics} }, "$name, $query->{name}: no duplicate series") if $query->{collector} ne 'processes';
		push @rare, $query->{name} unless %$samples;
		$series += keys %$samples if $query->{collector} ne 'findings';
	}
	cmp_ok($series, '>', 100, "$name: series");
	cmp_ok($series, '<=', 250, "$name: not too many series");
	note("$name: $series series; none from: @rare");
	return;
}

compare_queries('the host as it is');
SKIP:
{
	my $name = 'huge pages';
	needs_host($name);
	$_->close for $root, $monitoring;
	pools_of_one_size($kb, required_pages($node, $kb));
	$node->restart;
	$_ = HugeInfo::Session->new($node) for $root;
	$monitoring = watch($node);
	$root->value('SET search_path = hugeinfo, public');
	is($monitoring->value('SELECT in_use FROM public.hugeinfo_status'), 't', "$name: in use");
	compare_queries($name);
}

# Muting affects only alerts, not the severity.
{
	my $name = 'muted';
	my ($query) = grep { $_->{name} eq 'check' } @queries;
	my $before = samples_of($monitoring, $query);
	$root->value(q(ALTER ROLE monitoring SET pg_hugeinfo.muted_checks = 'oom_protection'));
	my $after = samples_of(watch($node), $query);
	my ($alerts, $mute) = map { qq(pg_hugeinfo_check_severity{muted="$_",name="oom_protection"}) } qw(false true);
	is($after->{$mute}, $before->{$alerts}, "$name: the severity does not change");
	ok(!exists $after->{$alerts}, "$name: the alert has no value");
}

$node->stop;
done_testing;
