-- hugeinfo_plan('{}') and its like would be a conversion if there were a type of that name, whatever functions
-- there are, and whoever may create in this schema could make one whose checks run functions of his. These
-- keep the names: nothing is converted to a composite type in this way.
CREATE TYPE hugeinfo_fault_rates AS ();
COMMENT ON TYPE hugeinfo_fault_rates IS
'Keeps the name of the function from being that of a type that calls of it would be conversions to.';
CREATE TYPE hugeinfo_mappings AS ();
COMMENT ON TYPE hugeinfo_mappings IS
'Keeps the name of the function from being that of a type that calls of it would be conversions to.';
CREATE TYPE hugeinfo_memory AS ();
COMMENT ON TYPE hugeinfo_memory IS
'Keeps the name of the function from being that of a type that calls of it would be conversions to.';
CREATE TYPE hugeinfo_plan AS ();
COMMENT ON TYPE hugeinfo_plan IS
'Keeps the name of the function from being that of a type that calls of it would be conversions to.';
