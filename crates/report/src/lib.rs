//! Facts and findings of one server and its machine as one HTML page.
//!
//! The page stands alone: no script, pictures as inline SVG, nothing that a browser would fetch. It
//! is ASCII, so that it fits whatever encoding it is written in, and at most [`LONGEST`] bytes
//! long. Everything in it is of one [`Subject`](subject::Subject), so that its
//! numbers agree.
//!
//! * [`subject`]: what it is about. [`redact`]: the same without names, paths and addresses.
//! * [`findings`]: what follows from it, by the crate `hugeinfo`.
//! * [`mod@page`]: the document; `sections` are its parts, in their order.
//! * [`chart`]: bars. [`text`]: how what others wrote is shown. [`figures`]: all of it as JSON.

#![deny(unsafe_code)]

mod chart;
mod figures;
mod findings;
mod page;
mod redact;
mod sections;
pub mod subject;
mod text;

pub use page::{LONGEST, page};
