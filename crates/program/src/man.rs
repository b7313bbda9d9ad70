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
    let mut command = command.clone();
    let synopsis = synopsis(&mut command);
    let page = Man::new(command.clone().override_usage(synopsis));
    let page = page.source(concat!("pg_hugeinfo ", env!("CARGO_PKG_VERSION")));
    let written = page.generate_to(directory);
    written.map_err(|error| Error::file("create the manual pages in", directory, error))?;
    command
        .get_subcommands()
        .filter(|verb| !verb.is_hide_set())
        .try_for_each(|verb| write_pages(verb, directory))
}

/// The usage in the help, with all options. clap_mangen would leave out the names of their values.
fn synopsis(command: &mut Command) -> String {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let options = command.get_arguments().filter(|argument| {
        let is_named = usage.contains(&argument.to_string());
        !argument.is_positional() && !argument.is_hide_set() && !is_named
    });
    let options: Vec<_> = options.map(|option| format!("[{option}]")).collect();
    usage.replace("[OPTIONS]", &options.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synopsis_has_the_names_of_values() {
        let mut program = Arguments::command().disable_help_subcommand(true);
        program.build();
        for (verb, expected) in [
            (
                "report",
                "hugeinfo report [-c <NAME=VALUE>] [-D <DATADIR>] [--cluster <VERSION/NAME>] [--bindir <DIR>] [--before <FILE>] [--help]",
            ),
            ("explain", "hugeinfo explain [CODE]"),
        ] {
            let verb = program.find_subcommand_mut(verb).expect("a verb");
            assert_eq!(synopsis(verb), expected);
        }
        assert_eq!(synopsis(&mut program), "hugeinfo <COMMAND>");
    }
}
