-- The contract of hugeinfo_holders. Compares only the rows of this server, because other holders
-- can change at any time.
\d hugeinfo_holders

SELECT bool_and(kind IN ('process', 'mount', 'unexplained')) IS NOT FALSE AS kind,
       bool_and((pid IS NOT NULL) = (kind = 'process')) IS NOT FALSE AS pid,
       bool_and((name IS NULL) = (kind = 'unexplained')) IS NOT FALSE AS name,
       bool_and(is_of_this_server <= (kind = 'process')) IS NOT FALSE AS is_of_this_server,
       bool_and(held_bytes > 0 OR kind = 'mount') IS NOT FALSE AS held_bytes,
       bool_and(held_bytes = held_pages * page_size_bytes OR held_pages IS NULL) IS NOT FALSE AS held_pages,
       bool_and(kind = 'mount' OR (min_size_bytes IS NULL AND max_size_bytes IS NULL)) IS NOT FALSE AS sizes,
       count(*) FILTER (WHERE kind = 'process') = count(DISTINCT pid) AS no_process_twice
FROM hugeinfo_holders;

-- the same as in hugeinfo_backends; processes other than the postmaster fault in more all the time
SELECT (count(*) = 1) = (SELECT in_use FROM hugeinfo_status) AS holds_pages,
       bool_and(h.held_bytes = b.hugetlb_bytes) IS NOT FALSE AS held_bytes,
       bool_and(h.name = 'postgres') IS NOT FALSE AS name,
       bool_and(h.page_size_bytes = (SELECT page_size_bytes FROM hugeinfo_status)) IS NOT FALSE AS page_size_bytes
FROM hugeinfo_holders AS h
JOIN hugeinfo_backends AS b ON b.pid = h.pid AND b.backend_type = 'postmaster'
WHERE h.is_of_this_server;
