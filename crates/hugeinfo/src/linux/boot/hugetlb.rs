//! What the kernel makes of the words about huge pages on its command line (mm/hugetlb.c
//! `hugepages_setup`, `hugepagesz_setup`, `default_hugepagesz_setup`, `hugetlb_init`; 5.8 and
//! later).

use std::{
    collections::{BTreeMap, TryReserveError},
    mem,
};

use super::{
    cma::Cma,
    command_line::{Parameter, parameters},
    kernel::Kernel,
    number::{parse_memory, scan_decimal},
    request::{Asked, Dropped, Phase, Place, What, Why},
};
use crate::linux::growth::TryPush;

/// The parameters that each say something of those that stand behind them.
pub(super) const WORDS: [&str; 3] = ["hugepages", "hugepagesz", "default_hugepagesz"];

/// What a command line asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// `default_hugepagesz=`, where it is valid.
    pub default_bytes: Option<u64>,
    /// What takes effect.
    pub asked: Vec<Asked>,
    /// What does not.
    pub dropped: Vec<Dropped>,
}

/// Reads a command line as `kernel` does. `file` is where it stands.
pub fn parse_command_line(
    line: &[u8],
    file: &str,
    kernel: &Kernel,
) -> Result<CommandLine, TryReserveError> {
    let mut parser = Parser {
        kernel,
        file,
        slots: vec![Slot::default()],
        parsed: IMPLICIT,
        last: None,
        default: None,
        is_valid: true,
        dropped: Vec::new(),
    };
    let mut cma = Cma::default();
    let mut count = 0;
    for parameter in parameters(line) {
        cma.take(parameter, kernel);
        let Some(at) = WORDS.iter().position(|name| parameter.is(name)) else {
            continue;
        };
        let Some(value) = parameter.value else {
            continue;
        };
        count += 1;
        let most = kernel.most_words();
        if kernel.notes_words() && count > most {
            parser.drop_word(parser.place(parameter), None, Why::TooMany(most))?;
            continue;
        }
        match at {
            0 => parser.pages(parameter, value)?,
            1 => parser.size(parameter, value)?,
            _ => parser.default_size(parameter, value)?,
        }
    }
    parser.finish(&cma)
}

/// The first slot stands for `default_hstate_max_huge_pages`: pages of a size not known yet.
const IMPLICIT: usize = 0;

#[derive(Debug, Default)]
struct Slot {
    bytes: u64,
    /// `max_huge_pages`, which the nodes' numbers replace where there is one.
    pages: u64,
    by_node: BTreeMap<u32, u64>,
    /// Whose number it is.
    place: Option<Place>,
    /// Before 6.15, gigantic pages are made at once, and again for each number.
    made: u64,
    made_by_node: BTreeMap<u32, u64>,
}

struct Parser<'k> {
    kernel: &'k Kernel,
    file: &'k str,
    slots: Vec<Slot>,
    /// `parsed_hstate`.
    parsed: usize,
    /// `last_mhp`.
    last: Option<usize>,
    /// `default_hstate_idx`, once named.
    default: Option<usize>,
    /// `parsed_valid_hugepagesz`.
    is_valid: bool,
    dropped: Vec<Dropped>,
}

