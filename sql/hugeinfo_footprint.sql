-- The contract of hugeinfo_footprint.
\d hugeinfo_footprint

SELECT count(*) AS rows,
       bool_and(f.in_use = s.in_use) AS in_use,
       bool_and(f.processes >= 4) AS processes,
       bool_and(f.segment_bytes = s.segment_bytes) AS segment_bytes,
       bool_and(f.segment_backed_bytes BETWEEN 1 AND f.segment_bytes) AS segment_backed_bytes,
       bool_and(f.segment_backed_bytes = f.segment_bytes OR NOT f.in_use) AS all_of_it_on_huge_pages,
       bool_and(f.other_shared_bytes > 0) AS other_shared_bytes,
       bool_and(f.total_bytes = f.private_bytes + f.segment_backed_bytes + f.other_shared_bytes + f.page_table_bytes + f.swap_bytes)
           AS total_bytes,
       bool_and(f.full_total_bytes - f.total_bytes = f.segment_bytes - f.segment_backed_bytes) AS full_total_bytes
FROM hugeinfo_footprint AS f, hugeinfo_status AS s;

-- sums over hugeinfo_backends, which change a little meanwhile
SELECT abs(f.private_bytes - b.private_bytes) < 8 << 20 AS private_bytes,
       abs(f.page_table_bytes - b.page_table_bytes) < 2 << 20 AS page_table_bytes,
       f.segment_backed_bytes >= least(b.rss_shmem_bytes - f.other_shared_bytes, f.segment_bytes) - (2 << 20) AS segment_backed_bytes
FROM hugeinfo_footprint AS f,
     (SELECT sum(rss_anon_bytes) AS private_bytes, sum(page_table_bytes) AS page_table_bytes, max(rss_shmem_bytes) AS rss_shmem_bytes
      FROM hugeinfo_backends) AS b;

-- memory inherited from the postmaster counts once
SELECT count(*) AS rows,
       bool_and(e.private_bytes BETWEEN 1 AND f.private_bytes) AS private_bytes,
       bool_and(e.segment_bytes = f.segment_bytes) AS segment_bytes,
       bool_and(e.total_bytes = e.private_bytes + e.segment_backed_bytes + e.other_shared_bytes + e.page_table_bytes + e.swap_bytes)
           AS total_bytes
FROM hugeinfo_footprint(exact => true) AS e, hugeinfo_footprint AS f;
SELECT abs(f.private_bytes - v.private_bytes) < 8 << 20 AS upper_bound FROM hugeinfo_footprint(false) AS f, hugeinfo_footprint AS v;
SELECT e.private_bytes < f.private_bytes AS is_exact FROM hugeinfo_footprint(true) AS e, hugeinfo_footprint() AS f;
SELECT count(*) FROM hugeinfo_footprint(NULL::boolean);
SELECT count(*) FROM hugeinfo_footprint('perhaps');
