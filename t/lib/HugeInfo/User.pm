# The ordinary user that servers run as: PostgreSQL refuses to run as root.
package HugeInfo::User;

use strict;
use warnings;

use POSIX ();

# The name to become. Only root becomes somebody else.
sub name
{
	return $> == 0 ? ($ENV{HUGEINFO_TEST_USER} // 'postgres') : scalar getpwuid($>);
}

# Become that user for good, with its groups and home. There is no way back: real, effective and
# saved ids change.
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
	# root's own is often closed to everybody else
	delete $ENV{TMPDIR};
	return;
}

1;
