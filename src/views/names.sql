-- If a type of that name exists, PostgreSQL reads hugeinfo_report('on') as a conversion, even
-- though there are functions of that name. A role that can create objects in this schema could
-- create a domain whose check runs its own function. A composite type is never the target of such a
-- conversion: these types, and the row types of the views, occupy the names.
CREATE TYPE hugeinfo_fit AS ();
CREATE TYPE hugeinfo_report AS ();
COMMENT ON TYPE hugeinfo_fit IS
'Reserves the name of the function, so that no type can capture calls of it.';
COMMENT ON TYPE hugeinfo_report IS
'Reserves the name of the function, so that no type can capture calls of it.';
