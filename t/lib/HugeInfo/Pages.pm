# Parses README.md and docs/: the queries of a page with their output, its links, and the objects
# that it names. Loaded before HugeInfo::Host, because the ordinary user of a test might not be able
# to read the checkout.
#
# CONTRIBUTING.md has the convention. Texts are bytes here, as psql writes them.
package HugeInfo::Pages;

use strict;
use warnings;

use Cwd qw(realpath);
use Exporter 'import';
use File::Basename qw(dirname);
use PostgreSQL::Test::Utils qw(slurp_file);

our @EXPORT = qw(pages reference_sql differences);

my $ROOT = realpath(dirname(__FILE__) . '/../../..');

# Returns the fenced blocks of a page in order, each with the options in the comments above it.
sub _blocks
{
	my ($text) = @_;
	my (@blocks, $open, %said, %varies);
	my $number = 0;
	for my $line (split /\n/, $text)
	{
		$number++;
		if ($open)
		{
			if ($line =~ /^\s*```$/) { push @blocks, $open; $open = undef }
			else { $open->{text} .= substr($line, $open->{indent}) . "\n" if length $line >= $open->{indent} }
		}
		elsif ($line =~ /^(\s*)```(\w*)$/)
		{
			my ($indent, $language) = (length $1, $2);
			$open = { line => $number, indent => $indent, language => $language, text => '', %said };
			if ($language eq 'sql') { $open->{varies} = {%varies}; %varies = () }
		}
		elsif ($line =~ /^\s*<!-- (server|as): (.+) -->$/) { $said{$1} = $2 }
		elsif ($line =~ /^\s*<!-- varies: (.+) -->$/) { $varies{$_} = 1 for split /, /, $1 }
	}
	die "line $open->{line}: a block without an end\n" if $open;
	return @blocks;
}

# Combines a query and the output below it. A shell block with psql and one query is also a query.
sub _queries
{
	my ($text) = @_;
	my @queries;
	my $last = {};
	for my $block (_blocks($text))
	{
		if ($block->{language} eq 'sh' && $block->{text} =~ /^psql -X ((?:-\w+ )*)-d postgres ((?:-\w+ )*)-c '([^']*)'\n\z/)
		{
			%$block = (%$block, language => 'sql', options => [ split ' ', "$1$2" ], text => "$3;\n", varies => {});
		}
		push @queries, $block if $block->{language} eq 'sql';
		if ($block->{language} eq 'text')
		{
			# 050_program.pl runs the program.
			my $is_known = ($last->{language} // '') eq 'sql' || ($last->{text} // '') =~ /^hugeinfo /;
			die "line $block->{line}: output without a query\n" unless $is_known;
			$last->{output} = $block->{text};
		}
		$last = $block;
	}
	return @queries;
}

# Returns the code spans in sentences and tables.
sub _spans
{
	my ($text) = @_;
	(my $prose = $text) =~ s/^\s*```.*?^\s*```$//gms;
	return map { s/\\\|/|/gr =~ s/\s+/ /gr } $prose =~ /(?<!`)`([^`]+)`(?!`)/g;
}

sub _anchors
{
	my ($text) = @_;
	(my $prose = $text) =~ s/^\s*```.*?^\s*```$//gms;
	return map { my $anchor = lc; $anchor =~ s/[^\w\s-]//g; $anchor =~ s/ /-/g; ($anchor => 1) } $prose =~ /^#+ (.+)$/mg;
}

sub _broken_links
{
	my ($file, $text) = @_;
	my @broken;
	for my $link ($text =~ /\]\(([^)\s]+)\)/g)
	{
		next if $link =~ /^[a-z]+:/;
		my ($path, $anchor) = $link =~ /^([^#]*)#?(.*)$/;
		my $target = $path eq '' ? "$ROOT/$file" : "$ROOT/" . dirname($file) . "/$path";
		my %anchors = -f $target && $target =~ /\.md$/ ? _anchors(slurp_file($target)) : ();
		push @broken, $link if !-e $target || $anchor ne '' && !$anchors{$anchor};
	}
	return @broken;
}

# Returns the columns that a page names: hugeinfo_x.column, and those in tables whose title begins
# with "column of `x`".
sub _columns
{
	my ($text) = @_;
	my @columns = $text =~ /\b(hugeinfo_[a-z]\w*\.[a-z]\w+)(?!\w*[.(\/])/g;
	while ($text =~ /^\| column of `(hugeinfo_\w+)` .*\n\|[-|: ]+\n((?:\|.*\n)+)/mg)
	{
		my ($relation, $rows) = ($1, $2);
		push @columns, map { my ($first) = /^\| ([^|]+)/; map { "$relation.$_" } $first =~ /`(\w+)`/g } split /\n/, $rows;
	}
	return grep { !/\.(?:rs|sql|pl|md)$/ } @columns;
}

sub _page
{
	my ($file) = @_;
	my $text = slurp_file("$ROOT/$file");
	my @queries = eval { _queries($text) };
	die "$file, $@" if $@;
	return {
		file => $file,
		text => $text,
		queries => \@queries,
		# queries in a sentence; a query with an ellipsis is incomplete
		spans => [ grep { /^(?:SELECT|SHOW) / && !/…/ } map { s/^psql -XAtc (['"])(.*)\1.*/$2/r } _spans($text) ],
		indented => [ $text =~ /^ {4,}(SELECT .*)$/mg ],
		broken_links => [ _broken_links($file, $text) ],
		objects => [ keys %{ { map { $_ => 1 } $text =~ /\b(hugeinfo_[a-z]\w*)(?!\w*\.(?:rs|sql|pl))/g } } ],
		columns => [ _columns($text) ] };
}

my @PAGES = map { _page($_) } map { s{^\Q$ROOT\E/}{}r } glob("$ROOT/*.md $ROOT/docs/*.md $ROOT/tools/bench/*.md");

sub pages { return @PAGES }

my $REFERENCE_SQL = slurp_file("$ROOT/docs/reference.sql");

sub reference_sql { return $REFERENCE_SQL }

# Parses psql's output, aligned or expanded, to columns and rows. A line of "…" stands for more rows.
sub _table
{
	my ($text) = @_;
	my @all = grep { /\S/ } split /\n/, $text;
	my @lines = grep { !/^\s*…\s*$/ } @all;
	my %table = (columns => [], rows => [], more => @lines < @all);
	return \%table unless @lines;
	if ($lines[0] =~ /^-\[ RECORD/)
	{
		for (@lines)
		{
			if (/^-\[ RECORD/) { push @{ $table{rows} }, []; next }
			my ($name, $value) = /^(\S*)\s*\|\s?(.*?)\s*$/ or die "not output of psql: $_\n";
			my $row = $table{rows}[-1];
			# psql ends a line of a longer value with a plus sign
			$value =~ s/\s*\+$//;
			if ($name eq '') { $row->[-1] .= " $value"; next }
			push @$row, $value;
			push @{ $table{columns} }, $name if @{ $table{rows} } == 1;
		}
		pop @{ $table{rows} } unless @{ $table{rows}[-1] };
	}
	elsif (@lines > 1 && $lines[1] =~ /^-[-+]*$/)
	{
		my $split = sub { return map { s/^\s+|\s+$//gr } split /\|/, $_[0], @_ > 1 ? $_[1] : -1 };
		$table{columns} = [ $split->(shift @lines) ];
		shift @lines;
		my $goes_on;
		for (@lines)
		{
			my @cells = $split->($_, scalar @{ $table{columns} });
			if ($goes_on) { $table{rows}[-1][$_] .= " $cells[$_]" for grep { length($cells[$_] // '') } 0 .. $#cells }
			else { push @{ $table{rows} }, [@cells] }
			$goes_on = grep { s/\s*\+$// } @{ $table{rows}[-1] };
		}
	}
	else
	{
		$table{columns} = ['text'];
		$table{rows} = [ map { [s/^\s+|\s+$//gr] } @lines ];
	}
	return \%table;
}

# Returns a pattern for a value on a page: any number for a number, any memory unit for a unit, any
# bar for a bar, any text for "…", and the exact text otherwise.
sub _pattern
{
	my ($value) = @_;
	my $number = qr/-?\d+(?:[.,]\d+)*/;
	my $unit = qr/(?<![[:alpha:]])(?:bytes|kB|MB|GB|TB)\b/;
	my $bar = qr/\[[#=.|]+\]/;
	my $pattern = join '', map {
		/^…$/ ? '.*' : /^$number$/ ? "$number" : /^$unit$/ ? "$unit" : /^$bar$/ ? "$bar" : quotemeta
	} split /(…|$number|$unit|$bar)/, $value =~ s/\s+/ /gr;
	return qr/^$pattern$/;
}

# Removes the parts of a remedy about other servers, which the pages do not show.
sub _without_others
{
	my ($value) = @_;
	my $server = qr/the server on port \d+/;
	return $value =~ s/ # needed: \d+ = \d+ for this server(?: \+ \d+ for $server(?: \(huge_pages = \w+\))?)+//gr
	  =~ s/(?: # then: if ! \[ [^#]*; false; fi)?(?: # restart $server \(ends all of its sessions\))+//gr;
}

# Returns the differences between an output and its page, one sentence each. A column, or "rows", in
# %$varies can differ between machines.
sub differences
{
	my ($shown, $seen, $varies) = @_;
	my ($page, $server) = map { _table($_) } $shown, $seen;
	if ($shown !~ /the server on port/)
	{
		for my $row (@{ $server->{rows} }) { $_ = _without_others($_ =~ s/\s+/ /gr) for @$row }
	}
	my ($should, $is) = map { join ', ', @{ $_->{columns} } } $page, $server;
	return "the page has the columns ($should), the server ($is)" if $should ne $is;

	my @compared = grep { !$varies->{ $page->{columns}[$_] } } 0 .. $#{ $page->{columns} };
	my @left = @{ $server->{rows} };
	my (@missing, $found);
	for my $row (@{ $page->{rows} })
	{
		my @patterns = map { _pattern($_) } @$row[@compared];
		my ($match) = grep {
			my $candidate = $left[$_];
			!grep { ($candidate->[ $compared[$_] ] // '') =~ s/\s+/ /gr !~ $patterns[$_] } 0 .. $#compared
		} 0 .. $#left;
		if (defined $match) { splice @left, $match, 1; $found = 1 }
		else { push @missing, 'no row of the server is as ' . join ' | ', @$row }
	}
	return $found ? () : @missing if $varies->{rows};
	push @missing, 'the page does not show ' . join ' | ', @{ $left[0] } if @left && !$page->{more};
	return @missing;
}

1;
