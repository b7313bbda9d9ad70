//! Removes names, paths and addresses, so that a report can be attached to a public ticket.

use std::{collections::BTreeSet, path::Path};

use hugeinfo::{
    escape,
    linux::error::Absent,
    server::{
        connection::Connection,
        environment::{Environment, Files},
        facts::AllowedNodes,
        setting::SettingSource,
    },
};

use crate::subject::{About, Subject};

/// Replaces a path.
pub(crate) const PATH: &str = "[path]";

/// Replaces text of unknown content.
const LEFT_OUT: &str = "[left out]";

/// Paths that are the same on every machine.
const OF_KERNEL: [&str; 7] = [
    "/proc/sys/",
    "/proc/self/",
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/buddyinfo",
    "/sys/kernel/mm/",
    "/sys/devices/system/",
];

/// Types of PostgreSQL's own processes. Extensions can give their workers any name.
const BACKEND_TYPES: [&str; 21] = [
    "archiver",
    "autovacuum launcher",
    "autovacuum worker",
    "background worker",
    "background writer",
    "checkpointer",
    "client backend",
    "io worker",
    "logger",
    "logical replication launcher",
    "logical replication worker",
    "parallel worker",
    "postmaster",
    "slotsync worker",
    "standalone backend",
    "startup",
    "syslogger",
    "walreceiver",
    "walsender",
    "walsummarizer",
    "walwriter",
];

/// Known paths of the machine, the longest first. They can contain blanks.
pub(crate) struct Redaction(Vec<String>);

impl Redaction {
    /// Removes the names that have their own fields in a subject, and collects the paths that its
    /// texts can contain.
    pub(crate) fn of(subject: &mut Subject) -> Self {
        let mut paths = BTreeSet::new();
        let facts = &mut subject.machine.facts;
        for limit in &mut facts.misread_limits {
            limit.value = LEFT_OUT.to_owned();
        }
        for group in facts.hugetlb.iter().flat_map(|hugetlb| &hugetlb.groups) {
            add(&mut paths, &group.directory);
        }
        add_absent(&mut paths, facts.segment.as_ref().err());
        add_absent(&mut paths, facts.meminfo.as_ref().err());
        add_absent(&mut paths, facts.pools.as_ref().err());
        add_absent(&mut paths, facts.hugetlb.as_ref().err());
        if let AllowedNodes::Unknown(absent) = &facts.allowed_nodes {
            add_absent(&mut paths, Some(absent));
        }
        if let Some(env) = &mut subject.machine.env {
            of_environment(env, &mut paths);
        }
        for source in &subject.sources {
            add(&mut paths, &source.path);
        }
        for process in &mut subject.processes {
            (process.role, process.database, process.application) = (None, None, None);
            let is_known = |name: &str| BACKEND_TYPES.contains(&name);
            if process
                .backend_type
                .as_deref()
                .is_some_and(|name| !is_known(name))
            {
                process.backend_type = Some("background worker".to_owned());
            }
        }
        subject.about = About {
            host_name: None,
            cluster_name: None,
            port: None,
            ..std::mem::take(&mut subject.about)
        };
        let mut paths: Vec<_> = paths.into_iter().collect();
        paths.sort_by_key(|path| std::cmp::Reverse(path.len()));
        Self(paths)
    }

    /// The text without paths.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for path in &self.0 {
            text = text.replace(path.as_str(), PATH);
        }
        without_paths(&text)
    }
}

