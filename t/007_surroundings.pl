# The status as pg_monitor sees it, and single-user mode. sql/privileges.sql compares all grants.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $node = new_server('odd');
my $need = $kb && required_pages($node, $kb);

{
	my $name = 'pg_monitor';
	$node->safe_psql('postgres', 'CREATE ROLE observer IN ROLE pg_monitor');
	my $status = 'SELECT to_json(s) FROM hugeinfo_status AS s';
	my ($seen, $expected) = agreeing(sub { $node->safe_psql('postgres', "SET ROLE observer; $status") }, sub { $node->safe_psql('postgres', $status) });
	is($seen, $expected, "$name: sees what a superuser sees");
}

# In single-user mode, the process itself is the server, without a postmaster.
sub single_user
{
	my ($expected, $name) = @_;
	my ($in, $out, $error) = ("SELECT * FROM hugeinfo_status;\nSELECT * FROM hugeinfo_pools;\n", '', '');
	my $run = IPC::Run::start([ 'postgres', '--single', '-D', $node->data_dir, 'postgres' ],
		\$in, \$out, \$error, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	# A prompt before each statement and one after the last. The process stays until its input ends.
	$run->pump until (() = $out =~ /^backend> /mg) == 3 || !$run->pumpable;
	my $real = segment($run->{KIDS}[0]{PID});
	$run->finish;
	is($run->full_result(0), 0, "$name: exit status is zero");
	unlike($error . $out, qr/ERROR|FATAL|PANIC/, "$name: without an error");
	my %column = $out =~ /^\s+\d+: (\w+) = "(.*?)"\t/mg;
	my ($status) = $out =~ /^backend> (.*?)^backend> /ms;
	my %status = $status =~ /^\s+\d+: (\w+) = "(.*?)"\t/mg;
	is($status{in_use}, $expected, "$name: in_use");
	is($status{page_size_bytes}, $real->{page_bytes}, "$name: page size as in smaps");
	is($status{segment_bytes}, $real->{bytes}, "$name: segment size as in maps");
	ok($status{status}, "$name: status is $status{status}");
	return;
}

SKIP:
{
	needs_host('single-user mode');
	$node->stop;
	pools_of_one_size($kb, 0);
	single_user('f', 'single-user mode on small pages');
	set_pool($kb, $need);
	single_user('t', 'single-user mode on huge pages');
	$node->start;
}

done_testing;
