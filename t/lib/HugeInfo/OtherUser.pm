# A server of another user of this host. `use` this before HugeInfo::Host, while this process is
# still root. It forks a child that switches to that user and reads a command from a pipe. The child
# stops its server at the end of the pipe, also if the test is killed.
package HugeInfo::OtherUser;

use strict;
use warnings;

use File::Path ();
use File::Temp ();
use IO::Handle;
use POSIX ();

use HugeInfo::Kernel;
use HugeInfo::User;

# An unprivileged user that exists on every host.
my $name = $ENV{HUGEINFO_TEST_OTHER_USER} // 'nobody';
my $port = 6543;
my ($child, $owner, $to, $from);

# The server does not use the host's pools, so it can end last.
END
{
	if ($child && $$ == $owner)
	{
		my $status = $?;
		print $to "end\n";
		waitpid $child, 0;
		$? = $status || ($? ? 1 : 0);
	}
}

sub import { _start() unless $owner; return }

sub _start
{
	$owner = $$;
	return if missing();
	pipe(my $child_reads, $to) or die "pipe: $!\n";
	pipe($from, my $child_writes) or die "pipe: $!\n";
	my $dir = File::Temp::tempdir('pg_hugeinfo_other_XXXXXX', DIR => '/tmp');
	chmod 0755, $dir;
	chown((getpwnam $name)[ 2, 3 ], $dir) or die "$dir: $!\n";
	$child = fork // die "fork: $!\n";
	if (!$child)
	{
		close $to;
		close $from;
		_run($dir, $child_reads, $child_writes);
	}
	close $child_reads;
	close $child_writes;
	$to->autoflush(1);
	return;
}

# Returns the reason why such a server cannot be started, if any.
sub missing
{
	return if $child;
	return 'only root can start a server as another user' if $> != 0;
	return "there is no user $name" unless defined getpwnam $name;
	return "$name is the user of the other servers" if $name eq HugeInfo::User::name();
	return;
}

sub _system { my (@command) = @_; return system('sh', '-c', 'exec "$@" >>"$0" 2>&1', "$command[0]", @command[ 1 .. $#command ]) == 0 }

# Never returns.
sub _run
{
	my ($dir, $reads, $writes) = @_;
	POSIX::setsid();
	$SIG{$_} = 'IGNORE' for qw(INT TERM HUP PIPE);
	$writes->autoflush(1);
	HugeInfo::User::become($name);
	chdir $dir;
	while (defined(my $line = <$reads>))
	{
		last if $line eq "end\n";
		my $answer = eval { _start_server($dir) };
		(my $error = $@) =~ s/\n/ /g;
		print $writes $error ? "error $error\n" : "ok $answer\n";
	}
	_system("$dir/log", qw(pg_ctl stop --silent --mode=immediate --pgdata), "$dir/data") if -e "$dir/data/postmaster.pid";
	chdir '/';
	File::Path::remove_tree($dir);
	POSIX::_exit(-e $dir ? 1 : 0);
}

sub _start_server
{
	my ($dir) = @_;
	my $log = "$dir/log";
	_system($log, qw(initdb --username=postgres --auth=trust --encoding=UTF8 --locale=C --no-sync --pgdata), "$dir/data")
	  or die "initdb failed: see $log\n";
	my $options = "-c listen_addresses= -c unix_socket_directories=$dir -p $port -c shared_buffers=24MB -c max_connections=10"
	  . ' -c autovacuum=off -c huge_pages=off';
	_system($log, qw(pg_ctl start --silent --pgdata), "$dir/data", '--log', "$dir/server.log", '--options', $options)
	  or die "the server does not start: see $dir/server.log\n";
	open my $fh, '<', "$dir/data/postmaster.pid" or die "postmaster.pid: $!\n";
	chomp(my $pid = <$fh>);
	# only that user is allowed to read it
	my $segment = segment($pid);
	return join ' ', $pid, $>, $dir, $segment->{bytes}, $segment->{page_bytes};
}

# Starts the server. Returns the facts that the other user can read.
sub server
{
	print $to "start\n" or die "the other user's process has ended\n";
	my $line = <$from> // die "the other user's process has ended\n";
	chomp $line;
	my ($verdict, $text) = split / /, $line, 2;
	die "$text\n" if $verdict ne 'ok';
	my %server = (user => $name, port => $port);
	@server{qw(pid uid socket bytes page_bytes)} = split / /, $text;
	$server{data_dir} = "$server{socket}/data";
	return \%server;
}

1;
