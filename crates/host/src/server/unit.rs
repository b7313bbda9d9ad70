//! The systemd unit of a server: what systemd does after the OOM killer has killed one of its
//! processes (systemd.service(5), `OOMPolicy`).

use std::{
    collections::BTreeMap,
    os::unix::ffi::OsStrExt,
    path::{Component, Path},
};

use crate::linux::{
    cgroup::{Version, membership},
    error::{Fact, ReadError, fact},
    file::LARGEST_SMALL,
    process::Process,
    root::Root,
};

/// The unit of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    pub name: String,
    /// Absent: a file of the unit is missing or cannot be read.
    pub oom_policy: Fact<OomPolicy>,
}

/// What systemd does with a unit after an OOM kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OomPolicy {
    /// Nothing: the server restarts its own processes.
    Continue,
    /// Stops the unit.
    Stop,
    /// The kernel kills all processes (`memory.oom.group`).
    Kill,
}

/// The directory for units and drop-ins of the administrator.
pub(super) const DIRECTORY: &str = "/etc/systemd/system";

/// The directories with units and their drop-ins, by precedence.
const UNITS: [&str; 7] = [
    "/run/systemd/transient",
    DIRECTORY,
    "/run/systemd/system",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/run/systemd/generator.late",
];

/// The directories with `system.conf` and its drop-ins, by precedence.
const MANAGER: [&str; 4] = [
    "/etc/systemd",
    "/run/systemd",
    "/usr/local/lib/systemd",
    "/usr/lib/systemd",
];

/// Reads the unit of a process. `None`: it is not in a service of the system, or its cgroup is
/// hidden, or systemd does not see OOM kills, because cgroup v1 has the memory controller.
pub fn read(root: &Root, process: &Process) -> Result<Option<Unit>, ReadError> {
    let Some((Version::V2, group)) = membership::read(process, "memory")? else {
        return Ok(None);
    };
    let Some(name) = name_of(&group) else {
        return Ok(None);
    };
    let oom_policy = fact(oom_policy(root, &name))?;
    Ok(Some(Unit { name, oom_policy }))
}

/// The service of the system whose cgroup this is: `/system.slice/postgresql.service`.
fn name_of(group: &Path) -> Option<String> {
    let parts = group.components().filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let mut parts = parts.peekable();
    // Services of users have another manager.
    if parts.peek() == Some(&"user.slice") {
        return None;
    }
    let name = parts.find(|name| !name.ends_with(".slice"))?;
    // A manager below the service, as in a container, has units of its own.
    if parts.any(|name| name.ends_with(".service") || name.ends_with(".scope")) {
        return None;
    }
    let is_valid = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    (name.ends_with(".service") && name.chars().all(is_valid)).then(|| name.to_owned())
}

fn oom_policy(root: &Root, name: &str) -> Result<OomPolicy, ReadError> {
    let template = name.split_once('@').map_or("", |(template, _)| template);
    // Drop-ins of all services are in `service.d`.
    let names = [
        name.to_owned(),
        format!("{template}@.service"),
        "service".to_owned(),
    ];
    let Some(of_unit) = texts(root, &UNITS, &names)? else {
        return Err(ReadError::missing(root.path(DIRECTORY).join(name)));
    };
    if let Some(policy) = last_value(&of_unit, "OOMPolicy", policy) {
        return Ok(policy);
    }
    // A unit with its own cgroups below it decides itself.
    if last_value(&of_unit, "Delegate", is_on) == Some(true) {
        return Ok(OomPolicy::Continue);
    }
    let of_manager = texts(root, &MANAGER, &["system.conf".to_owned()])?.unwrap_or_default();
    Ok(last_value(&of_manager, "DefaultOOMPolicy", policy).unwrap_or(OomPolicy::Stop))
}

/// The text of the first of these files that exists, and those of the drop-ins of all of them,
/// which are read in the order of their names. A drop-in hides those with its name in later
/// directories. `None`: there is no such file.
fn texts(
    root: &Root,
    places: &[&str],
    names: &[String],
) -> Result<Option<Vec<Vec<u8>>>, ReadError> {
    let paths = |suffix: &'static str| {
        let names = names.iter();
        names.flat_map(move |name| {
            let paths = places.iter();
            paths.map(move |place| Path::new(place).join(format!("{name}{suffix}")))
        })
    };
    let mut texts = Vec::new();
    for file in paths("") {
        if texts.is_empty() {
            texts.extend(if_there(root.read_written(LARGEST_SMALL, file))?);
        }
    }
    if texts.is_empty() {
        return Ok(None);
    }
    let mut drop_ins = BTreeMap::new();
    for directory in paths(".d") {
        for name in if_there(root.entries(&directory))?.unwrap_or_default() {
            let file = directory.join(&name);
            drop_ins.entry(name).or_insert(file);
        }
    }
    drop_ins.retain(|name, _| name.as_bytes().ends_with(b".conf"));
    for file in drop_ins.values() {
        texts.extend(if_there(root.read_written(LARGEST_SMALL, file))?);
    }
    Ok(Some(texts))
}

/// A link to `/dev/null` counts as missing. It hides files with its name.
fn if_there<T>(found: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
    match found {
        Err(error) if error.is_missing() => Ok(None),
        found => found.map(Some),
    }
}

