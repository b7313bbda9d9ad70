# A restart uses exactly the planned memory, and a plan leaves nothing behind.
#
# Takes half a minute, because a real start of a server follows each plan.
use strict;
use warnings;

use Digest::MD5 ();
use Fcntl qw(:flock);
use File::Find ();
use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use IPC::Run ();
use JSON::PP ();
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $kb = default_page_kb();
my $json = JSON::PP->new->canonical;

# Only this test's servers have their scratch directories here.
my $temporary = PostgreSQL::Test::Utils::tempdir();
$ENV{TMPDIR} = $temporary;

my $node = new_server('planned', huge_pages => 'off', restart_after_crash => 'on', log_min_messages => 'warning');
my $data = $node->data_dir;
configure($node, wal_level => 'replica', max_wal_senders => 5);
append_to_file("$data/postgresql.conf", "include = 'mix.conf'\n");
append_to_file("$data/mix.conf", '');
$node->restart;

sub scratches { my @all = glob "$temporary/pg_hugeinfo-plan.*"; return @all }

# Returns the programs that use a scratch directory.
sub children
{
	return grep { process_file($_, 'cmdline') =~ /\Q$temporary\E\/pg_hugeinfo-plan/ } map { m{(\d+)$} } glob '/proc/[0-9]*';
}

sub leaves_nothing
{
	my ($name) = @_;
	is_deeply([ [ scratches() ], [ children() ] ], [ [], [] ], "$name: nothing is left");
	return;
}

sub planned
{
	my (%settings) = @_;
	my $argument = $json->encode(\%settings) =~ s/'/''/gr;
	return $node->safe_psql('postgres', "SELECT DISTINCT segment_bytes FROM hugeinfo_plan('$argument')");
}

sub asked_for
{
	my (%settings) = @_;
	my $argument = $json->encode(\%settings) =~ s/'/''/gr;
	return $node->safe_psql('postgres',
		"SELECT page_size_bytes / 1024 FROM hugeinfo_plan('$argument') WHERE is_requested");
}

sub next_huge_pages { return $node->safe_psql('postgres', 'SELECT DISTINCT huge_pages FROM hugeinfo_next_start') }

# Compares the plan with the running server: the mapping in the kernel, and PostgreSQL's own figure,
# which can be one too large.
sub is_real
{
	my ($bytes, $name) = @_;
	my $base = base_page();
	is(segment($node->{_pid})->{bytes}, $base * POSIX::ceil($bytes / $base), "$name: the mapping is as planned");
	my $pages = $node->safe_psql('postgres',
		q(SELECT setting FROM pg_settings WHERE name = 'shared_memory_size_in_huge_pages'));
	my $setting_kb = $node->safe_psql('postgres', q(SELECT setting FROM pg_settings WHERE name = 'huge_page_size')) || $kb;
	ok($pages == POSIX::ceil($bytes / ($setting_kb * 1024)) || $pages == $bytes / ($setting_kb * 1024) + 1,
		"$name: the huge pages are as planned")
	  or diag("$pages pages, $bytes bytes") if $setting_kb;
	return;
}

# Returns the files of the data directory that a plan reads, and the names of all files.
sub fingerprint
{
	my %seen;
	File::Find::find({ no_chdir => 1, wanted => sub {
		my $name = $_ =~ s/^\Q$data\E//r;
		# files that any session or the server itself can write meanwhile
		return $File::Find::prune = 1 if $name =~ m{^/(?:base|pg_wal|pg_stat\w*|pg_xact|pg_subtrans)$|/pg_internal\.init};
		$seen{$name} = -f $_ && $name =~ m{^/(?:[^/]*$|global/pg_control)} ? Digest::MD5::md5_hex(slurp_file($_)) : '';
	} }, $data);
	return \%seen;
}

