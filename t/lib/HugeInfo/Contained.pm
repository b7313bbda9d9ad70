# Servers in separate namespaces, where mounts cover files of the host: containers, sandboxes,
# and files that are hidden or from another version.
package HugeInfo::Contained;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

use HugeInfo::Processes qw(until_true);

our @EXPORT = qw(in_namespace needs_namespaces with_mounts);

# Starts a stopped node with the command, which finally executes `postgres`. Runs the code with the
# PID of the postmaster, and stops the server.
sub in_namespace
{
	my ($node, $name, $command, $code) = @_;
	my $run = IPC::Run::start([ @$command, 'postgres', '-D', $node->data_dir ],
		'<', '/dev/null', '>', $node->logfile, '2>&1');
	my $is_up = sub { return !system_log('pg_isready', '-q', '-h', $node->host, '-p', $node->port) };
	until_true(sub { !$run->pumpable || $is_up->() });
	my $up = ok($is_up->(), "$name: the server is up");
	# the last process of the chain, which is the postmaster
	my ($postmaster) = grep { (readlink("/proc/$_/cwd") // '') eq $node->data_dir } _descendants($run->{KIDS}[0]{PID});
	$code->($postmaster) if $up;
	kill INT => $postmaster if $postmaster;
	$run->finish;
	return;
}

sub _descendants
{
	my ($pid) = @_;
	my %children;
	for (glob '/proc/[0-9]*/stat')
	{
		my $stat = eval { slurp_file($_) } // next;
		push @{ $children{$2} }, $1 if $stat =~ /^(\d+) \(.*\) \S (\d+)/s;
	}
	my @all = ($pid);
	for (my $i = 0; $i < @all; $i++) { push @all, @{ $children{ $all[$i] } // [] } }
	return @all;
}

# Leaves the SKIP block if unshare(1) cannot create such namespaces.
sub needs_namespaces
{
	my ($scenario, @options) = @_;
	my ($out, $error);
	HugeInfo::Host::cannot("$scenario: ordinary users cannot create namespaces here: $error")
	  unless IPC::Run::run([ 'unshare', @options, 'true' ], '>', \$out, '2>', \$error);
	return;
}

# Returns a command that calls mount(8) with each of these argument lists, in a mount namespace for
# the program that it starts. That program keeps no privileges.
sub with_mounts
{
	my ($mounts, @unshare) = @_;
	my $script = join ' && ', (map { "mount $_" } @$mounts), 'exec setpriv --inh-caps=-all --ambient-caps=-all -- "$0" "$@"';
	return [ qw(unshare --user --map-current-user --keep-caps --mount), @unshare, 'sh', '-c', $script ];
}

1;
