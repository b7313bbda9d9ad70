use crate::scene::{GB, Scene};

fn over(m: &mut Scene, pages: &[u64]) {
    m.nodes(&[(269, 32 * GB), (268, 32 * GB)]);
    m.around.segment_nodes = Some((0..).zip(pages.iter().copied()).collect());
}

table! { numa_segment;
    "one node" |_| {} Ok "one node";
    "all on one of two" |m| { over(m, &[0, 530]) }
        Warning "node 1 holds 1060 MB of the main segment"
        => "start PostgreSQL by numactl --interleave=all; then restart PostgreSQL";
    "on both" |m| { over(m, &[270, 267]) } Ok "several nodes";
    "hardly touched" |m| { over(m, &[25, 0]) } Ok "too little";
    "nobody may look" |m| { over(m, &[]); m.around.segment_nodes = None } Unknown "numa_maps";
}
