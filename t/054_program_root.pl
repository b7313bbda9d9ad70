# Attacks of users on the program that runs as root. A data directory, a process that looks like a
# server, a file system and a log belong to another user. Each test fails without its defense.
#
# Takes a minute, because the attacks on lookups last until the time limits of the program, up to 20
# seconds.
use strict;
use warnings;

use File::Temp ();
use FindBin;
use JSON::PP ();
use POSIX ();
use Time::HiRes ();
use lib "$FindBin::RealBin/lib";
use HugeInfo::Tools;
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $program = source('target/program/hugeinfo');
my $bindir = $ENV{PATH} =~ s/:.*//r;
my $scratch = File::Temp::tempdir(CLEANUP => 1);
chmod 0755, $scratch;

# A user and a group without an entry in /etc/passwd, as in a directory service.
my ($uid, $gid) = (65533, 65531);

my $is_arm = (POSIX::uname())[4] eq 'aarch64';

sub decoded { my ($text) = @_; return JSON::PP->new->decode($text) }

# Runs lines of a shell as root. Returns the exit status, and the output with the errors.
sub root_types
{
	my ($lines) = @_;
	my $file = "$scratch/typed";
	append_to_file("$file.sh", "$lines\n");
	type_in("sh $file.sh >$file 2>&1; echo \$? >$file.status");
	my ($status, $out) = map { slurp_file($_) } "$file.status", $file;
	unlink $file, "$file.sh", "$file.status";
	return ($status + 0, $out);
}

