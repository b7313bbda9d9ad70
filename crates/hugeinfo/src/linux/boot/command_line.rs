//! The kernel's command line, as the kernel takes it apart (lib/cmdline.c `next_arg`,
//! kernel/params.c `parse_args`).

use super::number::is_blank;

/// One parameter of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter<'a> {
    /// Which word it is, from 1.
    pub number: usize,
    /// What stands before the `=`.
    pub name: &'a [u8],
    /// What stands after it, without its quotes. `None`: there is no `=`.
    pub value: Option<&'a [u8]>,
}

impl Parameter<'_> {
    /// Dashes and underscores are the same to the kernel (kernel/params.c `parameqn`).
    pub fn is(&self, name: &str) -> bool {
        let same = |(a, b): (&u8, u8)| *a == b || (*a == b'-' && b == b'_');
        self.name.len() == name.len() && self.name.iter().zip(name.bytes()).all(same)
    }

    /// Without quotes: `name=value`.
    pub(super) fn text(&self) -> Vec<u8> {
        match self.value {
            Some(value) => [self.name, b"=", value].concat(),
            None => self.name.to_vec(),
        }
    }

    fn is_end(&self) -> bool {
        self.value.is_none() && self.name == b"--"
    }
}

/// The parameters up to `--`, behind which they are those of the first process.
pub(crate) fn parameters(line: &[u8]) -> impl Iterator<Item = Parameter<'_>> {
    words(line)
        .zip(1..)
        .map(|(word, number)| parameter(word, number))
        .take_while(|p| !p.is_end())
}

/// The line with one word in place of the first of those, or at the end of what is the kernel's.
/// The words are named as [`Parameter`]s: without quotes.
pub(super) fn edited(line: &[u8], old: &[String], new: &str) -> Vec<u8> {
    let mut old: Vec<&str> = old.iter().map(String::as_str).collect();
    let mut new = Some(new.as_bytes());
    let is_in_place = !old.is_empty();
    let mut all: Vec<&[u8]> = Vec::new();
    let mut is_ours = true;
    for word in words(line) {
        let parameter = parameter(word, 0);
        if is_ours && parameter.is_end() {
            is_ours = false;
            all.extend(new.take_if(|_| !is_in_place));
        }
        let named = old
            .iter()
            .position(|old| is_ours && parameter.text() == old.as_bytes());
        match named {
            Some(at) => {
                old.remove(at);
                all.extend(new.take());
            }
            None => all.push(word),
        }
    }
    all.extend(new);
    all.join(&b' ')
}

/// Words end at a blank that stands outside quotes.
fn words(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let start = rest.iter().position(|&b| !is_blank(b))?;
        rest = &rest[start..];
        let mut in_quotes = false;
        let end = rest.iter().position(|&b| {
            in_quotes ^= b == b'"';
            is_blank(b) && !in_quotes
        });
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(word)
    })
}

fn parameter(word: &[u8], number: usize) -> Parameter<'_> {
    let (word, is_quoted) = match word.strip_prefix(b"\"") {
        Some(word) => (word, true),
        None => (word, false),
    };
    let without_end = |text: &'_ [u8]| text.len() - usize::from(text.ends_with(b"\""));
    // An equals sign in the first place starts no value.
    let equals = word
        .iter()
        .skip(1)
        .position(|&b| b == b'=')
        .map(|at| at + 1);
    let Some(equals) = equals else {
        let end = if is_quoted {
            without_end(word)
        } else {
            word.len()
        };
        return Parameter {
            number,
            name: &word[..end],
            value: None,
        };
    };
    let value = &word[equals + 1..];
    let value = match value.strip_prefix(b"\"") {
        Some(value) => &value[..without_end(value)],
        None if is_quoted => &value[..without_end(value)],
        None => value,
    };
    Parameter {
        number,
        name: &word[..equals],
        value: Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_quotes() {
        for (line, expected) in [
            ("", vec![]),
            (" quiet  a=b\n", vec![("quiet", None), ("a", Some("b"))]),
            (
                "foo=\"a hugepages=9 b\" c",
                vec![("foo", Some("a hugepages=9 b")), ("c", None)],
            ),
            (
                "\"hugepages=6\" q",
                vec![("hugepages", Some("6")), ("q", None)],
            ),
            ("\"a b\" c", vec![("a b", None), ("c", None)]),
            ("a=\"6\" b=\"", vec![("a", Some("6")), ("b", Some(""))]),
            ("a -- b=1", vec![("a", None)]),
            ("--=1 b", vec![("--", Some("1")), ("b", None)]),
            ("=a b==c", vec![("=a", None), ("b", Some("=c"))]),
        ] {
            let seen: Vec<_> = parameters(line.as_bytes())
                .map(|p| (p.name, p.value))
                .collect();
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(name, value)| (name.as_bytes(), value.map(str::as_bytes)))
                .collect();
            assert_eq!(seen, expected, "{line}");
        }
    }

    #[test]
    fn words_are_put_in() {
        for (line, old, expected) in [
            ("", &[][..], "new"),
            ("quiet \n", &[], "quiet new"),
            ("a -- b", &[], "a new -- b"),
            (
                "a \"x=1\"  b=\"2 3\" x=1\n",
                &["x=1"],
                "a new b=\"2 3\" x=1",
            ),
            ("x=1 a x=2 -- x=2", &["x=1", "x=2"], "new a -- x=2"),
        ] {
            let old: Vec<String> = old.iter().map(|&word| word.to_owned()).collect();
            let seen = edited(line.as_bytes(), &old, "new");
            assert_eq!(str::from_utf8(&seen), Ok(expected), "{line}");
        }
    }

    #[test]
    fn dashes_are_underscores() {
        let name = |name| Parameter {
            number: 1,
            name,
            value: None,
        };
        assert!(name(b"default-hugepagesz").is("default_hugepagesz"));
        assert!(name(b"hugetlb_cma").is("hugetlb_cma"));
        assert!(!name(b"huge-pages").is("hugepages"));
        assert!(!name(b"HUGEPAGES").is("hugepages"));
    }
}
