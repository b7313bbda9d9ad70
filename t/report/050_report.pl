# hugeinfo_report in a browser: pages of real servers and of fixtures, in desktop and phone widths,
# in light and dark mode, in print, and without the style sheet. With
# HUGEINFO_REPORT_PICTURES=DIRECTORY, which must be writable for this test's user, the pictures are
# kept.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../lib";
use Encode ();
use File::Temp ();
use JSON::PP ();

my %fixtures;

# Before this process switches to an ordinary user, which might not be able to read the checkout.
BEGIN
{
	my $root = "$FindBin::RealBin/../..";
	my $directory = File::Temp->newdir;
	if (system("$root/tools/cargo", qw(build --quiet --release --package hugeinfo-report --example pages)) == 0
		&& system("$root/target/release/examples/pages", $directory) == 0)
	{
		for my $name (qw(compared bomb short-of-memory two-nodes 256-nodes hostile-names long-texts nothing-readable))
		{
			open my $fh, '<', "$directory/$name.html" or die "$name: $!\n";
			local $/ = undef;
			$fixtures{$name} = <$fh>;
		}
	}
}

use HugeInfo::Tools;
use HugeInfo::Host;
use HugeInfo::Checks;
use HugeInfo::Kernel;
use HugeInfo::Server;
use HugeInfo::Session;
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $node = new_server('report', max_connections => 30);
my $need = $kb && required_pages($node, $kb);
my $pages = PostgreSQL::Test::Utils::tempdir();
my $pictures = $ENV{HUGEINFO_REPORT_PICTURES} // PostgreSQL::Test::Utils::tempdir();
my (@files, %expected);

