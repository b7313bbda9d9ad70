use crate::scene::{GB, MB, Scene, processes};
use hugeinfo::server::surroundings::ProcessFigures;

fn each(m: &mut Scene, bytes: u64) {
    let page_tables = Some(bytes);
    m.around.processes = processes(
        80,
        ProcessFigures {
            page_tables,
            ..ProcessFigures::default()
        },
    );
    // It touches hardly anything.
    m.around.processes[0].page_tables = Some(bytes.min(MB / 2));
}

/// The published machine: 138 GiB in small pages, 80 connections, 24 GB of page tables.
fn published(m: &mut Scene) {
    m.fall_back(0);
    m.ram(256 * GB);
    m.needs(138 * GB);
}

table! { page_tables;
    "few connections" |_| {} Ok;
    "the published machine" |m| { published(m); each(m, 312 * MB) }
        Warning "page tables of 81 processes take 24 GB, on huge pages of 2 MB they would take 2924 MB; the main segment has 138 GB, the host 256 GB RAM"
        => "stop PostgreSQL; echo 1 > /proc/sys/vm/compact_memory; sysctl -w vm.nr_hugepages=70656; if nr_hugepages reads less than 70656, first set it back: sysctl -w vm.nr_hugepages=0; start PostgreSQL";
    "the same, young" |m| { published(m); each(m, MB) } Ok "take 81 MB, on huge pages of 2 MB they would take 41 MB;";
    "small against RAM, large against the segment" |m| { m.fall_back(537); m.ram(256 * GB); each(m, 3 * MB) }
        Warning "take 241 MB, on huge pages of 2 MB they would take 73 MB" => "restart PostgreSQL";
    "on huge pages, where connections are left to save" |m| { m.ram(256 * GB); each(m, 3 * MB) }
        Warning "take 241 MB; the main segment" => "lower max_connections, or put a connection pooler in front";
    "idle connections" |m| { each(m, 500 << 10) } Ok;
    "a tiny server" |m| { m.fall_back(0); m.needs(16 * MB); each(m, 700 << 10) } Ok;
}

#[test]
fn evidence() {
    let mut scene = Scene::healthy();
    published(&mut scene);
    let evidence = scene.check("page_tables").evidence;
    assert_eq!(
        evidence["at_max_connections_bytes"],
        100 * (138_u64 << 30) / 4096 * 8
    );
    assert_eq!(
        evidence["at_max_connections_on_huge_pages_bytes"],
        100 * (138_u64 << 30) / (2 << 20) * 8
    );
}
