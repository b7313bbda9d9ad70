-- The contract of hugeinfo_text() on every machine.
SELECT text ~ ('^' || upper(status) || '  ') AS begins_with_the_status,
       text ~ '\n  next restart ' AS next_restart,
       text ~ '\n  next reboot ' AS next_reboot,
       text ~ '\n  page tables ' AS page_tables,
       (text ~ '\n  do this ') = EXISTS (SELECT FROM hugeinfo_runbook) AS do_this
FROM hugeinfo_text() AS text, hugeinfo_status;
SELECT count(*) AS wide FROM regexp_split_to_table(hugeinfo_text(), '\n') AS line
WHERE length(line) > 80 AND line !~ '[ (][/''"]' AND line !~ '^ {2}(do this)? +[0-9]+ (root|node|SQL|you) ';
SELECT hugeinfo_text() ~ '^[ -~\n]+$' AS ascii;
