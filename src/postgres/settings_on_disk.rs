//! The settings as the configuration files have them.

use std::ffi::{CStr, c_int};

use pgrx::pg_sys;

/// The values that the configuration files have now for some settings, as written there.
///
/// Only for a copy of this backend: an included file may be a pipe, which never ends. `None`: a
/// file cannot be read, or is not a configuration file.
pub(crate) fn settings_on_disk(names: &[&CStr]) -> Option<Vec<u8>> {
    /// None of those that are asked for has a value as long as that, or it is wrong. All of them
    /// together are less than what is kept of a child's output.
    const LONGEST: usize = 256;
    let (mut head, mut tail) = (std::ptr::null_mut(), std::ptr::null_mut());
    let mut found = vec![None; names.len()];
    // SAFETY: PostgreSQL allocates the list and adds to it, and this process ends before it is of
    // any concern. Its strings live as long. The name of the file is set before the server starts
    // its first process.
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
