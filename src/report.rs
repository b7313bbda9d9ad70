//! The SQLSTATE, detail and hint of each error.

use std::io;

use hugeinfo::{
    escape,
    linux::error::{Absence, ReadError},
    units::huge_pages,
};
use pgrx::{PgSqlErrorCode, pg_sys::panic::ErrorReport};

use crate::{error::Error, postgres::encoding::shown_lines};

impl From<Error> for ErrorReport {
    fn from(error: Error) -> Self {
        use PgSqlErrorCode::{
            ERRCODE_CONFIG_FILE_ERROR, ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
            ERRCODE_FEATURE_NOT_SUPPORTED, ERRCODE_INSUFFICIENT_PRIVILEGE,
            ERRCODE_INVALID_PARAMETER_VALUE, ERRCODE_NULL_VALUE_NOT_ALLOWED,
            ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            ERRCODE_OUT_OF_MEMORY, ERRCODE_PROGRAM_LIMIT_EXCEEDED, ERRCODE_SYSTEM_ERROR,
            ERRCODE_UNDEFINED_FILE, ERRCODE_UNDEFINED_OBJECT,
        };
        const REPORT: &str = "pg_hugeinfo does not support this file format. Report it as a bug, with the contents of the file and the kernel version.";
        const VALUES: &str = "Example: {\"shared_buffers\": \"64GB\", \"max_connections\": 500, \"hot_standby\": false}.";
        let mut detail = None;
        let (code, message, hint) = match error {
            Error::Read(read) => {
                let (code, hint) = match &read {
                    ReadError::Absent(absent) if absent.why == Absence::Denied => {
                        (ERRCODE_INSUFFICIENT_PRIVILEGE, None)
                    }
                    ReadError::Absent(_) => (ERRCODE_UNDEFINED_FILE, None),
                    ReadError::Io { source, .. } => (code_of(source), None),
                    ReadError::NoMemory(_) => (ERRCODE_OUT_OF_MEMORY, None),
                    ReadError::TooLarge { .. } => (ERRCODE_PROGRAM_LIMIT_EXCEEDED, None),
                    ReadError::Malformed { .. } => (ERRCODE_SYSTEM_ERROR, Some(REPORT.to_owned())),
                };
                (code, read.to_string(), hint)
            }
            Error::OutOfMemory => (ERRCODE_OUT_OF_MEMORY, "out of memory".to_owned(), None),
            Error::OutOfRange(value) => (
                ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("bigint out of range: the kernel reported {value}"),
                None,
            ),
            Error::Setting(name) => (
                ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("setting \"{name}\" has a value that pg_hugeinfo does not support"),
                Some("Update pg_hugeinfo to a version that supports this PostgreSQL release.".to_owned()),
            ),
            Error::OtherVersion {
                library,
                objects,
                is_library_older,
            } => (
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("extension pg_hugeinfo is version {objects} in this database, but its library is version {library}"),
                Some(if objects.ends_with("-dev") {
                    format!("A development version cannot be upgraded. Save grants and views, then run DROP EXTENSION pg_hugeinfo CASCADE and CREATE EXTENSION pg_hugeinfo, or install the library of version {objects}.")
                } else if is_library_older {
                    format!("Connect again, because a session keeps the library that it has loaded. If that does not help, install the library of version {objects}.")
                } else {
                    "Run ALTER EXTENSION pg_hugeinfo UPDATE in this database.".to_owned()
                }),
            ),
            Error::SampleLength => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                "duration must be longer than zero and at most one hour".to_owned(),
                Some(
                    "For a longer sample, read hugeinfo_backends twice and subtract."
                        .to_owned(),
                ),
            ),
            Error::NullSettings => (
                ERRCODE_NULL_VALUE_NOT_ALLOWED,
                "settings must not be NULL".to_owned(),
                Some(format!("To plan with the configuration files on disk, omit the argument. {VALUES}")),
            ),
            Error::TooLong(longest) => (
                ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("settings must not be longer than {} bytes", longest),
                Some(VALUES.to_owned()),
            ),
            Error::NotAnObject => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                "settings must be a JSON object".to_owned(),
                Some(VALUES.to_owned()),
            ),
            Error::NotAValue(name) => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("setting \"{name}\" must be a string, a number or a boolean"),
                Some(VALUES.to_owned()),
            ),
            Error::NotASize(name, value) => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("invalid value for \"{name}\": \"{value}\""),
                Some("Example: {\"host_ram\": \"256GB\", \"host_huge_page_sizes\": \"2MB, 1GB\"}. A number without a unit means bytes.".to_owned()),
            ),
            Error::NotAssignments => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                "settings must be name=value pairs or a JSON object".to_owned(),
                Some("Examples: 'shared_buffers=64GB max_connections=500', '{\"shared_buffers\": \"64GB\"}'.".to_owned()),
            ),
            Error::NotSizing { name, known } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("setting \"{name}\" does not change the size of shared memory"),
                Some(format!("These settings can be planned: {known}.")),
            ),
            Error::NotPlanned { name, near, known } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("setting \"{name}\" cannot be planned"),
                Some(near.map_or_else(String::new, |near| format!("Did you mean \"{near}\"? ")) + &format!(
                    "These settings can be planned: {known}."
                )),
            ),
            Error::AnotherHost(name) => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("setting \"{name}\" is only for hugeinfo_plan"),
                Some("A runbook is for this host. To plan another host, use hugeinfo_plan.".to_owned()),
            ),
            Error::PlannedTwice(name) => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("setting \"{name}\" is given more than once"),
                Some("Names of settings are not case-sensitive.".to_owned()),
            ),
            Error::NotAFootprint => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                "before must be a row of hugeinfo_footprint".to_owned(),
                Some(
                    "SELECT hugeinfo_report(before => to_jsonb(f)) FROM saved_footprint AS f"
                        .to_owned(),
                ),
            ),
            Error::NoPages => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                "pages must be greater than zero".to_owned(),
                Some("Example: hugeinfo_fit(512, 'max_connections=500').".to_owned()),
            ),
            Error::TooFewPages { least, size } => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                format!("pages must be at least {least}: the minimum of shared_buffers needs {}", huge_pages(least, size)),
                Some("The minimum depends on the other settings, such as max_connections.".to_owned()),
            ),
            Error::FittedSetting => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                "setting \"shared_buffers\" cannot be given to hugeinfo_fit, which computes it".to_owned(),
                Some("To compute the huge pages for a given value, use hugeinfo_plan.".to_owned()),
            ),
            Error::PageSize { asked: Some(asked), known } if !known.is_empty() => {
                let known: Vec<_> = known.iter().map(ToString::to_string).collect();
                (
                    ERRCODE_INVALID_PARAMETER_VALUE,
                    format!("the next start requests {asked} huge pages, which the kernel does not support"),
                    Some(format!("Supported sizes: {}. Change huge_page_size.", known.join(", "))),
                )
            }
            Error::PageSize { asked: None, known } if !known.is_empty() => (
                ERRCODE_INVALID_PARAMETER_VALUE,
                "the default huge page size is unknown".to_owned(),
                Some("Add huge_page_size to the settings.".to_owned()),
            ),
            Error::PageSize { .. } => (
                ERRCODE_FEATURE_NOT_SUPPORTED,
                "the kernel has no huge pages".to_owned(),
                Some("For another host, add host_huge_page_sizes to the settings.".to_owned()),
            ),
            Error::UnknownSetting(name) => (
                ERRCODE_UNDEFINED_OBJECT,
                format!("unrecognized configuration parameter \"{name}\""),
                Some("Add the library of this setting to shared_preload_libraries and restart the server.".to_owned()),
            ),
            Error::NoPostmaster => (
                ERRCODE_FEATURE_NOT_SUPPORTED,
                "cannot plan without a postmaster, because a plan uses its command line".to_owned(),
                Some("Start the server normally, not in single-user mode.".to_owned()),
            ),
            Error::File {
                action,
                path,
                source,
            } => {
                let message = format!("could not {action} \"{}\": {source}", escape::name(path));
                (code_of(&source), message, None)
            }
            Error::Scratch {
                action,
                path,
                source,
            } => (
                code_of(&source),
                format!("could not {action} \"{}\": {source}", escape::name(path)),
                Some("A plan temporarily needs about 12 kB in the directory that TMPDIR names in the server's environment, or in /tmp.".to_owned()),
            ),
            Error::NotRead { path, end } => (
                ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
                format!("could not read \"{}\" and the files that it includes: {end}", escape::name(path)),
                None,
            ),
            Error::Refused { refusal, planned } => {
                let mut details = refusal.detail;
                let own = if !refusal.is_of_configuration {
                    ERRCODE_EXTERNAL_ROUTINE_EXCEPTION
                } else if planned.is_empty() {
                    ERRCODE_CONFIG_FILE_ERROR
                } else {
                    details.push(format!("Planned: {planned}"));
                    ERRCODE_INVALID_PARAMETER_VALUE
                };
                detail = Some(details.join("\n")).filter(|detail| !detail.is_empty());
                let code = refusal.state.and_then(code_of_state).unwrap_or(own);
                (code, refusal.message, refusal.hint)
            }
            Error::RefusedForOthers {
                is_of_configuration: true,
            } => (
                ERRCODE_CONFIG_FILE_ERROR,
                "the configuration files contain an error that prevents the next start".to_owned(),
                Some("A superuser can see the error in hugeinfo_checks or pg_file_settings.".to_owned()),
            ),
            Error::RefusedForOthers {
                is_of_configuration: false,
            } => (
                ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
                "PostgreSQL's program did not compute the size of shared memory; a superuser can see the reason".to_owned(),
                Some("Run SELECT * FROM hugeinfo_plan() as a superuser.".to_owned()),
            ),
            Error::TimeLimit(limit) => (
                ERRCODE_EXTERNAL_ROUTINE_EXCEPTION,
                format!(
                    "PostgreSQL's program did not compute the size of shared memory within {} seconds",
                    limit.as_secs()
                ),
                Some("It might be waiting for a configuration file that is a pipe, for a file system that does not respond, or in a library of shared_preload_libraries.".to_owned()),
            ),
        };
        let mut report = Self::new(code, shown_lines(message), "pg_hugeinfo");
        if let Some(detail) = detail {
            report = report.set_detail(shown_lines(detail));
        }
        match hint {
            Some(hint) => report.set_hint(shown_lines(hint)),
            None => report,
        }
    }
}

