//! Report on one PostgreSQL server and its machine as one HTML page.
//!
//! The page is self-contained: it has no script, pictures are inline SVG, and a browser fetches
//! nothing. It is ASCII, so that it is valid in any encoding, and at most [`LONGEST`] bytes long.
//!
//! A [`Subject`](subject::Subject) is read once, so that the numbers of the page agree.
//! [`mod@page`] limits the length; [`sections`] print a [`context`], made of [`parts`] and
//! [`chart`]s.

#![deny(unsafe_code)]

mod chart;
mod context;
mod page;
mod parts;
mod sections;
pub mod subject;

pub use page::{LONGEST, page, utc_now};
