# Environments that hide or forbid facts, or have wrong ones: a sandbox without ioctl, no /sys, no
# /proc, masked files, hidden processes, a library of another version, machine or PostgreSQL. Every
# result is correct or unknown, and every error states the problem.
#
# Takes half a minute, because a server starts in each environment, on small and on huge pages, and
# all objects are read there.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use File::Temp ();

# Runs `make` with fakes of the programs that it calls, while this process can still read the
# checkout.
my %make;

BEGIN
{
	my $dir = File::Temp::tempdir(CLEANUP => 1);
	my $stand_in = sub {
		my ($name, $script) = @_;
		open my $fh, '>', "$dir/$name" or die "$dir/$name: $!\n";
		print $fh "#!/bin/sh\n$script\n";
		close $fh;
		chmod 0755, "$dir/$name";
		return "$dir/$name";
	};
	my $pgxs = $stand_in->('pgxs.mk', '');
	my $make = sub { my ($with) = @_; return scalar `cd '$FindBin::RealBin/..' && $with make --dry-run build 2>&1` . ($? ? 'failed' : 'done') };
	my $pg_config = sub {
		my ($name, $version, $pgxs) = @_;
		return 'PG_CONFIG=' . $stand_in->($name, qq([ "\$1" = --version ] && echo '$version'; [ "\$1" = --pgxs ] && echo $pgxs; true));
	};
	$make{'PostgreSQL 14'} = $make->($pg_config->('old', 'PostgreSQL 14.1', $pgxs));
	$make{'PostgreSQL 14 without build files'} = $make->($pg_config->('bare', 'PostgreSQL 14.1', '/nonexistent'));
	$make{'PostgreSQL 20'} = $make->($pg_config->('new', 'PostgreSQL 20devel', $pgxs));
	$make{'a program that is not pg_config'} = $make->($pg_config->('odd', 'hello', $pgxs));
	$make{'a missing program'} = $make->('PG_CONFIG=/nonexistent/pg_config');
	$stand_in->('uname', 'echo Linux riscv64');
	$make{'another machine'} = $make->("PATH=$dir:\$PATH");
	$stand_in->('uname', 'echo Darwin arm64');
	$make{'another system'} = $make->("PATH=$dir:\$PATH");
	unlink "$dir/uname";
	$stand_in->('ldd', "echo 'musl libc (x86_64)' >&2; echo 'Version 1.2.5' >&2; exit 1");
	$make{'musl'} = $make->("PATH=$dir:\$PATH");
}

use HugeInfo::Host;
use HugeInfo::Contained;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

for (
	[ 'PostgreSQL 14', qr/needs PostgreSQL 15 to 19, but \S+ belongs to "PostgreSQL 14\.1"\. To choose another one: make PG_CONFIG=/ ],
	[ 'PostgreSQL 14 without build files', qr/needs PostgreSQL 15 to 19, but \S+ belongs to "PostgreSQL 14\.1"/ ],
	[ 'PostgreSQL 20', qr/needs PostgreSQL 15 to 19, but \S+ belongs to "PostgreSQL 20devel"/ ],
	[ 'a program that is not pg_config', qr/needs PostgreSQL 15 to 19, but \S+ belongs to "hello"/ ],
	[ 'a missing program', qr{/nonexistent/pg_config --version does not print a version of PostgreSQL} ],
	[ 'another machine', qr/x86-64 and arm64: it does not build on "Linux riscv64"/ ],
	[ 'another system', qr/does not build on "Darwin arm64"/ ],
	[ 'musl', qr/needs glibc, .* It does not build with musl/ ])
{
	my ($with, $said) = @$_;
	like($make{$with}, $said, "make with $with: the error");
	unlike($make{$with}, qr/cargo/, "make with $with: builds nothing");
}

