# In pods on a node with free huge pages, initdb and servers die if the limit of the pod is too low.
# They work after the steps that hugeinfo preflight and docs/server-does-not-start.md print, with each
# version of PostgreSQL. The cgroups are as the kubelet creates them: the limit is above the
# container's own cgroup.
use strict;
use warnings;

use FindBin;
use IPC::Run ();
use lib "$FindBin::RealBin/lib";
use HugeInfo::Tools;
use HugeInfo::Host;
use HugeInfo::Contained;
use HugeInfo::Kernel;
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $program = source('target/program/hugeinfo');
my $bindir = $ENV{PATH} =~ s/:.*//r;
my $dir = "$ENV{TESTDIR}/pods";
my $major = `postgres --version` =~ /\) (\d+)/ ? $1 : die "no version\n";

# Runs a command in the pod. Returns the exit status, or 128 and the signal, and the output.
our @within;

sub runs
{
	my (@command) = @_;
	my $out = '';
	local $ENV{LC_ALL} = 'C';
	IPC::Run::run([ @within, @command ], '<', '/dev/null', '>', \$out, '2>&1');
	note("@command:\n$out");
	return ($? & 127 ? 128 + ($? & 127) : $? >> 8, $out);
}

sub preflight { my (@options) = @_; return runs($program, 'preflight', '--probe', '--bindir', $bindir, @options) }

my $count = 0;
sub initdb
{
	my (@options) = @_;
	my $data = "$dir/data" . ++$count;
	my ($status, $out) = runs('initdb', '-D', $data, qw(-A trust --no-sync --no-locale), @options);
	return ($status, $out, $data);
}

# Starts a server in the pod, and stops it. Returns the page size of its segment.
sub starts
{
	my ($data, @options) = @_;
	my $options = join ' ', '-k', $dir, '-c', "listen_addresses=''", map { ('-c', $_) } @options;
	my ($status) = runs('pg_ctl', '-D', $data, '-l', "$data.log", '-o', $options, '-w', 'start');
	return undef if $status;
	my ($pid) = split /\n/, slurp_file("$data/postmaster.pid");
	my $bytes = segment($pid)->{page_bytes};
	runs('pg_ctl', '-D', $data, '-m', 'fast', '-w', 'stop');
	return $bytes;
}

sub file_says { my ($data, $name) = @_; return slurp_file("$data/postgresql.conf") =~ /^$name = (\S+)/m ? $1 : undef }

# Follows docs/server-does-not-start.md. Returns the options of initdb.
sub options_of_initdb
{
	return ('-c', 'huge_pages=off') if $major >= 16;
	my $share = `pg_config --sharedir` =~ s/\n//r;
	mkdir "$dir/share" or die "$dir/share: $!\n";
	symlink $_, "$dir/share/" . s{.*/}{}r or die "$_: $!\n" for grep { !/postgresql\.conf\.sample$/ } glob "$share/*";
	append_to_file("$dir/share/postgresql.conf.sample", slurp_file("$share/postgresql.conf.sample") . "huge_pages = off\n");
	return ('-L', "$dir/share");
}

SKIP:
{
	my $name = 'a pod without huge pages';
	needs_host($name);
	needs_namespaces($name, qw(--user --map-current-user --mount --cgroup));
	mkdir $dir or die "$dir: $!\n";
	pools_of_one_size($kb, 300);
	my ($version) = make_group('pod/container');
	limit_group('pod', 'fault', $kb, 0);
	my $type = $version == 2 ? 'cgroup2' : 'cgroup -o hugetlb';
	note("hugetlb controller of cgroup version $version");
	in_group('pod/container', sub {
		# Like a container, it sees only the cgroups below its own.
		local @within = @{ with_mounts(["-t $type none /sys/fs/cgroup"], '--cgroup') };
		my ($status, $out, $data) = initdb();
		isnt($status, 0, "$name: initdb fails");
		like($out, qr/Bus error|signal 7|exit code 135/, "$name: initdb dies of SIGBUS");

		($status, $out) = preflight();
		is($status, 1, "$name: preflight: exit status");
		like($out, qr/^Probe: the kernel reserved .*, but could not allocate all of them \(SIGBUS\)/m, "$name: preflight: the probe");
		($status, $out, $data) = initdb(options_of_initdb());
		is($status, 0, "$name: initdb as the page says") or diag($out);
		is(file_says($data, 'huge_pages'), 'off', "$name: its huge_pages");
		# These are also what the page says for PostgreSQL 15.
		my @damaged = map { file_says($data, $_) } qw(max_connections shared_buffers);
		is_deeply(\@damaged, $major >= 16 ? [qw(100 128MB)] : [qw(20 400kB)], "$name: the settings that initdb writes");
		is(starts($data, 'max_connections=100', 'shared_buffers=128MB'), base_page(), "$name: the server starts on small pages");
		($status) = runs('timeout', '60', 'postgres', '-D', $data, '-k', $dir, map { ('-c', $_) } 'listen_addresses=', 'shared_buffers=128MB', 'huge_pages=try');
		is($status, 128 + 7, "$name: with huge_pages = try, the server dies of SIGBUS");

		is((preflight('-D', $data, '-c', 'shared_buffers=128MB'))[0], 0, "$name: preflight of the server with huge_pages = off");
		is((preflight('-D', $data, '-c', 'huge_pages=try'))[0], 1, "$name: preflight of the server with huge_pages = try");
		# The downward API shows the limit.
		local $ENV{'PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi'} = 0;
		like((runs($program, 'preflight', '--bindir', $bindir))[1], qr/PG_HUGEINFO_LIMIT_HUGEPAGES_2Mi/, "$name: preflight names the variable") if $kb == 2048;
	});

	# The other remedy: the limit that preflight prints.
	$name = 'a pod with the limit that preflight prints';
	in_group('pod/container', sub {
		# Here, the limit is visible.
		my (undef, $out) = preflight('-c', 'shared_buffers=160MB');
		my ($mb) = $out =~ /requests and limits need hugepages-\w+: "?(\d+)Mi"?/ or diag($out);
		limit_group('pod', 'fault', $kb, $mb << 20);
		local @within = @{ with_mounts(["-t $type none /sys/fs/cgroup"], '--cgroup') };
		my ($status, $printed) = preflight('-c', 'shared_buffers=160MB');
		is($status, 0, "$name: preflight") or diag($printed);
		($status, $printed, my $data) = initdb();
		is($status, 0, "$name: initdb") or diag($printed);
		is_deeply([ map { file_says($data, $_) } qw(max_connections shared_buffers) ], [qw(100 128MB)], "$name: the settings that initdb writes");
		is(starts($data, 'shared_buffers=160MB', 'huge_pages=on'), $kb * 1024, "$name: the server is on huge pages");
	});

	# Only the probe finds a limit on reservations above the container. A start would fail.
	$name = 'a pod that may reserve no huge pages';
	limit_group('pod', 'reservation', $kb, 0);
	in_group('pod/container', sub {
		local @within = @{ with_mounts(["-t $type none /sys/fs/cgroup"], '--cgroup') };
		for (['on', 2], ['try', 1])
		{
			my ($huge_pages, $expected) = @$_;
			my ($status, $printed) = preflight('-c', "huge_pages=$huge_pages");
			is($status, $expected, "$name: preflight with huge_pages = $huge_pages");
			like($printed, qr/^Probe: the kernel refused/m, "$name: the probe with huge_pages = $huge_pages");
		}
	});
}

done_testing;
