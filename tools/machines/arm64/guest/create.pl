#!/usr/bin/perl
# Creates a server on this machine, with the extension. The host passes the directory to later
# guests, and also to the next run, with the result of initdb.
use lib '/guest/lib';
use Guest;

my $out = '/run/out';
mkdir $out;
system("mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 out $out") == 0 or die "no directory for the results\n";

situation('initdb');
if (!-e "$out/data.tar")
{
	my $home = '/run/initdb';
	my $bin = slurp('/guest/bindir');
	my $error = `exec 2>&1; mkdir $home && chown postgres: $home && setpriv --reuid=postgres --regid=postgres --clear-groups \\
		$bin/initdb --pgdata=$home/data --username=postgres --auth=trust --encoding=UTF8 --locale=C --no-sync`;
	true(!$?, 'initdb', $error);
	system("tar -C $home -cf $out/data.new data && mv $out/data.new $out/data.tar") == 0 or die "no archive\n";
}

situation('CREATE EXTENSION');
symlink "$out/data.tar", '/guest/server.tar';
start();
same(value('CREATE EXTENSION pg_hugeinfo'), '', 'CREATE EXTENSION');
compare();
stop();
system("tar -C /tmp/server -cf $out/server.tar data") == 0 or die "no archive\n";

finished();
