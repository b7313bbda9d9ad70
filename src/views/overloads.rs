//! SQL functions with the same name that no other function can replace.

use pgrx::extension_sql_file;

/// Defines SQL functions with the same name. They return the same columns (`Row`) and differ in
/// their arguments.
///
/// The usual calls have to match one of our signatures exactly, including the call without
/// arguments, because an exact match always wins. Otherwise a role that can create functions in the
/// extension's schema could create a better match, which a superuser might then run. Therefore
/// there is a function for text, which quoted literals match first, and one for each numeric type.
/// `hugeinfo_fit` has only the numeric types of digits and of columns with pages.
/// `t/025_hostile_roles.pl` tries to replace them.
///
/// The type of an argument, and further arguments, are used as written, because `pg_extern` has to
/// see the `Option` that makes a function accept NULL.
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
