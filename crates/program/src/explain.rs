//! `hugeinfo explain`: the documentation of a check or a code.

use clap::{Args, builder::PossibleValuesParser};

use advice::explain::{explain, words};

use crate::Done;

/// The options of `explain`.
#[derive(Args)]
pub(crate) struct Options {
    /// A check, or a code of one, such as fell_back.
    #[arg(value_parser = PossibleValuesParser::new(words()), hide_possible_values = true)]
    code: String,
}

pub(crate) fn run(options: &Options) -> Done {
    explain(&options.code).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::Arguments;

    #[test]
    fn unknown_code_is_an_error_with_the_nearest_one() {
        let parse = |code| Arguments::try_parse_from(["hugeinfo", "explain", code]);
        assert!(parse("fell_back").is_ok());
        let error = parse("felback").err().map(|error| error.to_string());
        let error = error.unwrap_or_default();
        assert!(
            error.contains("a similar value exists: 'fell_back'"),
            "{error}"
        );
    }
}
