//! Declares SQL functions with their columns and comments.

/// The comments of the objects that one [`functions!`] declares.
pub(super) struct Comments {
    /// Views and their comments.
    pub(super) views: &'static [(&'static str, &'static str)],
    /// Columns of these views and their comments. Empty: not a column of the view.
    pub(super) columns: &'static [(&'static str, &'static str)],
    /// Symbols of functions and their comments. Empty: the function is behind the view.
    pub(super) functions: &'static [(&'static str, &'static str)],
}

/// Defines SQL functions that return the same columns (`Row`). The doc comments of views, columns
/// and functions are their comments in the catalog. `objects.sql` creates the views. The name of a
/// function in SQL is its name here, unless `as` gives another one.
///
/// Types are used as written, because `pg_extern` has to see the `Option` that makes a function
/// accept NULL.
macro_rules! functions {
    (cost = $cost:literal;
     $($(#[doc = $about:literal])+ view $view:ident;)*
     columns ($($(#[doc = $comment:literal])* name!($column:ident, $($type:tt)+),)*);
     $($(#[doc = $purpose:literal])*
       fn $function:ident($($argument:ident: $($argument_type:tt)+)?) $(as $name:literal)? $rows:block)+) => {
        #[allow(clippy::type_complexity)]
        type Row = ($(name!($column, $($type)+),)*);

        pub(super) const COMMENTS: $crate::views::functions::Comments = $crate::views::functions::Comments {
            views: &[$((stringify!($view), concat!($($about),+)),)*],
            columns: &[$((stringify!($column), concat!($($comment),*)),)*],
            functions: &[$((concat!(stringify!($function), "_wrapper"), concat!($($purpose),*)),)+],
        };

        $crate::views::functions::functions! {
            @each $cost ($(name!($column, $($type)+),)*)
            $(fn $function($($argument: $($argument_type)+)?) $(as $name)? $rows)+
        }
    };
    (@each $cost:literal $columns:tt
     $(fn $function:ident($($argument:ident: $($type:tt)+)?) $(as $name:literal)? $rows:block)+) => {
        $(
            #[pg_extern($(name = $name,)? parallel_restricted, cost = $cost)]
            #[allow(clippy::type_complexity)]
            fn $function($($argument: $($type)+)?) -> Result<TableIterator<'static, $columns>, ErrorReport> {
                Ok(TableIterator::new($crate::views::answer(|| $rows)?))
            }
        )+
    };
}

pub(super) use functions;
