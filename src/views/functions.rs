//! SQL functions with the same columns.

/// Defines SQL functions that return the same columns (`Row`). The name of a function in SQL is its
/// name here, unless `as` gives another one.
///
/// The type of an argument, and further arguments, are used as written, because `pg_extern` has to
/// see the `Option` that makes a function accept NULL.
macro_rules! functions {
    ($columns:tt;
     $($(#[$doc:meta])*
       fn $function:ident($($argument:ident: $($type:tt)+)?) $(as $name:literal)? $rows:block)+) => {
        #[allow(clippy::type_complexity)]
        type Row = $columns;

        $(
            $(#[$doc])*
            #[pg_extern($(name = $name,)? parallel_restricted, cost = 1000000)]
            #[allow(clippy::type_complexity)]
            fn $function($($argument: $($type)+)?) -> Result<TableIterator<'static, $columns>, ErrorReport> {
                Ok(TableIterator::new($crate::views::answer(|| $rows)?))
            }
        )+
    };
}

pub(super) use functions;
