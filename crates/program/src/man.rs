//! `hugeinfo man`: the manual pages, which packages contain.

use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use crate::{Arguments, Done, error::Error};

/// The options of `man`.
#[derive(Args)]
pub(crate) struct Options {
    /// The directory in which the pages are created.
    directory: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<Done, Error> {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    write_pages(&command, &options.directory)?;
    Ok(String::new().into())
}

/// Creates a page for the program, and one for each verb.
fn write_pages(command: &Command, directory: &Path) -> Result<(), Error> {
    let page = Man::new(command.clone());
    let page = page.source(concat!("pg_hugeinfo ", env!("CARGO_PKG_VERSION")));
    let written = page.generate_to(directory);
    written.map_err(|error| Error::file("create the manual pages in", directory, error))?;
    command
        .get_subcommands()
        .filter(|verb| !verb.is_hide_set())
        .try_for_each(|verb| write_pages(verb, directory))
}