fn of_environment(env: &mut Environment, paths: &mut BTreeSet<String>) {
    // PostgreSQL's messages quote the files.
    if let Files::Refused(text) | Files::Unknown(text) = &mut env.files {
        *text = LEFT_OUT.to_owned();
    }
    env.connection = Connection::default();
    for server in env.other_servers.iter_mut().flatten() {
        (server.owner, server.port) = (None, None);
        (server.data_directory, server.directory_argument) = (None, None);
    }
    for limit in env.memory_limits.iter().flatten() {
        add(paths, &limit.directory);
    }
    if let Some(cgroup) = &env.memory_oom_group {
        add(paths, cgroup);
    }
    for setting in env.settings.values() {
        if let SettingSource::File(Some(line)) = &setting.source {
            add(paths, &line.path);
        }
    }
    for absent in [
        env.vmstat.as_ref().err(),
        env.free_blocks.as_ref().err(),
        env.next_boot.as_ref().err(),
        env.nodes.as_ref().err(),
        env.oom_score_adj.as_ref().err(),
        env.locked_memory.as_ref().err(),
        env.memory_limits.as_ref().err(),
        env.other_servers.as_ref().err(),
        env.host.usage.as_ref().err(),
        env.host.thp.as_ref().err(),
    ] {
        add_absent(paths, absent);
    }
    let Ok(boot) = &env.next_boot else {
        return;
    };
    let requests = boot.requests.iter().map(|request| &request.place.file);
    let not_read = boot.not_read.iter().map(|request| &request.place.file);
    let unknown = boot.unknown.iter().map(|unknown| &unknown.file);
    for file in requests.chain(not_read).chain(unknown) {
        add(paths, file);
    }
}

fn add(paths: &mut BTreeSet<String>, path: impl AsRef<Path>) {
    let path = escape::name(path.as_ref());
    // "/" identifies nothing.
    if path.len() > 1 && !is_of_kernel(&path) {
        paths.insert(path);
    }
}

fn add_absent(paths: &mut BTreeSet<String>, absent: Option<&Absent>) {
    if let Some(absent) = absent.filter(|absent| absent.path.is_absolute()) {
        add(paths, &absent.path);
    }
}

fn is_of_kernel(path: &str) -> bool {
    let of_process = path.strip_prefix("/proc/");
    OF_KERNEL.iter().any(|prefix| path.starts_with(prefix))
        || of_process.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        || path == "/proc/cmdline"
}

/// Removes everything that looks like an absolute path, and the rest of a path of which a part is
/// known. The end of an unknown path is a guess that removes too much rather than too little.
pub fn without_paths(text: &str) -> String {
    const BEFORE: &[char] = &[
        ' ', '\t', '\n', '\'', '"', '`', '(', '[', '{', '=', '<', '>', '|', '&', ':', ',', ';',
    ];
    const AFTER: &[char] = &[' ', '\n', '\'', '"', ')', ';', ',', '<', '>'];
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = [rest.find('/'), rest.find(PATH)]
        .into_iter()
        .flatten()
        .min()
    {
        let (before, path) = rest.split_at(start);
        shown.push_str(before);
        let begins = path.starts_with(PATH) || shown.is_empty() || shown.ends_with(BEFORE);
        if !begins {
            shown.push('/');
            rest = &path[1..];
            continue;
        }
        let word = &path[..path.find(AFTER).unwrap_or(path.len())];
        let quote = shown.chars().next_back().filter(|&last| is_quote(last));
        let end = quote.map_or_else(|| end_of_clause(path), |quote| end_of_quoted(path, quote));
        let stays = match word.strip_prefix(PATH) {
            Some(rest) => (quote.is_none() || end == word.len()) && names_nobody(rest),
            None => word.len() == 1 || is_of_kernel(word),
        };
        let (seen, end) = if stays {
            (word, word.len())
        } else {
            (PATH, end)
        };
        shown.push_str(seen);
        rest = &path[end..];
    }
    shown.push_str(rest);
    shown
}

fn is_quote(character: char) -> bool {
    matches!(character, '\'' | '"')
}