/// Like PostgreSQL's `errcode_for_file_access`.
fn code_of(error: &io::Error) -> PgSqlErrorCode {
    use PgSqlErrorCode::{
        ERRCODE_DISK_FULL, ERRCODE_INSUFFICIENT_PRIVILEGE, ERRCODE_INSUFFICIENT_RESOURCES,
        ERRCODE_IO_ERROR, ERRCODE_OUT_OF_MEMORY, ERRCODE_UNDEFINED_FILE,
    };
    use io::ErrorKind;
    const TOO_MANY: [rustix::io::Errno; 3] = [
        rustix::io::Errno::AGAIN,
        rustix::io::Errno::MFILE,
        rustix::io::Errno::NFILE,
    ];
    let is_too_many = |code| TOO_MANY.iter().any(|errno| errno.raw_os_error() == code);
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ERRCODE_DISK_FULL,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            ERRCODE_INSUFFICIENT_PRIVILEGE
        }
        ErrorKind::NotFound => ERRCODE_UNDEFINED_FILE,
        ErrorKind::OutOfMemory => ERRCODE_OUT_OF_MEMORY,
        _ if error.raw_os_error().is_some_and(is_too_many) => ERRCODE_INSUFFICIENT_RESOURCES,
        _ => ERRCODE_IO_ERROR,
    }
}

/// The SQLSTATE of an error of PostgreSQL's program. `None`: "internal error", which is unspecific.
fn code_of_state(state: [u8; 5]) -> Option<PgSqlErrorCode> {
    // MAKE_SQLSTATE of utils/elog.h: six bits for each character.
    let packed = state.iter().rev().fold(0, |packed, &character| {
        (packed << 6) | (i32::from(character) - i32::from(b'0')) & 0x3F
    });
    let code = PgSqlErrorCode::from(packed);
    (code != PgSqlErrorCode::ERRCODE_INTERNAL_ERROR).then_some(code)
}
