//! `hugeinfo completion`: a script that completes the options of the program in a shell.

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::{generate, shells};

use crate::{Arguments, Done};

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// The options of `completion`.
#[derive(Args)]
pub(crate) struct Options {
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(options: &Options) -> Done {
    let mut command = Arguments::command();
    let mut script = Vec::new();
    match options.shell {
        Shell::Bash => generate(shells::Bash, &mut command, "hugeinfo", &mut script),
        Shell::Zsh => generate(shells::Zsh, &mut command, "hugeinfo", &mut script),
        Shell::Fish => generate(shells::Fish, &mut command, "hugeinfo", &mut script),
    }
    String::from_utf8_lossy(&script).into_owned().into()
}
