//! Report on one PostgreSQL server and its machine as one HTML page.
//!
//! The page is self-contained: it has no script, pictures are inline SVG, and a browser fetches
//! nothing. It is ASCII, so that it is valid in any encoding, and at most [`LONGEST`] bytes long.
//! All of it is computed from one [`Subject`](subject::Subject), so that its numbers agree.
//!
//! * [`subject`]: the server, its machine and its processes. [`redact`] removes names, paths and
//!   addresses.
//! * [`findings`]: advice of the crate `hugeinfo`.
//! * [`mod@page`]: the document. [`sections`] are its parts, the last with all figures as JSON;
//!   [`context`] is their input.
//! * [`parts`], [`table`], [`chart`], [`text`]: elements of a section.

#![deny(unsafe_code)]

mod chart;
mod context;
mod findings;
mod page;
mod parts;
mod redact;
mod sections;
pub mod subject;
mod table;
mod text;

pub use page::{LONGEST, page, utc_now};
pub use redact::without_paths;
