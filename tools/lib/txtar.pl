#!/usr/bin/env perl
# Packs the files below a directory into one text archive, or unpacks an archive:
#
#   tools/lib/txtar.pl pack DIRECTORY >ARCHIVE
#   tools/lib/txtar.pl unpack ARCHIVE DIRECTORY
#
# crates/host/tests/txtar/mod.rs describes the format. Modes and empty directories are not kept.
use strict;
use warnings;

use File::Basename qw(dirname);
use File::Find qw(find);
use File::Path qw(make_path);

my %verbs = (pack => \&pack_files, unpack => \&unpack_files);
my $verb = $verbs{shift // ''} // die "txtar.pl pack DIRECTORY | unpack ARCHIVE DIRECTORY\n";
$verb->(@ARGV);

sub pack_files
{
	my ($directory) = @_;
	my @paths;
	find({no_chdir => 1, wanted => sub { push @paths, $_ unless -d && !-l }}, $directory);
	binmode STDOUT;
	for my $path (sort @paths)
	{
		die "$path: not a regular file with a plain name\n" if -l $path || !-f $path || $path =~ /[^!-~]/;
		open my $in, '<:raw', $path or die "$path: $!\n";
		my $text = do { local $/ = undef; <$in> } // '';
		$text =~ s/\\(?=x|c$)/\\x5c/gm;
		$text =~ s/^-- (?=.* --$)/\\x2d- /gm;
		$text =~ s/([^\t\n -~])/sprintf '\x%02x', ord $1/ge;
		$text =~ s/[^\n]\K\z/\\c\n/;
		print '-- ', substr($path, length "$directory/"), " --\n", $text;
	}
	return;
}

sub unpack_files
{
	my ($archive, $directory) = @_;
	open my $in, '<:raw', $archive or die "$archive: $!\n";
	my $out;
	while (my $line = <$in>)
	{
		if ($line =~ /^-- (.*) --$/)
		{
			my $path = "$directory/$1";
			make_path(dirname($path));
			open $out, '>:raw', $path or die "$path: $!\n";
		}
		elsif ($out)
		{
			$line =~ s/\\c\n//;
			print $out $line =~ s/\\x([0-9a-f]{2})/chr hex $1/ger;
		}
	}
	close $out or die "$archive: $!\n";
	return;
}
