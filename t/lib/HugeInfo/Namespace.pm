# A server in a namespace of process numbers of its own, where this test decides who gets which
# number.
#
# Process 1 there is a program of this test's that starts the server, and strangers: processes that
# are not the server's, of the same user, open to it, and easy to tell: oom_score_adj is 777, and
# 100 MB are resident.
package HugeInfo::Namespace;

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;

use HugeInfo::Processes ();

our $STRANGER_ADJ = 777;
our $STRANGER_BYTES = 100 << 20;
# numbers that are given out: few, so that they come round soon. The kernel keeps those below 300
# for its start.
our ($FIRST, $LAST) = (300, 399);

# Says "ready", obeys a word and a number, and ends with its input. Written out here since who runs
# it may not be allowed to read this file.
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

	# Linux 6.14: each namespace has its own limit. Before, the limit is the host's and not ours: the
	# last number that was given out is set back instead.
	my $limited = put('/proc/sys/kernel/pid_max', $last + 1);
	$SIG{CHLD} = 'IGNORE';
	my $postmaster = fork // die "fork: $!\n";
	if (!$postmaster)
	{
		$SIG{CHLD} = 'DEFAULT';
		open STDIN, '<', '/dev/null';
		exec @server or die "@server: $!\n";
	}
	# touched, and so resident; what is forked has it at once
	my $resident = 'x' x $bytes;

	sub stranger
	{
		my ($code) = @_;
		my $pid;
		# all numbers may be taken for a moment
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
			# it is what it is to be
			select undef, undef, undef, 0.01
			  until do { open my $fh, '<', "/proc/$pid/oom_score_adj"; <$fh> == $adj };
			print "$pid\n";
		}
		elsif ($word eq 'end') { kill KILL => $number; waitpid $number, 0; print "ok\n" }
		elsif ($word eq 'stop' || $word eq 'continue') { kill $word eq 'stop' ? 'STOP' : 'CONT', $number; print "ok\n" }
		elsif ($word eq 'exists') { print -d "/proc/$number" ? "yes\n" : "no\n" }
		elsif ($word eq 'churn')
		{
			# strangers come and go, as fast as they can
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

# The rights over the namespace are kept by all of it, or the kernel would close strangers to the
# server.
my @OWN = qw(--user --map-current-user --keep-caps --pid --fork --mount-proc);

# Why there can be none, if so.
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

# How numbers are kept low.
sub how { my ($self) = @_; return $self->{how} }

# Who comes next gets that number.
sub next_number { my ($self, $number) = @_; return $self->_order('next', $number) }

# A stranger of that number; the one that it got.
sub stranger { my ($self, $number) = @_; return $self->_order('stranger', $number) }

sub end_stranger { my ($self, $number) = @_; return $self->_order('end', $number) }

sub stop_process { my ($self, $number) = @_; return $self->_order('stop', $number) }

sub continue_process { my ($self, $number) = @_; return $self->_order('continue', $number) }

sub exists { my ($self, $number) = @_; return $self->_order('exists', $number) eq 'yes' }

# Strangers come and go until `calm`, which tells how often each number went to one of them.
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
