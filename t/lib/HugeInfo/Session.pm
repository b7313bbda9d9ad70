# A persistent connection: all queries run in the same backend, which can also be observed during a
# query.
#
# HugeInfo::Server starts a new psql for each query, and the server forks each time. Numbers that
# depend on the mappings of processes would then never stay the same.
package HugeInfo::Session;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run ();
use JSON::PP ();
use Scalar::Util qw(refaddr weaken);
use Test::More;

use HugeInfo::Processes ();

our @EXPORT = qw(endless is_cancelled state_in);

my $count = 0;

# Sessions that a test leaves open are closed before perl destroys objects in an undefined order,
# because IPC::Run could then wait forever.
my ($owner, %open) = $$;
END { local $?; if ($$ == $owner) { $_->close for grep { $_ } values %open } }

# Options: dbname, user, application_name, socket (a directory) and port instead of the node's.
sub new
{
	my ($class, $node, %option) = @_;
	my $self = bless { in => '', out => '', error => '', asked => 0 }, $class;
	local %ENV = (%ENV,
		PGHOST => $option{socket} // $node->host,
		PGPORT => $option{port} // $node->port,
		PGDATABASE => $option{dbname} // 'postgres',
		PGAPPNAME => $option{application_name} // 'session ' . ++$count);
	$ENV{PGUSER} = $option{user} if defined $option{user};
	$self->{run} = IPC::Run::start(
		[ 'psql', '--no-psqlrc', '--no-align', '--tuples-only', '--quiet', '--set=VERBOSITY=verbose' ],
		'<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{error},
		$self->{timer} = IPC::Run::timeout($HugeInfo::Processes::TIMEOUT));
	weaken($open{ refaddr $self } = $self);
	$self->{pid} = $self->value('SELECT pg_backend_pid()');
	return $self;
}

# PID of the backend.
sub pid { my ($self) = @_; return $self->{pid} }

# Starts a query; `answer` waits for its end.
sub ask
{
	my ($self, $sql) = @_;
	die "the last query is still running\n" if $self->{open};
	$self->{open} = 'answered ' . ++$self->{asked};
	@$self{qw(out error)} = ('', '');
	$self->{in} .= "$sql\n;\n\\echo $self->{open}\n\\warn $self->{open}\n";
	$self->{run}->pump_nb;
	return $self;
}

# Waits until the code returns a true value, and reads psql's output meanwhile.
sub wait_until
{
	my ($self, $code) = @_;
	return HugeInfo::Processes::until_true(sub { $self->{run}->pump_nb if $self->{run}->pumpable; $code->() })
	  || die "the running query did not reach the expected state: $self->{error}\n";
}

# Waits until the running query waits for a timeout or for a child, as seen by another session.
# Returns 0 if the query ends first.
sub wait_until_waiting
{
	my ($self, $other) = @_;
	my $waits = "SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $self->{pid}";
	my $state;
	$self->wait_until(sub { $state = $self->_is_answered ? 'answered' : $other->value($waits) eq 't' ? 'waits' : '' });
	return $state eq 'waits';
}

# Cancels the running query in the same way as pg_cancel_backend and timeouts: with a signal to the
# backend's process group.
sub cancel
{
	my ($self) = @_;
	kill '-INT', $self->{pid} or die "no backend $self->{pid}: $!\n";
	return $self->answer;
}

# Returns the standard output and the standard error of the query.
sub answer
{
	my ($self) = @_;
	my $end = delete $self->{open} // die "no query is running\n";
	$self->{timer}->start($HugeInfo::Processes::TIMEOUT);
	until ($self->_is_answered($end))
	{
		die "the session has ended: $self->{error}\n" unless $self->{run}->pumpable;
		$self->{run}->pump;
	}
	$self->{timer}->reset;
	my ($out, $error) = map { s/^\Q$end\E\n.*//msr } @$self{qw(out error)};
	chomp $out;
	return ($out, $error);
}

sub _is_answered
{
	my ($self, $end) = @_;
	$end //= $self->{open};
	return $self->{out} =~ /^\Q$end\E\n/m && $self->{error} =~ /^\Q$end\E\n/m;
}

sub query { my ($self, $sql) = @_; return $self->ask($sql)->answer }

# Returns the result of a query that must not fail.
sub value
{
	my ($self, $sql) = @_;
	my ($out, $error) = $self->query($sql);
	die "$sql\n$error" if $error =~ /^(?:psql:\S+ )?(?:ERROR|FATAL|PANIC):/m;
	return $out;
}

# Rows as hashes; NULL is undef, booleans as psql shows them.
sub rows
{
	my ($self, $sql) = @_;
	my $json = JSON::PP->new->allow_bignum;
	# JSON in any encoding, as the server sent it
	my @rows = map { $json->decode($_) } split /\n/, $self->value("SELECT to_json(r) FROM ($sql) AS r");
	for my $row (@rows)
	{
		$_ = $_ ? 't' : 'f' for grep { JSON::PP::is_bool($_) } values %$row;
	}
	return @rows;
}

# Returns the SQLSTATE of the first error in the text of standard error, or '' if there is none.
sub state_in { my ($error) = @_; return $error =~ /^(?:ERROR|FATAL):\s+(\w{5}):/m ? $1 : '' }

# Returns the SQLSTATE of the error that a query raises, or '', and the text of the error.
sub error_of
{
	my ($self, $sql) = @_;
	my (undef, $error) = $self->query($sql);
	return (state_in($error), $error);
}

# Like error_of, but with statement_timeout. The timeout applies only to this query, because the
# setting ends with the transaction.
sub error_after
{
	my ($self, $milliseconds, $sql) = @_;
	$self->value('BEGIN');
	$self->value("SET LOCAL statement_timeout = $milliseconds");
	my @error = $self->error_of($sql);
	$self->value('ROLLBACK');
	return @error;
}

# Returns severities, SQLSTATEs and texts of the notices of a query.
sub notices
{
	my ($self, $sql) = @_;
	my ($out, $error) = $self->query($sql);
	return ($out, [ $error =~ /^(\w+:\s+\w{5}: .*)$/mg ]);
}

# Returns a statement that repeats the query until it is canceled. It sends a notice to the client
# before it starts.
sub endless
{
	my ($from) = @_;
	return "DO \$\$ BEGIN RAISE NOTICE 'begun'; LOOP PERFORM * FROM $from; END LOOP; END \$\$";
}

# Tests that a cancel ends an endless query, and that no file descriptor stays open. `begun` returns
# true once the query has reached the point of interest.
sub is_cancelled
{
	my ($self, $question, $name, $begun) = @_;
	$begun //= sub { $self->{error} =~ /^NOTICE: .* begun$/m };
	my (@states, @files);
	# opens the files that a session keeps open
	$self->query('SELECT * FROM hugeinfo_status');
	# the first query can load libraries
	for (1, 2)
	{
		$self->ask($question);
		$self->wait_until($begun);
		my (undef, $error) = $self->cancel;
		push @states, state_in($error);
		push @files, join "\n", HugeInfo::Processes::open_files($self->pid);
	}
	is("@states", '57014 57014', "$name: a cancel ends the query");
	is($files[1], $files[0], "$name: no file stays open");
	return;
}

sub close
{
	my ($self) = @_;
	delete $open{ refaddr $self };
	my $run = delete $self->{run} or return;
	$self->{in} .= "\\q\n" unless $self->{open};
	# do not wait for an open query
	$self->{open} ? $run->kill_kill : eval { $run->finish };
	return;
}

sub DESTROY { my ($self) = @_; local $?; $self->close; return }

1;
