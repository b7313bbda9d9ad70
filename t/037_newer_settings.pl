# Settings of newer PostgreSQL versions and their effect: allow_alter_system and huge_pages_status
# (17), io_uring (18).
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Checks;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $node = new_server('newer', shared_memory_type => 'sysv');
my $version = int($node->safe_psql('postgres', 'SHOW server_version_num') / 10000);
my $file = $node->data_dir . '/postgresql.conf';

sub value { my ($sql) = @_; return $node->safe_psql('postgres', $sql) }
sub has { my ($setting) = @_; return value("SELECT count(*) FROM pg_settings WHERE name = '$setting'") }

# Returns all commands of the advice.
sub advice
{
	return value(q{
		SELECT remedy FROM hugeinfo_status UNION ALL SELECT remedy FROM hugeinfo_checks
		UNION ALL SELECT command FROM hugeinfo_runbook
		UNION ALL SELECT command FROM hugeinfo_runbook('{"shared_buffers": "24MB", "huge_pages": "try"}')});
}

SKIP:
{
	my $name = 'allow_alter_system';
	skip("$name is new in PostgreSQL 17", 1) if $version < 17;
	is(has('allow_alter_system'), 1, "$name: PostgreSQL $version has it");
	needs_host($name);
	pools_of_one_size($kb, required_pages($node, $kb) + wanted_by_others($kb, $node->{_pid}));
	my $huge_pages = q(SELECT remedy FROM hugeinfo_checks WHERE name = 'huge_pages');
	like(advice(), qr/^ALTER SYSTEM SET shared_buffers/m, "$name = on: planned settings by ALTER SYSTEM");
	like(value($huge_pages), qr/otherwise, for the next start, ALTER SYSTEM SET shared_memory_type = /, "$name = on: the remedy uses ALTER SYSTEM, too");

	configure($node, allow_alter_system => 'off');
	$node->reload;
	ok(until_true(sub { value('SHOW allow_alter_system') eq 'off' }), "$name = off");
	isnt(($node->psql('postgres', 'ALTER SYSTEM SET huge_pages = try'))[0], 0, "$name = off: the server rejects it");
	unlike(advice(), qr/ALTER SYSTEM/, "$name = off: the advice does not use it");
	is(value(q(SELECT sourcefile FROM pg_settings WHERE name = 'shared_memory_type')), $file, "$name = off: the file of the setting");
	my $remedy = value($huge_pages);
	my ($where, $line) = $remedy =~ /otherwise, for the next start, in (\S+?)(?:, line \d+)?: (.*)$/m or fail("$name = off: the remedy has another form: $remedy");
	is($where, $file, "$name = off: the remedy names that file");
	append_to_file($where, "$line\n");
	$node->restart;
	is(value('SHOW shared_memory_type'), 'mmap', "$name = off: the remedy works");
	append_to_file($file, "allow_alter_system = on\nhuge_pages = off\n");
	$node->restart;
}

SKIP:
{
	my $name = 'io_uring';
	skip("$name is new in PostgreSQL 18", 1) if $version < 18;
	cannot("$name: this PostgreSQL was built without it")
	  unless value(q(SELECT count(*) FROM pg_settings WHERE name = 'io_method' AND 'io_uring' = ANY (enumvals)));
	configure($node, io_method => 'io_uring');
	$node->stop;
	my ($started, $reason) = starts($node);
	cannot("$name: no server with it starts here: $reason") unless $started;
	my $sql = HugeInfo::Session->new($node);
	is_deeply([ map { $_->{pid} } $sql->rows('SELECT pid FROM hugeinfo_backends ORDER BY pid') ], [ family($node->{_pid}) ], "$name: every process");
	# None since Linux 6.5, because PostgreSQL allocates the rings in its shared memory there.
	my @mapped = grep { ($_->{path} // '') =~ /io_uring/ } maps_file($sql->pid);
	note("$name: " . @mapped . ' mappings of rings');
	is_deeply([ map { $_->{kind} } $sql->rows(q(SELECT kind FROM hugeinfo_mappings WHERE path LIKE '%io_uring%')) ],
		[ ('kernel') x @mapped ], "$name: mappings of rings have the kind kernel");
	$sql->close;
	compare_segment($node, status_of($node), "$name, small pages");
	my $planned = 'SELECT required_pages FROM hugeinfo_plan() WHERE is_requested';
	needs_host("$name on huge pages");
	my $need = value($planned);
	pools_of_one_size($kb, $need);
	restarts($node, huge_pages => 'on');
	my $segment = compare_segment($node, status_of($node), "$name, huge pages");
	is($segment->{bytes} / $segment->{page_bytes}, $need, "$name: as many as planned");
	set_pool($kb, $need - 1);
	$node->stop;
	ok(!(starts($node))[0], "$name: with one less it does not start");
}

$node->stop('fast', fail_ok => 1);
done_testing;
