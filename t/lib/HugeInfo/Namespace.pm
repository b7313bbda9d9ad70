# A server in its own PID namespace, in which this test assigns the PIDs.
#
# Process 1 there is a program of this test. It starts the server, and strangers: processes of the
# same user that do not belong to the server. The server is allowed to read them, and they are easy
# to recognize: oom_score_adj is 777, and 100 MB are resident.
package HugeInfo::Namespace;

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;

use HugeInfo::Processes ();

our $STRANGER_ADJ = 777;
our $STRANGER_BYTES = 100 << 20;
# The range of PIDs, which is small so that PIDs are reused soon. The kernel reserves PIDs below 300
# after a wrap.
our ($FIRST, $LAST) = (300, 399);

# Prints "ready", reads commands of a word and a number, and exits at end of input. The code is
# inline because its user might not be able to read this file.
my $PROCESS_1 = <<'PERL';
	use strict;
	use warnings;
	$| = 1;
	my ($last, $adj, $bytes, @server) = @ARGV;

	sub put
	{
		my ($file, $value) = @_;
		open my $fh, '>', $file or return;
		return defined syswrite $fh, $value;
	}

	# Since Linux 6.14 each namespace has its own limit. Before, the limit is the host's, so the last
	# PID is set back instead.
	my $limited = put('/proc/sys/kernel/pid_max', $last + 1);
	$SIG{CHLD} = 'IGNORE';
	my $postmaster = fork // die "fork: $!\n";
	if (!$postmaster)
	{
		$SIG{CHLD} = 'DEFAULT';
		open STDIN, '<', '/dev/null';
		exec @server or die "@server: $!\n";
	}
	# faulted in, and so resident; children share it at once
	my $resident = 'x' x $bytes;

	sub stranger
	{
		my ($code) = @_;
		my $pid;
		# all PIDs can be in use for a short time
		select undef, undef, undef, 0.001 until defined($pid = fork);
		return $pid if $pid;
		put('/proc/self/oom_score_adj', $adj);
		$code->();
		exit;
	}

	print "ready $postmaster " . ($limited ? 'limited' : 'set back') . "\n";
	my $churn;
	while (my ($word, $number) = split ' ', <STDIN> // '')
	{
		if ($word eq 'next')
		{
			put('/proc/sys/kernel/ns_last_pid', $number - 1) or die "ns_last_pid: $!\n";
			print "ok\n";
		}
		elsif ($word eq 'stranger')
		{
			put('/proc/sys/kernel/ns_last_pid', $number - 1) or die "ns_last_pid: $!\n";
			my $pid = stranger(sub { sleep 3600 });
			# wait until it has set its score
			select undef, undef, undef, 0.01
			  until do { open my $fh, '<', "/proc/$pid/oom_score_adj"; <$fh> == $adj };
			print "$pid\n";
		}
		elsif ($word eq 'end') { kill KILL => $number; waitpid $number, 0; print "ok\n" }
		elsif ($word eq 'stop' || $word eq 'continue') { kill $word eq 'stop' ? 'STOP' : 'CONT', $number; print "ok\n" }
		elsif ($word eq 'exists') { print -d "/proc/$number" ? "yes\n" : "no\n" }
		elsif ($word eq 'churn')
		{
			# strangers start and exit as fast as possible
			$churn = fork // die "fork: $!\n";
			if (!$churn)
			{
				put('/proc/self/oom_score_adj', $adj);
				my %numbers;
				my $stop;
				local $SIG{TERM} = sub { $stop = 1 };
				until ($stop)
				{
					my $pid = stranger(sub { select undef, undef, undef, rand 0.02; });
					$numbers{$pid}++;
					put('/proc/sys/kernel/ns_last_pid', 299) if !$limited && $pid > $last;
					select undef, undef, undef, 0.001;
				}
				print join(' ', map { "$_:$numbers{$_}" } keys %numbers), "\n";
				exit;
			}
			print "$churn\n";
		}
		elsif ($word eq 'calm') { kill TERM => $churn; waitpid $churn, 0 }
	}
	kill QUIT => $postmaster;
	waitpid $postmaster, 0;
PERL

# All processes keep the capabilities in the namespace. Otherwise the kernel would not let the
# server read strangers.
my @OWN = qw(--user --map-current-user --keep-caps --pid --fork --mount-proc);

# Returns the reason why such a namespace cannot be created, if any.
sub missing
{
	my ($out, $error);
	my $works = IPC::Run::run(
		[ 'unshare', @OWN, $^X, '-e', 'open my $fh, ">", "/proc/sys/kernel/ns_last_pid" or die; defined syswrite $fh, 300 or die' ],
		'>', \$out, '2>', \$error);
	return $works ? undef : "no namespaces of process numbers for ordinary users here: $error";
}

# Starts the server of a stopped node.
sub new
{
	my ($class, $node) = @_;
	my $self = bless { in => '', out => '' }, $class;
	$self->{run} = IPC::Run::start(
		[
			'unshare', @OWN, $^X, '-e', $PROCESS_1, $LAST, $STRANGER_ADJ, $STRANGER_BYTES, 'postgres', '-D', $node->data_dir ],
		'<', \$self->{in}, '>', \$self->{out}, '2>>', $node->logfile,
		$self->{timer} = IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	(undef, $self->{postmaster}, $self->{how}) = split ' ', $self->_answer, 3;
	my $up = HugeInfo::Processes::until_true(sub { !system_log('pg_isready', '-q', '-h', $node->host, '-p', $node->port) });
	die "the server does not start\n" unless $up;
	return $self;
}

sub _answer
{
	my ($self) = @_;
	$self->{timer}->start($PostgreSQL::Test::Utils::timeout_default);
	until ($self->{out} =~ /\n/)
	{
		die "process 1 has ended\n" unless $self->{run}->pumpable;
		$self->{run}->pump;
	}
	$self->{timer}->reset;
	$self->{out} =~ s/^(.*)\n//;
	return $1;
}

sub _order
{
	my ($self, @words) = @_;
	$self->{in} .= "@words\n";
	return $self->_answer;
}

sub postmaster { my ($self) = @_; return $self->{postmaster} }

# Returns the method that limits the PIDs.
sub how { my ($self) = @_; return $self->{how} }

# The next process gets that PID.
sub next_number { my ($self, $number) = @_; return $self->_order('next', $number) }

# Starts a stranger with that PID, and returns the PID that it got.
sub stranger { my ($self, $number) = @_; return $self->_order('stranger', $number) }

sub end_stranger { my ($self, $number) = @_; return $self->_order('end', $number) }

sub stop_process { my ($self, $number) = @_; return $self->_order('stop', $number) }

sub continue_process { my ($self, $number) = @_; return $self->_order('continue', $number) }

sub exists { my ($self, $number) = @_; return $self->_order('exists', $number) eq 'yes' }

# Starts strangers that exit at once, until `calm`, which returns how often each PID was used.
sub churn { my ($self) = @_; return $self->_order('churn') }

sub calm { my ($self) = @_; return { map { split /:/ } split ' ', $self->_order('calm') } }

sub close
{
	my ($self) = @_;
	my $run = delete $self->{run} or return;
	$run->finish;
	return;
}

sub DESTROY { my ($self) = @_; local $?; eval { $self->close }; return }

1;
