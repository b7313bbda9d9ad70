//! Huge pages that the next boot sets up: by `hugepages=` on the kernel command line, and by
//! `vm.nr_hugepages` in sysctl.d(5) (Documentation/admin-guide/mm/hugetlbpage.rst).
//!
//! The next boot is assumed to use the kernel command line and the default page size of the running
//! kernel. Other mechanisms such as tmpfiles.d, tuned and `hugetlb_cma=` are not simulated: each
//! line or word that might set a pool is [`Unknown`]. Units, an initrd and the credentials of
//! systemd are not examined.

mod command_line;
mod entry;
mod files;
mod host;
mod next_boot;
mod sysctl;

pub(crate) use entry::COMMAND_LINE;
pub use entry::{Change, Edit, Ineffective, Kernel, Place, Request, Unknown, Words};
pub use host::is_etc_kept;
pub use next_boot::NextBoot;
