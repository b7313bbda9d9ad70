//! The arguments of a postmaster from `/proc/PID/cmdline`, each terminated by a NUL, or from
//! `postmaster.opts`.

/// True for the arguments of a server, for a process about which little else is known.
///
/// False for a child, which has a title such as `postgres: checkpointer`, and for modes of the
/// program that create a System V segment but are no server (main/main.c).
pub fn looks_like_server(command_line: &[u8]) -> bool {
    let mut arguments = arguments(command_line);
    let program = arguments.next().unwrap_or_default();
    let contains = |part: &[u8]| program.windows(part.len()).any(|window| window == part);
    let is_named = contains(b"postgres") || contains(b"postmaster");
    let mode = arguments.next().unwrap_or_default();
    let serves = !matches!(mode, b"--single" | b"--boot" | b"--check");
    is_named && !contains(b": ") && serves
}

/// True if the value of an option is the next argument: `-D DIR`, unlike `-DDIR`, `-F`, `--port=1`.
fn takes_next(argument: &[u8]) -> bool {
    // postmaster/postmaster.c
    matches!(argument, [b'-', letter] if b"BcdDfhkNprStWo".contains(letter))
}

/// The arguments, the program first.
pub fn arguments(command_line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = command_line.strip_suffix(b"\0").unwrap_or(command_line);
    end.split(|&b| b == 0)
}

/// Length of the shortest names that no file has (include/uapi/linux/limits.h, with the final NUL).
pub const PATH_MAX: usize = 4096;

/// The absolute path in option `-D`. It can be a directory with only the configuration files, which
/// set `data_directory`.
pub fn directory_argument(command_line: &[u8]) -> Option<&[u8]> {
    let mut arguments = arguments(command_line).skip(1);
    let mut directory = None;
    while let Some(argument) = arguments.next() {
        if argument == b"-D" {
            directory = arguments.next();
        } else if let Some(value) = argument.strip_prefix(b"-D") {
            directory = Some(value);
        } else if takes_next(argument) {
            arguments.next();
        }
    }
    directory.filter(|path| path.starts_with(b"/") && path.len() < PATH_MAX)
}

/// The value of a setting on the command line. The last one counts.
pub fn setting<'a>(command_line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let given = settings(command_line).filter(|(given, _)| given == name.as_bytes());
    given.last().map(|(_, value)| value)
}

/// The settings on the command line, in order: `-c name=value`, `-cname=value`, `--name=value`,
/// and `-B` and `-N`, which have a value of their own. Names are in lower case, with `_` for `-`
/// (guc.c `ParseLongOption`).
pub fn settings(command_line: &[u8]) -> impl Iterator<Item = (Vec<u8>, &[u8])> {
    let mut arguments = arguments(command_line).skip(1);
    std::iter::from_fn(move || {
        loop {
            let argument = arguments.next()?;
            let short: Option<&[u8]> = match argument {
                [b'-', b'B', ..] => Some(b"shared_buffers"),
                [b'-', b'N', ..] => Some(b"max_connections"),
                _ => None,
            };
            if let Some(name) = short {
                let value = match &argument[2..] {
                    [] => arguments.next()?,
                    value => value,
                };
                return Some((name.to_vec(), value));
            }
            let setting = if argument == b"-c" {
                arguments.next()?
            } else if let Some(setting) = argument.strip_prefix(b"-c") {
                setting
            } else if let Some(setting) = argument.strip_prefix(b"--") {
                setting
            } else {
                if takes_next(argument) {
                    arguments.next();
                }
                continue;
            };
            if let Some(at) = setting.iter().position(|&b| b == b'=') {
                let mut name = setting[..at].to_ascii_lowercase();
                name.iter_mut()
                    .filter(|b| **b == b'-')
                    .for_each(|b| *b = b'_');
                return Some((name, &setting[at + 1..]));
            }
        }
    })
}

/// The command line in `postmaster.opts`: the program, and each argument in quotes (postmaster.c
/// `CreateOptsFile`). `None`: malformed, or ambiguous because of quotes in an argument.
pub fn parse_options(bytes: &[u8]) -> Option<Vec<u8>> {
    let line = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
    let Some((program, rest)) = line.split_once(" \"") else {
        return Some([line.as_bytes(), b"\0"].concat());
    };
    let arguments = rest.strip_suffix('"')?.replace("\" \"", "\0");
    (!arguments.contains('"')).then(|| format!("{program}\0{arguments}\0").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_servers_of_other_users() {
        for (command_line, expected) in [
            ("/usr/lib/postgresql/15/bin/postgres\0-D\0/srv/a\0", true),
            ("/opt/edb-postgres\0-D/srv/edb\0", true),
            ("/nix/store/x/bin/.postgres-wrapped\0-D\0/srv/a\0", true),
            ("postmaster\0", true),
            ("postgres: 15/main: checkpointer \0\0\0", false),
            ("postgres\0--single\0-D\0/srv/a\0postgres\0", false),
            ("postgres\0--boot\0-x\0one\0", false),
            ("/usr/sbin/zabbix_agentd\0-c\0/etc/postgres\0", false),
            ("", false),
        ] {
            assert_eq!(
                looks_like_server(command_line.as_bytes()),
                expected,
                "{command_line:?}"
            );
        }
    }

    #[test]
    fn the_directory_on_the_command_line() {
        for (command_line, directory) in [
            ("postgres\0-D\0/srv/pg data\0", Some("/srv/pg data")),
            ("postgres\0-D/srv/a\0-D\0/srv/b\0", Some("/srv/b")),
            ("postgres\0-c\0-D/srv/a\0", None),
            ("postgres\0-D\0data\0", None),
            ("postgres\0-D", None),
            ("postgres", None),
            ("", None),
        ] {
            assert_eq!(
                directory_argument(command_line.as_bytes()),
                directory.map(str::as_bytes),
                "{command_line:?}"
            );
        }
        let long = format!("postgres\0-D\0/{}\0", "x".repeat(PATH_MAX - 1));
        assert_eq!(directory_argument(long.as_bytes()), None);
    }

    #[test]
    fn settings_on_the_command_line() {
        let command_line =
            b"postgres\0-D\0-c\0-c\0A=b=c\0-cx.y=\0-p\0--z=1\0--log-x=2\0-N\x007\0-B9\0-c\0q\0-c";
        assert_eq!(setting(b"postgres\0-ca=1\0--a=2", "a"), Some(&b"2"[..]));
        let all: Vec<_> = settings(command_line).collect();
        let expected: [(&[u8], &[u8]); 5] = [
            (b"a", b"b=c"),
            (b"x.y", b""),
            (b"log_x", b"2"),
            (b"max_connections", b"7"),
            (b"shared_buffers", b"9"),
        ];
        assert_eq!(all.len(), expected.len());
        for ((name, value), expected) in all.iter().zip(expected) {
            assert_eq!((name.as_slice(), *value), expected);
        }
    }

    #[test]
    fn options_files() {
        for (text, expected) in [
            ("/bin/postgres\n", Some("/bin/postgres\0")),
            (
                "/bin/postgres \"-D\" \"/srv/a b\" \"\"\n",
                Some("/bin/postgres\0-D\0/srv/a b\0\0"),
            ),
            ("/bin/postgres \"-c\" \"a=\"b\"\"\n", None),
            ("/bin/postgres \"-D\" \"/srv\n", None),
            ("/bin/postgres \"-D\"", None),
        ] {
            let expected = expected.map(|text| text.as_bytes().to_vec());
            assert_eq!(parse_options(text.as_bytes()), expected, "{text:?}");
        }
    }
}
