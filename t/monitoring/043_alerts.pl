# Prometheus scrapes servers with real problems: alerts fire for the affected servers and no others,
# and end with the remedy. Every panel and variable of the dashboards has data.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use HugeInfo::Tools;
use HugeInfo::Exporters;
use HugeInfo::Metrics;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use JSON::PP ();
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();

my $size = $kb && ($kb >= 1 << 20 ? ($kb >> 20) . 'GB' : ($kb >> 10) . 'MB');

SKIP:
{
	my $name = 'alerts';
	needs_tools($name, qw(prometheus prometheus-postgres-exporter prometheus-sql-exporter));
	needs_host($name);

	pools_of_one_size($kb, 0);
	my %node = (small => new_server('small'));
	my $need = required_pages($node{small}, $kb);
	# each server needs the same number
	set_pool($kb, 4 * $need);
	$node{lost} = new_server('lost');
	$node{stuck} = new_server('stuck', huge_pages => 'on');
	$node{bomb} = new_server('bomb');
	$node{bomb}->stop;
	make_group('bomb');
	# less than it has mapped, and more than it faults in here
	limit_group('bomb', 'fault', $kb, ($need - 1) * $kb * 1024);
	make_group('tight', 'memory');
	limit_memory('tight', 1 << 30);
	in_group('bomb', sub { in_group('tight', sub { $node{bomb}->start }, 'memory') });
	monitored($_) for values %node;

	# the files with short intervals and without delays
	my $queries = edited('postgres_exporter.yml', [ qr/  cache_seconds: \d+\n/, '' ]);
	append_to_file($queries, slurp_file(edited('postgres_exporter_findings.yml', [ qr/  cache_seconds: \d+\n/, '' ])));
	my %exporter = map { $_ => postgres_exporter($node{$_}, $queries) } keys %node;
	my $justwatch = justwatch($node{lost}, edited('justwatch_sql_exporter.yml', [ qr/interval: \d+s/, 'interval: 1s' ]));
	my $rules = edited('prometheus/rules.yml', [ qr/for: \d+[mh]/, 'for: 1s' ], [ qr/offset 15m/, 'offset 10s' ], [ qr/\[1d:5m\]/, '[5m:1s]' ]);
	my $targets = join '', map {
		my $cluster = $_ eq 'stuck' ? '' : ', cluster: one';
		"      - { targets: ['" . $exporter{$_}->address . "'], labels: { instance: $_$cluster } }\n"
	} sort keys %exporter;
	my $relabel = slurp_file(source('target/monitoring/prometheus/justwatch.yml')) =~ s/^(?!#)/    /gmr;
	# Without its server, postgres_exporter answers after a second.
	my $prometheus = prometheus(<<~"YAML");
		global: { scrape_interval: 2s, evaluation_interval: 1s }
		rule_files: ['$rules']
		scrape_configs:
		  - job_name: pg
		    static_configs:
		$targets
		  - job_name: justwatch
		    static_configs: [{ targets: ['@{[ $justwatch->address ]}'], labels: { instance: lost } }]
		$relabel
		YAML

	# alert => servers that it fires for
	my $firing = sub {
		my %firing;
		push @{ $firing{ $_->{alertname} } }, $_->{instance} // $_->{cluster}
		  for sort { ($a->{instance} // '') cmp($b->{instance} // '') } $prometheus->asked('ALERTS{alertstate="firing",job!="justwatch"}');
		return \%firing;
	};
	my $fires = sub {
		my ($expected, $name) = @_;
		my $seen;
		until_true(sub { $seen = $firing->(); !grep { "@{$seen->{$_} // []}" ne "@{$expected->{$_}}" } keys %$expected });
		is_deeply({ map { $_ => $seen->{$_} // [] } keys %$expected }, $expected, $name);
	};

	$fires->({ PostgresHugePagesFellBack => ['small'], PostgresHugetlbCgroupBomb => ['bomb'], PostgresHugePagesLostAtRestart => [], PostgresWillNotStart => [],
			PostgresHugePagesClusterUneven => ['one'], PostgresHugePagesNoData => [], PostgresHugePagePoolShrunk => [] }, 'a full pool');

	# pages in use are not removed, but they cease to exist at a restart
	set_pool($kb, 0);
	$fires->({ PostgresHugePagesFellBack => ['small'], PostgresHugetlbCgroupBomb => ['bomb'], PostgresHugePagesLostAtRestart => [qw(bomb lost)], PostgresWillNotStart => ['stuck'],
			PostgresHugePagesNoData => [] }, 'the pool is removed');
	{
		my ($alert) = grep { $_->{labels}{alertname} eq 'PostgresWillNotStart' } @{ JSON::PP->new->decode($prometheus->get('/api/v1/alerts')->{content})->{data}{alerts} };
		like($alert->{annotations}{description}, qr/before the check restart is ok: .* memory\. A restart would fail/, 'the alert has the finding');
		is($alert->{annotations}{runbook_url}, 'docs/checks.md#restart', 'the alert has the page');
		is($alert->{labels}{code}, 'would_not_start', 'the alert has the code');
		like($alert->{annotations}{remedy}, qr/^sysctl -w vm\.nr_hugepages=\d+$/m, 'the alert has the remedy');
	}

	# series of justwatch, renamed by Prometheus, are the same as those of postgres_exporter
	{
		my %series;
		my $same = sub {
			for my $job (qw(pg justwatch))
			{
				my @all = $prometheus->asked(qq({__name__=~"pg_hugeinfo_.*",__name__!~"pg_hugeinfo_check_finding_info",instance="lost",job="$job"}));
				delete @$_{qw(job value server host user driver database cluster)} for @all;
				$series{$job} = [ sort map { JSON::PP->new->canonical->encode($_) } @all ];
			}
			return "@{$series{pg}}" eq "@{$series{justwatch}}";
		};
		until_true($same);
		is_deeply($series{justwatch}, $series{pg}, "justwatch's metrics have the same names and labels");
		my ($value) = $prometheus->asked('pg_hugeinfo_segment_bytes{job="justwatch"}');
		is($value->{value}, status_of_monitored($node{lost})->{segment_bytes}, 'justwatch: the values are the same');
		ok(until_true(sub { grep { $_->{job} eq 'justwatch' } $prometheus->asked('ALERTS{alertname="PostgresHugePagesLostAtRestart"}') }), 'justwatch: an alert fires');
	}

	# every variable and panel
	my %shows;
	for my $board (qw(server fleet))
	{
		my $dashboard = JSON::PP->new->decode(slurp_file(source("target/monitoring/grafana/$board.json")));
		my %values;
		for my $variable (grep { $_->{type} eq 'query' } @{ $dashboard->{templating}{list} })
		{
			my $query = $variable->{query}{query};
			my ($series, $label) = $query =~ /^label_values\((.*), (\w+)\)$/ or die "$query\n";
			$series =~ s/\$job/pg/;
			my @found = $prometheus->asked("group by ($label) ($series)");
			$values{ $variable->{name} } = [ sort map { $_->{$label} } @found ];
		}
		is_deeply(\%values, { job => [qw(justwatch pg)], instance => [qw(bomb lost small stuck)] },
			"$board: the variables have values");
		for my $panel (grep { $_->{targets} } @{ $dashboard->{panels} })
		{
			for my $target (@{ $panel->{targets} })
			{
				my %chosen = ('$job' => 'pg', '$instance' => $board eq 'server' ? 'bomb' : '.+', '$__rate_interval' => '10s', '$1' => '$1');
				my $expression = $target->{expr} =~ s/(\$\w+)/$chosen{$1} \/\/ die "what is $1?\n"/ger;
				ok(until_true(sub { scalar(() = $prometheus->asked($expression)) }), "$board, $panel->{title}, $target->{refId}: has data") or diag($expression);
				my %has = map { $_ => 1 } map { keys %$_ } $prometheus->asked($expression);
				is_deeply([ grep { !$has{$_} } ($target->{legendFormat} // '') =~ /\{\{(\w+)\}\}/g ], [], "$board, $panel->{title}, $target->{refId}: has the labels of its legend");
				is_deeply([ grep { $_ ne 'Value' && !$has{$_} } map { @{ $_->{options}{include}{names} // [] } } @{ $panel->{transformations} // [] } ],
					[], "$board, $panel->{title}: has the labels of its columns");
				next if $panel->{type} ne 'stat';
				my ($words) = map { $_->{options} } @{ $panel->{fieldConfig}{defaults}{mappings} };
				my @numbers = map { $_->{value} } $prometheus->asked($expression);
				$shows{$board}{ $panel->{title} } = [ map { $words ? $words->{$_}{text} : $_ } @numbers ];
			}
		}
	}
	my %expected = (
		server => { Status => ['critical'], 'On huge pages' => ['yes'], 'Kept after a restart' => ['no'],
			'Main segment' => [ status_of_monitored($node{bomb})->{segment_bytes} ] },
		fleet => { Servers => [4], 'Lost at a restart' => [3] });
	for my $board (sort keys %expected)
	{
		for my $title (sort keys %{ $expected{$board} })
		{
			is_deeply($shows{$board}{$title}, $expected{$board}{$title}, "$board, $title: the number or word");
		}
	}

	# a server that runs without huge pages on purpose
	$node{small}->safe_psql('postgres', q(LOAD 'pg_hugeinfo'; ALTER SYSTEM SET pg_hugeinfo.muted_checks = huge_pages, restart));
	$node{small}->reload;
	set_pool($kb, 5 * $need);
	$fires->({ PostgresHugePagesFellBack => [], PostgresHugePagesLostAtRestart => [], PostgresWillNotStart => [], PostgresHugetlbCgroupBomb => ['bomb'],
			PostgresHugePagesClusterUneven => [] }, 'muted, and the pool is restored');
	ok(scalar(() = $prometheus->asked('pg_hugeinfo_in_use{instance="small"} == 0')), 'muted: it is still on small pages');

	ok(until_true(sub { 4 == grep { $_->{value} == 5 * $need + pages_of_others($kb) } $prometheus->asked("pg_hugeinfo_pool_size_pages{job='pg',page_size='$size'} offset 10s") }), 'a larger pool, for a while');
	set_pool($kb, 4 * $need);
	$fires->({ PostgresHugePagePoolShrunk => [qw(bomb lost small stuck)] }, 'the pool shrinks');
	$node{small}->stop;
	$fires->({ PostgresHugePagesNoData => ['small'] }, 'a server is down');

	# justwatch keeps returning the last values
	my $kept = sub { return grep { $_->{job} eq 'justwatch' } $prometheus->asked($_[0]) };
	my $no_data = 'ALERTS{alertname="PostgresHugePagesNoData",alertstate="firing"}';
	is_deeply([ $kept->($no_data) ], [], 'no alert about justwatch');
	$node{lost}->stop;
	$fires->({ PostgresHugePagesNoData => [qw(lost small)] }, 'one more is down');
	ok(until_true(sub { $kept->($no_data) }), 'that of justwatch, too') or diag(explain([ map { $kept->($_) } 'sql_exporter_last_scrape_failed', 'pg_hugeinfo_in_use', 'up' ]));
	ok(scalar $kept->('pg_hugeinfo_in_use'), 'justwatch still has values');
	$node{lost}->start;
	$fires->({ PostgresHugePagesNoData => ['small'] }, 'it runs again');
	ok(until_true(sub { !$kept->($no_data) }), 'the alert about justwatch ends, too');

	$prometheus->stop;
	$_->stop for $justwatch, values %exporter;
	$_->stop for grep { $_->{_pid} } values %node;
}

sub status_of_monitored
{
	my ($node) = @_;
	return JSON::PP->new->decode($node->safe_psql('postgres', 'SELECT to_json(s) FROM public.hugeinfo_status AS s'));
}

done_testing;
