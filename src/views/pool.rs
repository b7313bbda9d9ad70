//! The columns of a pool, for `hugeinfo_pools` and `hugeinfo_plan`.

/// Like [`functions`](super::functions), for functions that return pools: with their own columns
/// first, and more between the identity and the contents of a pool.
macro_rules! pool_functions {
    (cost = $cost:literal; $(#[doc = $about:literal])+ view $view:ident;
     [$($first:tt)*], [$($more:tt)*]; $($functions:tt)+) => {
        $crate::views::functions::functions! {
            cost = $cost;
            $(#[doc = $about])+
            view $view;
            columns (
                $($first)*
                /// Bytes of a page of this pool (/sys/kernel/mm/hugepages).
                name!(page_size_bytes, Option<i64>),
                /// Whether this is the default size of the kernel (Hugepagesize in /proc/meminfo).
                name!(is_default, Option<bool>),
                /// Whether the main shared memory segment is on pages of this pool now.
                name!(is_used_by_server, Option<bool>),
                $($more)*
                /// Pages that the main segment needs at the next start, rounded up, with settings
                /// that are pending a restart.
                name!(required_pages, Option<i64>),
                /// Unused bytes in the last required page; in hugeinfo_pools exact to 1 MB on huge
                /// pages.
                name!(tail_waste_bytes, Option<i64>),
                /// Pages in the pool, including surplus pages (nr_hugepages).
                name!(total_pages, Option<i64>),
                /// Pages that no process has faulted in, reserved or not (free_hugepages); see
                /// available_pages.
                name!(free_pages, Option<i64>),
                /// Pages that a mapping has reserved and no process has faulted in
                /// (resv_hugepages).
                name!(reserved_pages, Option<i64>),
                /// Pages beyond the persistent ones, which the kernel frees when they are released
                /// (surplus_hugepages).
                name!(surplus_pages, Option<i64>),
                /// Surplus pages that the kernel is allowed to allocate on demand
                /// (nr_overcommit_hugepages).
                name!(overcommit_pages, Option<i64>),
                /// Pages that a new mapping could get now: free minus reserved, plus surplus pages
                /// that are still allowed.
                name!(available_pages, Option<i64>),
                /// Pages in use or reserved: total minus free, plus reserved.
                name!(committed_pages, Option<i64>),
                /// Pages that the main segment of this server has in use or reserved.
                name!(own_pages, Option<i64>),
                /// Pages that other processes of the host have in use or reserved.
                name!(others_pages, Option<i64>),
                /// Pages to add so that a restart on pages of this size gets them, or 0; pages that
                /// this server releases count as available.
                name!(shortfall_pages, Option<i64>),
                /// Pages that this pool should have: the sum of all known demands, and idle pages
                /// that a hidden server could need.
                name!(recommended_nr_hugepages, Option<i64>),
                /// Whether a restart on pages of this size would get them from the pool and within
                /// the cgroup limit on reservations.
                name!(fits_after_restart, Option<bool>),
                /// Lowest limit on bytes of huge pages of this size that can be faulted in, from
                /// the server's cgroups or PG_HUGEINFO_LIMIT_HUGEPAGES_*; NULL if there is none.
                name!(cgroup_limit_bytes, Option<i64>),
                /// Source of cgroup_limit_bytes: the directory of the cgroup, or the environment
                /// variable with the limit of the pod.
                name!(cgroup_limit_source, Option<String>),
                /// Bytes faulted in by the cgroup with this limit or, without a limit, by the
                /// server's own cgroup.
                name!(cgroup_used_bytes, Option<i64>),
                /// Lowest limit on bytes of huge pages of this size that the server's cgroups can
                /// reserve; NULL if there is none.
                name!(cgroup_reserved_limit_bytes, Option<i64>),
                /// Bytes reserved by the cgroup with this limit or, without a limit, by the
                /// server's own cgroup.
                name!(cgroup_reserved_bytes, Option<i64>),
                /// Lines to paste into a root shell that set the pool to recommended_nr_hugepages,
                /// now and at boot; a comment has the huge_page_size that the server needs.
                name!(how_to_set, Option<String>),
            );
            $($functions)+
        }
    };
}

/// Builds a row from the machine and an `Option<&Forecast>`. Columns are NULL without a forecast.
macro_rules! pool_row {
    ($machine:expr, $forecast:expr, [$($first:expr),*], [$($more:expr),*]) => {{
        let forecast: Option<&advice::model::forecast::Forecast> = $forecast;
        let pool = forecast.map(|forecast| &forecast.pool);
        let cgroup = forecast.and_then(|forecast| forecast.cgroup.as_ref().ok());
        let figure = $crate::numbers::bigint_or_null;
        (
            $($first,)*
            figure(forecast.map(|forecast| forecast.pool.page_bytes)),
            forecast.and_then(|forecast| forecast.is_default),
            forecast.and_then(|forecast| forecast.is_used_by_server),
            $($more,)*
            figure(forecast.map(|forecast| forecast.required.0)),
            figure(forecast.map(|forecast| forecast.tail_waste.0)),
            figure(pool.map(|pool| pool.total)),
            figure(pool.and_then(|pool| pool.known("free_hugepages", pool.free))),
            figure(pool.and_then(|pool| pool.known("resv_hugepages", pool.reserved))),
            figure(pool.and_then(|pool| pool.known("surplus_hugepages", pool.surplus))),
            figure(pool.and_then(|pool| pool.known("nr_overcommit_hugepages", pool.overcommit))),
            figure(pool.and_then(|pool| pool.available())),
            figure(pool.and_then(|pool| pool.committed())),
            figure(forecast.and_then(|forecast| forecast.held).map(|pages| pages.0)),
            figure(forecast.and_then(|forecast| forecast.others).map(|pages| pages.0)),
            figure(forecast.and_then(|forecast| forecast.shortfall).map(|pages| pages.0)),
            figure(forecast.and_then(|forecast| forecast.recommended()).map(|pages| pages.0)),
            forecast.and_then(|forecast| forecast.fits_after_restart),
            figure(cgroup.and_then(|limits| limits.fault_limit)),
            cgroup
                .and_then(|limits| limits.fault_limit_source.as_ref())
                .map($crate::postgres::encoding::shown),
            figure(cgroup.and_then(|limits| limits.fault_use)),
            figure(cgroup.and_then(|limits| limits.reservation_limit)),
            figure(cgroup.and_then(|limits| limits.reservation_use)),
            forecast
                .and_then(|forecast| advice::render::how_to_set($machine, forecast))
                .map($crate::postgres::encoding::shown_lines),
        )
    }};
}

pub(super) use pool_functions;
pub(super) use pool_row;