/// The last valid value of a key. systemd ignores others. No other section has such a key.
fn last_value<T>(texts: &[Vec<u8>], key: &str, parse: fn(&str) -> Option<T>) -> Option<T> {
    let values = texts.iter().flat_map(|text| {
        let text = String::from_utf8_lossy(text);
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        let values = pairs.filter(|(name, _)| name.trim() == key);
        let values = values.filter_map(|(_, value)| parse(value.trim()));
        values.collect::<Vec<_>>()
    });
    values.last()
}

fn policy(value: &str) -> Option<OomPolicy> {
    match value {
        "continue" => Some(OomPolicy::Continue),
        "stop" => Some(OomPolicy::Stop),
        "kill" => Some(OomPolicy::Kill),
        _ => None,
    }
}

/// A boolean, or a list of controllers, which means yes (systemd.resource-control(5), `Delegate`).
fn is_on(value: &str) -> Option<bool> {
    let no = ["no", "n", "false", "f", "off", "0"];
    Some(!no.iter().any(|no| value.eq_ignore_ascii_case(no)))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;
    use crate::linux::error::{Absence, Absent};

    const NAME: &str = "postgresql@15-main.service";
    const TRANSIENT: &str = "run/systemd/transient/postgresql@15-main.service";

    fn policy_with(files: &[(&str, &str)]) -> Fact<OomPolicy> {
        let tree = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
            fs::write(path, text).expect("write");
        }
        fact(oom_policy(&Root::at(tree.path()), NAME)).expect("memory")
    }

    #[test]
    fn services_of_the_system_have_a_name() {
        for (group, name) in [
            (
                "/system.slice/postgresql.service",
                Some("postgresql.service"),
            ),
            (
                "/system.slice/system-postgresql.slice/postgresql@15-main.service/sub",
                Some(NAME),
            ),
            ("/", None),
            ("/system.slice/docker-1.scope", None),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/pg.service",
                None,
            ),
            ("/lxc.payload.a/system.slice/postgresql.service", None),
            (
                "/machine.slice/systemd-nspawn@a.service/payload/system.slice/postgresql.service",
                None,
            ),
            ("/system.slice/a b.service", None),
        ] {
            assert_eq!(name_of(Path::new(group)).as_deref(), name, "{group}");
        }
    }

    #[test]
    fn the_last_drop_in_counts() {
        let unit = (
            "usr/lib/systemd/system/postgresql@.service",
            "[Service]\nOOMScoreAdjust=-900\n",
        );
        let conf = (
            "etc/systemd/system.conf",
            "[Manager]\n#DefaultOOMPolicy=kill\n",
        );
        let default = |value| ("run/systemd/system.conf.d/a.conf", value);
        let drop_in = |value| {
            (
                "etc/systemd/system/postgresql@15-main.service.d/override.conf",
                value,
            )
        };
        let hidden = |value| {
            (
                "usr/lib/systemd/system/postgresql@.service.d/override.conf",
                value,
            )
        };
        let all = |value| ("etc/systemd/system/service.d/a.conf", value);
        let (goes_on, stops) = (
            "[Service]\nOOMPolicy = continue\n",
            "[Service]\nOOMPolicy=stop\n",
        );
        for (files, policy) in [
            (vec![unit], OomPolicy::Stop),
            (vec![unit, conf], OomPolicy::Stop),
            (
                vec![
                    unit,
                    conf,
                    default("[Manager]\nDefaultOOMPolicy=continue\n"),
                ],
                OomPolicy::Continue,
            ),
            (vec![unit, drop_in(goes_on)], OomPolicy::Continue),
            (
                vec![unit, drop_in("[Service]\nDelegate=yes\n")],
                OomPolicy::Continue,
            ),
            (
                vec![unit, drop_in("[Service]\nDelegate=No\n")],
                OomPolicy::Stop,
            ),
            (
                vec![
                    unit,
                    drop_in("[Service]\nDelegate=memory pids\nOOMPolicy=stop\n"),
                ],
                OomPolicy::Stop,
            ),
            (
                vec![unit, (TRANSIENT, "[Service]\nOOMPolicy=continue\n")],
                OomPolicy::Continue,
            ),
            (
                vec![unit, drop_in(goes_on), hidden(stops)],
                OomPolicy::Continue,
            ),
            (vec![unit, hidden(stops), all(goes_on)], OomPolicy::Stop),
            (
                vec![
                    unit,
                    drop_in("[Service]\nOOMPolicy=continue\nOOMPolicy=no\n"),
                ],
                OomPolicy::Continue,
            ),
            (
                vec![unit, drop_in("[Service]\nOOMPolicy=kill\n")],
                OomPolicy::Kill,
            ),
        ] {
            assert_eq!(policy_with(&files), Ok(policy), "{files:?}");
        }
        let tree = tempfile::tempdir().expect("a directory");
        let directory = tree.path().join("etc/systemd/system");
        fs::create_dir_all(directory.join("service.d")).expect("mkdir");
        fs::write(directory.join(NAME), stops).expect("write");
        symlink("/dev/null", directory.join("service.d/a.conf")).expect("a link");
        let found = fact(oom_policy(&Root::at(tree.path()), NAME)).expect("memory");
        assert_eq!(found, Ok(OomPolicy::Stop));
        assert!(matches!(
            policy_with(&[drop_in(goes_on)]),
            Err(Absent {
                why: Absence::Missing,
                ..
            })
        ));
    }
}
