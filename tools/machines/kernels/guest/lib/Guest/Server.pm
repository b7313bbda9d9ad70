# A server in the guest, and a session with it. Its data directory was created on the host, because
# initdb takes a minute here.
package Guest::Server;

use strict;
use warnings;

use Exporter 'import';
use IPC::Open2 ();
use JSON::PP ();
use POSIX ();

use Guest::Machine;

our @EXPORT = qw(placed data_directory log_file start try_start restart stop is_up postmaster family why_not value another_session rows row status check_of
  required_pages touch);

my $HOME = '/tmp/server';
my $DATA = "$HOME/data";
my $LOG = "$HOME/log";
my ($base_conf, %settings, %place, $postmaster, @others);
my ($psql, $to, $from);

# The programs of the PostgreSQL version for which the extension was built.
my $BIN = slurp('/guest/bindir');

# Sets how servers start from now on: group => directory of a cgroup, before => words before the
# command.
sub placed { %place = @_; return }

sub data_directory { return $DATA }

sub log_file { return $LOG }

# Starts with these settings, and none of a former start.
sub start
{
	try_start(@_) or die 'the server did not start: ' . why_not();
	return;
}

sub try_start
{
	my (%new) = @_;
	stop();
	_unpack() unless defined $base_conf;
	%settings = (
		listen_addresses => '', unix_socket_directories => $HOME, fsync => 'off', shared_buffers => '64MB', autovacuum => 'off',
		max_connections => 20, huge_pages => 'try',
		# it would fault in memory for half a minute
		bgwriter_lru_maxpages => 0, %new);
	put("$DATA/postgresql.auto.conf", '');
	put("$DATA/postgresql.conf", join '', $base_conf, map { "$_ = '$settings{$_}'\n" } sort keys %settings);
	return _launch();
}

# Starts again with the settings of ALTER SYSTEM.
sub restart { stop(); return _launch() }

sub _unpack
{
	system("mkdir -p $HOME && tar -C $HOME -xf /guest/server.tar && chown -R postgres: $HOME && chmod 700 $DATA") == 0
	  or die "no data directory\n";
	$base_conf = slurp("$DATA/postgresql.conf") . "\n";
	return;
}

sub _launch
{
	unlink $LOG;
	my $pid = fork // die "fork: $!\n";
	if (!$pid)
	{
		put("$place{group}/cgroup.procs", $$) if $place{group};
		_as_postgres();
		exec @{ $place{before} // [] }, "$BIN/pg_ctl", qw(start -w -s -t 300 -D), $DATA, '-l', $LOG or POSIX::_exit(127);
	}
	waitpid $pid, 0;
	undef $postmaster;
	@others = ();
	return 0 if $?;
	($postmaster) = slurp("$DATA/postmaster.pid") =~ /^(\d+)/;
	return 1;
}

sub _as_postgres
{
	my ($uid, $gid) = (getpwnam 'postgres')[ 2, 3 ];
	POSIX::setgid($gid);
	$) = "$gid $gid";
	POSIX::setuid($uid);
	chdir '/';
	open STDIN, '<', '/dev/null';
	return;
}

sub stop
{
	_hang_up();
	return unless is_up();
	my $pid = fork // die "fork: $!\n";
	if (!$pid) { _as_postgres(); exec "$BIN/pg_ctl", qw(stop -s -m fast -t 300 -D), $DATA or POSIX::_exit(127) }
	waitpid $pid, 0;
	undef $postmaster;
	return;
}

END { my $status = $?; stop() if defined $base_conf; $? = $status }

sub is_up { return $postmaster && -e "/proc/$postmaster" }

sub postmaster { return $postmaster }

# The postmaster and its children.
sub family
{
	my @children = grep { slurp("/proc/$_/stat") =~ /\) \S $postmaster /s } map { m{(\d+)$} } glob '/proc/[0-9]*';
	return ($postmaster, sort { $a <=> $b } @children);
}

# The server's log.
sub why_not { return slurp($LOG) }

# --- SQL, all in one session

sub _connect
{
	$ENV{PGUSER} = 'postgres';
	$psql = IPC::Open2::open2($from, $to, "$BIN/psql -X -q -A -t -h $HOME postgres 2>&1");
	$to->autoflush(1);
	# notices are not results
	print $to "SET client_min_messages = warning;\n";
	return;
}

sub _hang_up
{
	return unless $to;
	close $to;
	close $from;
	waitpid $psql, 0;
	undef $to;
	return;
}

# Returns the result as psql prints it, or the error.
sub value
{
	my ($sql) = @_;
	local $SIG{PIPE} = 'IGNORE';
	_connect() unless $to;
	print $to "$sql;\n\\echo __END__\n";
	my $answer = '';
	while (defined(my $line = <$from>))
	{
		chomp $answer, return $answer if $line eq "__END__\n";
		$answer .= $line;
	}
	# the server has ended the session
	_hang_up();
	return $answer;
}

# Runs a statement in a session that stays until the server stops. Returns its PID afterwards.
sub another_session
{
	my ($sql) = @_;
	my $pid = fork // die "fork: $!\n";
	if (!$pid)
	{
		$ENV{PGUSER} = 'postgres';
		exec "$BIN/psql", qw(-X -q -o /dev/null -h), $HOME, '-c', $sql, '-c', 'SELECT pg_sleep(86400)', 'postgres'
		  or POSIX::_exit(127);
	}
	my $known = join ',', @others;
	my $found;
	until ($found = value("SELECT pid FROM pg_stat_activity WHERE query ~ '^SELECT pg_sleep' AND pid <> ALL ('{$known}')"))
	{
		die "$sql: failed\n" if waitpid($pid, POSIX::WNOHANG());
		sleep 1;
	}
	push @others, $found;
	return $found;
}

sub rows
{
	my ($query) = @_;
	my $answer = value("SELECT coalesce(json_agg(r), '[]') FROM ($query) AS r");
	my $rows = eval { JSON::PP->new->decode($answer) } // die "$query: $answer\n";
	# booleans as psql shows them
	for my $row (@$rows) { $_ = $_ ? 't' : 'f' for grep { JSON::PP::is_bool($_) } values %$row }
	return @$rows;
}

sub row { my ($query) = @_; return (rows($query))[0] }

sub status { return row('SELECT * FROM hugeinfo_status') }

sub check_of { my ($name) = @_; return row("SELECT * FROM hugeinfo_checks WHERE name = '$name'") }

sub required_pages { return status()->{required_huge_pages} }

# Makes this session fault in this many MB of shared_buffers. Returns the error if that fails. A
# scan does not do this, because it uses a small ring of buffers.
sub touch
{
	my ($mb) = @_;
	value('CREATE EXTENSION IF NOT EXISTS pg_prewarm');
	value("CREATE UNLOGGED TABLE IF NOT EXISTS t$mb AS SELECT repeat('x', 960) AS x FROM generate_series(1, $mb * 1024)");
	my $answer = value("SELECT pg_prewarm('t$mb', 'buffer')");
	return $answer =~ /^\d+$/ ? undef : $answer;
}

1;