impl Parser<'_> {
    fn place(&self, parameter: Parameter<'_>) -> Place {
        Place::new(self.file, parameter.number, &parameter.text())
    }

    fn drop_word(
        &mut self,
        place: Place,
        bytes: Option<u64>,
        why: Why,
    ) -> Result<(), TryReserveError> {
        self.dropped.try_push(Dropped {
            place,
            page_bytes: bytes.filter(|&bytes| bytes > 0),
            why,
        })
    }

    fn pages(&mut self, parameter: Parameter<'_>, value: &[u8]) -> Result<(), TryReserveError> {
        let place = self.place(parameter);
        if !mem::replace(&mut self.is_valid, true) {
            return self.drop_word(place, None, Why::NoSuchSize);
        }
        let (at, bytes) = (self.parsed, self.slots[self.parsed].bytes);
        if self.last == Some(at) {
            return self.drop_word(place, Some(bytes), Why::Repeated);
        }
        let slot = &mut self.slots[at];
        if slot.take(value, self.kernel).is_none() {
            slot.pages = 0;
            slot.by_node.clear();
            slot.place = None;
            return self.drop_word(place, Some(bytes), Why::Malformed);
        }
        self.last = Some(at);
        if value.is_empty() {
            self.drop_word(place, Some(bytes), Why::Malformed)?;
        } else {
            self.set_place(at, place)?;
        }
        self.make(at);
        Ok(())
    }

    /// The slot's number is now that of `place`.
    fn set_place(&mut self, at: usize, place: Place) -> Result<(), TryReserveError> {
        let adds = self.is_made_at_once(at);
        let slot = &mut self.slots[at];
        let bytes = slot.bytes;
        match slot.place.replace(place.clone()) {
            Some(older) if !adds => self.drop_word(older, Some(bytes), Why::Overridden(place)),
            _ => Ok(()),
        }
    }

    fn is_made_at_once(&self, at: usize) -> bool {
        at != IMPLICIT
            && !self.kernel.notes_words()
            && self.kernel.is_gigantic(self.slots[at].bytes)
    }

    /// `hugetlb_hstate_alloc_pages`.
    fn make(&mut self, at: usize) {
        if !self.is_made_at_once(at) {
            return;
        }
        let slot = &mut self.slots[at];
        if slot.by_node.values().any(|&pages| pages > 0) {
            for (&node, &pages) in &slot.by_node {
                let made = slot.made_by_node.entry(node).or_default();
                *made = made.saturating_add(pages);
            }
        } else {
            slot.made = slot.made.saturating_add(slot.pages);
        }
    }

    /// The slot of a size that the architecture has.
    fn slot_of(&self, value: &[u8]) -> Option<(u64, Option<usize>)> {
        let bytes = parse_memory(value).0;
        let at = self.slots.iter().skip(1).position(|s| s.bytes == bytes);
        self.kernel
            .has_size(bytes)
            .then_some((bytes, at.map(|at| at + 1)))
    }

    /// `hugetlb_add_hstate`.
    fn add(&mut self, bytes: u64) -> Result<usize, TryReserveError> {
        let slot = Slot {
            bytes,
            ..Slot::default()
        };
        self.parsed = self.slots.len();
        self.slots.try_push(slot)?;
        Ok(self.parsed)
    }

    fn size(&mut self, parameter: Parameter<'_>, value: &[u8]) -> Result<(), TryReserveError> {
        self.is_valid = false;
        match self.slot_of(value) {
            None => return self.drop_word(self.place(parameter), None, Why::NoSuchSize),
            Some((bytes, Some(at))) => {
                if self.default != Some(at) || self.slots[at].pages > 0 {
                    let place = self.place(parameter);
                    return self.drop_word(place, Some(bytes), Why::Repeated);
                }
                self.parsed = at;
            }
            Some((bytes, None)) => {
                self.add(bytes)?;
            }
        }
        self.is_valid = true;
        Ok(())
    }

    fn default_size(
        &mut self,
        parameter: Parameter<'_>,
        value: &[u8],
    ) -> Result<(), TryReserveError> {
        self.is_valid = false;
        if self.default.is_some() {
            return self.drop_word(self.place(parameter), None, Why::Repeated);
        }
        let Some((bytes, at)) = self.slot_of(value) else {
            return self.drop_word(self.place(parameter), None, Why::NoSuchSize);
        };
        // A size that is there already does not become the one that hugepages= means.
        let at = match at {
            Some(at) => at,
            None => self.add(bytes)?,
        };
        self.is_valid = true;
        self.default = Some(at);
        self.take_implicit(at)
    }

    /// What stands before any size is for the default size, and replaces what was said of that.
    fn take_implicit(&mut self, at: usize) -> Result<(), TryReserveError> {
        let pages = mem::take(&mut self.slots[IMPLICIT].pages);
        if pages == 0 {
            return Ok(());
        }
        if let Some(place) = self.slots[IMPLICIT].place.take() {
            self.set_place(at, place)?;
        }
        let by_node = self.slots[IMPLICIT].by_node.clone();
        let slot = &mut self.slots[at];
        slot.pages = pages;
        if self.kernel.notes_words() {
            slot.by_node.extend(by_node.into_iter().filter(|n| n.1 > 0));
        } else {
            slot.by_node = by_node;
        }
        self.make(at);
        Ok(())
    }

    /// `hugetlb_init`.
    fn finish(mut self, cma: &Cma) -> Result<CommandLine, TryReserveError> {
        let hpage = self.kernel.hpage_bytes;
        if self.default.is_none() {
            let at = self.slots.iter().skip(1).position(|s| s.bytes == hpage);
            let at = match at {
                Some(at) => at + 1,
                None => self.add(hpage)?,
            };
            if self.slots[IMPLICIT].pages > 0 {
                self.slots[at].by_node.clear();
            } else if self.slots[at].place.is_none() {
                // A nought says something only where nothing else does.
                self.slots[at].place = self.slots[IMPLICIT].place.take();
            }
            self.take_implicit(at)?;
        }
        let mut asked = Vec::new();
        let reserved = cma.reserved(self.kernel);
        for slot in &mut self.slots[1..] {
            let Some(place) = slot.place.take() else {
                continue;
            };
            let is_gigantic = self.kernel.is_gigantic(slot.bytes);
            if is_gigantic && !self.kernel.notes_words() {
                slot.pages = slot.made;
                slot.by_node = mem::take(&mut slot.made_by_node);
            }
            if let Some(reserved) = reserved.as_ref().filter(|_| is_gigantic) {
                if !reserved.is_used_at_boot {
                    self.dropped.try_push(Dropped {
                        place,
                        page_bytes: Some(slot.bytes),
                        why: Why::Cma,
                    })?;
                    continue;
                }
                slot.pages = slot.pages.min(reserved.pages);
                for (node, pages) in &mut slot.by_node {
                    if let Some(most) = reserved.by_node.get(node) {
                        *pages = (*pages).min(*most);
                    }
                }
            }
            let request = |what, pages| Asked {
                page_bytes: Some(slot.bytes),
                what,
                pages,
                phase: Phase::CommandLine,
                place: place.clone(),
            };
            // Before 6.15 both can have been made, one after the other.
            let is_by_node = slot.by_node.values().any(|&pages| pages > 0);
            if !is_by_node || (is_gigantic && !self.kernel.notes_words() && slot.pages > 0) {
                asked.try_push(request(What::Pages, slot.pages))?;
            }
            for (&node, &pages) in slot.by_node.iter().filter(|(_, pages)| **pages > 0) {
                asked.try_push(request(What::PagesOfNode(node), pages))?;
            }
        }
        Ok(CommandLine {
            default_bytes: self.default.map(|at| self.slots[at].bytes),
            asked,
            dropped: self.dropped,
        })
    }
}

impl Slot {
    /// `hugepages_setup`. `None`: what it finds is no number, or no node.
    fn take(&mut self, value: &[u8], kernel: &Kernel) -> Option<()> {
        if !kernel.knows_nodes() {
            self.pages = scan_decimal(value).map_or(0, |(pages, _)| pages);
            return Some(());
        }
        let mut rest = value;
        while !rest.is_empty() {
            let (number, after) = scan_decimal(rest)?;
            let Some(after) = after.strip_prefix(b":") else {
                if rest.len() < value.len() {
                    return None;
                }
                self.pages = number;
                return Some(());
            };
            let node = kernel.has_node(number)?;
            let (pages, after) = scan_decimal(after)?;
            self.by_node.insert(node, pages);
            self.pages = self.pages.wrapping_add(pages);
            let Some(after) = after.strip_prefix(b",") else {
                return Some(());
            };
            rest = after;
        }
        Some(())
    }
}
