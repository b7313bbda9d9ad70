# Compares the numbers that a tool receives with SQL results before and after. The numbers of a host
# change all the time, so each number must lie in this range once.
package HugeInfo::Arrivals;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run ();
use JSON::PP ();
use PostgreSQL::Test::Utils;
use Test::More;

use HugeInfo::Metrics;
use HugeInfo::Processes qw(until_true);
use HugeInfo::Tools;

our @EXPORT = qw(python series compare_arrivals);

# Runs a program of monitoring/tests/python and decodes its output.
sub python
{
	my ($program, $arguments, $in) = @_;
	local $ENV{PYTHONPATH} = source('target/tools/python');
	my ($out, $error) = ('', '');
	IPC::Run::run([ '/usr/bin/python3', source("monitoring/tests/python/$program"), @$arguments ], '<', \($in // ''), '>', \$out, '2>', \$error)
	  or die "$program: $error\n";
	return JSON::PP->new->decode($out);
}

# Formats a series like samples_of.
sub series
{
	my ($name, $labels) = @_;
	return "$name\{" . join(',', map { "$_=\"" . ($labels->{$_} =~ s/([\\"])/\\$1/gr =~ s/\n/\\n/gr) . '"' } sort keys %$labels) . '}';
}

# The query itself is a client backend, so sums over client backends differ for each tool. The pages
# on a node are those of the process that has faulted in most, which can be the backend of the
# query.
my $OF_WHO_ASKS = qr/^pg_hugeinfo_(?:processes_.*client backend|page_tables_saving_bytes|numa_segment_pages)/;

# The query also uses memory while it runs.
my $NEAR = qr/^pg_hugeinfo_(?:host_memory_available|host_page_table|cgroup_memory_used)_bytes/;

# $collect returns series => value, of these queries only.
sub compare_arrivals
{
	my ($session, $queries, $collect, $name) = @_;
	my $ask = sub { return { map { %{ samples_of($session, $_) } } @$queries } };
	my (%seen, $arrived, $after, @waiting);
	until_true(sub {
		my $before = $ask->();
		$arrived = $collect->();
		$after = $ask->();
		return 0 if join("\n", sort keys %$before) ne join "\n", sort keys %$after;
		for my $series (grep { exists $arrived->{$_} } keys %$after)
		{
			my ($low, $high) = sort { $a <=> $b } $before->{$series}, $after->{$series};
			($low, $high) = (0.75 * $low, 1.25 * $high) if $series =~ $NEAR;
			$seen{$series} = 1 if $arrived->{$series} >= $low && $arrived->{$series} <= $high;
		}
		@waiting = grep { !$seen{$_} && $_ !~ $OF_WHO_ASKS } keys %$after;
		return !@waiting;
	});
	is_deeply([ sort keys %$arrived ], [ sort keys %$after ], "$name: exactly the series in the list arrive");
	is_deeply({ map { $_ => $arrived->{$_} } @waiting }, {}, "$name: the values are the same as in SQL")
	  or diag(map { "$_ is $after->{$_}\n" } @waiting);
	return;
}

1;