sub as_root { my ($arguments, $programs) = @_; return root_types("exec $program $arguments --bindir " . ($programs // $bindir)) }

sub written { my ($file, $text) = @_; unlink $file; append_to_file($file, $text); chmod 0755, $file; return $file }

SKIP:
{
needs_host('attacks on root');
my $node = new_server('own', max_connections => 20);
my $own = '-D ' . $node->data_dir;
# Belongs to root, as the parents of data directories do.
my $place = "/tmp/pg_hugeinfo_root.$$";
type_in("mkdir -p $place >$scratch/log");
my $user = "setpriv --reuid=$uid --regid=$gid --clear-groups";

# In place of PostgreSQL and the libraries that its configuration names: writes what the process has
# of root, and leaves a process behind.
my $said = "$scratch/said";
mkdir $said;
chmod 01777, $said;
my $spies = "$scratch/spies";
mkdir $spies;
written("$spies/$_", <<"PERL") for qw(postgres initdb);
#!/usr/bin/perl
open my \$out, '>', "$said/\$\$";
my \$key = "hugeinfo\\0";
my (\$kind, \$found) = ("user\\0", 0);
# keyctl(KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, …)
\$found = syscall(@{[ $is_arm ? 219 : 250 ]}, 10, -3, \$kind, \$key, 0) > 0;
my (\$core) = grep { /^Max core/ } do { open my \$f, '<', '/proc/self/limits'; <\$f> };
my \@stat = split ' ', do { open my \$f, '<', '/proc/self/stat'; <\$f> } =~ s/.*\\)//r;
my \$score = do { open my \$f, '<', '/proc/self/oom_score_adj'; <\$f> + 0 };
my \@files = grep { (readlink "/proc/self/fd/\$_" // '') =~ /of_root/ } map { s{.*/}{}r } glob '/proc/self/fd/*';
my \$groups = \$);
# ptrace(PTRACE_ATTACH, 1): the process that ends all others of the PID namespace.
my \$init = syscall(@{[ $is_arm ? 117 : 101 ]}, 16, 1, 0, 0) == 0 ? 'controls init' : 'no control of init';
print \$out join('|', \$init, \$<, \$groups, \$found ? 'key' : 'no key', (split ' ', \$core)[4, 5], \$stat[16], \$stat[38], \$score,
	scalar \@files, join(',', grep { /SECRET|HOME|USER/ } sort keys %ENV), open(my \$tty, '>', '/dev/tty') ? 'tty' : 'no tty', readlink '/proc/self/ns/pid');
close \$out;
fork or exec 'setsid', 'sleep', '98765';
# Until it has a session of its own.
select undef, undef, undef, 0.5;
print STDERR "FATAL:  nothing\\nHINT:  type this\\n";
exit 1;
PERL

# Returns what the spies of that user wrote, each different line once. Clusters of this host are
# named, so they run for them, too.
my $heard = sub {
	root_types("chmod -R a+rX $said");
	my %lines = map { slurp_file($_) => 1 } glob "$said/*";
	root_types("rm -f $said/*; true");
	return grep { /\|$uid\|/ } sort keys %lines;
};

# A data directory with as little as the program needs, of a user that /etc/passwd does not have.
my $data = "$place/data";
# The group of the files is one that the user does not belong to.
root_types("mkdir -p $data/global; echo 15 >$data/PG_VERSION; echo x >$data/global/pg_control; : >$data/postgresql.conf; chown -R $uid:42 $data; chmod 750 $data");

# A program without a server for it: keys, groups, terminal, files, limits, environment, processes.
written("$scratch/with_key.pl", <<"PERL");
my (\$keyctl, \$add_key) = @{[ $is_arm ? '(219, 217)' : '(250, 248)' ]};
my (\$kind, \$key, \$secret) = ("user\\0", "hugeinfo\\0", 'secret');
# A session keyring of its own, with a key.
syscall(\$keyctl, 1, 0) >= 0 or die "keyctl: \$!";
syscall(\$add_key, \$kind, \$key, \$secret, length \$secret, -3) > 0 or die "add_key: \$!";
exec \@ARGV;
PERL
my $namespace = readlink '/proc/self/ns/pid';
my $loaded = "ulimit -c unlimited; export SECRET=1; { echo -500 >/proc/self/oom_score_adj; } 2>/dev/null; umask 077; : >$scratch/of_root; exec 9<$scratch/of_root;"
  . " exec perl $scratch/with_key.pl nice -n -5 chrt --fifo 1 $program plan -D $data --bindir $spies";
my ($status, $out) = root_types($loaded);
is($status, 2, 'a program of another user: exit status');
like($out, qr/^hugeinfo: as user $uid: nothing; HINT: type this\n\z/, 'a program of another user: its message is one line and says whose it is');
my @lines = $heard->();
is(scalar @lines, 1, 'a program of another user: ran') or diag(join "\n", @lines);
my ($session, $pid_namespace) = ($lines[0] // '') =~ /\A(.*)\|([^|]*)\z/s;
is($session, "no control of init|$uid|65534|no key|0|0|0|0|0|0||no tty", 'a program of another user: has nothing of the session of root');
isnt($pid_namespace, $namespace, 'a program of another user: a PID namespace of its own');
my $sleeping = sub { my ($seconds) = @_; return scalar grep { process_file($_, 'cmdline') =~ /^sleep\0$seconds/ } map { m{(\d+)$} } glob '/proc/[0-9]*' };
is($sleeping->(98765), 0, 'a program of another user: leaves no process');

# Root kills the program while it runs.
mkdir "$scratch/staying";
written("$scratch/staying/$_", "#!/bin/sh\nsetsid sleep 98766 &\nexec sleep 98766\n") for qw(postgres initdb);
root_types("$program plan -D $data --bindir $scratch/staying >$scratch/staying/out 2>&1 & echo \$! >$scratch/staying/pid");
ok(until_true(sub { $sleeping->(98766) >= 2 }), 'a program of another user: stays');
root_types("kill -9 \$(cat $scratch/staying/pid)");
ok(until_true(sub { $sleeping->(98766) == 0 }), 'a program of another user: ends with that of root') or root_types('pkill -9 -f "^sleep 98766"');

# Another user could put files there, or has one there.
for (
	[ 'a directory that others can write to', "chmod 1777 $data", "chmod 750 $data", qr/\Q$data\E can be changed by users other than/ ],
	[ 'a file of a third user', "chown 1 $data/postgresql.conf", "chown $uid $data/postgresql.conf", qr/postgresql\.conf does not belong to root or the owner/ ],
	[ 'options of a third user', "echo 'postgres' >$data/postmaster.opts; chown 1 $data/postmaster.opts", "rm $data/postmaster.opts", qr/postmaster\.opts does not belong to root or the owner/ ],
	[ 'an included directory that others can write to', "mkdir -m 1777 $data/conf.d; echo \"include_dir 'conf.d'\" >$data/postgresql.conf", "rm -r $data/conf.d; : >$data/postgresql.conf", qr/conf\.d does not belong to root or the owner/ ])
{
	my ($which, $break, $repair, $message) = @$_;
	root_types($break);
	($status, $out) = as_root("ensure --dry-run -D $data", $spies);
	is($status, 3, "$which: exit status");
	like($out, $message, "$which: the message");
	is_deeply([ $heard->() ], [], "$which: no program ran");
	root_types($repair);
}

# A process that looks like a server.
written("$scratch/fake.pl", <<'PERL');
use strict;
use warnings;
use IPC::SysV ();
my ($bytes, $touch, $count, $mmap, $read) = map { $_ + 0 } @ARGV[ 0 .. 4 ];
my ($held, $sign) = @ARGV[ 5, 6 ];
alarm 300;
if (!$touch) { for (2 .. $count) { last unless fork } }
# Every server has a small segment of System V, and a large one.
my $id = shmget(0, 4096, 0600) // die "shmget: $!";
my $at = IPC::SysV::shmat($id, undef, 0) // die "shmat: $!";
shmctl($id, 0, 0);
my $address = syscall($mmap, 0, $bytes, 3, 0x4021, -1, 0);
# All of them share the segment.
if ($touch)
{
	open my $zeros, '<', '/dev/zero' or die;
	syscall($read, fileno $zeros, $address, $bytes) == $bytes or die "read: $!";
	for (2 .. $count) { last unless fork }
}
if ($count > 1) { mkdir $$; chdir $$; open my $conf, '>', $_ or die for qw(postgresql.conf postgresql.auto.conf) }
open my $file, '>', 'postmaster.pid' or die "postmaster.pid: $!";
print {$file} join("\n", $$, '/x', time, 5439, $ARGV[9] // '', '*', ' 1 1', 'ready'), "\n";
close $file;
if ($held)
{
	open my $opened, '<', $held or die "$held: $!";
	select undef, undef, undef, 0.01 until -e $sign;
	# Closes the file while the kernel keeps readers of the memory of this process waiting (fs/exec.c
	# begin_new_exec).
	exec 'sleep', 300;
}
sleep 300;
PERL
my $start_fakes = sub {
	my ($place, $bytes, $touch, $count, @held) = @_;
	my $fakes = "cd $place && $user perl $scratch/fake.pl $bytes $touch $count @{[ $is_arm ? '222 63' : '9 0' ]} @held";
	root_types("($fakes) >$scratch/fakes.log 2>&1 & echo >$scratch/fakes; true");
	ok(until_true(sub { my @found = grep { -s } glob $count > 1 ? "$place/*/postmaster.pid" : "$place/postmaster.pid"; @found >= $count }), "$count in $place")
	  or diag(slurp_file("$scratch/fakes.log"));
	return;
};
my $end_fakes = sub { my ($place) = @_; root_types("pkill -9 -u $uid -f '^perl $scratch/fake.pl'; rm -rf $place/postmaster.pid $place/[0-9]*; true") };

# A server that the search has found: root runs nothing, and answers from /proc.
root_types("chmod 755 $data");
$start_fakes->($data, 8 << 20, 0, 1);
root_types("touch $data/postgresql.conf");
($status, $out) = as_root('status --all --format json', $spies);
my ($found) = grep { $_->{server} eq $data } @{ decoded($out)->{servers} };
is($found->{error}, undef, 'a found server: status answers') or diag($out);
is($found->{segment_bytes}, 8 << 20, 'a found server: from /proc');
($status, $out) = as_root('status --all', $spies);
like($out =~ s/\s+/ /gr, qr/let PostgreSQL compute its next start: hugeinfo status -D \Q$data\E --bindir /, 'a found server: the command that names it');
($status, $out) = as_root('ensure --all --for restart --dry-run', $spies);
like($out, qr/^\Q$data\E: the next start is unknown, .*\n    HINT: If you trust its configuration: hugeinfo ensure -D \Q$data\E --bindir \Q$spies\E --for restart$/m, 'a found server: ensure');
unlike($out, qr/runuser/, 'a found server: no command hands a terminal to its user');
is_deeply([ $heard->() ], [], 'a found server: no program ran');
# Named, it has the group of the running server.
as_root("status -D $data", $spies);
like(join("\n", $heard->()), qr/\|$uid\|$gid\|/, 'a named server that runs: its group');
$end_fakes->($data);

# Pages that servers of other users ask for.
{
	root_types("mkdir -m 755 $place/other; echo >$place/other/postgresql.conf; : >$place/other/postgresql.auto.conf; chown -R $uid $place/other");
	pools_of_one_size($kb, 0);
	restarts($node, huge_pages => 'try');
	my $number = sub {
		my $remedy = decoded((as_root("status $own --format json"))[1])->{remedy} // '';
		return ($remedy =~ /sysctl -w vm\.nr_hugepages=(\d+)/)[0];
	};
	my $alone = $number->();
	my $bytes = 96 << 20;
	my $more = $bytes / 1024 / $kb;
	$start_fakes->("$place/other", $bytes, 0, 1);
	is($number->(), $alone, 'a segment that is not faulted in does not count');
	like((as_root("check $own --only other_servers"))[1], qr/ $more more are needed if the server on port 5439 of user $uid is to use huge pages/, 'it is named, with its user');
	$end_fakes->("$place/other");
	# Its files have not changed since it started.
	sleep 2;
	my $restart = sub { my ($line) = (as_root('ensure --all --for restart --dry-run'))[1] =~ m{^(\Q$place/other\E.*(?:\n    .*)*)}m; return $line };
	$start_fakes->("$place/other", $bytes, 0, 1);
	like($restart->(), qr/the next start is unknown/, 'ensure adds no pages for a segment that is not in use');
	$end_fakes->("$place/other");
	$start_fakes->("$place/other", $bytes, 1, 1);
	is($number->(), $alone + $more, 'a segment that is in use counts');
	like($restart->(), qr/nr_hugepages=/, 'ensure adds pages for a segment that is in use');
	$end_fakes->("$place/other");
	$start_fakes->("$place/other", $bytes, 1, 5);
	is($number->(), $alone + $more, 'a segment that several processes use counts once');
	$end_fakes->("$place/other");

	# More of them than files that this process can open.
	$start_fakes->("$place/other", 4096, 0, 100);
	($status, $out) = root_types("ulimit -n 48; exec $program status --all --bindir $bindir");
	like($out, qr/^\Q@{[ $node->data_dir ]}\E:$/m, 'more servers than files: the search answers');
	unlike($out, qr/timed out|failed/, 'more servers than files: no error');
	$end_fakes->("$place/other");
	root_types("rm -rf $place/other");
}

# A directory that its owner has locked. A process that looks up a name there cannot be killed.
# Returns the process that holds the lock.
written("$scratch/lock.pl", <<"PERL");
use strict;
use warnings;
my (\$open, \$map, \$list) = @{[ $is_arm ? '(282, 222, 61)' : '(323, 9, 217)' ]};
my (\$ids, \$directory) = \@ARGV;
my \$length = 1 << 15;
alarm 300;
# No process fills these pages (UFFDIO_API, UFFDIO_REGISTER).
open my \$faults, '+<&=', syscall(\$open, 0x80000) or die "userfaultfd: \$!";
ioctl(\$faults, 0xc018aa3f, my \$api = pack 'Q3', 0xaa, 0, 0) or die "UFFDIO_API: \$!";
my \$pages = syscall(\$map, 0, \$length, 3, 0x22, -1, 0);
ioctl(\$faults, 0xc020aa00, my \$range = pack 'Q4', \$pages, \$length, 1, 0) or die "UFFDIO_REGISTER: \$!";
(\$(, \$), \$<, \$>) = (\$ids, "\$ids \$ids", \$ids, \$ids);
chdir \$directory or die "\$directory: \$!";
opendir my \$opened, '.' or die;
if (!fork)
{
	# Only a waiting writer makes lookups wait.
	select undef, undef, undef, 0.5;
	open my \$file, '>', 'locked.pid';
	exit;
}
syscall(\$list, fileno \$opened, \$pages, \$length);
PERL
my $lock = sub {
	my ($ids, $directory) = @_;
	root_types("perl $scratch/lock.pl $ids $directory >$scratch/lock.log 2>&1 & echo \$! >$scratch/lock.pid");
	my $pid = slurp_file("$scratch/lock.pid") + 0;
	my $waits = sub { my ($child) = process_file($pid, "task/$pid/children") =~ /(\d+)/; return $child && (state_of($child) // '') eq 'D' };
	ok(until_true($waits), "$directory is locked") or diag(slurp_file("$scratch/lock.log"));
	return $pid;
};

# Runs the program with each of these arguments at the same time, and `more` as well, while processes
# hold locks. /etc/postgresql has only a cluster whose directory is $place/etc/15/locked. Returns the
# outputs, whose last lines are the exit statuses.
my $run_all = sub {
	my ($holders, $more, @arguments) = @_;
	my $script = join '', map { "($program $arguments[$_]; echo \$?) >$scratch/out.$_ 2>&1 & p$_=\$!\n" } 0 .. $#arguments;
	written("$scratch/all.sh", "mkdir -p /etc/postgresql; mount --bind $place/etc /etc/postgresql\n$script\n$more\nwait " . join(' ', map { "\$p$_" } 0 .. $#arguments) . "\n");
	root_types("unshare --mount sh $scratch/all.sh");
	is(scalar(grep { process_file($_, 'status') =~ /^State:\s+[SDR]/m } @$holders), scalar @$holders, 'all of these runs have ended before the lock');
	return map { slurp_file("$scratch/out.$_") } 0 .. $#arguments;
};
# Writes the list of pages that ensure has set aside: one for the server of this directory.
my $reserve_for = sub {
	my ($directory) = @_;
	my ($now) = slurp_file('/proc/uptime') =~ /^(\d+)/;
	my $reservation = { data_directory => $directory, owner => $uid, page_size_bytes => $kb << 10, pages => 1, to_restart => undef, since => $now };
	written("$scratch/reservations", JSON::PP->new->encode([$reservation]));
	root_types("mkdir -p -m 700 /run/hugeinfo; install -m 600 $scratch/reservations /run/hugeinfo/reservations.json");
	return;
};
my $not_in_time = qr/^hugeinfo: the files of the server could not be read in time\n.*\n3$/s;
my $own_name = $node->data_dir;
my $searches = sub { return scalar grep { process_file($_, 'cmdline') =~ /\0internal-search\0/ } map { m{(\d+)$} } glob '/proc/[0-9]*' };

{
	my $locked = "$place/etc/15/locked";
	# A new directory, so that the kernel has not cached names in it.
	root_types("mkdir -p $locked; chown $uid $locked");
	$reserve_for->($locked);
	my @holders = $lock->($uid, $locked);
	# A server that is only found names this directory, and one of root, which everyone can lock.
	my $shared = "$place/shared";
	root_types("mkdir -p -m 755 $place/found; mkdir -m 1777 $shared; : >$place/found/postgresql.conf; : >$place/found/postgresql.auto.conf; chown -R $uid $place/found");
	push @holders, $lock->($uid, $shared);
	$start_fakes->("$place/found", 8 << 20, 0, 1, "''", "''", "-D $shared", $locked);
	my ($status_all, $ensure_all, $named, $check, $found) =
	  $run_all->(\@holders, "sleep 5; ($program ensure --for start $own --lock-wait 1s --wait 1s; kill -0 \$p1; echo \$?) >$scratch/meanwhile 2>&1",
		"status --all --bindir $bindir", "ensure --all --for restart --bindir $bindir", "status -D $locked", 'check --cluster 15/locked --format nagios', 'internal-search');
	like($status_all, qr/^\Q$own_name\E:\n(?!UNKNOWN .* did not end)/m, 'a locked directory: status --all shows the other server');
	like($status_all, qr/^\Q\/etc\/postgresql\/15\/locked\E:\nUNKNOWN .* did not end within 20 s/m, 'a locked directory: status --all names it');
	like($ensure_all, qr/^\Q$own_name\E: the next start is unknown.*^\Q\/etc\/postgresql\/15\/locked\E: \S+ did not end within 20 s\n3$/ms, 'a locked directory: ensure --all');
	like(slurp_file("$scratch/meanwhile"), qr/^\Q$own_name\E: the server runs; .*\n0$/m, 'a locked directory: another ensure, for which pages of it are set aside, need not wait');
	like($_, $not_in_time, 'a locked directory: its own status is unknown') for $named, $check;
	like($found, qr/"AllFound".*\n0\n\z/s, 'a locked directory: the search ends');
	unlike($found, qr/"Failed"/, 'a locked directory: nothing keeps it from the other servers');
	is($searches->(), 0, 'a locked directory: no search waits for it');
	$end_fakes->("$place/found");
	root_types("kill -9 @holders; rm -rf $locked $shared $place/found");
}

# A file system of another user that never answers, in which a process works.
{
	my $mount = "$scratch/mount";
	mkdir $mount;
	written("$scratch/silent.pl", <<"PERL");
use strict;
use warnings;
use Fcntl;
\$^F = 20;
sysopen my \$fuse, '/dev/fuse', O_RDWR or die "/dev/fuse: \$!";
system('mount', '-i', '-t', 'fuse', '-o', 'rootmode=40000,user_id=$uid,group_id=$gid,allow_other,fd=' . fileno(\$fuse), 'none', '$mount') == 0 or die;
alarm 300;
while (sysread \$fuse, my \$request, 1 << 20)
{
	my (\$length, \$code, \$unique) = unpack 'LLQ', \$request;
	# Also FUSE_FLUSH.
	next if \$code == 25 || -e '$scratch/is_silent';
	my (\$error, \$body) = (-38, '');
	(\$error, \$body) = (0, pack('LLLLSSLLSSL', 7, 31, 0, 0, 8, 8, 4096, 1, 0, 0, 0) . "\\0" x 28) if \$code == 26;
	my \$attributes = sub { my (\$inode, \$mode) = \@_; return pack('Q6L3LLLLLLL', \$inode, 0, 0, 0, 0, 0, 0, 0, 0, \$mode, 2, $uid, $gid, 0, 4096, 0) };
	# FUSE_GETATTR, FUSE_LOOKUP and FUSE_OPEN.
	(\$error, \$body) = (0, pack('QLL', 0, 0, 0) . \$attributes->(1, 040777)) if \$code == 3;
	(\$error, \$body) = (0, pack('Q4LL', 2, 0, 60, 60, 0, 0) . \$attributes->(2, 0100666)) if \$code == 1;
	(\$error, \$body) = (0, pack('QLL', 0, 0, 0)) if \$code == 14;
	syswrite \$fuse, pack('LlQ', 16 + length \$body, \$error, \$unique) . \$body;
}
PERL
	root_types("perl $scratch/silent.pl >$scratch/silent.log 2>&1 & echo \$! >$scratch/silent.pid");
	ok(until_true(sub { slurp_file('/proc/mounts') =~ / \Q$mount\E fuse / }), 'a file system of a user') or diag(slurp_file("$scratch/silent.log"));
	written("$scratch/inside.pl", 'use IPC::SysV; alarm 300; $id = shmget(0, 4096, 0600); $at = IPC::SysV::shmat($id, undef, 0); shmctl($id, 0, 0); $| = 1; print "inside\n"; sleep 300');
	root_types("(cd $mount; exec $user perl -e 'exec {q(/usr/bin/perl)} q(postgres), q($scratch/inside.pl)') >$scratch/inside 2>&1 & echo \$! >$scratch/inside.pid");
	ok(until_true(sub { -e "$scratch/inside" && slurp_file("$scratch/inside") =~ /inside/ }), 'a process works there') or diag(slurp_file("$scratch/inside"));

	# The memory of this server's process cannot be read once a file exists. The PostgreSQL of the
	# other cluster, of the same user, creates that file in the middle of a run of ensure.
	my ($other, $cluster) = ("$place/stuck", "$place/etc/15/signs");
	root_types("mkdir -p -m 755 $other $cluster; : >$other/postgresql.conf; : >$other/postgresql.auto.conf; cp -a $data/. $cluster; chown -R $uid $other $cluster");
	written("$scratch/spies/postgres", "#!/bin/sh\nsleep 2; : >$said/sign; sleep 1; exit 1\n");
	sleep 2;
	$start_fakes->($other, 96 << 20, 1, 1, "$mount/file", "$said/sign");
	my ($stuck) = slurp_file("$other/postmaster.pid") =~ /^(\d+)/;
	my ($ensure) = $run_all->([$stuck], ':', "ensure --all --for restart --bindir $spies");
	like($ensure, qr/^\Q$other\E: its memory could not be read: .* timed out/m, 'a server that is stuck: ensure --all names it');
	like($ensure, qr/^\Q$own_name\E: the next start is unknown/m, 'a server that is stuck: ensure --all goes on');
	$reserve_for->($other);
	my ($status_all, $named, $own_status, $own_ensure) =
	  $run_all->([$stuck], ':', 'status --all', "status -D $other", "status $own --bindir $bindir", "ensure --for start --lock-wait 1s $own --bindir $bindir");
	like($status_all, qr/^hugeinfo: the search for servers failed: .*\n3$/s, 'a server that is stuck: status --all');
	like($named, $not_in_time, 'a server that is stuck: its own status is unknown');
	like($own_status, qr/^\w+ +On 4 kB pages: .*\n1$/s, 'a server that is stuck: status of the other server');
	like($own_ensure, qr/^\Q$own_name\E: the server runs; .*\n0$/s, 'a server that is stuck: ensure for the other server');
	root_types("rm -rf $cluster");

	append_to_file("$scratch/is_silent", '');
	$node->stop;
	my $start = Time::HiRes::time();
	($status, $out) = as_root("ensure --for start $own");
	is($status, 0, 'a file system that never answers: exit status') or diag($out);
	cmp_ok(Time::HiRes::time() - $start, '<', 60, 'a file system that never answers: ends');
	is($searches->(), 0, 'a file system that never answers: no process waits for it');
	($status, $out) = as_root("status -D $mount");
	like($out, qr/\Q$mount\E is on a file system that a program of a user serves/, 'a data directory there: the message');
	root_types("kill -9 \$(cat $scratch/inside.pid) \$(cat $scratch/silent.pid); umount -l $mount; true");
}

# No room in /tmp.
{
	root_types('rm -rf /run/hugeinfo; true');
	pools_of_one_size($kb, 0);
	configure($node, huge_pages => 'on');
	# The directories of this test stay there.
	written("$scratch/full.sh", "mount --bind /tmp /mnt; mount -t tmpfs -o size=64k,mode=1777 none /tmp\n"
		  . "for name in /mnt/*/; do name=/tmp/\$(basename \$name); mkdir \$name; mount --bind /mnt/\${name#/tmp/} \$name; done\n"
		  . "cat /dev/zero >/tmp/full 2>/dev/null\nexec $program ensure --for start $own --bindir $bindir\n");
	($status, $out) = root_types("unshare --mount sh $scratch/full.sh");
	like($out, qr/: has its (\d+) huge pages/, 'a full /tmp: ensure');
	my ($started, $log) = starts($node);
	ok($started, 'a full /tmp: the server starts') or diag($log);
	configure($node, huge_pages => 'try');
}

# A hint of PostgreSQL is no line of its own for root.
{
	$node->stop;
	configure($node, work_mem => '1XB');
	($status, $out) = as_root("ensure --for start $own");
	like($out, qr/^\Q@{[ $node->data_dir ]}\E: warning: as user \w+: .*invalid value .*; HINT: Valid units [^\n]*\n\z/, 'an error in the configuration: one line');
	configure($node, work_mem => '4MB');
	$node->start;
}

# psql in a remedy has neither the terminal nor the environment of root, because a process of the
# server's user can take its open files (pidfd_getfd), read its environment, and push characters
# into its terminal (TIOCSTI).
SKIP:
{
	restarts($node, huge_page_size => '3MB');
	my $remedy = decoded((as_root("status $own --format json"))[1])->{remedy};
	my ($before, $after) = $remedy =~ /^(env .* runuser .* -- )psql .*?( <\S+)$/m;
	ok($after, 'a remedy with SQL');
	restarts($node, huge_page_size => 0);
	written("$scratch/has.pl", <<'PERL');
my $terminal = (split ' ', do { open my $f, '<', '/proc/self/stat'; <$f> } =~ s/.*\)//r)[4];
print join(' ', 'has', $terminal, (map { readlink "/proc/self/fd/$_" } 0 .. 2), $ENV{SECRET} // 'none'), "\n";
PERL
	my $has = "perl $scratch/has.pl";
	my $out = (root_types("SECRET=secret script --quiet --return --command '$has; $before$has$after' /dev/null"))[1];
	cannot('a terminal of root: a chroot without /dev/pts') if $out =~ /failed to create pseudo-terminal/;
	my ($number, $terminal, @of_root) = split ' ', $out =~ s/.*?^has //msr =~ s/\n.*//sr;
	my @of_psql = split ' ', $out =~ s/.*^has //msr;
	is_deeply(\@of_root, [ $terminal, $terminal, 'secret' ], 'a terminal of root: root has it');
	is(scalar(grep { $_ eq $number || $_ eq $terminal } @of_psql), 0, 'a terminal of root: psql does not have it') or diag($out);
	is($of_psql[-1], 'none', 'the environment of root: psql does not have it');
}

like((root_types("$program internal-touch --bytes 1 --page-bytes 0"))[1], qr{expected a huge page size}, 'touch: a size of 0');
$node->stop;
root_types("rm -rf $place/* /run/hugeinfo $said/*; true");
}

done_testing;
