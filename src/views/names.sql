-- If a type of that name exists, PostgreSQL reads hugeinfo_plan('{}') as a conversion, even though
-- there are functions of that name. Whoever may create objects in this schema could make a domain
-- whose check runs his own function. A composite type is never the target of such a conversion:
-- these types occupy the names.
CREATE TYPE hugeinfo_mappings AS ();
COMMENT ON TYPE hugeinfo_mappings IS
'Reserves the name of the function, so that no type can capture calls of it.';
CREATE TYPE hugeinfo_memory AS ();
COMMENT ON TYPE hugeinfo_memory IS
'Reserves the name of the function, so that no type can capture calls of it.';
CREATE TYPE hugeinfo_plan AS ();
COMMENT ON TYPE hugeinfo_plan IS
'Reserves the name of the function, so that no type can capture calls of it.';
CREATE TYPE hugeinfo_report AS ();
COMMENT ON TYPE hugeinfo_report IS
'Reserves the name of the function, so that no type can capture calls of it.';
