# A server in the guest, and a session with it. Its data directory was created on the host, because
# initdb takes a minute here.
package Guest::Server;

use strict;
use warnings;

use Exporter 'import';
use POSIX ();

use Guest::Machine;
use HugeInfo::Session;

our @EXPORT = qw(placed data_directory log_file start try_start restart stop is_up postmaster why_not value another_session rows row status check_of
  required_pages touch);

my $HOME = '/tmp/server';
my $DATA = "$HOME/data";
my $LOG = "$HOME/log";
my ($base_conf, %settings, %place, $postmaster, $session, @others);

# The programs of the PostgreSQL version for which the extension was built.
my $BIN = slurp('/guest/bindir');
$ENV{PGUSER} = 'postgres';

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
	undef $session;
	@others = ();
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

# The server's log.
sub why_not { return slurp($LOG) }

# --- SQL, all in one session

sub _connect
{
	local $ENV{PATH} = "$BIN:$ENV{PATH}";
	my $new = HugeInfo::Session->new(undef, socket => $HOME, port => 5432);
	# Notices are not results.
	$new->value('SET client_min_messages = warning');
	return $new;
}

sub _session { return $session //= _connect() }

# Returns the result as psql prints it, or the error.
sub value
{
	my ($sql) = @_;
	my @answer = eval { _session()->query($sql) };
	return join '', @answer if @answer;
	# The server has ended the session.
	my $error = $@;
	undef $session;
	return $error;
}

# Runs a statement in a session that stays until the server stops. Returns its PID afterwards.
sub another_session
{
	my ($sql) = @_;
	push @others, _connect();
	$others[-1]->value($sql);
	return $others[-1]->pid;
}

sub rows { my ($query) = @_; return _session()->rows($query) }

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
