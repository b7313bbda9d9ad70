//! `hugeinfo explain`: the documentation of a check or a code.

use clap::{Args, builder::PossibleValuesParser};

use advice::explain::{explain, list, words};

use crate::Done;

/// The options of `explain`.
#[derive(Args)]
pub(crate) struct Options {
    /// A check, or a code of one, such as fell_back. Without it, the names of all.
    #[arg(value_parser = PossibleValuesParser::new(words()), hide_possible_values = true)]
    code: Option<String>,
}

pub(crate) fn run(options: &Options) -> Done {
    let text = match &options.code {
        Some(code) => explain(code).unwrap_or_default(),
        None => list(),
    };
    text.into()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::{Arguments, helpful};

    #[test]
    fn unknown_code_is_an_error_with_the_nearest_one() {
        let parse = |code| Arguments::try_parse_from(["hugeinfo", "explain", code]);
        assert!(parse("fell_back").is_ok());
        let error = parse("felback").err().map(helpful);
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(
            error.contains("a similar value exists: 'fell_back'"),
            "{error}"
        );
        assert!(
            error.contains("tip: to list all, use: hugeinfo explain"),
            "{error}"
        );
        assert!(!error.contains("would_not_start"), "{error}");
    }
}
