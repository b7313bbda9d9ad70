//! What to type.

use crate::{
    advice::words::human,
    linux::hugepages,
    model::{
        forecast::{Forecast, Refusal},
        headroom::Headroom,
    },
    server::facts::Facts,
};

impl Forecast {
    /// What to type for the recommended number of persistent pages, now and for the next boot.
    pub fn how_to_set(&self, facts: &Facts) -> Option<String> {
        let pages = self.recommended?;
        Some(match self.too_many(facts, pages) {
            Some(why) => format!("lower shared_buffers: {why}"),
            None => format!("{}; {}", self.set_now(pages), self.set_at_boot(pages)),
        })
    }

    /// Why a pool of so many pages would be too large for the host. `None`: it isn't, as far as can
    /// be told.
    pub fn too_many(&self, facts: &Facts, pages: u64) -> Option<String> {
        let headroom = Headroom::with(facts, self, pages)?;
        (!headroom.is_enough()).then(|| {
            format!(
                "{pages} huge pages of {} would leave {} of {} RAM",
                human(self.pool.page_bytes),
                human(headroom.left_bytes()),
                human(headroom.ram_bytes)
            )
        })
    }

    /// What to write where for `pages` persistent pages after the next boot.
    pub fn set_at_boot(&self, pages: u64) -> String {
        if self.is_default == Some(true) {
            format!("for the next boot, in /etc/sysctl.d/hugepages.conf: vm.nr_hugepages = {pages}")
        } else {
            let size = kernel_parameter_size(self.pool.page_bytes);
            format!(
                "for the next boot, on the kernel command line: hugepagesz={size} hugepages={pages}"
            )
        }
    }

    /// What to type for `pages` persistent pages now.
    pub fn set_now(&self, pages: u64) -> String {
        if self.is_default == Some(true) {
            format!("sysctl -w vm.nr_hugepages={pages}")
        } else {
            format!(
                "echo {pages} > {}/nr_hugepages",
                hugepages::directory(self.pool.page_bytes)
            )
        }
    }
}

impl Refusal<'_> {
    /// What to type so that none of them refuses any more.
    pub fn how_to_raise(refusals: &[Self]) -> Vec<String> {
        let raise = |Self {
                         file,
                         wanted,
                         group,
                         ..
                     }: &Self| {
            format!("echo {wanted} > '{}/{file}'", group.directory.display())
        };
        let elsewhere = "in Kubernetes raise the pod's limit on huge pages instead".to_owned();
        let elsewhere = (!refusals.is_empty()).then_some(elsewhere);
        refusals.iter().map(raise).chain(elsewhere).collect()
    }
}

/// As the kernel command line takes it (`memparse`).
fn kernel_parameter_size(page_bytes: u64) -> String {
    if page_bytes.is_multiple_of(1 << 30) {
        format!("{}G", page_bytes >> 30)
    } else if page_bytes.is_multiple_of(1 << 20) {
        format!("{}M", page_bytes >> 20)
    } else {
        format!("{}K", page_bytes >> 10)
    }
}