# Names that any client, or a user who creates roles, can choose. In UTF-8.
my @names = map { Encode::encode('UTF-8', $_) }
  ('<script>alert(1)</script>', q('">&lt;<img src=x onerror=alert(1)>), "\x{202e}gnp.exe\x{200f}", 'e' . "\x{301}" x 31, "\x{1}\x{1b}[31m\x{7f}");
my @shown = ($names[0], $names[1], '\342\200\256gnp.exe\342\200\217', "e\x{301}\x{301}" . '\314\201' x 29, '\001\033[31m\177');
sub quoted { my ($name) = @_; return '"' . $name =~ s/"/""/gr . '"' }

$node->safe_psql('postgres', q(CREATE DATABASE shop ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0));
$node->safe_psql('shop', 'CREATE EXTENSION pg_hugeinfo');
my @sessions;
for my $name (@names)
{
	$node->safe_psql('shop', 'CREATE ROLE ' . quoted($name) . ' LOGIN SUPERUSER');
	$node->safe_psql('shop', 'CREATE DATABASE ' . quoted($name));
}
sub connect_all { @sessions = map { HugeInfo::Session->new($node, user => $_, dbname => $_, application_name => $_) } @names; return }

# Saves a page with the command in the documentation.
sub save
{
	my ($name, $arguments, %option) = @_;
	my $file = "$pages/$name.html";
	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => $option{database} // 'shop', %{ $option{environment} // {} });
	my @as = $option{role} ? ('-c', "SET ROLE $option{role}") : ();
	IPC::Run::run([ 'psql', '-XAtq', @as, '-c', "SELECT hugeinfo_report($arguments)", '-o', $file ], '2>', \my $error);
	is($error, '', "$name: no error from psql");
	push @files, $file;
	return slurp_file($file);
}

# The page of this host in any state.
connect_all();
my $page = save('as-it-is', '');
like($page, qr/\A<!DOCTYPE html><html lang="en">.*<\/html>\n\z/s, 'one page');
unlike($page, qr/[^\n\x20-\x7e]/, 'the page is ASCII');
cmp_ok(length $page, '<=', 100_000, 'the page has at most 100 kB');

# The page has no roles, and says at its end what it names.
{
	my $name = 'names';
	chomp(my $host = `uname -n`);
	$node->safe_psql('postgres', 'CREATE ROLE unshown_role LOGIN SUPERUSER');
	my $session = HugeInfo::Session->new($node, user => 'unshown_role', dbname => 'postgres', application_name => 'shown_application');
	$session->value('SELECT 1');
	my $named = save('names', '');
	$session->close;
	like($named, qr/shown_application/, "$name: an application");
	unlike($named, qr/unshown_role/, "$name: no role");
	like($named, qr/>\Q$host\E</, "$name: the host");
	is_deeply([ grep { index($named, $_) < 0 } 'gnp.exe', 'shop' ], [], "$name: databases");
	like($named, qr/<footer>.*This page names paths and ports of this host/s, "$name: the end says so");
}

# The page reports parts that the role cannot see as missing.
{
	my $name = 'monitoring';
	$node->safe_psql('shop', 'CREATE ROLE observer IN ROLE pg_monitor');
	my $seen = save($name, '', role => 'observer');
	like($seen, qr/your role cannot execute hugeinfo_plan/, "$name: the plan is missing");
	unlike($page, qr/your role cannot execute hugeinfo_plan/, "$name: other pages have the plan");
	like($seen, qr/<details id="sources">/, "$name: the page is complete");
	$node->safe_psql('shop', 'CREATE ROLE nobody');
	like(($node->psql('shop', 'SET ROLE nobody; SELECT hugeinfo_report()'))[2], qr/permission denied for function hugeinfo_report/, "$name: other roles have no access");
}

# Pages from databases with other encodings.
for my $encoding (qw(LATIN1 EUC_JP SQL_ASCII))
{
	my $database = lc $encoding;
	$node->safe_psql('postgres', "CREATE DATABASE $database ENCODING '$encoding' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
	$node->safe_psql($database, 'CREATE EXTENSION pg_hugeinfo');
	my $other = save("from-$database", '', database => $database, environment => { PGCLIENTENCODING => 'UTF8' });
	pop @files;
	unlike($other, qr/[^\n\x20-\x7e]/, "$encoding: the page is ASCII");
	like($other, qr/gnp\.exe/, "$encoding: the page has all names");
}

HugeInfo::Session->new($node, dbname => 'shop')->is_cancelled(endless('hugeinfo_report()'), 'hugeinfo_report');

# Matches the numbers that the page shows for the pool. The total is that of the test, without pages
# of others.
sub pool_in_words
{
	my ($pages, $own) = @_;
	my $total = $pages + pages_of_others($kb);
	my $mb = $kb / 1024;
	my $used = $own ? qr/(?=\s*in use by this server: $own \()/ : qr//;
	my $parts = qr/(?:\s*(?:in use|free|missing|wasted)[^\n]*\n)*/;
	# Other servers here can also request pages.
	my $needed = qr/(?:Needed: \d+ = $need for this server \+ |$need are needed\. )/;
	my $axis = qr/(?:\d+ \wB\n)*/;
	return qr/^$total huge pages of $mb MB \([^)]*\)\n$axis$used$parts\s*$needed/m;
}

# Includes the need of other servers here, which can start and stop meanwhile.
sub to_set
{
	my @counts = map { $need + $_ } 0, wanted_by_others($kb, $node->{_pid});
	my $any = join '|', @counts;
	return qr/sysctl -w vm\.nr_hugepages=(?:$any)\b/;
}

SKIP:
{
	my $name = 'fallen-back';
	needs_host($name);
	pools_of_one_size($kb, $need - 1);
	$_->close for @sessions;
	restarts($node);
	connect_all();
	save($name, '');
	$expected{$name} = [ qr/^warning On 4 kB pages: huge_pages = try fell back\./m, qr/\bmissing: \d/, pool_in_words($need - 1, 0), to_set() ];

	$name = 'healthy';
	set_pool($kb, $need);
	$_->close for @sessions;
	restarts($node);
	connect_all();
	save($name, '');
	$expected{$name} = [ qr/^ok On $need huge pages of/m, qr/ instead of /, pool_in_words($need, $need), qr/A restart would get huge pages\./ ];

	$name = 'oversized-pool';
	# Pages that other servers request are not wasted.
	my $wanted = wanted_by_others($kb, $node->{_pid}) - pages_of_others($kb);
	my $total = int(0.012 * ram_bytes() / $kb / 1024) + 2 * $need + $wanted;
	set_pool($kb, $total);
	save($name, '');
	$expected{$name} = [ pool_in_words($total, $need), qr/\bof RAM is wasted\b/, qr/\bare idle\b/, to_set() ];
}

for my $name (sort keys %fixtures)
{
	my $file = "$pages/$name.html";
	open my $fh, '>', $file or die "$file: $!\n";
	print $fh $fixtures{$name};
	close $fh;
	push @files, $file;
}
$expected{'compared'} = [ qr/^Before and now$/m ];
$expected{'two-nodes'} = [ qr/^node 0\b/m, qr/^node 1\b/m ];
$expected{'256-nodes'} = [ qr/\x{2026} and \d+ more/ ];
$expected{'long-texts'} = [ qr/^Truncated: this page would be longer than 100 kB\./m ];
$expected{'nothing-readable'} = [ qr/could not be read/ ];

SKIP:
{
	my $name = 'in a browser';
	needs_tools($name, qw(chromium node));
	my $tools = source('target/tools/report');
	cannot("$name: $tools/node_modules is missing: see tools/setup") unless -d "$tools/node_modules";
	ok(scalar keys %fixtures, "$name: there are pages of fixtures");
	local $ENV{HOME} = PostgreSQL::Test::Utils::tempdir();
	local $ENV{TMPDIR} = $ENV{HOME};
	my ($out, $error);
	IPC::Run::run([ tool('node'), source('t/report/look.mjs'), $tools, tool('chromium'), $pictures, @files ], '>', \$out, '2>', \$error)
	  or die "look.mjs failed: $error\n";
	my $seen = JSON::PP->new->utf8->decode($out);
	is(scalar keys %$seen, scalar @files, "$name: each page was examined");
	for my $name (sort keys %$seen)
	{
		my $page = $seen->{$name};
		is_deeply($page->{messages}, [], "$name: no console messages and no requests");
		is_deeply($page->{misplaced}, [], "$name: nothing overflows or is clipped");
		is_deeply($page->{overlapping}, [], "$name: no labels overlap");
		is_deeply($page->{accessibility}, [], "$name: axe finds no problems");
		is_deeply($page->{valid}, [], "$name: the HTML is valid");
		is($page->{scripts}, 0, "$name: no scripts, external pictures or frames");
		like($page->{text}, $_, "$name: the text is shown") for @{ $expected{$name} // [] };
		# in mail
		my @headings = ('Memory of the host', 'Pools of huge pages', 'Page tables', 'Other checks', 'Processes');
		is_deeply([ grep { $page->{bare} !~ /^\Q$_\E\b/m } @headings ], [], "$name: the text is readable without the style sheet");
		# Other servers that request pages add steps.
		my $is_short = $name eq 'fallen-back' ? !wanted_by_others($kb, $node->{_pid}) : $name =~ /^(?:compared|bomb|short-of-memory|two-nodes|nothing-readable)$/;
		is($page->{summary}, 1, "$name: the summary is printed on one page") if $is_short;
	}
	my %is_shown = map { $_ => 1 } @{ $seen->{'as-it-is'}{names} };
	my @expected = map { Encode::is_utf8($_) ? $_ : Encode::decode('UTF-8', $_) } @shown;
	is_deeply([ grep { !$is_shown{$_} } @expected ], [], "$name: hostile names are text") or diag(explain([ sort keys %is_shown ]));
}

done_testing;