# name of the mix => settings, in the last line of the files
my @mixes = (
	[ 'few buffers' => { shared_buffers => '16MB' } ],
	[ 'least of all' => { shared_buffers => '128kB', max_connections => 5, max_worker_processes => 0, max_wal_senders => 0 } ],
	[ 'more buffers' => { shared_buffers => '321MB' } ],
	[ 'odd buffers' => { shared_buffers => 12_345 } ],
	[ 'connections' => { max_connections => 777, superuser_reserved_connections => 7 } ],
	[ 'locks' => { max_locks_per_transaction => 1000, max_pred_locks_per_transaction => 500 } ],
	[ 'WAL buffers' => { wal_buffers => '63MB' } ],
	[ 'WAL buffers by themselves' => { shared_buffers => '200MB', wal_buffers => -1 } ],
	[ 'dynamic shared memory' => { min_dynamic_shared_memory => '100MB' } ],
	[ 'prepared transactions' => { max_prepared_transactions => 400 } ],
	[ 'workers' => { max_worker_processes => 64, autovacuum_max_workers => 20, max_logical_replication_workers => 33 } ],
	[ 'replication' => { max_wal_senders => 40, max_replication_slots => 90 } ],
	[ 'query texts' => { track_activity_query_size => '64kB' } ],
	[ 'no hot standby' => { hot_standby => 'off' } ],
	[ 'page size' => { huge_page_size => '1GB', shared_buffers => '100MB' } ],
	[ 'System V' => { shared_memory_type => 'sysv', shared_buffers => '50MB' } ],
	[ 'all together' => {
			shared_buffers => '150MB', max_connections => 123, wal_buffers => '5MB', max_prepared_transactions => 9,
			min_dynamic_shared_memory => '7MB', max_locks_per_transaction => 99, max_wal_senders => 11,
			max_worker_processes => 13, track_activity_query_size => 3333 } ]);

sub set_mix { my ($text) = @_; unlink "$data/mix.conf"; append_to_file("$data/mix.conf", $text); return }

for (@mixes)
{
	my ($name, $settings) = @$_;
	set_mix('');
	my $before = fingerprint();
	my $bytes = planned(%$settings);
	is_deeply(fingerprint(), $before, "$name: the data directory is untouched");
	set_mix(join '', map { "$_ = '$settings->{$_}'\n" } sort keys %$settings);
	is(planned(), $bytes, "$name: the same from files that are pending a restart");
	$node->restart;
	is_real($bytes, $name);
	is(planned(), $bytes, "$name: the same in the next plan");
}
set_mix('');
leaves_nothing('restarts');

# Runs PostgreSQL by hand on the directory of a stopped server.
sub by_hand
{
	my (@arguments) = @_;
	my ($out, $error);
	IPC::Run::run([ 'postgres', '-D', $data, @arguments ], '>', \$out, '2>', \$error) or return;
	chomp $out;
	return $out;
}

sub by_single_user
{
	my ($sql) = @_;
	my $output;
	IPC::Run::run([ 'postgres', '--single', '-D', $data, 'postgres' ], '<', \"$sql\n", '>', \$output, '2>&1');
	return $output;
}

{
	my %beyond = (
		'64 GB' => { shared_buffers => '64GB' },
		'7 TB' => { shared_buffers => '7TB', max_connections => 5000 },
		# more 4 kB pages than a setting can hold
		'8191 GB' => { shared_buffers => '8191GB', max_locks_per_transaction => 10_000 });
	my %bytes = map { $_ => planned(%{ $beyond{$_} }) } keys %beyond;
	$node->stop;
	for my $name (sort keys %beyond)
	{
		my @options = map { ('-c', "$_=$beyond{$name}{$_}") } sort keys %{ $beyond{$name} };
		is(by_hand(@options, '-C', 'shared_memory_size'), POSIX::ceil($bytes{$name} / (1 << 20)), "$name: in MB");
		my $pages = by_hand(@options, '-c', 'huge_page_size=2MB', '-C', 'shared_memory_size_in_huge_pages');
		my $expected = POSIX::ceil($bytes{$name} / (2 << 20));
		ok($pages == $expected || $pages == $bytes{$name} / (2 << 20) + 1, "$name: in pages")
		  or diag("$pages pages, $bytes{$name} bytes");
	}
	$node->start;
}

