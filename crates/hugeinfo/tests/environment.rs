//! Facts that are computed from other facts about a server and its machine.

#![allow(clippy::expect_used)]

mod scene;

use std::path::PathBuf;

use hugeinfo::server::setting::{FileLine, Setting, SettingSource};
use scene::quiet;

#[test]
fn initdb_fallback_is_both_values_in_a_configuration_file() {
    let file = || {
        SettingSource::File(Some(FileLine {
            path: PathBuf::from("/data/postgresql.conf"),
            line: 65,
        }))
    };
    for (connections, buffers, source, expected) in [
        ("20", "400kB", file(), true),
        ("25", "400kB", file(), true),
        // The role cannot see which file.
        ("20", "400kB", SettingSource::File(None), true),
        ("100", "400kB", file(), false),
        ("20", "128MB", file(), false),
        ("20", "400kB", SettingSource::CommandLine, false),
        ("20", "400kB", SettingSource::AutoConf, false),
    ] {
        let mut env = quiet();
        assert!(!env.has_initdb_fallback());
        for (name, value) in [
            ("max_connections", connections),
            ("shared_buffers", buffers),
        ] {
            let setting = Setting {
                value: value.to_owned(),
                source: source.clone(),
            };
            env.settings.insert(name, setting);
        }
        let found = env.has_initdb_fallback();
        assert_eq!(found, expected, "{connections} {buffers} {source:?}");
    }
}

#[test]
fn kernel_version_is_the_first_two_numbers() {
    let mut host = quiet().host;
    for (release, version) in [
        ("6.18.5", Some((6, 18))),
        ("4.18.0-553.el8_10.x86_64", Some((4, 18))),
        ("5.15-generic", Some((5, 15))),
        ("next", None),
        ("", None),
    ] {
        release.clone_into(&mut host.kernel_release);
        assert_eq!(host.kernel_version(), version, "{release}");
    }
}
