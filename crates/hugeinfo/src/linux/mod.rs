//! What the kernel says, a file per source and named after it. Nothing here knows PostgreSQL.

pub mod boot;
pub mod buddyinfo;
pub mod cgroup;
pub mod error;
pub mod growth;
pub mod hugepages;
pub mod list;
pub mod meminfo;
pub mod mounts;
pub mod numa;
pub mod pages;
pub mod passwd;
pub mod process;
pub mod processors;
pub mod root;
pub mod sysctl;
pub(crate) mod text;
pub mod transparent_hugepage;
pub mod uptime;
pub mod vmstat;