# Sources of settings.
{
	my $name = 'ALTER SYSTEM';
	my $before = planned();
	set_mix("shared_buffers = '20MB'\nhuge_pages = 'try'\n");
	is(asked_for(), $kb, "$name: huge pages are requested") if $kb;
	$node->safe_psql('postgres', "ALTER SYSTEM SET Shared_Buffers = '40MB'");
	$node->safe_psql('postgres', "ALTER SYSTEM SET huge_pages = 'off'");
	cmp_ok(planned(), '>=', 40 << 20, "$name: overrides postgresql.conf");
	is(next_huge_pages(), 'off', "$name: no huge pages");
	my $bytes = planned();
	$node->restart;
	is_real($bytes, $name);
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
	set_mix('');

	$name = 'included files';
	mkdir "$data/conf.d" or die "conf.d: $!";
	append_to_file("$data/conf.d/1.conf", "include 'deeper/2.conf'\ninclude_if_exists 'none.conf'\n");
	mkdir "$data/conf.d/deeper" or die "deeper: $!";
	append_to_file("$data/conf.d/deeper/2.conf", "shared_buffers = 30MB\n");
	append_to_file("$data/conf.d/3.conf", "max_connections = 44\n");
	set_mix("include_dir 'conf.d'\n");
	# relative to the directory of that file, which is not the scratch directory
	append_to_file("$data/postgresql.auto.conf", "include 'odd.conf'\n");
	append_to_file("$data/odd.conf", "wal_buffers = '9MB'\nhuge_pages = OFF\n");
	$bytes = planned();
	$node->restart;
	is_real($bytes, $name);
	is($node->safe_psql('postgres', "SHOW $_->[0]"), $_->[1], "$name: $_->[0] is read")
	  for [ shared_buffers => '30MB' ], [ max_connections => 44 ], [ wal_buffers => '9MB' ];
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
	set_mix('');
	$node->restart;

	$name = 'a broken file';
	set_mix("shared_buffers = 30 apples\n");
	my $session = HugeInfo::Session->new($node);
	my ($state, $error) = $session->error_of('SELECT hugeinfo_plan()');
	is($state, 'F0000', "$name: has a specific SQLSTATE");
	like($error, qr/configuration file .* contains errors.*DETAIL:.*mix\.conf.* line 1, near token "apples"/s,
		"$name: the error is that of PostgreSQL");
	set_mix("shared_preload_libraries = 'no_such_library'\n");
	($state, $error) = $session->error_of('SELECT hugeinfo_plan()');
	is($state, '58P01', 'a missing library: the same SQLSTATE');
	like($error, qr/no_such_library/, 'a missing library: is named');
	set_mix("no_such_setting = 1\n");
	($state, $error) = $session->error_of(q(SELECT hugeinfo_plan('{"max_connections": 10}')));
	like($error, qr/no_such_setting/, 'an unknown setting: is named');
	set_mix('');
	($state, $error) = $session->error_of(q(SELECT hugeinfo_plan('{"max_connections": 3, "superuser_reserved_connections": 3}')));
	is($state, '22023', 'a combination: is an error in the settings');
	like($error, qr/superuser_reserved_connections.*must be less than "?max_connections"?.*Planned:.*max_connections = '3'/s,
		'a combination: the error names all settings');
	leaves_nothing('errors');
}

