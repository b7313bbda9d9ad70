# The plugin for Nagios, `hugeinfo check --format nagios`, as read by Monitoring::Plugin, and the
# query for check_postgres. t/051_program_servers.pl compares the whole output with SQL.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use HugeInfo::Tools;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Server;
use HugeInfo::Session;
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $node = new_server('nagios', huge_pages => 'off');
$node->safe_psql('postgres', 'CREATE ROLE monitor LOGIN IN ROLE pg_monitor');
my $sql = HugeInfo::Session->new($node);

# Runs the plugin. Returns its exit status and the performance data.
sub run_plugin
{
	my ($out, $error) = ('', '');
	IPC::Run::run([ source('target/program/hugeinfo'), 'check', '-D', $node->data_dir, '--bindir', $ENV{PATH} =~ s/:.*//r, '--format', 'nagios' ],
		'<', '/dev/null', '>', \$out, '2>', \$error);
	my $exit = $? >> 8;
	my ($perfdata) = $out =~ /\A[^|\n]+ \| ([^|\n]+)\n/;
	return ($exit, $perfdata // '');
}

sub compare_perfdata
{
	my ($name, $expected_exit) = @_;
	my ($exit, $perfdata) = run_plugin();
	is($exit, $expected_exit, "$name: the exit status") if defined $expected_exit;
  SKIP:
	{
		cannot("$name: Monitoring::Plugin is not installed: see tools/setup") unless eval { require Monitoring::Plugin::Performance; 1 };
		my @read = Monitoring::Plugin::Performance->parse_perfstring($perfdata);
		my %figures = map { $_->label => $_->value } @read;
		is(scalar @read, 9, "$name: all figures");
		is_deeply([ map { $_->label } grep { $_->uom eq 'B' } @read ], ['segment_bytes'], "$name: their units");
		is($figures{segment_bytes}, $sql->value('SELECT segment_bytes FROM hugeinfo_status'), "$name: a figure as in SQL");
		my %alerts = map { $_->label => $_->threshold->get_status($_->value) } @read;
		my %expected = map { $_ => 0 } keys %figures;
		$expected{checks_critical} = 2 if $figures{checks_critical};
		$expected{checks_warning} = 1 if $figures{checks_warning};
		is_deeply(\%alerts, \%expected, "$name: their thresholds");
	}
	return;
}

# Figures have the same names in all tools.
{
	my %names = map { $_ => 1 } slurp_file(source('target/monitoring/metrics.json')) =~ /"full_name": "pg_hugeinfo_(\w+)"/g;
	my @labels = map { s/=.*//r } split / /, (run_plugin())[1];
	is_deeply([ grep { !/^checks_/ && !$names{$_} } @labels ], [], 'figures have the names of metrics');
}

compare_perfdata('huge_pages = off');
SKIP:
{
	my $name = 'fallen back';
	needs_host($name);
	pools_of_one_size($kb, 0);
	$sql->close;
	restarts($node, huge_pages => 'try');
	$sql = HugeInfo::Session->new($node);
	compare_perfdata($name, 1);

	$name = 'a restart would fail';
	pools_of_one_size($kb, required_pages($node, $kb));
	$sql->close;
	restarts($node, huge_pages => 'on');
	$sql = HugeInfo::Session->new($node);
	# pages in use are not removed, but they cease to exist at a restart
	set_pool($kb, 0);
	compare_perfdata($name, 2);
}

# check_postgres, a common plugin, with one number.
SKIP:
{
	my $name = 'check_postgres';
	needs_tools($name, 'check_postgres');
	my $severity = $sql->value('SELECT max(severity) FROM hugeinfo_checks WHERE NOT is_muted');
	my %words = (0 => 'OK', 1 => 'WARNING', 2 => 'CRITICAL');
	for ([ 2, 3 ], [ 0, $severity ], [ $severity, 4 ], [ 4, 5 ])
	{
		my ($warning, $critical) = @$_;
		my $out;
		IPC::Run::run([ tool('check_postgres'), '--action=custom_query', '--host=' . $node->host, '--port=' . $node->port, '--dbuser=monitor', '--dbname=postgres',
				'--query=SELECT max(severity) AS result FROM hugeinfo_checks WHERE NOT is_muted', '--valtype=integer', "--warning=$warning", "--critical=$critical" ],
			'<', '/dev/null', '>', \$out, '2>&1');
		my $exit = $severity >= $critical ? 2 : $severity >= $warning ? 1 : 0;
		is($? >> 8, $exit, "$name, $warning and $critical: the exit status");
		like($out, qr/^POSTGRES_CUSTOM_QUERY $words{$exit}: .*\b$severity\b/, "$name, $warning and $critical: the figure");
	}
}

$sql->close;
$node->stop;
done_testing;
