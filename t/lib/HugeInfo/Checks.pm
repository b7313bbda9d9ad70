# What hugeinfo_checks says, and its remedies followed step by step.
package HugeInfo::Checks;

use strict;
use warnings;

use Exporter 'import';
use JSON::PP ();
use PostgreSQL::Test::Utils;
use Test::More;

use HugeInfo::Kernel;
use HugeInfo::Server;

our @EXPORT = qw(checks_of compare_check compare_restart expected_pool follow);

my @NAMES = qw(cgroup_fault_limit huge_pages restart pool_size restart_with_files reboot huge_page_size pool_filled pool_growth
  memory_left neighbours numa_pool numa_segment page_tables swap major_faults thp_private thp_shared overcommit oom_protection memlock
  hugetlb_shm_group);
my %WEIGHT = (ok => 0, unknown => 1, warning => 2, critical => 3);

# The verdict of hugeinfo_status is that of the first four, and of files that stop the next start:
# the worst, of these the first.
sub _compare_verdict
{
	my ($status, $checks, $name) = @_;
	my ($fault_limit, @cheap) = @$checks[ 0 .. 3 ];
	my @stopping = grep { $_->{finding} =~ /^the next start would fail/ } $checks->[4];
	my ($worst) = sort { $WEIGHT{ $b->{status} } <=> $WEIGHT{ $a->{status} } } $fault_limit, @cheap, @stopping;
	my %expected = %$worst{qw(status remedy)};
	$expected{reason} = $worst->{status} eq 'ok' ? join '; ', map { $_->{finding} } @cheap : $worst->{finding};
	# and what waits in the files
	my %said = map { $_ => $status->{$_} } keys %expected;
	$said{reason} =~ s/; settings wait for a restart(?:; what they need cannot be determined)?$//;
	is_deeply(\%said, \%expected, "$name: hugeinfo_status says the worst of the cheap checks");
	return;
}

# By name, as a session (see HugeInfo::Session) or a node sees them.
sub checks_of
{
	my ($asked, $name) = @_;
	my $sql = q{
		SELECT json_build_object(
			'checks', (SELECT json_agg(json_build_object('name', c.name, 'status', c.status, 'finding', c.finding,
				'evidence', c.evidence, 'remedy', c.remedy)) FROM hugeinfo_checks AS c),
			'status', (SELECT to_json(s) FROM hugeinfo_status AS s))};
	my $text = $asked->can('value') ? $asked->value($sql) : $asked->safe_psql('postgres', $sql);
	my $answer = JSON::PP->new->allow_bignum->decode($text);
	my $checks = $answer->{checks};
	my @names = map { $_->{name} } @$checks;
	is_deeply(\@names, \@NAMES, "$name: every check has its row") or die "no use in going on\n";
	_compare_verdict($answer->{status}, $checks, $name);
	for my $check (@$checks)
	{
		$_ = JSON::PP::is_bool($_) ? ($_ ? 't' : 'f') : $_ for values %{ $check->{evidence} };
		ok(defined $check->{remedy}, "$name: $check->{name} has a remedy") or diag("$check->{status}: $check->{finding}")
		  if $check->{status} =~ /warning|critical/;
	}
	return { map { $_->{name} => $_ } @$checks };
}

# Status, some figures of the evidence, and patterns for the words.
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

# What the next start finds in the pool that it asks for, as the files of the kernel and the
# arithmetic of the contract have it.
sub expected_pool
{
	my ($node, $kb) = @_;
	my $real = segment($node->{_pid});
	my $own = $real->{page_bytes} == $kb * 1024 ? $real->{bytes} / $real->{page_bytes} : 0;
	my $required = POSIX::ceil($real->{bytes} / ($kb * 1024));
	my $kernel = pool($kb);
	my $numbers = pool_numbers($kernel, $own, $required);
	$numbers->{recommended_nr_hugepages} += small_neighbours($kb, $node->{_pid});
	return {
		page_size_bytes => $kb * 1024,
		required_pages => $required,
		pool_total_pages => $kernel->{total},
		own_pages => $own,
		%$numbers{qw(others_pages shortfall_pages recommended_nr_hugepages)} };
}

# Whether huge pages are there, and would be again. Evidence of both against the kernel's files.
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

# Does what a remedy says, in its order: SQL as a superuser, lines of the shell as root. What is
# only good advice is passed over.
sub follow
{
	my ($node, $remedy, $name) = @_;
	for my $step (split /; /, $remedy)
	{
		# another way to the same end
		last if $step =~ /^or /;
		next if $step =~ /^(?:in Kubernetes|if nr_hugepages reads less) /;
		note("$name: $step");
		if ($step =~ /^(?:then )?restart PostgreSQL$/) { $node->restart }
		elsif ($step eq 'stop PostgreSQL') { $node->stop }
		elsif ($step eq 'start PostgreSQL') { $node->start }
		elsif ($step =~ /^ALTER SYSTEM SET \w+ = \S+$/) { $node->safe_psql('postgres', $step) }
		else { HugeInfo::Host::type_in($step) }
	}
	return;
}

1;
