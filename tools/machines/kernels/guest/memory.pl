#!/usr/bin/perl
# Memory limits of cgroup version 1.
use lib '/guest/lib';
use Guest;

my @size = (shared_buffers => '128MB', huge_pages => 'off');
my $top = mount_groups(1, undef, 'memory');
my $outer = make_group("$top/outer");
my $inner = make_group("$outer/inner");

sub kills { my ($group) = @_; return slurp("$group/memory.oom_control") =~ /^oom_kill (\d+)$/m ? $1 : undef }

sub limit { my ($group, $mb) = @_; return put("$group/memory.limit_in_bytes", $mb < 0 ? -1 : $mb << 20) }

# Starts the server in the inner cgroup, then sets the limit of the outer one.
sub start_under
{
	my ($mb) = @_;
	stop();
	limit($outer, -1);
	placed(group => $inner);
	start(@size);
	limit($outer, $mb);
	compare_group_memory($inner, $outer);
	my $check = check_of('memory_left');
	told($check->{finding});
	return $check->{status};
}

# Files of a server are in memory here, and charged to none of these cgroups.
start(@size);
touch(110);

situation('no limit');
stop();
placed(group => $inner);
start(@size);
compare();
compare_group_memory($inner, $outer);

situation('a limit above the segment');
same(start_under(600), 'ok', 'memory_left');
my $error = touch(110);
true(!defined $error, 'the whole segment can be faulted in', $error);

situation('a limit below the segment');
same(start_under(90), 'critical', 'memory_left, before it happens');
$error = touch(110);
true(defined $error, 'and then the server breaks');
told($error =~ s/\s+/ /gr);
true(kills($inner) > 0, 'by the OOM killer', why_not());
# charged memory stays charged
start_under(90);

finished();
