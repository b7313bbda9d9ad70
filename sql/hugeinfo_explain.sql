-- The contract of hugeinfo_explain(code).
SELECT name FROM hugeinfo_checks WHERE hugeinfo_explain(name) NOT LIKE format(E'## %s\n\nLooks at %%', name);
SELECT name, code FROM hugeinfo_checks WHERE hugeinfo_explain(code) NOT LIKE '%' || code || '%';
SELECT regexp_matches(hugeinfo_explain('would_not_start'), '^## (.*)$', 'gn') AS section;
SELECT hugeinfo_explain(NULL) IS NULL AS is_null;
SELECT hugeinfo_explain('felback');
SELECT hugeinfo_explain('nothing near');
SELECT hugeinfo_explain(repeat('x', 100));
\set VERBOSITY sqlstate
SELECT hugeinfo_explain('');
