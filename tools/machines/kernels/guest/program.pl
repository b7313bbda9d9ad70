#!/usr/bin/perl
# The program hugeinfo on this kernel: the same status as SQL, and pages for a server that is down,
# which then starts on them.
use lib '/guest/lib';
use Guest;
use JSON::PP ();
use Test::More;

my $kb = default_page_kb();
mount_groups(2, undef, 'hugetlb', 'cpuset');

# Runs the program as root. Returns the exit status and the output.
sub hugeinfo
{
	my @where = ('-D', data_directory(), '--bindir', slurp('/guest/bindir'));
	open my $out, '-|', '/guest/hugeinfo', @_, @where or die "hugeinfo: $!\n";
	local $/;
	my $text = <$out>;
	close $out;
	return ($? >> 8, $text);
}

sub decoded { my ($text) = @_; return eval { JSON::PP->new->decode($text) } // die "not JSON: $text\n" }

sub compare_program
{
	my ($exit) = @_;
	my ($status, $out) = hugeinfo(qw(status --format json));
	same($status, $exit, 'exit status');
	my $row = decoded($out);
	same(delete $row->{state}, 'running', 'state');
	delete $row->{schema};
	is_deeply($row, decoded(value('SELECT row_to_json(s) FROM hugeinfo_status AS s')), 'hugeinfo status as in SQL');
	return;
}

situation('the program, on small pages');
start(shared_buffers => '64MB');
my $need = required_pages();
compare_program(1);

situation('the program, a server that is down');
my %settings = (shared_buffers => '64MB', huge_pages => 'on');
true(!try_start(%settings), 'without pages, the server does not start');
my ($status, $out) = hugeinfo('why', '--log', log_file());
same($status, 2, 'why: exit status');
true(scalar($out =~ /\b$need huge pages/), 'why: the pages', $out);
($status, $out) = hugeinfo('ensure');
same($status, 0, 'ensure: exit status');
same(pool($kb)->{total}, $need, 'ensure: pages in the pool');
true(try_start(%settings), 'the server starts', why_not());
compare_program(0);

situation('the program, strict overcommit');
stop();
set_pool($kb, 0);
put('/proc/sys/vm/overcommit_ratio', 80);
put('/proc/sys/vm/overcommit_memory', 2);
($status, $out) = hugeinfo('ensure');
same($status, 0, 'ensure: exit status');
same(pool($kb)->{total}, $need, 'ensure: pages in the pool');
true(try_start(%settings), 'the server starts', why_not());
compare_program(0);
put('/proc/sys/vm/overcommit_memory', 0);

finished();
