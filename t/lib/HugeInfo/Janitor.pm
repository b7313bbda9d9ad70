# scripts/janitor, as the guardian starts it and tells it what to undo.
package HugeInfo::Janitor;

use strict;
use warnings;

use IPC::Open2 qw(open2);

our $SCRIPTS = __FILE__ =~ s{/t/lib/HugeInfo/Janitor\.pm$}{/scripts}r;

# Everything of this project that changes the host's pools takes this lock first. Only root creates
# it; anybody else's servers at least keep out of its way.
my $LOCK = '/run/lock/pg_hugeinfo-host.lock';

my ($janitor, $to, $from);

# Waits for its turn. Returns a new directory of that user.
sub start
{
	my ($user) = @_;
	my $lock = $> == 0 || -e $LOCK ? $LOCK : '';
	# root's own is often closed to everybody else
	delete local $ENV{TMPDIR} if $> == 0;
	$janitor = open2($from, $to, "$SCRIPTS/janitor", $lock, $user);
	chomp(my $dir = <$from> // die "scripts/janitor did not start\n");
	return $dir;
}

# A command of scripts/lib/put_back.bash and its like, to be told before the deed.
sub undo
{
	my (@command) = @_;
	print $to join(' ', map { "'" . s/'/'\\''/gr . "'" } @command), "\n";
	defined <$from> or die "scripts/janitor has ended: nothing more is changed\n";
	return;
}

# Everything is undone when this returns; whether it could be.
sub finish
{
	close $to;
	waitpid $janitor, 0;
	return $? == 0;
}

1;
