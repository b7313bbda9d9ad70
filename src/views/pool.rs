//! The columns of a pool, for `hugeinfo_pools` and `hugeinfo_plan`.

use hugeinfo::{
    advice::{diagnosis, render},
    model::{forecast::Forecast, machine::Machine},
    units::PageSize,
};

/// Like [`functions`](super::functions), for functions that return pools: with their own columns
/// first, and more between the identity and the contents of a pool.
macro_rules! pool_functions {
    ([$($first:tt)*], [$($more:tt)*]; $($functions:tt)+) => {
        $crate::views::functions::functions! {
            (
                $($first)*
                name!(page_size_bytes, Option<i64>),
                name!(is_default, Option<bool>),
                name!(is_used_by_server, Option<bool>),
                $($more)*
                name!(required_pages, Option<i64>),
                name!(tail_waste_bytes, Option<i64>),
                name!(total_pages, Option<i64>),
                name!(free_pages, Option<i64>),
                name!(reserved_pages, Option<i64>),
                name!(surplus_pages, Option<i64>),
                name!(overcommit_pages, Option<i64>),
                name!(available_pages, Option<i64>),
                name!(committed_pages, Option<i64>),
                name!(own_pages, Option<i64>),
                name!(others_pages, Option<i64>),
                name!(shortfall_pages, Option<i64>),
                name!(recommended_nr_hugepages, Option<i64>),
                name!(fits_after_restart, Option<bool>),
                name!(cgroup_limit_bytes, Option<i64>),
                name!(cgroup_limit_source, Option<String>),
                name!(cgroup_used_bytes, Option<i64>),
                name!(cgroup_reserved_limit_bytes, Option<i64>),
                name!(cgroup_reserved_bytes, Option<i64>),
                name!(how_to_set, Option<String>),
            );
            $($functions)+
        }
    };
}

/// Builds a row from the machine and an `Option<&Forecast>`. Columns are NULL without a forecast.
/// `here` is true if the row is about this machine, whose pools are known.
macro_rules! pool_row {
    ($machine:expr, $forecast:expr, $here:expr, [$($first:expr),*], [$($more:expr),*]) => {{
        let forecast: Option<&hugeinfo::model::forecast::Forecast> = $forecast;
        let here: Option<&hugeinfo::model::forecast::Forecast> = forecast.filter(|_| $here);
        let pool = here.map(|forecast| &forecast.pool);
        let cgroup = here.and_then(|forecast| forecast.cgroup.as_ref().ok());
        let figure = $crate::numbers::bigint_or_null;
        (
            $($first,)*
            figure(forecast.map(|forecast| forecast.pool.page_bytes)),
            forecast.and_then(|forecast| forecast.is_default),
            here.and_then(|forecast| forecast.is_used_by_server),
            $($more,)*
            figure(forecast.map(|forecast| forecast.required.0)),
            figure(forecast.map(|forecast| forecast.tail_waste.0)),
            figure(pool.map(|pool| pool.total)),
            figure(pool.map(|pool| pool.free)),
            figure(pool.map(|pool| pool.reserved)),
            figure(pool.map(|pool| pool.surplus)),
            figure(pool.map(|pool| pool.overcommit)),
            figure(pool.map(|pool| pool.available())),
            figure(pool.map(|pool| pool.committed())),
            figure(here.and_then(|forecast| forecast.held).map(|pages| pages.0)),
            figure(here.and_then(|forecast| forecast.others).map(|pages| pages.0)),
            figure(here.and_then(|forecast| forecast.shortfall).map(|pages| pages.0)),
            figure(forecast.and_then(|forecast| forecast.recommended()).map(|pages| pages.0)),
            here.and_then(|forecast| forecast.fits_after_restart),
            figure(cgroup.and_then(|limits| limits.fault_limit)),
            cgroup
                .and_then(|limits| limits.fault_limit_source.as_ref())
                .map($crate::postgres::encoding::shown),
            figure(cgroup.and_then(|limits| limits.fault_use)),
            figure(cgroup.and_then(|limits| limits.reservation_limit)),
            figure(cgroup.and_then(|limits| limits.reservation_use)),
            forecast
                .and_then(|forecast| $crate::views::pool::how_to_set($machine, forecast))
                .map($crate::postgres::encoding::shown_lines),
        )
    }};
}

/// The commands for the recommended number of pages.
pub(super) fn how_to_set(machine: &Machine, forecast: &Forecast) -> Option<String> {
    let size = PageSize(forecast.pool.page_bytes);
    render::remedy(machine, &diagnosis::how_to_set(machine, size))
}

pub(super) use pool_functions;
pub(super) use pool_row;
