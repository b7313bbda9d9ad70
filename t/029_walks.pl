# The model is right because the kernel says so: random walks of steps, taken on this kernel and on
# the model at once. After every step every counter of both has to be the same: pools, nodes,
# control groups, CommitLimit. In some walks the steps are real servers.
#
#   HUGEINFO_WALK_SEED=N   other walks than the usual ones (1)
#   HUGEINFO_WALK_ONLY=N   one of them, with all its steps
#   HUGEINFO_WALKS=N       so many of the plain ones
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

# As whoever owns the checkout: it may be closed to the user that servers run as.
my ($root, $holder, $built);
BEGIN
{
	$root = "$FindBin::RealBin/..";
	$holder = "$root/target/release/walks-holder";
	$built = $> != 0
	  || system("$root/scripts/cargo", 'build', '--quiet', '--release', '--package', 'walks') == 0
	  && system('cc', qw(-O2 -Wall -Wextra -Werror -o), $holder, "$root/crates/walks/holder.c") == 0;
}

use Cwd qw(abs_path);
use Fcntl qw(F_SETFL O_NONBLOCK O_RDONLY);
use POSIX ();

use HugeInfo::Host;
use HugeInfo::Kernel;
use PostgreSQL::Test::Utils;
use Test::More;

my $DATA_DIRECTORIES = 3;

# Directories of servers that differ in their port; a walk starts a server in any of them.
sub data_directories
{
	my ($dir) = @_;
	my @directories = map { "$dir/data$_" } 1 .. $DATA_DIRECTORIES;
	system_or_bail('initdb', '-D', $directories[0], '-U', 'postgres', '-A', 'trust', '--no-sync');
	append_to_file("$directories[0]/postgresql.conf", <<"CONF");
listen_addresses = ''
unix_socket_directories = '$dir'
max_connections = 10
autovacuum = off
fsync = off
CONF
	system_or_bail('cp', '-a', $directories[0], $_) for @directories[ 1 .. $#directories ];
	for (0 .. $#directories)
	{
		append_to_file("$directories[$_]/postgresql.conf", sprintf "port = 5%04d\n", $_ + 1);
	}
	return @directories;
}

# Each line of theirs as one of ours.
sub relay
{
	my ($tap) = @_;
	my ($planned, $failed) = (0, 0);
	while (1)
	{
		# The timeout applies to each line, because a walk takes seconds.
		alarm $PostgreSQL::Test::Utils::timeout_default;
		$_ = <$tap> // last;
		chomp;
		if (/^1\.\.(\d+)$/) { $planned = $1 }
		elsif (/^(not )?ok \d+ - (.*)$/) { $failed = !!$1; ok(!$failed, $2) }
		elsif (/^# (?:base seed|disturbed)/) { diag(s/^# //r) }
		elsif ($failed) { diag(s/^# ?//r) }
		elsif (/^#/) { note(s/^# ?//r) }
		else { fail($_) }
	}
	return $planned;
}

SKIP:
{
	needs_host('random walks');
	die "the walks do not compile\n" unless $built;
	my $dir = "$ENV{TESTDIR}/walks";
	mkdir $dir or die "$dir: $!\n";
	POSIX::mkfifo("$dir/tap", 0600) or die "$dir/tap: $!\n";
	sysopen my $tap, "$dir/tap", O_RDONLY | O_NONBLOCK or die "$dir/tap: $!\n";

	my %words = (
		walks => $ENV{HUGEINFO_WALKS} // 520,
		gigantic => 3,
		servers => 12,
		steps => 20,
		seed => $ENV{HUGEINFO_WALK_SEED} // 1,
		base_kb => base_page() / 1024,
		holder => abs_path($holder),
		programs => (`$ENV{PG_CONFIG} --bindir` =~ s/\n//r),
		data => join(':', data_directories($dir)));
	$words{only} = $ENV{HUGEINFO_WALK_ONLY} if $ENV{HUGEINFO_WALK_ONLY};
	start_walks(map { "$_=$words{$_}" } sort keys %words);

	fcntl $tap, F_SETFL, O_RDONLY or die "$dir/tap: $!\n";
	local $SIG{ALRM} = sub { die "the walks hang\n" };
	my $planned = relay($tap);
	alarm 0;
	is(Test::More->builder->current_test, $planned, 'all walks were taken');
	cmp_ok($planned, '>', 0, 'there are some');
}

done_testing;
