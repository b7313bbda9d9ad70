# Compares hugeinfo_checks with the kernel, and follows its remedies step by step.
package HugeInfo::Checks;

use strict;
use warnings;

use Exporter 'import';
use JSON::PP ();
use PostgreSQL::Test::Utils;
use Test::More;

use HugeInfo::Kernel;
use HugeInfo::Server;

our @EXPORT = qw(checks_of remedy_of compare_check compare_restart expected_pool follow follow_runbook);

my %WEIGHT = (ok => 0, unknown => 1, warning => 2, critical => 3);

# The verdict of hugeinfo_status is the worst of the checks about the server, of configuration files
# that prevent the next start, and of all critical checks. The first of several equally bad ones
# counts.
sub _compare_verdict
{
	my ($status, $checks, $name) = @_;
	my %by_name = map { $_->{name} => $_ } @$checks;
	my %counts = map { $_ => 1 } qw(cgroup_fault_limit huge_pages restart pool_size);
	my @counted = grep { $counts{ $_->{name} } || $_->{status} eq 'critical' } @$checks;
	my ($worst) = sort { $WEIGHT{ $b->{status} } <=> $WEIGHT{ $a->{status} } } @counted;
	my $remedy = $worst->{remedy};
	$remedy = $by_name{$1}{remedy} if ($remedy // '') =~ /^# as (\w+)$/;
	my %expected = (status => $worst->{status}, remedy => $remedy);
	# If a server does not request huge pages, or has none, only one finding reports it.
	my $restart = $by_name{restart};
	my $is_said = $restart->{code} eq 'does_not_ask' || $restart->{code} eq $by_name{huge_pages}{code};
	my @healthy = ($by_name{huge_pages}{finding}, $is_said ? () : $restart->{finding});
	$expected{reason} = $worst->{status} eq 'ok' ? "@healthy" : $worst->{finding};
	my %said = map { $_ => $status->{$_} } keys %expected;
	$said{reason} =~ s/ Settings are pending a restart(?:, and the pages that they need are unknown)?\.$//;
	# Available memory changes between the two queries.
	for ($said{remedy}, $expected{remedy}) { s/\d+ ?MB/N MB/g if ($_ // '') =~ /^# / }
	is_deeply(\%said, \%expected, "$name: hugeinfo_status has the worst of the checks");
	return;
}

# Returns the checks by name, from a session (see HugeInfo::Session) or a node.
sub checks_of
{
	my ($asked, $name) = @_;
	my $sql = q{
		SELECT json_build_object(
			'checks', (SELECT json_agg(json_build_object('name', c.name, 'status', c.status, 'code', c.code, 'finding', c.finding,
				'evidence', c.evidence, 'remedy', c.remedy)) FROM hugeinfo_checks AS c),
			'status', (SELECT to_json(s) FROM hugeinfo_status AS s))};
	my $text = $asked->can('value') ? $asked->value($sql) : $asked->safe_psql('postgres', $sql);
	my $answer = JSON::PP->new->allow_bignum->decode($text);
	my $checks = $answer->{checks};
	_compare_verdict($answer->{status}, $checks, $name);
	for my $check (@$checks)
	{
		$_ = JSON::PP::is_bool($_) ? ($_ ? 't' : 'f') : $_ for values %{ $check->{evidence} };
		ok(defined $check->{remedy}, "$name: $check->{name} has a remedy") or diag("$check->{status}: $check->{finding}")
		  if $check->{status} =~ /warning|critical/;
	}
	return { map { $_->{name} => $_ } @$checks };
}

# Returns the remedy of a check. If it refers to an earlier check, returns that one's remedy.
sub remedy_of
{
	my ($checks, $check) = @_;
	my $remedy = $checks->{$check}{remedy} // '';
	return $remedy =~ /^# as (\w+)$/ ? $checks->{$1}{remedy} : $remedy;
}

# Compares the status, some numbers of the evidence, and patterns of the text.
sub compare_check
{
	my ($checks, $check, $expected, $name) = @_;
	my $seen = $checks->{$check};
	my %figures = %{ $expected->{evidence} // {} };
	my %words = %$expected{ grep { exists $expected->{$_} } qw(finding remedy) };
	is_deeply([ $seen->{status}, { map { $_ => $seen->{evidence}{$_} } keys %figures } ], [ $expected->{status}, \%figures ], "$name: $check")
	  or diag("finding: $seen->{finding}");
	for (sort keys %words)
	{
		ref $words{$_} ? like($seen->{$_}, $words{$_}, "$name: $_ of $check") : is($seen->{$_}, $words{$_}, "$name: $_ of $check");
	}
	return;
}

# Returns the pages that the next start finds in the pool that it requests, computed from kernel
# files.
sub expected_pool
{
	my ($node, $kb) = @_;
	my $real = segment($node->{_pid});
	my $own = $real->{page_bytes} == $kb * 1024 ? $real->{bytes} / $real->{page_bytes} : 0;
	my $required = POSIX::ceil($real->{bytes} / ($kb * 1024));
	my $kernel = pool($kb);
	my $numbers = pool_numbers($kernel, $own, $required);
	# The pool does not grow for other servers if memory is hardly enough for this server.
	$numbers->{recommended_nr_hugepages} += wanted_by_others($kb, $node->{_pid}) - pages_of_others($kb)
	  if $real->{bytes} < 0.9 * ram_bytes();
	return {
		page_size_bytes => $kb * 1024,
		required_pages => $required,
		pool_total_pages => $kernel->{total},
		own_pages => $own,
		%$numbers{qw(others_pages shortfall_pages recommended_nr_hugepages)} };
}

# Compares the checks about huge pages now and after a restart with kernel files.
sub compare_restart
{
	my ($node, $checks, $kb, $backing, $restart, $name) = @_;
	my $real = segment($node->{_pid});
	my $setting = $node->safe_psql('postgres', 'SHOW huge_pages');
	compare_check($checks, 'huge_pages', {
			%$backing,
			evidence => { huge_pages => $setting, segment_bytes => $real->{bytes}, page_size_bytes => $real->{page_bytes} } }, $name);
	compare_check($checks, 'restart', { %$restart, evidence => { huge_pages => $setting, %{ expected_pool($node, $kb) } } }, $name);
	return;
}

# Runs one line of a remedy. Runs $start, if given, instead of comments about a restart or start.
# Ignores other comments.
sub _take
{
	my ($node, $line, $start) = @_;
	$start //= sub { $node->start };
	# Commands for the time when the server is stopped, and those with a condition, which is true.
	$line =~ s/^# (?:then|(?:then, )?if no other program needs [^:]*): //;
	if ($line =~ /^(?:#|--) (?:restart PostgreSQL)/) { $node->stop; $start->() }
	elsif ($line =~ /^(?:#|--) stop PostgreSQL/) { $node->stop }
	elsif ($line =~ /^(?:#|--) start PostgreSQL(?! with)/) { $start->() }
	elsif ($line =~ /^(?:#|--) /) { }
	elsif ($line =~ /^(?:ALTER SYSTEM|SELECT) /) { $node->safe_psql('postgres', $line) }
	elsif ($line =~ /^env -i PATH="\$PATH" runuser --pty -u (\S+) -- (psql .*)/)
	{
		# Only root can switch to that user, who runs the tests.
		$1 eq HugeInfo::User::name() or die "not the user of the server: $line\n";
		delete local @ENV{qw(PGHOST PGPORT)};
		system_or_bail('sh', '-c', $2);
	}
	else { HugeInfo::Host::type_in($line) }
	return;
}

# Follows a remedy line by line: runs SQL as a superuser, and shell commands as root.
sub follow
{
	my ($node, $remedy, $name, $start) = @_;
	for my $line (split /\n/, $remedy)
	{
		note("$name: $line");
		_take($node, $line, $start);
	}
	return;
}

# Follows the runbook. After each step, hugeinfo_status has to return what the step expected.
# Returns the rows of the runbook.
sub follow_runbook
{
	my ($node, $name, $start, $settings) = @_;
	my $from = defined $settings ? "hugeinfo_runbook('$settings')" : 'hugeinfo_runbook';
	my $json = $node->safe_psql('postgres', "SELECT coalesce(json_agg(r ORDER BY r.step), '[]') FROM $from AS r");
	my @rows = @{ JSON::PP->new->decode($json) };
	for my $row (@rows)
	{
		my $line = $row->{command} // "# $row->{instruction}";
		note("$name: $line");
		_take($node, $line, $start);
		my $expected = $row->{expected} // next;
		next if $expected eq 'the server is stopped';
		my $status = status_of($node);
		is("$status->{status}: $status->{reason}", $expected, "$name: $row->{step}: $line");
	}
	return @rows;
}

1;
