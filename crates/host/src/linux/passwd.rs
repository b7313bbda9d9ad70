//! `/etc/passwd`: names and groups of users (passwd(5)). This is not a kernel source. Users of a
//! directory service are missing.

use std::collections::TryReserveError;

use crate::linux::{
    error::ReadError,
    growth::try_collect,
    root::Root,
    text::{lines, parse_number},
};

pub(crate) const PATH: &str = "/etc/passwd";

/// User IDs, group IDs and names, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Users {
    users: Vec<(u32, Option<u32>, String)>,
}

impl Users {
    /// The name of a user. If several users have this ID, the first one, like getpwuid(3).
    pub fn name(&self, uid: u32) -> Option<&str> {
        let found = self.users.iter().find(|(number, ..)| *number == uid);
        found.map(|(.., name)| name.as_str())
    }

    /// The UID of the user with this name.
    pub fn uid(&self, name: &str) -> Option<u32> {
        let found = self.users.iter().find(|(.., user)| user == name);
        found.map(|(uid, ..)| *uid)
    }

    /// The primary group of a user.
    pub fn group(&self, uid: u32) -> Option<u32> {
        let found = self.users.iter().find(|(number, ..)| *number == uid);
        found.and_then(|(_, group, _)| *group)
    }
}

/// Reads the file.
pub fn read(root: &Root) -> Result<Users, ReadError> {
    /// Larger than the file of any host.
    const LARGEST: u64 = 8 << 20;
    Ok(parse(&root.read_written(LARGEST, PATH)?)?)
}

/// Parses lines such as `postgres:x:105:113:PostgreSQL:/var/lib/postgresql:/bin/bash`. Invalid
/// lines are skipped, because people edit this file.
///
/// Errors: out of memory.
pub fn parse(bytes: &[u8]) -> Result<Users, TryReserveError> {
    let user = |(_, line): (usize, &[u8])| {
        let mut fields = line.split(|&b| b == b':');
        let name = str::from_utf8(fields.next()?).ok()?;
        let id = |field| u32::try_from(parse_number(field)?).ok();
        let uid = id(fields.nth(1)?)?;
        let group = fields.next().and_then(id);
        Some((uid, group, name.to_owned())).filter(|(.., name)| !name.is_empty())
    };
    let users = try_collect(lines(bytes).filter_map(user).map(Ok::<_, TryReserveError>))?;
    Ok(Users { users })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_number() {
        let users = parse(b"root:x:0:0::/root:/bin/sh\n\n# of people\n+::::::\npostgres:x:105:113:a:b:c\ntwin:x:105:1::/:\n:x:7::\n\xff:x:8:8:::\n").expect("memory");
        assert_eq!(users.name(0), Some("root"));
        assert_eq!(users.name(105), Some("postgres"));
        assert_eq!(users.name(7), None);
        assert_eq!(users.uid("twin"), Some(105));
        assert_eq!(users.uid("nobody"), None);
        assert_eq!(users.name(8), None);
        assert_eq!(users.group(105), Some(113));
        assert_eq!(users.group(0), Some(0));
        assert_eq!(users.group(7), None);
        assert_eq!(users.name(1), None);
    }
}
