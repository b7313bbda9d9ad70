//! The values of settings in the configuration files.

use std::ffi::{CStr, c_int};

use pgrx::pg_sys;

/// Returns the present values of some settings in the configuration files, as written there.
///
/// Only for a copy of this backend, because an included file can be a pipe, which never ends.
/// `None`: a file cannot be read, or is not a configuration file.
pub(crate) fn settings_on_disk(names: &[&CStr]) -> Option<Vec<u8>> {
    /// Maximum length of a value. Longer values of these settings are invalid. All of them together
    /// are shorter than the part of a child's output that is kept.
    const LONGEST: usize = 256;
    let (mut head, mut tail) = (std::ptr::null_mut(), std::ptr::null_mut());
    let mut found = vec![None; names.len()];
    // SAFETY: PostgreSQL allocates the list and its strings, which live until this process ends.
    // The name of the file is set before the server starts its first process.
    unsafe {
        for (file, must_exist) in [
            (pg_sys::ConfigFileName.cast_const(), true),
            (c"postgresql.auto.conf".as_ptr(), false),
        ] {
            let is_right = pg_sys::ParseConfigFile(
                file,
                must_exist,
                std::ptr::null(),
                0,
                0,
                c_int::try_from(pg_sys::DEBUG5).unwrap_or_default(),
                &raw mut head,
                &raw mut tail,
            );
            if !is_right {
                return None;
            }
        }
        let mut next: *const pg_sys::ConfigVariable = head;
        while let Some(line) = next.as_ref() {
            next = line.next;
            if line.name.is_null() || line.value.is_null() {
                continue;
            }
            let name = CStr::from_ptr(line.name).to_bytes();
            let is_it = |asked: &&CStr| asked.to_bytes().eq_ignore_ascii_case(name);
            if let Some(place) = names.iter().position(is_it) {
                found[place] = Some(CStr::from_ptr(line.value).to_bytes().trim_ascii());
            }
        }
    }
    let mut answer = Vec::new();
    for (name, value) in names.iter().zip(found) {
        let Some(value) = value else { continue };
        if value.len() > LONGEST {
            return None;
        }
        answer.extend_from_slice(name.to_bytes_with_nul());
        answer.extend_from_slice(value);
        answer.push(0);
    }
    Some(answer)
}
