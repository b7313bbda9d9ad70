# The ordinary user that servers run as: PostgreSQL refuses to run as root.
package HugeInfo::User;

use strict;
use warnings;

use POSIX ();

# Returns the name of that user. Only root switches to another user.
sub name
{
	return $> == 0 ? ($ENV{HUGEINFO_TEST_USER} // 'postgres') : scalar getpwuid($>);
}

# Switches to that user permanently, with its groups and home. Real, effective and saved IDs change.
sub become
{
	my ($name) = @_;
	my ($uid, $gid, $home) = (getpwnam $name)[ 2, 3, 7 ];
	die "no user \"$name\" to run servers as: set HUGEINFO_TEST_USER\n" unless defined $uid;
	die "servers do not run as root: set HUGEINFO_TEST_USER\n" if $uid == 0;

	my @groups = ($gid);
	setgrent;
	while (my (undef, undef, $id, $members) = getgrent)
	{
		push @groups, $id if grep { $_ eq $name } split ' ', $members;
	}
	endgrent;

	$! = 0;
	$) = join ' ', $gid, @groups;
	die "setgroups: $!\n" if $!;
	POSIX::setgid($gid) or die "setgid: $!\n";
	POSIX::setuid($uid) or die "setuid: $!\n";
	die "still root after setuid\n" if $> == 0 || $< == 0 || POSIX::setuid(0);

	@ENV{qw(HOME USER LOGNAME)} = ($home, $name, $name);
	# Other users often have no access to root's TMPDIR.
	delete $ENV{TMPDIR};
	return;
}

1;
