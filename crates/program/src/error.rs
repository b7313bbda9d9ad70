//! Errors of the program.

use std::{fmt, io, path::Path};

use host::{
    escape,
    linux::error::ReadError,
    next_start::{Failure, failed_start::FailedStart},
};

/// An error that ends the program.
#[derive(Debug)]
pub(crate) enum Error {
    /// PostgreSQL would not start with these settings.
    Refused(FailedStart),
    /// Anything else: a message, and a hint.
    Other(String, Option<String>),
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Other(message.into(), None)
    }

    pub(crate) fn with_hint(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Other(message.into(), Some(hint.into()))
    }

    /// The error for a file or program that cannot be used.
    pub(crate) fn file(what: &str, path: &Path, error: io::Error) -> Self {
        let hint = (error.kind() == io::ErrorKind::PermissionDenied)
            .then(|| "Run this as the user of the server, or as root".to_owned());
        let path = escape::name(path);
        Self::Other(format!("could not {what} {path}: {error}"), hint)
    }

    /// The text among those of other servers. Parts of it can be from the owner of a data
    /// directory, and must not look like a line about another server.
    pub(crate) fn indented(&self) -> String {
        let text = escape::lines(self.to_string());
        text.trim_end().replace('\n', "\n    ")
    }

    pub(crate) fn exit_status(&self) -> u8 {
        match self {
            Self::Refused(refusal) if refusal.is_of_configuration => 2,
            Self::Refused(_) | Self::Other(..) => 3,
        }
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(refusal) => Self::Refused(refusal),
            Failure::File(error) => Self::file(error.action, &error.path, error.source),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (message, details, hint) = match self {
            Self::Refused(refusal) => (&refusal.message, &refusal.detail[..], &refusal.hint),
            Self::Other(message, hint) => (message, &[][..], hint),
        };
        writeln!(f, "{message}")?;
        for detail in details {
            writeln!(f, "DETAIL: {detail}")?;
        }
        match hint {
            Some(hint) => writeln!(f, "HINT: {hint}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_do_not_look_like_lines_about_other_servers() {
        let error = Error::with_hint("a\n/srv/b: has its pages\u{1b}[2J", "c");
        let expected = "a\n    /srv/b: has its pages\\033[2J\n    HINT: c";
        assert_eq!(error.indented(), expected);
    }
}
