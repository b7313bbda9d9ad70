# A hot standby reports its own state, not that of its primary.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use HugeInfo::Host;
use HugeInfo::Kernel;
use HugeInfo::Server;
use PostgreSQL::Test::Cluster;
use Test::More;

my $kb = default_page_kb();

SKIP:
{
	needs_host('a standby');
	pools_of_one_size($kb, 0);

	my $primary = PostgreSQL::Test::Cluster->new('primary');
	$primary->init(allows_streaming => 1);
	configure($primary, shared_buffers => '16MB');
	$primary->start;
	$primary->safe_psql('postgres', 'CREATE EXTENSION pg_hugeinfo');
	$primary->backup('copy');

	my $standby = PostgreSQL::Test::Cluster->new('standby');
	$standby->init_from_backup($primary, 'copy', has_streaming => 1);
	configure($standby, shared_buffers => '24MB');
	set_pool($kb, 40);
	$standby->start;
	$primary->wait_for_catchup($standby);

	is($standby->safe_psql('postgres', 'SELECT pg_is_in_recovery()'), 't', 'the standby is in recovery');
	my $seen = observe($standby);
	compare_segment($standby, $seen->{status}, 'standby');
	compare_pools($standby, $seen, 'standby');
	is($seen->{status}{in_use}, 't', 'the standby runs on huge pages');
	like($standby->safe_psql('postgres', 'SELECT hugeinfo_report()'), qr/PostgreSQL [^<]*, standby</, 'its report names it a standby');
	is($standby->safe_psql('postgres', q(SELECT status FROM hugeinfo_checks WHERE name = 'pending_settings')), 'ok',
		'the standby has the checks');
	cmp_ok($standby->safe_psql('postgres', 'SELECT min(segment_bytes) FROM hugeinfo_plan()'), '>', 24 << 20,
		'and plans its next start');

	$seen = observe($primary);
	compare_segment($primary, $seen->{status}, 'primary');
	compare_pools($primary, $seen, 'primary');
	is($seen->{status}{in_use}, 'f', 'the primary does not run on huge pages');
}

done_testing;