my $kb = default_page_kb();
my $node = new_server('inside', huge_pages => 'off');
my $need = $kb && required_pages($node, $kb);
my @objects = split /\n/, $node->safe_psql('postgres', q{
	SELECT d.objid::regclass::text FROM pg_depend AS d JOIN pg_extension AS e ON d.refobjid = e.oid JOIN pg_class AS c ON d.objid = c.oid
	WHERE d.refclassid = 'pg_extension'::regclass AND d.classid = 'pg_class'::regclass AND e.extname = 'pg_hugeinfo' AND c.relkind = 'v'
	UNION ALL SELECT unnest('{hugeinfo_plan(),hugeinfo_memory(),hugeinfo_report()}'::text[])});
my $has_others = $node->safe_psql('postgres', 'SELECT count(*) > 1 FROM hugeinfo_instances') eq 't';
$node->stop;

# The results for pools and checks without restrictions, on small and huge pages.
my %open;

sub said
{
	my ($sql) = @_;
	my %said = map { ("check $_->{name}" => $_) } $sql->rows('SELECT name, status FROM hugeinfo_checks');
	$said{"pool $_->{page_size_bytes}"} = $_ for $sql->rows('SELECT * FROM hugeinfo_pools');
	($said{status}) = $sql->rows('SELECT * FROM hugeinfo_status');
	# Texts, which depend on the visible facts.
	delete @$_{qw(reason remedy how_to_set cgroup_limit_source)} for values %said;
	return \%said;
}

