//! Words about huge pages on the kernel command line (mm/hugetlb.c `hugepages_setup`,
//! `hugepagesz_setup`, `default_hugepagesz_setup`; lib/cmdline.c `next_arg`). Lines that kernel
//! versions read differently are not interpreted: their result is unknown.

use super::{
    NextBoot,
    entry::{COMMAND_LINE, Place, Request, Scope, Unknown, WhyUnknown},
};

/// Page sizes of the running kernel, which is assumed to boot next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Sizes of its huge pages in bytes. `None`: unknown.
    pub sizes: Option<Vec<u64>>,
    /// Default size in bytes, after `default_hugepagesz=`. `None`: unknown.
    pub default_bytes: Option<u64>,
}

impl Kernel {
    /// The pools that `hugetlb_cma=` affects: those of the largest size.
    fn largest(&self) -> Scope {
        let largest = self.sizes.iter().flatten().max();
        largest.map_or(Scope::AnySize, |&bytes| Scope::Size(bytes))
    }

    /// Maximum number of words about pools (`HUGE_MAX_CMDLINE_ARGS`, Linux 6.15).
    fn most_words(&self) -> usize {
        2 * self.sizes.as_ref().map_or(2, Vec::len).max(2) + 1
    }
}

/// One parameter of the kernel.
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

/// Returns the value of the last word with this name.
pub(super) fn value(line: &str, name: &str) -> Option<(String, Place)> {
    let last = parameters(line).filter(|p| p.name == name).last()?;
    Some((last.value, Place::new(COMMAND_LINE, 1, last.word)))
}

/// Evaluates a line.
pub(super) fn evaluate(next: &mut NextBoot, line: &str, kernel: &Kernel) {
    let unknown = |scope, why| Unknown::new(COMMAND_LINE, None, scope, why);
    for p in parameters(line) {
        if p.name == "hugetlb_cma" {
            next.unknown
                .push(unknown(kernel.largest(), WhyUnknown::Cma));
        } else if p.name.starts_with("sysctl") && p.name.contains("hugepages") {
            // fs/proc/proc_sysctl.c `process_sysctl_arg`
            next.unknown
                .push(unknown(Scope::DefaultSize, WhyUnknown::SetsPool));
        }
    }
    let Some(pools) = pools(line, kernel) else {
        next.unknown
            .push(unknown(Scope::AnySize, WhyUnknown::Unusual));
        return;
    };
    for (page_bytes, count, place) in pools {
        match plain_number(&count) {
            Some(pages) => next.requests.push(Request {
                page_bytes: Some(page_bytes),
                pages,
                place,
            }),
            None => {
                let why = match count.contains(':') {
                    true => WhyUnknown::PerNode,
                    false => WhyUnknown::NotANumber,
                };
                next.unknown.push(unknown(Scope::Size(page_bytes), why));
            }
        }
    }
}

/// Returns the page size, the value and the words of each `hugepages=` that the kernel accepts.
///
/// `None`: unknown, because words repeat a page size or follow each other in an order that kernel
/// versions read differently.
fn pools(line: &str, kernel: &Kernel) -> Option<Vec<(u64, String, Place)>> {
    let is_default = |p: &Parameter| p.name == "default_hugepagesz";
    let words: Vec<_> = parameters(line)
        .filter(|p| is_default(p) || matches!(&*p.name, "hugepages" | "hugepagesz"))
        .collect();
    let (mut pools, mut named, mut counted) = (Vec::new(), Vec::new(), Vec::new());
    let mut has_default = false;
    for (at, p) in words.iter().enumerate() {
        if p.name != "hugepages" {
            // Only `default_hugepagesz=X` followed by `hugepagesz=X` can name a size again.
            let bytes = size(&p.value)?;
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
            Some(before) => (size(&before.value)?, format!("{} {}", before.word, p.word)),
        };
        if counted.contains(&page_bytes) {
            return None;
        }
        counted.push(page_bytes);
        // The kernel ignores a size that it does not have, and the number that follows.
        if kernel.sizes.as_ref()?.contains(&page_bytes) {
            let place = Place::new(COMMAND_LINE, 1, &text);
            pools.push((page_bytes, p.value.clone(), place));
        }
    }
    (words.len() <= kernel.most_words()).then_some(pools)
}

/// Parses a size such as `2M`, `1GB` or `2048k` (lib/cmdline.c `memparse`). `None`: another
/// notation, such as octal or hexadecimal numbers.
fn size(text: &str) -> Option<u64> {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    let number = plain_number(&text[..end])?;
    let shift = match text[end..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" | "KB" => 10,
        "M" | "MB" => 20,
        "G" | "GB" => 30,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

/// Parses decimal digits. `None`: other characters, a leading zero, which means octal in some
/// places, or too large.
pub(super) fn plain_number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit());
    let is_octal = text.len() > 1 && text.starts_with('0');
    (is_plain && !is_octal).then(|| text.parse().ok())?
}
