# Holders of the huge pages of the host, compared with the mappings of a program of this test and
# with mounts of this test.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Processes;
use HugeInfo::Server;
use HugeInfo::Session;
use HugeInfo::User;
use IPC::Open2 qw(open2);
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $page = 1024 * $kb;

# A program that maps and faults in this many shared and private pages. Another argument makes it
# protect its memory files.
my $program = "$ENV{TESTDIR}/holder";
append_to_file("$program.c", <<'EOF');
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
static void map(size_t page, int kind, int pages, int touched) {
	char *start = pages ? mmap(NULL, pages * page, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0) : NULL;
	if (start == MAP_FAILED) { perror("mmap"); exit(1); }
	for (int i = 0; i < touched; i++) start[i * page] = 1;
}
int main(int argc, char **argv) {
	map(atol(argv[1]), MAP_SHARED, atoi(argv[2]), atoi(argv[3]));
	map(atol(argv[1]), MAP_PRIVATE, atoi(argv[4]), atoi(argv[5]));
	if (argc > 6) prctl(PR_SET_DUMPABLE, 0);
	puts("ready");
	fflush(stdout);
	getchar();
}
EOF
system_or_bail('cc', '-o', $program, "$program.c");

sub hold
{
	my (@arguments) = @_;
	my $pid = open2(my $from, my $to, $program, $page, @arguments);
	(<$from> // '') eq "ready\n" or BAIL_OUT('no huge pages to hold');
	return { pid => $pid, from => $from, to => $to };
}

sub let_go { my ($holder) = @_; close $holder->{to}; waitpid $holder->{pid}, 0; return }

sub holders { my ($sql) = @_; return $sql->rows('SELECT * FROM hugeinfo_holders') }

# Returns a row without NULL columns.
sub said
{
	my ($row) = @_;
	return { map { $_ => $row->{$_} } grep { defined $row->{$_} } keys %$row };
}

sub of_kind { my ($kind, @rows) = @_; return map { said($_) } grep { $_->{kind} eq $kind } @rows }

sub unexplained { my (@rows) = @_; return join ' ', map { $_->{held_pages} } of_kind('unexplained', @rows) }

SKIP:
{
	my $name = 'holders';
	needs_host($name);
	my $node = new_server('holders', shared_buffers => '16MB', huge_pages => 'off');
	my $own = required_pages($node, $kb);
	pools_of_one_size($kb, $own + 40);
	restarts($node, huge_pages => 'on');
	my $sql = HugeInfo::Session->new($node);

	# The pages that the processes of the server have faulted in. They can fault in more meanwhile.
	my %touched = map { $_ => process_file($_, 'status') =~ /^HugetlbPages:\s+(\d+) kB$/m ? 1024 * $1 : 0 } family($node->{_pid});
	my @rows = holders($sql);
	my %held = map { $_->{pid} => $_ } grep { $_->{kind} eq 'process' } @rows;
	is_deeply([ grep { $touched{$_} && !$held{$_} } keys %touched ], [], "$name: each process of the server with pages");
	is_deeply([ grep { $held{$_}{held_bytes} < ($touched{$_} // 0) || $held{$_}{held_bytes} > $own * $page } keys %held ], [], "$name: with these pages");
	is_deeply([ grep { !$_->{is_of_this_server} || $_->{page_size_bytes} != $page } values %held ], [], "$name: they belong to this server");
	is(unexplained(@rows), '', "$name: nothing is unexplained");

	my $holder = hold(10, 4, 3, 2);
	my $user = HugeInfo::User::name();
	my $process = {
		kind => 'process', pid => $holder->{pid}, name => 'holder', owner => $user, owner_uid => scalar(getpwnam $user), is_of_this_server => 'f',
		page_size_bytes => $page, held_bytes => 6 * $page, held_pages => 6 };
	my ($row) = grep { $_->{pid} == $holder->{pid} } of_kind('process', @rows = holders($sql));
	is_deeply($row, $process, "$name: another process, with its faulted-in pages");
	is(unexplained(@rows), '', "$name: its mappings are explained");
	let_go($holder);

	$holder = hold(10, 4, 3, 2, 'hidden');
	($row) = grep { $_->{pid} == $holder->{pid} } of_kind('process', @rows = holders($sql));
	is_deeply($row, { %$process, pid => $holder->{pid} }, "$name: a protected process");
	is(unexplained(@rows), 7, "$name: its reserved pages are unexplained");
	let_go($holder);
	is(unexplained(holders($sql)), '', "$name: nothing is unexplained after its end");

	my $dir = mount_hugetlbfs($kb, "min_size=@{[ 5 * $page ]},size=@{[ 8 * $page ]}");
	my $mount = {
		kind => 'mount', name => $dir, is_of_this_server => 'f', page_size_bytes => $page, held_bytes => 5 * $page, held_pages => 5,
		min_size_bytes => 5 * $page, max_size_bytes => 8 * $page };
	my $of_mount = sub { my ($where) = @_; return grep { $_->{name} eq $where } of_kind('mount', @rows = holders($sql)) };
	is_deeply([ $of_mount->($dir) ], [$mount], "$name: the reserved pages of a mount");
	is(unexplained(@rows), '', "$name: they are explained");
	system_or_bail('fallocate', '--length', 6 * $page, "$dir/file");
	is_deeply([ $of_mount->($dir) ], [ { %$mount, held_bytes => 6 * $page, held_pages => 6 } ], "$name: the pages of its files");
	is(unexplained(@rows), '', "$name: these are explained, too");

	$dir = mount_hugetlbfs($kb, '');
	system_or_bail('fallocate', '--length', 3 * $page, "$dir/file");
	my $without = { %{$mount}{qw(kind is_of_this_server page_size_bytes)}, name => $dir };
	is_deeply([ $of_mount->($dir) ], [$without], "$name: the pages of a mount without a size are unknown");
	is(unexplained(@rows), 3, "$name: the pages of its files are unexplained");

	is_cancelled($sql, endless('hugeinfo_holders()'), $name);
	$node->stop;
}

done_testing;
