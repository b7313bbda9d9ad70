//! Words about huge pages on the kernel command line (mm/hugetlb.c `hugepages_setup`,
//! `hugepagesz_setup`, `default_hugepagesz_setup`; lib/cmdline.c `next_arg`). Lines that kernel
//! versions read differently are not interpreted: their result is unknown.

use super::entry::{COMMAND_LINE, Kernel, NOT_A_NUMBER, Place, Request, SETS_POOL, Unknown, Words};
use crate::units::parse_size;

struct Parameter<'l> {
    word: &'l str,
    /// Name and value without quotes. The kernel does not distinguish dashes and underscores.
    name: String,
    value: String,
}

/// Returns the parameters before `--`. All others are arguments of the first process. A blank
/// within quotes does not separate words.
fn parameters(line: &str) -> impl Iterator<Item = Parameter<'_>> {
    let mut in_quotes = false;
    let is_end = move |c: char| {
        in_quotes ^= c == '"';
        c.is_ascii_whitespace() && !in_quotes
    };
    line.split(is_end)
        .filter(|word| !word.is_empty())
        .take_while(|word| *word != "--")
        .map(|word| {
            let plain = word.replace('"', "");
            let (name, value) = plain.split_once('=').unwrap_or((&plain, ""));
            Parameter {
                word,
                name: name.replace('-', "_"),
                value: value.to_owned(),
            }
        })
}

/// Evaluates a line. Returns the pages that it sets, and what might set pages.
pub(super) fn evaluate(line: &str, kernel: &Kernel) -> (Vec<Request>, Vec<Unknown>) {
    let (mut requests, mut all_unknown) = (Vec::new(), Vec::new());
    let mut add_unknown = |page_bytes, why| {
        all_unknown.push(Unknown {
            file: COMMAND_LINE.to_owned(),
            line: None,
            page_bytes,
            why,
        });
    };
    for p in parameters(line) {
        if p.name == "hugetlb_cma" {
            // Restricts what `hugepages=` allocates of the largest pages.
            let largest = kernel.sizes.iter().flatten().max();
            let why = "reserves memory for the largest pages (hugetlb_cma)";
            add_unknown(largest.copied(), why);
        } else if p.name.starts_with("sysctl") && p.name.contains("hugepages") {
            // fs/proc/proc_sysctl.c `process_sysctl_arg`
            add_unknown(kernel.default_bytes, SETS_POOL);
        }
    }
    let Some(pools) = pools(line, kernel) else {
        add_unknown(None, "has unusual parameters for huge pages");
        return (requests, all_unknown);
    };
    for (page_bytes, count, place) in pools {
        let page_bytes = Some(page_bytes);
        match plain_number(&count) {
            Some(pages) => requests.push(Request {
                page_bytes,
                pages,
                place,
            }),
            None if count.contains(':') => {
                add_unknown(page_bytes, "sets the pages of each NUMA node");
            }
            None => add_unknown(page_bytes, NOT_A_NUMBER),
        }
    }
    (requests, all_unknown)
}

/// Returns the page size, the value and the words of each `hugepages=`.
///
/// `None`: unknown, because words name a size that the kernel does not have, repeat a size, or
/// follow each other in an order that kernel versions read differently.
fn pools(line: &str, kernel: &Kernel) -> Option<Vec<(u64, String, Place)>> {
    let is_default = |p: &Parameter| p.name == "default_hugepagesz";
    let words: Vec<_> = parameters(line)
        .filter(|p| is_default(p) || matches!(&*p.name, "hugepages" | "hugepagesz"))
        .collect();
    let size_of = |p: &Parameter| {
        let known = kernel.sizes.as_ref()?;
        parse_size(&p.value, 1).filter(|bytes| known.contains(bytes))
    };
    let (mut pools, mut named) = (Vec::<(u64, String, Place)>::new(), Vec::new());
    let mut has_default = false;
    for (at, p) in words.iter().enumerate() {
        if p.name != "hugepages" {
            // Only `default_hugepagesz=X` followed by `hugepagesz=X` can name a size again.
            let bytes = size_of(p)?;
            if named.contains(&bytes) || is_default(p) && has_default {
                return None;
            }
            match is_default(p) {
                true => has_default = true,
                false => named.push(bytes),
            }
            continue;
        }
        let (page_bytes, text) = match at.checked_sub(1).map(|before| &words[before]) {
            None => (kernel.default_bytes?, p.word.to_owned()),
            Some(before) if before.name == "hugepages" => return None,
            Some(before) => (size_of(before)?, format!("{} {}", before.word, p.word)),
        };
        if pools.iter().any(|(bytes, ..)| *bytes == page_bytes) {
            return None;
        }
        let place = Place::new(COMMAND_LINE, 1, &text);
        pools.push((page_bytes, p.value.clone(), place));
    }
    Some(pools)
}

/// A line that also sets this number of pages, and the words to add.
pub(super) fn with_words(line: &str, page_bytes: u64, pages: u64) -> (String, Words) {
    let new = format!("hugepagesz={} hugepages={pages}", as_word(page_bytes));
    // Words after `--` are arguments of the first process.
    match line.split_once(" -- ") {
        Some((before, arguments)) => (
            format!("{before} {new} -- {arguments}"),
            Words {
                new: format!("{new} --"),
                instead_of: Some("--".to_owned()),
            },
        ),
        None => (
            format!("{line} {new}"),
            Words {
                new,
                instead_of: None,
            },
        ),
    }
}

/// Formats a page size.
fn as_word(page_bytes: u64) -> String {
    match page_bytes {
        bytes if bytes.is_multiple_of(1 << 30) => format!("{}G", bytes >> 30),
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        bytes => format!("{}K", bytes >> 10),
    }
}

/// Parses decimal digits. `None`: other characters, a leading zero, which means octal in some
/// places, or too large.
pub(super) fn plain_number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit());
    let is_octal = text.len() > 1 && text.starts_with('0');
    (is_plain && !is_octal).then(|| text.parse().ok())?
}