/// Whether the text after a known path is harmless: punctuation, a line number, or a file that the
/// kernel has in each cgroup.
fn names_nobody(rest: &str) -> bool {
    let file = rest.strip_prefix('/').filter(|file| !file.contains('/'));
    let behind_line = match rest.strip_prefix(':') {
        Some(line) => line.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    behind_line.trim_end_matches(['.', ':']).is_empty()
        || file.is_some_and(|file| file.starts_with("hugetlb.") || file.starts_with("memory."))
}

/// The end of a path in quotes of sh or PostgreSQL. sh escapes `'` as `'\''`.
fn end_of_quoted(path: &str, quote: char) -> usize {
    const ESCAPED: &str = r"'\''";
    let mut from = 0;
    while let Some(next) = path[from..].find(quote) {
        let at = from + next;
        if !path[at..].starts_with(ESCAPED) {
            return at;
        }
        from = at + ESCAPED.len();
    }
    path.len()
}

/// The end of a path without quotes: punctuation before a blank, or an operator of sh. Blanks alone
/// can be part of the path.
fn end_of_clause(text: &str) -> usize {
    let is_end = |(index, character): &(usize, char)| {
        let next = text[index + character.len_utf8()..].chars().next();
        match character {
            '\n' => true,
            ':' | ',' | ';' | ')' => next.is_none_or(|next| " \n:,;).".contains(next)),
            ' ' => next.is_some_and(|next| "&|<>".contains(next)),
            _ => false,
        }
    };
    let end = text.char_indices().find(is_end);
    end.map_or(text.len(), |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_removed_unless_they_are_the_same_on_every_machine() {
        let redaction = Redaction(vec!["/sys/fs/cgroup/the lab".to_owned()]);
        for (text, shown) in [
            ("cgroup /sys/fs/cgroup/the lab would", "cgroup [path] would"),
            ("echo 5 > '/srv/x/y'", "echo 5 > '[path]'"),
            (
                "in /etc/pg.conf: huge_pages = 'try'",
                "in [path]: huge_pages = 'try'",
            ),
            (
                "(umask 022 && echo 'a' >> /etc/sysctl.d/a.conf)",
                "(umask 022 && echo 'a' >> [path])",
            ),
            (
                "echo 5 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
                "echo 5 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
            ),
            (
                "sed -i 's/^vm = 5$/vm = 6/' /etc/a",
                "sed -i 's/^vm = 5$/vm = 6/' [path]",
            ),
            (
                "/proc/4711/maps may not be read",
                "/proc/4711/maps may not be read",
            ),
            ("and/or / or /", "and/or / or /"),
            ("/proc/cmdlines/of/a", "[path]"),
            ("", ""),
        ] {
            assert_eq!(redaction.text(text), shown);
        }
    }

    #[test]
    fn paths_with_blanks_are_removed_completely() {
        let redaction = Redaction(vec!["/sys/fs/cgroup/the lab".to_owned()]);
        for (text, shown) in [
            ("cat '/srv/my data/x y' 5", "cat '[path]' 5"),
            (
                "could not open \"/srv/my data/x\": no",
                "could not open \"[path]\": no",
            ),
            (
                r"echo a > '/srv/it'\''s my data/x' && b",
                "echo a > '[path]' && b",
            ),
            ("cat '/srv/my data", "cat '[path]"),
            (
                "in /srv/my app/pg.conf: huge_pages = 'try'",
                "in [path]: huge_pages = 'try'",
            ),
            ("(see /srv/my app/pg.conf) b", "(see [path]) b"),
            ("/srv/my data is missing", "[path]"),
            ("a,/srv/my data/x,y, b", "a,[path], b"),
            ("cat /srv/my data/x > b", "cat [path] > b"),
            // Begins like a known path.
            ("group /sys/fs/cgroup/the lab/my tenant", "group [path]"),
            (
                "group /sys/fs/cgroup/the laboratory b, c",
                "group [path], c",
            ),
            ("cat '/sys/fs/cgroup/the lab of/x y'", "cat '[path]'"),
            ("the group /sys/fs/cgroup/the lab: b", "the group [path]: b"),
            ("/sys/fs/cgroup/the lab:12 sets it", "[path]:12 sets it"),
            ("/sys/fs/cgroup/the lab5 sets it", "[path]"),
            (
                "echo 5 > '/sys/fs/cgroup/the lab/memory.max'",
                "echo 5 > '[path]/memory.max'",
            ),
            (
                "echo 5 > '/sys/fs/cgroup/the lab/a/memory.max'",
                "echo 5 > '[path]'",
            ),
        ] {
            assert_eq!(redaction.text(text), shown);
        }
    }
}
