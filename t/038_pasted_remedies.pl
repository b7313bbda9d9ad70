# Remedies can be pasted as written: all lines at once, into a root shell or into psql. Lines that
# are not commands are comments.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Checks;
use HugeInfo::Kernel;
use HugeInfo::Server;
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

my $kb = default_page_kb();
my $page = $kb && $kb * 1024;
my $node = new_server('pasted');
my $need = $kb && required_pages($node, $kb);
my $group;

sub start { return $group ? in_group($group, sub { $node->start }) : $node->start }

sub is_sql
{
	my ($remedy) = @_;
	my @commands = grep { !/^-- / } split /\n/, $remedy;
	return @commands && !grep { !/^(?:ALTER SYSTEM|SELECT) .*;$/ } @commands;
}

# Tests the syntax of each text without running it.
sub compare_syntax
{
	my ($remedy, $name) = @_;
	my @comments = grep { /^(?:#|--)/ } split /\n/, $remedy;
	my $mark = is_sql($remedy) || $remedy =~ /^--/ ? '-- ' : '# ';
	is_deeply([ grep { index($_, $mark) != 0 } @comments ], [], "$name: its comments begin with $mark") or diag($remedy);
	return if is_sql($remedy) || $remedy !~ /^(?!#|--)/m;
	my ($out, $error) = ('', '');
	ok(IPC::Run::run([ 'bash', '-n' ], '<', \$remedy, '>', \$out, '2>', \$error), "$name: bash accepts it") or diag("$error\n$remedy");
	return;
}

# Runs all lines at once. Any error is a failure of the text.
sub paste
{
	my ($remedy, $name) = @_;
	note("$name: $_") for split /\n/, $remedy;
	if (is_sql($remedy))
	{
		my ($exit, undef, $error) = $node->psql('postgres', $remedy, on_error_stop => 1);
		is("$exit$error", '0', "$name: psql runs it");
		return;
	}
	ok(eval { type_in("set -e\nunset PGHOST PGPORT PGUSER\n$remedy"); 1 }, "$name: a shell runs it") or diag($@);
	return;
}

sub from
{
	my ($pages, %settings) = @_;
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
	configure($node, huge_pages => 'try', shared_memory_type => 'mmap', huge_page_size => 0, %settings);
	$node->stop;
	pools_of_one_size($kb, $pages);
	return start();
}

# Pages for other servers that request them, so that no remedy adds these.
sub requested { return wanted_by_others($kb, $node->{_pid}) - pages_of_others($kb) }

for (
	[ 'no pool', 'shell', sub { from(0) } ],
	[ 'a page size that does not exist, a pool for the next boot, too', 'SQL', sub { set_boot_pages($need + requested()); from($need + requested(), huge_page_size => '3MB') } ],
	[ 'a page size that does not exist', 'shell', sub { set_boot_pages($need - 1); from($need - 1, huge_page_size => '3MB') } ],
	[ 'a cgroup whose name has quotes and blanks', 'shell', sub {
			$group = q(it's $HOME "x");
			make_group($group);
			limit_group($group, 'reservation', $kb, ($need - 1) * $page);
			from($need + requested());
		} ])
{
	SKIP:
	{
		my ($name, $where, $break) = @$_;
		needs_host($name);
		undef $group;
		set_boot_pages(undef);
		$break->();
		my $checks = checks_of($node, $name);
		for my $check (grep { defined $checks->{$_}{remedy} } sort keys %$checks)
		{
			compare_syntax($checks->{$check}{remedy}, "$name: remedy of $check");
		}
		my $how = $node->safe_psql('postgres', q(SELECT how_to_set FROM hugeinfo_pools WHERE is_default AND how_to_set IS NOT NULL));
		compare_syntax($how, "$name: how_to_set") if $how ne '';
		my $remedy = status_of($node)->{remedy};
		is(is_sql($remedy) ? 'SQL' : 'shell', $where, "$name: the place where it is pasted") or diag($remedy);
		like($remedy, qr/^(?:#|--) restart PostgreSQL/m, "$name: the restart is a comment");
		paste($remedy, $name);
		$node->stop;
		start();
		is(segment($node->{_pid})->{page_bytes}, $page, "$name: on huge pages after the restart");
		is(status_of($node)->{status}, 'ok', "$name: healthy");
		paste($remedy, "$name, once more") unless $group;
		is(pool($kb)->{total}, $need + wanted_by_others($kb, $node->{_pid}), "$name: as many pages as needed");
	}
}

$node->stop;
done_testing;