# Returns the results that differ from those without restrictions.
sub wrong
{
	my ($seen, $open) = @_;
	my @wrong;
	for my $row (sort keys %$seen)
	{
		for my $column (sort keys %{ $seen->{$row} })
		{
			my ($is, $should) = ($seen->{$row}{$column}, $open->{$row}{$column});
			next if !defined $is || defined $should && $is eq $should;
			# Other servers use their pages meanwhile, and restrictions decide whether they can be read.
			next if $has_others && ($row eq 'check other_servers' || $column =~ /^(?:free_pages|reserved_pages|recommended_nr_hugepages)$/);
			# Unknown facts can make the worst status of all checks worse.
			next if $column eq 'code' && $is eq 'unknown';
			next if $column eq 'status' && ($is eq 'unknown' || $row eq 'status' && $is ne 'ok');
			# Idle pages stay if it is unknown whether the next boot sets them.
			next if $column eq 'recommended_nr_hugepages' && $is eq ($seen->{$row}{total_pages} // $seen->{$row}{pool_total_pages} // '');
			push @wrong, "$row: $column is $is, and was " . ($should // 'NULL');
		}
	}
	return join "\n", @wrong;
}

# Compares hugeinfo_status with the kernel, and the results for pools and checks with those without
# restrictions: all must be correct or unknown. No object raises an error except an allowed one.
sub compare_all
{
	my ($postmaster, $name, $allowed) = @_;
	my $real = segment($postmaster);
	my %real = (
		in_use => $real->{page_bytes} > base_page() ? 't' : 'f', page_size_bytes => $real->{page_bytes}, segment_bytes => $real->{bytes},
		segment_pages => $real->{bytes} / $real->{page_bytes});
	my $sql = HugeInfo::Session->new($node);
	my ($status) = $sql->rows('SELECT * FROM hugeinfo_status');
	my %seen = map { $_ => $status->{$_} } keys %real;
	is_deeply(\%seen, { map { $_ => defined $seen{$_} ? $real{$_} : undef } keys %real }, "$name: hugeinfo_status is correct or unknown")
	  or diag($status->{reason});
	isnt($status->{status}, 'ok', "$name: unknown facts are not ok") if grep { !defined } values %seen;
	my $open = $open{ $real{in_use} };
	is(wrong(said($sql), $open), '', "$name: pools and checks are correct or unknown") if $open && !$allowed;
	for my $object (@objects)
	{
		my ($state, $error) = $sql->error_of("SELECT count(o) FROM $object AS o");
		$state && $allowed ? like($error, $allowed, "$name: $object") : is($state, '', "$name: $object") or diag($error);
	}
	my ($checks, $error) = $sql->query(q(SELECT string_agg(concat_ws(' ', name, status, finding), E'\n') FROM hugeinfo_checks));
	note("$status->{status}: $status->{reason}\n$checks$error");
	return ($sql, $status);
}

# Sets the pages on which the stopped server starts next. Only within SKIP.
sub on_pages
{
	my ($pages, $name) = @_;
	if ($pages eq 'huge')
	{
		needs_host($name);
		pools_of_one_size($kb, $need);
	}
	return configure($node, huge_pages => $pages eq 'huge' ? 'on' : 'off');
}

sub check_of { my ($sql, $name) = @_; return ($sql->rows("SELECT * FROM hugeinfo_checks WHERE name = '$name'"))[0] }

# A seccomp filter with which every ioctl fails with this error number.
my $WITHOUT_IOCTL = <<'PERL';
use strict;
use warnings;
my ($errno, @command) = @ARGV;
my ($prctl, $ioctl) = `uname -m` =~ /^x86_64/ ? (157, 16) : (167, 29);
# struct sock_filter: code, true, false, k
my @program = map { pack 'S C C L', @$_ } [ 0x20, 0, 0, 0 ], [ 0x15, 0, 1, $ioctl ], [ 0x06, 0, 0, 0x0005_0000 | $errno ], [ 0x06, 0, 0, 0x7fff_0000 ];
my $program = join '', @program;
syscall($prctl, 38, 1, 0, 0, 0) == 0 or die "no_new_privs: $!\n";
syscall($prctl, 22, 2, pack('S x6 P', scalar @program, $program), 0, 0) == 0 or die "seccomp: $!\n";
exec @command or die "@command: $!\n";
PERL

# The state of the pools does not change from here on.
sub in_the_open
{
	my ($pages) = @_;
	SKIP:
	{
		my $name = "no restrictions, $pages pages";
		on_pages($pages, $name);
		my @own = qw(--user --map-current-user --mount);
		needs_namespaces($name, @own);
		%open = ();
		in_namespace($node, $name, [ 'unshare', @own ], sub {
			my ($postmaster) = @_;
			my ($sql, $status) = compare_all($postmaster, $name);
			$open{ $status->{in_use} } = said($sql);
			$sql->close;
		});
	}
	return;
}

for my $pages ('small', 'huge')
{
	in_the_open($pages);
	for ([ 'EPERM', 1 ], [ 'ENOSYS', 38 ])
	{
		SKIP:
		{
			my ($what, $errno) = @$_;
			my $name = "ioctl fails with $what, $pages pages";
			on_pages($pages, $name);
			in_namespace($node, $name, [ $^X, '-e', $WITHOUT_IOCTL, $errno ], sub {
				my ($postmaster) = @_;
				my ($sql, $status) = compare_all($postmaster, $name);
				is($status->{in_use}, $pages eq 'huge' ? 't' : 'f', "$name: in_use is known");
				isnt($sql->value(q(SELECT string_agg(DISTINCT status, ' ') FROM hugeinfo_sources WHERE source = 'PROCMAP_QUERY')), 'ok', "$name: hugeinfo_sources reports it");
				is($sql->value(q(SELECT string_agg(DISTINCT status, ' ') FROM hugeinfo_sources WHERE source IN ('maps', 'smaps'))), 'ok', "$name: the sources that are used instead");
				is($sql->value(q(SELECT sum(size_bytes) FROM hugeinfo_mappings WHERE kind = 'main segment')), segment($postmaster)->{bytes}, "$name: hugeinfo_mappings");
				$sql->close;
			});
		}
	}
}

# Empty directories and files, like those with which container runtimes mask others.
my @masked = ([ 'no /sys', '-t tmpfs none /sys' ], [ 'no /proc', '-t tmpfs none /proc' ], [ 'neither /proc nor /sys', '-t tmpfs none /sys', '-t tmpfs none /proc' ]);
push @masked, map { [ "an empty $_", "--bind /dev/null $_" ] } qw(/proc/meminfo /proc/vmstat /proc/sys/vm/overcommit_memory /proc/cmdline /proc/buddyinfo),
  map { ($_, "$_/nr_hugepages") } map { "/sys/kernel/mm/hugepages/hugepages-${_}kB" } $kb // ();
$_->[0] =~ m{hugepages-\d+kB$} and @$_ = ('no file of a pool', "-t tmpfs none /sys/kernel/mm/hugepages/hugepages-${kb}kB") for @masked;
# Counters that a kernel or lxcfs decremented below zero.
my $below_zero = PostgreSQL::Test::Utils::tempdir();
{
	my $meminfo = slurp_file('/proc/meminfo');
	$meminfo =~ s/^(SwapFree:\s+)\d+/${1}18446744073709346016/m and $meminfo =~ s/^(Cached:\s+)\d+/${1}18014396678257232/m or die "no SwapFree or Cached\n";
	$meminfo =~ s/^(HugePages_Rsvd:\s+)\d+/${1}18446744073709551615/m;
	append_to_file("$below_zero/meminfo", $meminfo);
	append_to_file("$below_zero/counter", "18446744073709551615\n");
}
push @masked, [ 'meminfo below zero', "--bind $below_zero/meminfo /proc/meminfo" ];
push @masked, [ 'pool below zero', "--bind $below_zero/counter /sys/kernel/mm/hugepages/hugepages-${kb}kB/resv_hugepages" ] if $kb;
# A counter below zero makes only the values unknown that depend on it: the use of its pool.
sub is_only_one_counter_unknown
{
	my ($sql, $pages, $name) = @_;
	my $open = $open{ $pages eq 'huge' ? 't' : 'f' };
	my $seen = said($sql);
	my $of_pool = 'pool ' . $kb * 1024;
	is_deeply([ sort grep { /^pool / } keys %$seen ], [ sort map { 'pool ' . $_ * 1024 } page_sizes_kb() ], "$name: all pools have rows");
	for my $row (grep { /^pool / && $_ ne $of_pool } sort keys %$seen)
	{
		is_deeply($seen->{$row}, $open->{$row}, "$name: the row of $row");
	}
	is($seen->{$of_pool}{total_pages}, $open->{$of_pool}{total_pages}, "$name: another counter of the same pool");
	# The checks that depend on pages used or needed by other servers.
	my %depends = map { ("check $_" => 1) } qw(pool_filled pool_size), $pages eq 'huge' ? qw(cgroup_fault_limit restart pending_settings reboot pool_growth other_servers) : ();
	my @unknown = grep { /^check / && $seen->{$_}{status} eq 'unknown' && $open->{$_}{status} ne 'unknown' } sort keys %$seen;
	is_deeply([ grep { !$depends{$_} } @unknown ], [], "$name: other checks are known");
	unlike(check_of($sql, 'reboot')->{finding}, qr/segment|cannot be read/, "$name: reboot names the counter, not the segment");
	for my $check (map { s/^check //r } @unknown)
	{
		like(check_of($sql, $check)->{finding}, qr/a kernel counter went below zero/, "$name: why $check is unknown");
	}
	return;
}

for my $pages ('small', 'huge')
{
	in_the_open($pages);
	for (@masked)
	{
		SKIP:
		{
			my ($what, @mounts) = @$_;
			my $name = "$what, $pages pages";
			on_pages($pages, $name);
			needs_namespaces($name, qw(--user --map-current-user --keep-caps --mount));
			in_namespace($node, $name, with_mounts(\@mounts), sub {
				my ($postmaster) = @_;
				my ($sql, $status) = compare_all($postmaster, $name, $what =~ m{/proc\b(?!/)} ? qr{ERROR:  58P01: .*/proc/self} : undef);
				if ($what eq 'meminfo below zero')
				{
					is($sql->value(q(SELECT count(*) FROM hugeinfo_meminfo WHERE name IN ('SwapFree', 'Cached', 'HugePages_Rsvd') AND bytes IS NOT NULL)), 0, "$name: no value");
					is($sql->value(q(SELECT swap_free_bytes IS NULL AND memory_total_bytes > 0 FROM hugeinfo_host)), 't', "$name: other values are kept");
				}
				if ($what eq 'pool below zero')
				{
					# The counters of an empty pool are not read.
					like($status->{reason}, qr/resv_hugepages.*a kernel counter went below zero/, "$name: the reason") if $pages eq 'huge';
					is_only_one_counter_unknown($sql, $pages, $name);
				}
				if ($what eq 'no /sys')
				{
					is(check_of($sql, $_)->{status}, 'unknown', "$name: $_") for qw(thp_private thp_shared numa_segment);
				}
				$sql->close;
			});
		}
	}
}

SKIP:
{
	my $name = 'processes of others are hidden';
	on_pages('huge', $name);
	start_hidden($node->data_dir, $node->logfile);
	until_true(sub { !system_log('pg_isready', '-q', '-h', $node->host, '-p', $node->port) }) or die "$name: no server\n";
	my ($postmaster) = split /\n/, slurp_file($node->data_dir . '/postmaster.pid');
	my ($sql, $status) = compare_all($postmaster, $name);
	is($sql->value(q(SELECT count(*) FROM pg_ls_dir('/proc') AS d WHERE d = '1')), 0, "$name: process 1 is hidden");
	is($status->{in_use}, 't', "$name: in_use is known");
	is_deeply([ map { $_->{pid} } $sql->rows('SELECT pid FROM hugeinfo_backends ORDER BY pid') ], [ family($postmaster) ], "$name: all processes of the server are visible");
	is(check_of($sql, 'other_servers')->{status}, 'unknown', "$name: other servers are unknown") unless $has_others;
	$sql->close;
	system_or_bail('pg_ctl', '-D', $node->data_dir, '-m', 'fast', '-s', 'stop');
}

SKIP:
{
	my $name = '/proc of another PID namespace';
	my @own = qw(--user --map-current-user --pid --fork);
	needs_namespaces($name, @own);
	in_namespace($node, $name, [ 'unshare', @own ], sub {
		my ($postmaster) = @_;
		my ($sql) = compare_all($postmaster, $name);
		is($sql->value('SELECT count(*) FROM hugeinfo_backends'), 0, "$name: no other process is listed");
		is(check_of($sql, 'oom_protection')->{status}, 'unknown', "$name: oom_protection");
		$sql->close;
	});
}

# One number that is out of range does not hide the others.
SKIP:
{
	my $name = 'numbers out of range';
	on_pages('small', $name);
	needs_namespaces($name, qw(--user --map-current-user --keep-caps --mount));
	my $files = PostgreSQL::Test::Utils::tempdir();
	my ($large, $limit) = ('9223372036854775808', '9223372036854775807');
	append_to_file("$files/vmstat", "nr_free_pages 1\nthp_fault_alloc $large\nthp_fault_fallback $limit\n");
	append_to_file("$files/swappiness", "2147483648\n");
	in_namespace($node, $name, with_mounts([ "--bind $files/vmstat /proc/vmstat", "--bind $files/swappiness /proc/sys/vm/swappiness" ]), sub {
		my $sql = HugeInfo::Session->new($node);
		for (
			[ q(SELECT string_agg(name || ' ' || coalesce(value::text, 'NULL'), E'\n') FROM hugeinfo_vmstat), "nr_free_pages 1\nthp_fault_alloc NULL\nthp_fault_fallback $limit" ],
			[ q(SELECT coalesce(swappiness::text, 'NULL') FROM hugeinfo_host), 'NULL', 'WARNING:  01000: integer out of range: the kernel reported 2147483648, which is shown as NULL' ])
		{
			# A counter above bigint is below zero, which needs no warning.
			my ($query, $rows, @warnings) = @$_;
			my ($out, $notices) = $sql->notices($query);
			is($out, $rows, "$name: the value is NULL");
			is_deeply($notices, \@warnings, "$name: " . @warnings . ' warnings');
		}
		$sql->close;
	});
}

# Copies the library and changes some bytes.
my $library = $node->config_data('--pkglibdir') . '/pg_hugeinfo.so';
my $dir = PostgreSQL::Test::Utils::tempdir();

sub changed_library
{
	my ($name, $change) = @_;
	open my $in, '<:raw', $library or die "$library: $!\n";
	my $bytes = do { local $/; <$in> };
	$change->(\$bytes) or die "$name: not found in $library\n";
	my $file = "$dir/$name.so";
	open my $out, '>:raw', $file or die "$file: $!\n";
	print $out $bytes;
	close $out or die "$file: $!\n";
	chmod 0755, $file;
	return $file;
}

$node->start;
{
	my $session = HugeInfo::Session->new($node);
	for (
		[ 'another PostgreSQL', sub { ${ $_[0] } =~ s/(.{4})(\Q${\ pack 'l', int($node->pg_version->{num}[0]) * 100}\E)(\Q${\ pack 'lll', 100, 32, 64}\E)/$1 . pack('l', 1400) . $3/es },
			qr/incompatible library.*Server is version \d+, library is version 14/s ],
		[ 'another machine', sub { substr ${ $_[0] }, 18, 2, pack 'S', 243 }, qr/could not load library/ ],
		[ 'an older version that lacks a function', sub { ${ $_[0] } =~ s/\0hugeinfo_status_wrapper\0/\0hugeinfo_stxtus_wrapper\0/ }, qr/could not find function "hugeinfo_status_wrapper" in file "\S+\.so"/ ])
	{
		my ($name, $change, $said) = @$_;
		my $file = changed_library($name =~ s/ /_/gr, $change);
		my ($state, $error) = $session->error_of("CREATE FUNCTION other() RETURNS SETOF record LANGUAGE c AS '$file', 'hugeinfo_status_wrapper'");
		like($error, $said, "a library of $name: the error");
	}
	$session->close;
}

# SQL objects of another version. Rows have no column names, so an additional column would be read
# from invalid memory.
{
	my $session = HugeInfo::Session->new($node);
	my $own = $session->value(q(SELECT extversion FROM pg_extension WHERE extname = 'pg_hugeinfo'));
	my @release = $own =~ /^(.*)-dev$/ ? [ $1, qr/Connect again, because / ] : ();
	push @release, [ '0.1.1-dev', qr/A development version cannot be upgraded/ ];
	for my $case (@release, [ '999.0.0', qr/Connect again, because .*install the library of version 999\.0\.0/ ], [ '0.0.9', qr/ALTER EXTENSION pg_hugeinfo UPDATE/ ], [ 'unknown', qr/ALTER EXTENSION/ ])
	{
		my ($version, $hint) = @$case;
		my $name = "SQL of version $version";
		$session->value("UPDATE pg_extension SET extversion = '$version' WHERE extname = 'pg_hugeinfo'");
		for my $object (@objects)
		{
			my ($state, $error) = $session->error_of("SELECT * FROM $object");
			is($state, '55000', "$name: $object");
			like($error, qr/extension pg_hugeinfo is version \Q$version\E in this database, but its library is version \Q$own\E/, "$name: the error of $object names both versions");
			like($error, $hint, "$name: the hint of $object");
		}
	}
	$session->value("UPDATE pg_extension SET extversion = '$own' WHERE extname = 'pg_hugeinfo'");
	is(($session->error_of("SELECT * FROM $_"))[0], '', "SQL of its own version: $_") for @objects;
	$session->close;
}
$node->stop;

done_testing;
