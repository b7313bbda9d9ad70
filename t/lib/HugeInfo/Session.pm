# A connection that stays: the same backend from one question to the next, also while a question is
# still open.
#
# HugeInfo::Server asks by a new psql each time, and each of those makes the server fork: figures
# that depend on who maps what never come to rest then.
package HugeInfo::Session;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run ();
use JSON::PP ();
use PostgreSQL::Test::Utils;
use Scalar::Util qw(refaddr weaken);
use Test::More;
use Time::HiRes qw(time);

use HugeInfo::Processes ();

our @EXPORT = qw(is_cancelled);

my $count = 0;

# Those that a test leaves open are closed before perl takes objects apart in any order: IPC::Run
# could then wait for ever.
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
		$self->{timer} = IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	weaken($open{ refaddr $self } = $self);
	$self->{pid} = $self->value('SELECT pg_backend_pid()');
	return $self;
}

# The backend's number, as the server knows it.
sub pid { my ($self) = @_; return $self->{pid} }

# Begin; `answer` takes the end.
sub ask
{
	my ($self, $sql) = @_;
	die "the last question is still open\n" if $self->{open};
	$self->{open} = 'answered ' . ++$self->{asked};
	@$self{qw(out error)} = ('', '');
	$self->{in} .= "$sql\n;\n\\echo $self->{open}\n\\warn $self->{open}\n";
	$self->{run}->pump_nb;
	return $self;
}

# What went to standard output and to standard error.
sub answer
{
	my ($self) = @_;
	my $end = delete $self->{open} // die "nothing was asked\n";
	$self->{timer}->start($PostgreSQL::Test::Utils::timeout_default);
	until ($self->{out} =~ /^\Q$end\E\n/m && $self->{error} =~ /^\Q$end\E\n/m)
	{
		die "the session has ended: $self->{error}\n" unless $self->{run}->pumpable;
		$self->{run}->pump;
	}
	$self->{timer}->reset;
	my ($out, $error) = map { s/^\Q$end\E\n.*//msr } @$self{qw(out error)};
	chomp $out;
	return ($out, $error);
}

sub query { my ($self, $sql) = @_; return $self->ask($sql)->answer }

# The answer to a question that must not go wrong.
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
	# JSON in a file of any encoding: psql writes what the server sent
	my @rows = map { $json->decode($_) } split /\n/, $self->value("SELECT to_json(r) FROM ($sql) AS r");
	for my $row (@rows)
	{
		$_ = $_ ? 't' : 'f' for grep { JSON::PP::is_bool($_) } values %$row;
	}
	return @rows;
}

# SQLSTATE of the error that a question gets, '' if none; all of its text in the second value.
sub error_of
{
	my ($self, $sql) = @_;
	my (undef, $error) = $self->query($sql);
	my ($state) = $error =~ /^(?:ERROR|FATAL):\s+(\w{5}):/m;
	return ($state // '', $error);
}

# Severities, SQLSTATEs and texts of what the server says beside the answer.
sub notices
{
	my ($self, $sql) = @_;
	my ($out, $error) = $self->query($sql);
	return ($out, [ $error =~ /^(\w+:\s+\w{5}: .*)$/mg ]);
}

# A timeout of 50 ms ends what takes many seconds, long before its own end: the bound is for what
# nobody ends, not for a busy or an emulated machine. No descriptor stays open.
sub is_cancelled
{
	my ($self, $sql, $name) = @_;
	my $files = sub { return join "\n", HugeInfo::Processes::open_files($self->pid) };
	$self->value('SET statement_timeout = 50');
	# the first time, it may have something to load
	$self->query($sql);
	my $before = $files->();
	my $start = time;
	my ($state) = $self->error_of($sql);
	my $seconds = time - $start;
	is($state, '57014', "$name: statement_timeout ends it");
	cmp_ok($seconds, '>=', 0.05, "$name: not before its time");
	cmp_ok($seconds, '<', $PostgreSQL::Test::Utils::timeout_default / 36, "$name: nor at its own end");
	note(sprintf '%s: after %.0f ms', $name, 1000 * $seconds);
	is($files->(), $before, "$name: no file stays open");
	$self->value('RESET statement_timeout');
	return;
}

sub close
{
	my ($self) = @_;
	delete $open{ refaddr $self };
	my $run = delete $self->{run} or return;
	$self->{in} .= "\\q\n" unless $self->{open};
	# an open question is not waited for
	$self->{open} ? $run->kill_kill : eval { $run->finish };
	return;
}

sub DESTROY { my ($self) = @_; local $?; $self->close; return }

1;
