# Pending settings, as pg_monitor sees them: the same figures as for a superuser, which a restart
# then has, and the names of the settings, but no contents of the files.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Checks;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $node = new_server('next', huge_pages => 'off');
my $file = $node->data_dir . '/postgresql.conf';
my $contents = slurp_file($file);
sub set_file { my ($text) = @_; open my $fh, '>', $file or die "$file: $!\n"; print $fh $contents, $text; return close $fh }

my $root = HugeInfo::Session->new($node);
$root->value('CREATE ROLE observer IN ROLE pg_monitor');
my $observer = HugeInfo::Session->new($node);
$observer->value('SET ROLE observer');

# Returns all texts about the next start that pg_monitor can read.
my @readable = ('hugeinfo_next_start', 'hugeinfo_checks', 'hugeinfo_status', 'hugeinfo_runbook', 'hugeinfo_pools');
sub told { my ($session) = @_; return join '', map { my ($out, $error) = $session->query("SELECT to_json(r) FROM $_ AS r"); $out . $error } @readable }
sub waiting { return $observer->value('SELECT DISTINCT array_to_string(waiting_settings, chr(32)) FROM hugeinfo_next_start') }
sub finding { return $observer->value(q(SELECT status || ': ' || finding FROM hugeinfo_checks WHERE name = 'pending_settings')) }
sub reason { return $observer->value('SELECT reason FROM hugeinfo_status') }

# Restarts the server and the sessions.
sub restart
{
	$_->close for $root, $observer;
	$node->restart;
	$_ = HugeInfo::Session->new($node) for $root, $observer;
	$observer->value('SET ROLE observer');
	return;
}

# Waits until both sessions have reloaded, because each session reads the files itself.
sub reload
{
	my $loaded = sub { return map { $_->value('SELECT pg_conf_load_time()') } $root, $observer };
	my @before = $loaded->();
	$node->reload;
	until_true(sub { my @now = $loaded->(); return $now[0] ne $before[0] && $now[1] ne $before[1] }) or die "no reload\n";
	return;
}

is(waiting(), '', 'nothing is pending');
unlike(reason(), qr/pending a restart/, 'nothing is pending: hugeinfo_status does not report it');

# name => lines, pending settings
my @files = (
	[ 'buffers' => "shared_buffers = '40MB'\n", 'shared_buffers' ],
	[ 'several' => "max_connections = 40\nwal_buffers = '9MB'\nhuge_pages = try\n", 'huge_pages max_connections wal_buffers' ],
	[ 'the same, written otherwise' => "shared_buffers = 16384kB\nwal_buffers = -1\n", '' ],
	# the server reports it as pending only after a reload
	[ 'a library' => "shared_preload_libraries = 'pg_hugeinfo'\n", 'shared_preload_libraries' ],
	[ 'another kind of setting' => "work_mem = '5MB'\nport = 1\n", '' ]);
