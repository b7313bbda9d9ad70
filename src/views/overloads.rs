//! Several SQL functions of one name, which no other function can take the place of.

use pgrx::extension_sql_file;

/// SQL functions of one name: they return the same columns (`Row`) and differ in their arguments.
///
/// What people type must match a signature of ours exactly, also without arguments: an exact match
/// always wins. Otherwise a role that may create functions in the extension's schema could make one
/// that matches better, for a superuser to run. So there is a function for text, which quoted
/// literals match first, and one for each numeric type. `t/025_hostile_roles.pl` tries to take
/// their place.
///
/// An argument's type is taken as it is written: `pg_extern` has to see the `Option` that makes a
/// function accept NULL.
macro_rules! overloads {
    ($name:literal, $columns:tt;
     $($(#[$doc:meta])* fn $function:ident($($argument:ident: $($type:tt)+)?) $rows:block)+) => {
        #[allow(clippy::type_complexity)]
        type Row = $columns;

        $(
            $(#[$doc])*
            #[pg_extern(name = $name, parallel_restricted, cost = 1000000)]
            #[allow(clippy::type_complexity)]
            fn $function($($argument: $($type)+)?) -> Result<TableIterator<'static, $columns>, ErrorReport> {
                Ok(TableIterator::new($crate::views::answer(|| $rows)?))
            }
        )+
    };
}

pub(super) use overloads;

extension_sql_file!("names.sql");
