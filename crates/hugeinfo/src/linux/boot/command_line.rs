//! Words about huge pages on the kernel command line (mm/hugetlb.c `hugepages_setup`,
//! `hugepagesz_setup`, `default_hugepagesz_setup`; lib/cmdline.c `next_arg`).

use super::{
    NextBoot,
    entry::{COMMAND_LINE, Ignored, Place, Request, Scope, Unknown, What, WhyIgnored, WhyUnknown},
    number,
};

/// Page sizes of the running kernel, which is assumed to boot next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Sizes of its huge pages in bytes. `None`: unknown, any power of two is accepted.
    pub sizes: Option<Vec<u64>>,
    /// Default size in bytes. `None`: unknown.
    pub default_bytes: Option<u64>,
}

impl Kernel {
    /// Parses a page size that the kernel has, or returns the number without it.
    fn size(&self, text: &str) -> Result<u64, Option<u64>> {
        let bytes = number::size(text).ok_or(None)?;
        let is_known = match &self.sizes {
            Some(sizes) => sizes.contains(&bytes) || self.default_bytes == Some(bytes),
            None => bytes.is_power_of_two() && bytes > 4096,
        };
        if is_known {
            Ok(bytes)
        } else {
            Err(Some(bytes))
        }
    }

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

/// Splits a line into words. A blank within quotes does not separate words.
pub(super) fn split(line: &str) -> Vec<&str> {
    let mut in_quotes = false;
    let is_end = |c: char| {
        in_quotes ^= c == '"';
        c.is_ascii_whitespace() && !in_quotes
    };
    line.split(is_end).filter(|word| !word.is_empty()).collect()
}

/// One parameter of the kernel.
struct Parameter<'l> {
    number: usize,
    word: &'l str,
    /// Name and value without quotes. The kernel does not distinguish dashes and underscores.
    name: String,
    value: String,
}

/// Returns the parameters before `--`. All others are arguments of the first process.
fn parameters(line: &str) -> impl Iterator<Item = Parameter<'_>> {
    let own = split(line)
        .into_iter()
        .zip(1..)
        .take_while(|(word, _)| *word != "--");
    own.map(|(word, number)| {
        let plain = word.replace('"', "");
        let (name, value) = plain.split_once('=').unwrap_or((&plain, ""));
        Parameter {
            number,
            word,
            name: name.replace('-', "_"),
            value: value.to_owned(),
        }
    })
}

/// Returns the value of the last word with this name.
pub(super) fn value(line: &str, name: &str) -> Option<(String, Place)> {
    let last = parameters(line).filter(|p| p.name == name).last()?;
    Some((last.value, Place::new(COMMAND_LINE, last.number, last.word)))
}

/// Evaluates a line. If words contradict each other, kernel versions differ and the result is
/// unknown.
pub(super) fn evaluate(next: &mut NextBoot, line: &str, kernel: &Kernel) {
    let default = parameters(line)
        .filter(|p| p.name == "default_hugepagesz")
        .find_map(|p| kernel.size(&p.value).ok());
    let resolved = |page_bytes: Option<u64>| page_bytes.or(default).or(kernel.default_bytes);
    // The size that the next `hugepages=` sets: none if unknown, `Some(None)` for the default size.
    let mut current = Some(None);
    let mut rejected = None;
    let mut size_word = None;
    let mut named = Vec::new();
    let mut pool_words = 0;
    for p in parameters(line) {
        let is_default = p.name == "default_hugepagesz";
        let is_count = p.name == "hugepages";
        let is_pool_word = is_default || is_count || p.name == "hugepagesz";
        pool_words += usize::from(is_pool_word);
        let unknown = |scope, why| Unknown::new(COMMAND_LINE, Some(p.number), scope, why);
        let size = size_word.filter(|_| is_count).into_iter();
        let words: Vec<&str> = size.chain([p.word]).collect();
        let place = Place::new(COMMAND_LINE, p.number, &words.join(" "));
        if p.name == "hugetlb_cma" {
            next.unknown
                .push(unknown(kernel.largest(), WhyUnknown::Cma));
        } else if is_pool_sysctl(&p.name) {
            next.unknown
                .push(unknown(Scope::DefaultSize, WhyUnknown::SetsPool));
        } else if is_pool_word && pool_words > kernel.most_words() {
            next.unknown
                .push(unknown(Scope::AnySize, WhyUnknown::Repeated));
        } else if is_count {
            let is_equal = next.requests.iter().any(|r| r.place.text == place.text);
            let is_same = |r: &Request| resolved(r.page_bytes) == resolved(current.flatten());
            let is_repeated = current.is_none() || next.requests.iter().any(is_same);
            let page_bytes = current.flatten();
            match number::decimal(&p.value) {
                _ if rejected.is_some() => {
                    let bytes = rejected.take().flatten();
                    next.ignored
                        .push(Ignored::new(place, bytes, WhyIgnored::NoSuchSize));
                    // A second `hugepages=` would set an earlier size.
                    current = None;
                }
                _ if is_equal => {
                    next.ignored
                        .push(Ignored::new(place, page_bytes, WhyIgnored::Repeated))
                }
                _ if is_repeated => next
                    .unknown
                    .push(unknown(Scope::AnySize, WhyUnknown::Repeated)),
                None => {
                    next.ignored
                        .push(Ignored::new(place, page_bytes, WhyIgnored::Malformed));
                    current = None;
                }
                Some((_, rest)) if rest.starts_with([':', ',']) => {
                    let scope = page_bytes.map_or(Scope::DefaultSize, Scope::Size);
                    next.unknown.push(unknown(scope, WhyUnknown::PerNode));
                }
                // The kernel ignores other text after the number.
                Some((pages, _)) => next.requests.push(Request {
                    page_bytes,
                    what: What::Pages,
                    pages,
                    place,
                }),
            }
        } else if is_pool_word {
            size_word = Some(p.word);
            let size = kernel.size(&p.value);
            rejected = size.err();
            match size {
                Err(bytes) if is_default => {
                    next.ignored
                        .push(Ignored::new(place, bytes, WhyIgnored::NoSuchSize));
                }
                Err(_) => {}
                Ok(bytes) => {
                    let is_second = is_default && next.default_page_bytes.is_some();
                    let is_new = !is_second && !named.contains(&bytes);
                    current = is_new.then_some(Some(bytes));
                    if is_default {
                        next.default_page_bytes.get_or_insert(bytes);
                    } else {
                        named.push(bytes);
                    }
                }
            }
        }
    }
}

/// True for `sysctl.vm.nr_hugepages` and the like (fs/proc/proc_sysctl.c `process_sysctl_arg`).
fn is_pool_sysctl(name: &str) -> bool {
    let key = name.strip_prefix("sysctl").unwrap_or_default();
    key.starts_with(['.', '/']) && key.contains("hugepages")
}