for (@files)
{
	my ($name, $text, $names) = @$_;
	set_file($text);
	is(waiting(), $names, "$name: is pending before a reload") if $name ne 'a library';
	reload();
	my $pending = q(SELECT string_agg(name, ' ' ORDER BY name) FROM pg_settings WHERE pending_restart AND name <> 'port');
	is($root->value($pending), $names, "$name: PostgreSQL reports the same after a reload");
	is(waiting(), $names, "$name: the view reports the same after a reload");
	my $figures = 'SELECT segment_bytes, page_size_bytes, required_pages, tail_waste_bytes, is_requested FROM ';
	is_deeply([ $observer->rows($figures . 'hugeinfo_next_start') ], [ $root->rows($figures . 'hugeinfo_plan()') ], "$name: figures as in a superuser's plan");
	# This library uses no shared memory.
	if ($names && $name ne 'a library')
	{
		my $list = join ', ', split / /, $names;
		like(finding(), qr/^\w+: Settings are pending a restart \(\Q$list\E\)\. /, "$name: the check names them");
		like(reason(), qr/ Settings are pending a restart\.$/, "$name: hugeinfo_status reports it");
	}
	my $bytes = $observer->value('SELECT DISTINCT segment_bytes FROM hugeinfo_next_start');
	set_file($text =~ s/port = 1\n//r);
	restart();
	my $base = base_page();
	is(segment($node->{_pid})->{bytes}, $base * POSIX::ceil($bytes / $base), "$name: the restart maps as much");
	is(waiting(), '', "$name: nothing is pending after it");
	set_file('');
	restart();
}

{
	my $name = 'a line was removed';
	set_file("max_connections = 33\n");
	restart();
	set_file('');
	is(waiting(), 'max_connections', "$name: it is pending");
	restart();
}

{
	my $name = 'an older file in place of the present one';
	append_to_file("$file.old", "${contents}shared_buffers = '40MB'\n");
	utime time - 3600, time - 3600, "$file.old" or die "utime: $!\n";
	rename "$file.old", $file or die "rename: $!\n";
	like(reason(), qr/ Settings are pending a restart\.$/, "$name: hugeinfo_status reports it");
	set_file('');
	restart();
}

# Patroni starts the server with another command line after a change of its file.
{
	my $own = $contents;
	my $start = sub {
		$_->close for $root, $observer;
		$node->stop;
		system_or_bail('pg_ctl', '-w', '-D', $node->data_dir, '-l', $node->logfile, @_, 'start');
		$node->_update_pid(1);
		$_ = HugeInfo::Session->new($node) for $root, $observer;
		$observer->value('SET ROLE observer');
	};
	for (['Patroni', "# Do not edit this file manually!\n# It will be overwritten by Patroni!\n", 'max_connections'], ['another tool', '', ''])
	{
		my ($name, $first, $pending) = @$_;
		$contents = $first . $own;
		set_file("max_connections = 77\n");
		$start->('-o', '-c max_connections=20');
		my $bytes = 'SELECT DISTINCT segment_bytes FROM hugeinfo_next_start';
		my $next = $root->value($bytes);
		is($root->value("SELECT DISTINCT array_to_string(waiting_settings, ' ') FROM hugeinfo_next_start"), $pending, "$name: pending settings");
		$start->($pending ? () : ('-o', '-c max_connections=20'));
		is($root->value($bytes), $next, "$name: the start has as much shared memory");
	}
	$contents = $own;
	set_file('');
	restart();
}

# A poll makes no plan if nothing is pending. Here, a plan would fail, because its directory is
# missing.
{
	my $name = 'a poll';
	{
		local $ENV{TMPDIR} = '/no/such/place';
		restart();
	}
	like(finding(), qr/^ok: /, "$name: no plan if nothing is pending");
	is($observer->value('SELECT count(*) FROM hugeinfo_status'), 1, "$name: hugeinfo_status makes no plan");
	set_file("shared_buffers = '40MB'\n");
	like(finding(), qr{^unknown: .*/no/such/place}, "$name: a plan if a setting is pending");
	like(reason(), qr/ Settings are pending a restart, and the pages that they need are unknown\.$/, "$name: hugeinfo_status reports it");
	like(($observer->error_of('SELECT * FROM hugeinfo_next_start'))[1], qr/HINT:.*TMPDIR/, "$name: the hint names TMPDIR");
	set_file('');
	restart();
}

# Contents of files that prevent a start.
for (
	[ 'an invalid value' => "shared_buffers = 'xyzzy'\n" ],
	[ 'an invalid line' => "work_mem = 1MB xyzzy\n" ],
	[ 'a setting that does not exist' => "xyzzy = 1\n" ],
	[ 'a library that is missing' => "shared_preload_libraries = 'xyzzy'\n" ],
	# might be an error of the directory, not of the configuration
	[ 'a library with a relative path' => "shared_preload_libraries = 'below/xyzzy'\n", 'unknown' ])
{
	my ($name, $text, $status) = @$_;
	$status //= 'critical';
	set_file($text);
	like(told($root), qr/xyzzy/, "$name: a superuser sees the reason");
	unlike(told($observer), qr/xyzzy/, "$name: pg_monitor does not see the reason");
	like(finding(), qr/^$status: .*a superuser can see the reason/, "$name: pg_monitor sees the status");
	my ($state, $error) = $observer->error_of('SELECT * FROM hugeinfo_next_start');
	is($state, $status eq 'critical' ? 'F0000' : '38000', "$name: the view is an error");
	like($error, qr/superuser can see/, "$name: the error names who can see the reason");
	set_file('');
}

# Pages that were set up for pending settings are not idle.
SKIP:
{
	my $name = 'a pool for the next start';
	needs_host($name);
	set_file("huge_pages = try\n");
	restart();
	my $now = required_pages($node, $kb);
	set_file("huge_pages = try\nshared_buffers = '1500MB'\n");
	my $next = $observer->value('SELECT required_pages FROM hugeinfo_next_start WHERE is_requested');
	cmp_ok($next, '>', 2 * $now, "$name: it needs more pages");
	pools_of_one_size($kb, $next);
	unlike(reason(), qr/are idle/, "$name: hugeinfo_status does not report idle pages");
	is($observer->value(q(SELECT status FROM hugeinfo_checks WHERE name = 'pool_size')), 'ok', "$name: the check does not report idle pages");
	restart();
	is(segment($node->{_pid})->{page_bytes}, 1024 * $kb, "$name: the restart gets its pages");
	is($observer->value('SELECT segment_pages FROM hugeinfo_status'), $next, "$name: as many as forecast");
	set_file('');
}

$_->close for $root, $observer;
$node->stop;
done_testing;
