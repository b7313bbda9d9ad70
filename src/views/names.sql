-- hugeinfo_plan('{}') and its like would be a conversion if there were a type of that name,
-- whatever functions there are: whoever may create in this schema could make a domain whose check
-- runs a function of his. Nothing is converted in this way to a composite type: these keep the
-- names.
CREATE TYPE hugeinfo_fault_rates AS ();
COMMENT ON TYPE hugeinfo_fault_rates IS
'Reserves the name of the function, so that no type can capture calls of it.';
CREATE TYPE hugeinfo_mappings AS ();
COMMENT ON TYPE hugeinfo_mappings IS
'Reserves the name of the function, so that no type can capture calls of it.';
CREATE TYPE hugeinfo_memory AS ();
COMMENT ON TYPE hugeinfo_memory IS
'Reserves the name of the function, so that no type can capture calls of it.';
CREATE TYPE hugeinfo_plan AS ();
COMMENT ON TYPE hugeinfo_plan IS
'Reserves the name of the function, so that no type can capture calls of it.';