# A command line with all kinds of options. pg_ctl starts the server, like services do.
sub start_with
{
	my ($options, $directory) = @_;
	$node->stop if defined $node->{_pid};
	system_or_bail('pg_ctl', '-w', '-D', $directory // $data, '-l', $node->logfile, '-o', $options, 'start');
	$node->_update_pid(1);
	return;
}

{
	my $name = 'command line';
	set_mix("shared_buffers = 10MB\nhuge_pages = try\n");
	start_with(q(-c shared_buffers=48MB --max-connections=55 -B 7000 -N 60 -c 'cluster_name=a "b" "-c" c\\d $(id) -C x')
		  . q( -c huge_pages=off -c log_destination=csvlog -c log_line_prefix='%m x: ' -d 1));
	my $bytes = planned();
	is_real($bytes, $name);
	is($node->safe_psql('postgres', 'SHOW max_connections'), 60, "$name: the last option wins");
	is(next_huge_pages(), 'off', "$name: overrides the files");
	my (undef, undef, $notice) = $node->psql('postgres', 'SELECT count(*) FROM hugeinfo_next_start');
	like($notice, qr/NOTICE: .*command line of the server sets .*huge_pages, max_connections, shared_buffers; .* files alone would use huge_pages = try and \d+ MB/,
		"$name: a start without it is described");
	my $sets = qr/command line of the server sets huge_pages = off, max_connections = 60, shared_buffers = 56000kB\. A start without these options \(see postmaster\.opts\) uses the files/;
	like($node->safe_psql('postgres', q(SELECT finding FROM hugeinfo_checks WHERE name = 'pending_settings')), $sets, "$name: the check names its settings");
	like($node->safe_psql('postgres', 'SELECT hugeinfo_text()') =~ s/\s+/ /gr, $sets, "$name: the text names them");
	is(asked_for(huge_pages => 'on'), $kb, "$name: planned settings override both") if $kb;
	cmp_ok(planned(shared_buffers => '80MB'), '>', $bytes, "$name: also for the size");
	my ($state, $error) = HugeInfo::Session->new($node)->error_of(q(SELECT hugeinfo_plan('{"max_connections": 1}')));
	like($error, qr/must be less than "?max_connections"?/, "$name: the destination of the log does not matter");

	set_mix("shared_buffers = 1TB\nhuge_pages = on\n");
	start_with('-c shared_buffers=10MB -c huge_pages=off');
	my $judged = q(SELECT code || ': ' || finding FROM hugeinfo_checks WHERE name = 'pending_settings');
	like($node->safe_psql('postgres', $judged), qr/^needs_command_line: A start without the options of the command line would fail/, "$name: the files alone are judged");
	set_mix("shared_buffers = 10MB\nhuge_pages = try\n");

	for my $place ('', 'nowhere')
	{
		local $ENV{TMPDIR} = $place;
		start_with('');
		cmp_ok(planned(), '>', 10 << 20, "TMPDIR = '$place': invalid, so /tmp is used");
	}

	$name = 'split directory';
	my $conf = PostgreSQL::Test::Utils::tempdir() . "/it's";
	mkdir $conf or die "$conf: $!";
	append_to_file("$conf/postgresql.conf",
		slurp_file("$data/postgresql.conf") =~ s/^include = 'mix.conf'$//mr
		  . "data_directory = '$data'\nhba_file = '$data/pg_hba.conf'\nident_file = '$data/pg_ident.conf'\ninclude 'more.conf'\n");
	append_to_file("$conf/more.conf", "shared_buffers = 70MB\n");
	$node->stop;
	rename "$data/postgresql.conf", "$data/elsewhere.conf" or die $!;
	start_with('', $conf);
	is_real(planned(), $name);
	append_to_file("$conf/more.conf", "shared_buffers = 75MB\n");
	$bytes = planned();
	$node->safe_psql('postgres', "ALTER SYSTEM SET max_connections = 50");
	cmp_ok(planned(), '>', $bytes, "$name: with ALTER SYSTEM");
	$bytes = planned();
	start_with("-c config_file=\Q$conf\E/postgresql.conf", $conf);
	is_real($bytes, $name);
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
	$node->stop;
	rename "$data/elsewhere.conf", "$data/postgresql.conf" or die $!;
	set_mix('');
	$node->start;
	leaves_nothing('command lines');
}

SKIP:
{
	my $name = 'ssl';
	my ($out, $error);
	# Not a skipped test, because PyPI's build never has ssl.
	diag("not tried: $name: PostgreSQL is built without it"), skip('no ssl', 1) unless by_hand_has_ssl();
	my $made = eval { IPC::Run::run([
			qw(openssl req -new -x509 -days 9 -nodes -subj /CN=localhost -newkey rsa:2048 -keyout), "$data/own.key", '-out', "$data/own.crt" ],
		'>', \$out, '2>', \$error) };
	cannot("$name: no certificate: " . ($error // $@)) unless $made;
	chmod 0600, "$data/own.key";
	set_mix("ssl = on\nssl_cert_file = 'own.crt'\nssl_key_file = 'own.key'\nshared_buffers = 11MB\n");
	my $bytes = planned();
	$node->restart;
	is($node->safe_psql('postgres', 'SHOW ssl'), 'on', "$name: the server has it, with relative paths");
	is_real($bytes, $name);
	is(planned(), $bytes, "$name: a plan works with it");
	set_mix('');
	$node->restart;
}

sub by_hand_has_ssl { return `pg_config --configure` =~ /--with-(?:open)?ssl/ }

SKIP:
{
	my $name = 'preloaded libraries';
	my $libraries = `pg_config --pkglibdir` =~ s/\s+$//r;
	cannot("$name: contrib is not installed") unless -f "$libraries/pg_stat_statements.so" && -f "$libraries/pg_prewarm.so";
	my $without = planned();
	# requests shared memory, and registers a background worker
	set_mix("shared_preload_libraries = 'pg_stat_statements, pg_prewarm'\n");
	my $bytes = planned();
	cmp_ok($bytes, '>', $without, "$name: a plan includes libraries that are not loaded yet");
	$node->restart;
	is_real($bytes, $name);
	$bytes = planned('pg_stat_statements.max' => 50_000);
	cmp_ok($bytes, '>', planned(), "$name: a plan accepts their settings");
	my ($state) = HugeInfo::Session->new($node)->error_of(q(SELECT hugeinfo_plan('{"pg_stat_statements.max": "x"}')));
	is($state, '22023', "$name: a plan checks their settings");
	set_mix("shared_preload_libraries = 'pg_stat_statements, pg_prewarm'\npg_stat_statements.max = 50000\n");
	$node->restart;
	is_real($bytes, $name);
	set_mix('');
	$node->restart;
}

# Compares the list of settings with the server: a plan must accept every setting that changes the
# size of shared memory.
{
	my @settings = map { [ split /\|/ ] } split /\n/, $node->safe_psql('postgres', q(
		SELECT name, vartype, boot_val, min_val, max_val, array_to_string(enumvals, ' ') FROM pg_settings
		WHERE context IN ('postmaster', 'sighup') AND vartype <> 'string' ORDER BY name));
	$node->stop;
	like(by_single_user('SELECT hugeinfo_plan()'), qr/ERROR:.*cannot plan without a postmaster/, 'single-user mode: an error, because there is no postmaster');
	my @ask = ('-c', 'huge_page_size=4kB', '-C', 'shared_memory_size_in_huge_pages');
	my $base = by_hand(@ask);
	my (@changing, @looked_at);
	for (@settings)
	{
		my ($name, $type, $boot, $min, $max, $words) = @$_;
		next if $name eq 'huge_page_size';
		my @values =
		  $type eq 'bool' ? $boot eq 'on' ? 'off' : 'on'
		  : $type eq 'enum' ? grep { $_ ne $boot } split ' ', $words
		  : ($min, 10 * $boot + 1000, $max);
		my @sizes = grep { defined } map { by_hand('-c', "$name=$_", @ask) } @values;
		push @looked_at, $name if @sizes;
		push @changing, $name if grep { $_ != $base } @sizes;
	}
	$node->start;
	cmp_ok(scalar @looked_at, '>', 50, 'settings: most can be varied');
	cmp_ok(scalar @changing, '>=', 10, 'settings: some change the size');
	note("change the size: @changing");
	my $session = HugeInfo::Session->new($node);
	my @missing = grep {
		($session->error_of(qq(SELECT hugeinfo_plan('{"$_": []}'))))[1] !~ /must be a string, a number or a boolean/
	} @changing;
	is_deeply(\@missing, [], 'settings: all that change the size can be planned');
}

# Exactly as many huge pages as planned are enough, and one less is not.
SKIP:
{
	my $name = 'huge pages';
	needs_host($name);
	# The recommendation includes other servers on small pages, which start and stop at any time.
	my $planned = sub {
		my ($argument) = @_;
		my ($row) = settled(
			sub { HugeInfo::Session->new($node)->rows("SELECT * FROM hugeinfo_plan($argument) WHERE is_requested") },
			sub { wanted_by_others($kb, $node->{_pid}) },
			sub {
				my ($rows, $others) = @_;
				my %row = %{ $rows->[0] };
				$row{recommended_nr_hugepages} -= $others->[0];
				return (\%row, \%row);
			});
		return $row;
	};
	my $pages = $planned->(q('{"huge_pages": "on", "shared_buffers": "40MB"}'))->{recommended_nr_hugepages};
	set_mix("huge_pages = on\nshared_buffers = 40MB\n");
	$node->stop;
	pools_of_one_size($kb, $pages - 1);
	my ($started) = starts($node);
	ok(!$started, "$name: one page less is not enough");
	set_pool($kb, $pages);
	($started) = starts($node);
	ok($started, "$name: the recommended number is enough");
	my $row = $planned->('');
	is_deeply([ @$row{qw(is_used_by_server required_pages own_pages shortfall_pages recommended_nr_hugepages fits_after_restart)} ],
		[ 't', $pages, $pages, 0, $pages, 't' ], "$name: pages of the running server count as available");
	$row = $planned->(q('{"shared_buffers": "60MB"}'));
	is_deeply([ @$row{qw(shortfall_pages recommended_nr_hugepages fits_after_restart)} ],
		[ $row->{required_pages} - $pages, $row->{required_pages}, 'f' ], "$name: more pages would be missing");

	# With the largest shared_buffers for a number of pages, the server starts. With one block more, it
	# does not.
	my $given = $pages + 5;
	my ($fit) = HugeInfo::Session->new($node)->rows("SELECT * FROM hugeinfo_fit($given)");
	is_deeply([ @$fit{qw(page_size_bytes available_pages required_pages)} ], [ $kb * 1024, $given, $given ], 'fit: uses all pages');
	is(planned(shared_buffers => $fit->{shared_buffers}), $fit->{segment_bytes}, 'fit: as planned');
	set_mix("huge_pages = on\nshared_buffers = $fit->{shared_buffers}\n");
	$node->stop;
	pools_of_one_size($kb, $given);
	($started) = starts($node);
	ok($started, "fit: starts with $fit->{shared_buffers} on $given pages");
	is(segment($node->{_pid})->{bytes}, $given * $kb * 1024, 'fit: on all pages');
	$node->stop;
	set_mix("huge_pages = on\nshared_buffers = " . ($fit->{shared_buffers_bytes} / 1024 + 8) . "kB\n");
	($started) = starts($node);
	ok(!$started, 'fit: does not start with one block more');
	set_mix('');
	$node->start;
	set_pool($kb, 0);
	leaves_nothing('fit');
}

# Many plans at once.
{
	my $name = 'a hundred at once';
	set_mix("max_connections = 120\n");
	$node->restart;
	my $bytes = planned();
	$node->safe_psql('postgres', 'CREATE TABLE answers (bytes bigint)');
	my $script = "$temporary/plan.sql";
	# On a slow host, some of these many plans reach the time limit. They retry after random delays.
	append_to_file($script, <<~'SQL');
		DO $$
		DECLARE
			message text;
		BEGIN
			LOOP
				BEGIN
					INSERT INTO answers SELECT DISTINCT segment_bytes FROM hugeinfo_plan();
					EXIT;
				EXCEPTION WHEN external_routine_exception THEN
					GET STACKED DIAGNOSTICS message = MESSAGE_TEXT;
					IF message NOT LIKE '%within 10 seconds%' THEN
						RAISE;
					END IF;
				END;
				PERFORM pg_sleep(20 * random());
			END LOOP;
		END
		$$;
		SQL
	my $before = fingerprint();
	$node->command_ok([ 'pgbench', '-n', '-c', 100, '-j', 2, '-t', 1, '-f', $script, 'postgres' ], "$name: all succeed");
	is($node->safe_psql('postgres', 'SELECT bytes, count(*) FROM answers GROUP BY bytes'), "$bytes|100", "$name: all have the same result");
	is_deeply(fingerprint(), $before, "$name: the data directory is untouched");
	leaves_nothing($name);
	set_mix('');
	$node->restart;
}

# A plan on a standby is for the standby.
{
	my $name = 'standby';
	my $bytes = planned();
	$node->backup('copy');
	my $standby = PostgreSQL::Test::Cluster->new('standby');
	$standby->init_from_backup($node, 'copy', has_streaming => 1);
	configure($standby, shared_buffers => '33MB', restart_after_crash => 'off');
	$standby->start;
	is($standby->safe_psql('postgres', 'SELECT pg_is_in_recovery()'), 't', "$name: is in recovery");
	my $sql = 'SELECT DISTINCT segment_bytes FROM hugeinfo_plan()';
	my $base = base_page();
	is($base * POSIX::ceil($standby->safe_psql('postgres', $sql) / $base), segment($standby->{_pid})->{bytes},
		"$name: the need of the standby");
	is($node->safe_psql('postgres', $sql), $bytes, "$name: the need of the primary differs");
	$standby->stop;
	leaves_nothing($name);
}

# Starts a plan whose child waits, because it opens a pipe without a writer. Restores the files of
# the server first.
sub with_waiting_child
{
	my ($code) = @_;
	unlink "$data/mix.conf";
	POSIX::mkfifo("$data/mix.conf", 0600) or die "mkfifo: $!";
	my $session = HugeInfo::Session->new($node);
	my $result = $code->($session);
	set_mix('');
	return $session;
}

sub asks_and_waits
{
	my ($session) = @_;
	$session->ask('SELECT hugeinfo_plan()');
	$session->wait_until(sub { children() > 0 && scratches() > 0 });
	my @children = children();
	is(scalar @children, 1, 'one child is running');
	return $children[0];
}

{
	my $name = 'timeout';
	my $session = with_waiting_child(sub {
		my ($session) = @_;
		is(($session->error_after(50, 'SELECT hugeinfo_plan()'))[0], '57014', "$name: ends the query");
		leaves_nothing($name);

		$name = 'cancels';
		is_cancelled($session, "SELECT $_", "$name: $_", sub { children() > 0 && scratches() > 0 }) for 'hugeinfo_plan()', 'hugeinfo_fit(2000)';
		leaves_nothing($name);

		$name = 'cancel';
		my $child = asks_and_waits($session);
		# Waits until the child has opened the file that includes the pipe. By then, libraries have closed
		# their files, and the child has a signalfd.
		my @opened;
		my $files = sub { @opened = grep { $_ ne 'anon_inode:[signalfd]' } map { readlink $_ // () } grep { m{/fd/(?![012]$)} } glob "/proc/$child/fd/*" };
		until_true(sub { $files->(); return grep { m{/postgresql\.conf$} } @opened });
		is_deeply([ map { s{.*/}{}r } @opened ], ['postgresql.conf'], 'the child: inherits no descriptors of its parent');
		$node->safe_psql('postgres', 'SELECT pg_cancel_backend(' . $session->pid . ')');
		my (undef, $error) = $session->answer;
		like($error, qr/57014.*due to user request/, "$name: ends it");
		leaves_nothing($name);

		$name = 'terminate';
		asks_and_waits($session);
		$node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . $session->pid . ')');
		ok(until_true(sub { !-d '/proc/' . $session->pid }), "$name: the backend ends");
		leaves_nothing($name);
		});
	undef $session;

	$name = 'time limit';
	with_waiting_child(sub {
		my ($session) = @_;
		my ($state, $error) = $session->error_of('SELECT hugeinfo_plan()');
		is($state, '38000', "$name: is an error");
		like($error, qr/within 10 seconds.*HINT:.*pipe/s, "$name: the hint names a possible cause");
		leaves_nothing($name);
		});

	$name = 'kill -9';
	with_waiting_child(sub {
		my ($session) = @_;
		my $child = asks_and_waits($session);
		my @left = scratches();
		kill KILL => $session->pid;
		ok(until_true(sub { !-d "/proc/$child" }), "$name: the child ends with its parent");
		is_deeply([ scratches() ], \@left, "$name: the directory is left behind");
		});
	# a link and a file, which no plan creates, and a directory in use
	symlink $data, "$temporary/pg_hugeinfo-plan.link" or die $!;
	append_to_file("$temporary/pg_hugeinfo-plan.file", 'x');
	mkdir "$temporary/pg_hugeinfo-plan.used" or die $!;
	open my $lock, '<', "$temporary/pg_hugeinfo-plan.used" or die $!;
	flock $lock, LOCK_EX or die $!;
	ok(until_true(sub { $node->psql('postgres', 'SELECT hugeinfo_plan()') == 0 }), "$name: the server has restarted, and the next call succeeds");
	is_deeply([ map { s{.*plan\.}{}r } scratches() ], [qw(file link used)], "$name: it removes unused directories");
	ok(-f "$data/PG_VERSION", "$name: it follows no link");
	close $lock;
	planned();
	is_deeply([ map { s{.*plan\.}{}r } scratches() ], [qw(file link)], "$name: the next call removes a directory that is no longer in use");
	unlink map { "$temporary/pg_hugeinfo-plan.$_" } qw(link file);

	$name = 'the postmaster dies';
	my $postmaster = $node->{_pid};
	with_waiting_child(sub {
		my ($session) = @_;
		asks_and_waits($session);
		kill KILL => $postmaster;
		ok(until_true(sub { !-d '/proc/' . $session->pid }), "$name: the backend ends");
		leaves_nothing($name);
		});
	ok(until_true(sub { !grep { (readlink("/proc/$_/cwd") // '') eq $data } map { m{(\d+)$} } glob '/proc/[0-9]*' }),
		"$name: all other processes end");
	unlink "$data/postmaster.pid";
	undef $node->{_pid};
}

# File systems of a few pages, which get full at different points. They are in a mount namespace, so
# that the host does not change.
SKIP:
{
	my $name = 'full disk';
	my $why = why_no_mounts($temporary);
	cannot("$name: $why") if $why;
	my %states;
	for my $pages (1 .. 6)
	{
		my $size = $pages * base_page();
		with_little_room($node, $temporary, $size, sub {
			my $session = HugeInfo::Session->new($node);
			my ($state, $error) = $session->error_of('SELECT hugeinfo_plan()');
			$states{$state}++;
			is($state, '53100', "$name, $size bytes: the SQLSTATE") if $state;
			like($error, qr/\Q$temporary\E\/pg_hugeinfo-plan/, "$name, $size bytes: the error names the directory") if $state;
			is($session->value("SELECT count(*) FROM pg_ls_dir('$temporary')"), 0, "$name, $size bytes: nothing is left behind");
			$session->close;
			});
	}
	ok($states{''} && $states{53100}, "$name: some are too small, and some are not") or diag(explain(\%states));
}

done_testing;
