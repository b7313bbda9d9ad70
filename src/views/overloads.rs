//! Several SQL functions of one name, which nobody's function can come before.

use pgrx::extension_sql_file;

/// The SQL functions of one name: they return the same columns, for which `Row` stands, and differ
/// in what they take.
///
/// What people type has to be an exact signature of ours, that without arguments too: nothing goes
/// before an exact match. Else whoever may create functions in the extension's schema could make
/// one that fits better, for a superuser to run. There is one for text where people type a quoted
/// literal, which goes to it first, and one for each type of number where they type a number.
/// `t/025_hostile_roles.pl` tries to come before us.
macro_rules! overloads {
    ($name:literal, $columns:tt;
     $($(#[$doc:meta])* fn $function:ident($($argument:ident: $type:ident)?) $rows:block)+) => {
        #[allow(clippy::type_complexity)]
        type Row = $columns;

        $(
            $(#[$doc])*
            #[pg_extern(name = $name, parallel_restricted, cost = 1000000)]
            #[allow(clippy::type_complexity)]
            fn $function($($argument: $type)?) -> Result<TableIterator<'static, $columns>, ErrorReport> {
                Ok(TableIterator::new($crate::postgres::memory::with_room(|| $rows)?))
            }
        )+
    };
}

pub(super) use overloads;

extension_sql_file!("names.sql");
