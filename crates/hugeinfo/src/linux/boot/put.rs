//! Where a line has to stand so that it counts at the next boot.

use super::{
    NextBoot,
    drop_ins::{Content, DropIn, DropIns},
    glob,
    request::{Asked, Phase, Place, What},
};

/// Where to write a line for a pool. Below `/etc` alone: what lies elsewhere belongs to packages,
/// or is gone after a boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// In place of this line.
    Edit(Place),
    /// Into this file, which does not exist. Nor does one of its name elsewhere, which it would
    /// hide with all that it sets.
    New(String),
    /// No file does: lines of packages come first and last.
    Nowhere,
}

impl NextBoot {
    /// Where `vm.nr_hugepages = N` belongs, for pages of the default size.
    pub fn put_sysctl(&self) -> Put {
        let files = &self.sysctl.files;
        let winner = self.winner(Phase::Sysctl, |a| a.page_bytes.is_none());
        let at = winner.and_then(|place| position(files, place));
        let matters = |file: &DropIn| file.sets_a_pool || file.content == Content::Unread;
        let last = files.iter().rposition(matters);
        if let (Some(place), Some(at)) = (winner, at)
            && files[at].is_local
            && last == Some(at)
            && !names_a_pattern(place)
        {
            return Put::Edit(place.clone());
        }
        // What sysctl reads last has no name to come after.
        let last = match last.map(|last| &files[last]) {
            Some(file) if file.path == super::SYSCTL_CONF => match winner {
                Some(place) if place.file == file.path => return Put::Edit(place.clone()),
                _ => return Put::Nowhere,
            },
            Some(file) => file.name(),
            None => "",
        };
        Put::New(format!("/etc/sysctl.d/{}", name_after(last, &self.sysctl)))
    }

    /// Where `w /sys/kernel/mm/hugepages/hugepages-…kB/nr_hugepages - - - - N` belongs. `None`:
    /// systemd does not start this machine.
    pub fn put_tmpfiles(&self, page_bytes: u64) -> Option<Put> {
        let found = self.tmpfiles.as_ref()?;
        let of_size = |a: &Asked| match a.page_bytes {
            Some(bytes) => bytes == page_bytes,
            None => self.default_size() == page_bytes,
        };
        let is_pattern = |file: &DropIn| {
            let of_file = |a: &&Asked| of_size(a) && a.place.file == file.path;
            let mut asked = self.asked.iter().filter(of_file);
            asked.any(|a| names_a_pattern(&a.place) || a.what != What::Pages)
        };
        let files = &found.files;
        let own = self.asked.iter().find(|a| {
            a.phase == Phase::Tmpfiles
                && a.what == What::Pages
                && of_size(a)
                && a.page_bytes.is_some()
                && !names_a_pattern(&a.place)
        });
        let own = own.and_then(|a| Some((&a.place, position(files, &a.place)?)));
        let last = self.winner(Phase::Tmpfiles, of_size);
        Some(match (own, last) {
            // Of lines for one path the first counts; a pattern after it has the last word.
            (Some((place, at)), Some(last)) if files[at].is_local && last == place => {
                Put::Edit(place.clone())
            }
            (Some((place, at)), Some(last)) if last == place => {
                match name_before(files[at].name(), found) {
                    Some(name) => Put::New(format!("/etc/tmpfiles.d/{name}")),
                    None => Put::Nowhere,
                }
            }
            (Some(_), _) => Put::Nowhere,
            (None, _) => {
                let matters = |f: &&DropIn| is_pattern(f) || f.content == Content::Unread;
                let last = files.iter().rfind(matters).map_or("", DropIn::name);
                Put::New(format!("/etc/tmpfiles.d/{}", name_after(last, found)))
            }
        })
    }

    /// The line that counts today.
    fn winner(&self, phase: Phase, of_size: impl Fn(&Asked) -> bool) -> Option<&Place> {
        let is_set = |a: &&Asked| a.phase == phase && a.what == What::Pages && of_size(a);
        self.asked.iter().rfind(is_set).map(|a| &a.place)
    }
}

fn position(files: &[DropIn], place: &Place) -> Option<usize> {
    files.iter().position(|file| file.path == place.file)
}

/// In what comes before the value.
fn names_a_pattern(place: &Place) -> bool {
    glob::is_pattern(place.text.as_bytes())
}

/// A name that sorts before `first`, and that no file has.
fn name_before(first: &str, files: &DropIns) -> Option<String> {
    let is_free = |name: &&str| *name < first && files.files.iter().all(|f| f.name() != *name);
    let usual = ["hugepages.conf", "00-hugepages.conf"];
    usual.into_iter().find(is_free).map(str::to_owned)
}

/// A name that sorts after `last`, and that no file has.
fn name_after(last: &str, files: &DropIns) -> String {
    let is_free =
        |name: &String| name.as_str() > last && files.files.iter().all(|file| file.name() != name);
    let usual = ["hugepages.conf", "zz-hugepages.conf"].map(str::to_owned);
    // An underscore comes after the dot of `.conf`.
    let mut name = format!("{}_", last.strip_suffix(".conf").unwrap_or(last));
    while !is_free(&format!("{name}hugepages.conf")) {
        name.push('_');
    }
    usual
        .into_iter()
        .find(is_free)
        .unwrap_or_else(|| format!("{name}hugepages.conf"))
}
