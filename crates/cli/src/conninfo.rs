//! Connection strings for psql. Every user of this host can see them in its command line.

use std::net::Ipv6Addr;

/// Keywords of libpq whose values are not secret.
const PUBLIC: &[&str] = &[
    "application_name",
    "channel_binding",
    "client_encoding",
    "connect_timeout",
    "dbname",
    "fallback_application_name",
    "gssdelegation",
    "gssencmode",
    "gsslib",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "krbsrvname",
    "load_balance_hosts",
    "max_protocol_version",
    "min_protocol_version",
    "options",
    "passfile",
    "port",
    "require_auth",
    "requirepeer",
    "service",
    "servicefile",
    "ssl",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcert",
    "sslcertmode",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslkey",
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "sslsni",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

/// The connection string of a service.
pub(crate) fn of_service(name: &str) -> String {
    pair("service", name)
}

/// The connection string of `HOST`, `HOST:PORT` or `[HOST]:PORT`. A host can be a directory with
/// Unix sockets. `None`: it is not an address.
pub(crate) fn of_address(address: &str) -> Option<String> {
    let (host, port) = if let Some(rest) = address.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        match rest {
            "" => (host, None),
            _ => (host, Some(rest.strip_prefix(':')?)),
        }
    } else if address.parse::<Ipv6Addr>().is_ok() {
        (address, None)
    } else {
        match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        }
    };
    let is_odd = |c: char| c.is_whitespace() || "=@[]".contains(c);
    let is_host = !host.is_empty() && !host.contains(is_odd);
    let is_name = host.starts_with('/') || !host.contains('/');
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if !is_host || !is_name || !port.is_none_or(is_port) {
        return None;
    }
    let host = pair("host", host);
    Some(match port {
        Some(port) => format!("{host} {}", pair("port", port)),
        None => host,
    })
}

fn pair(keyword: &str, value: &str) -> String {
    let value = value.replace('\\', r"\\").replace('\'', r"\'");
    format!("{keyword}='{value}'")
}

/// True if every keyword is known to be public. Refuses more than libpq would accept.
pub(crate) fn is_public(conninfo: &str) -> bool {
    // Anywhere, because a password can contain any character by mistake.
    if let Some((_, rest)) = decoded(conninfo).split_once("://")
        && let Some((user, _)) = rest.rsplit_once('@')
        && user.contains(':')
    {
        return false;
    }
    let mut prefixes = ["postgres://", "postgresql://"].into_iter();
    if prefixes.any(|prefix| conninfo.starts_with(prefix)) {
        // The name of a user can also contain a `?`.
        return conninfo
            .split('?')
            .skip(1)
            .flat_map(|parameters| parameters.split('&'))
            .filter(|parameter| !parameter.is_empty())
            .map(|parameter| parameter.split_once('=').unwrap_or((parameter, "")))
            .all(|(keyword, _)| PUBLIC.contains(&decoded(keyword).as_str()));
    }
    keywords(conninfo)
        .is_some_and(|keywords| keywords.iter().all(|keyword| PUBLIC.contains(keyword)))
}

/// The keywords of `keyword = value` pairs, as `conninfo_parse` in libpq finds them. `None`: libpq
/// would reject the string.
fn keywords(conninfo: &str) -> Option<Vec<&str>> {
    let mut keywords = Vec::new();
    let mut rest = conninfo.trim_start_matches(is_blank);
    while !rest.is_empty() {
        let (keyword, value) = rest.split_once('=')?;
        keywords.push(keyword.trim_end_matches(is_blank));
        rest = after_value(value.trim_start_matches(is_blank))?.trim_start_matches(is_blank);
    }
    Some(keywords)
}

/// The text after the value at the start. `None`: a quote is missing.
fn after_value(text: &str) -> Option<&str> {
    let is_quoted = text.starts_with('\'');
    let mut characters = text.char_indices().skip(usize::from(is_quoted));
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '\'' if is_quoted => return Some(&text[at + 1..]),
            _ if !is_quoted && is_blank(character) => return Some(&text[at..]),
            _ => {}
        }
    }
    (!is_quoted).then_some("")
}

/// As `isspace` in the C locale.
fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t'..='\r')
}

/// Decodes `%HH`. Leaves anything else as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let byte = digits
            .and_then(|digits| str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hosts_with_or_without_a_port() {
        for (address, expected) in [
            ("db1", Some("host='db1'")),
            ("db1:5433", Some("host='db1' port='5433'")),
            ("10.0.0.1:5433", Some("host='10.0.0.1' port='5433'")),
            ("::1", Some("host='::1'")),
            (
                "[fe80::1%eth0]:5433",
                Some("host='fe80::1%eth0' port='5433'"),
            ),
            ("[::1]", Some("host='::1'")),
            ("/run/a'b\\c:5433", Some(r"host='/run/a\'b\\c' port='5433'")),
            ("user:secret", None),
            ("user:secret@db1", None),
            ("user@db1", None),
            ("password=secret", None),
            ("postgres://db1", None),
            ("db1:", None),
            (":5433", None),
            ("[::1]5433", None),
            ("a b", None),
            ("", None),
        ] {
            assert_eq!(of_address(address).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn only_known_keywords_are_public() {
        for conninfo in [
            "host=db",
            "  host = db\tport =5433 ",
            r"host='a b' options='-c a.b=c\'d' sslkey=/k\ password=x sslmode=require",
            "host= password=x",
            "postgres://u@db:5433/d",
            "postgresql://u@db1,db2/d?sslmode=require&target_session_attrs=any",
            "postgres:///?host=/run",
        ] {
            assert!(is_public(conninfo), "{conninfo}");
        }
        for conninfo in [
            "password=x",
            "host=db PASSWORD=x",
            "host=db\x0bpassword=x",
            "host='db'password=x",
            r"host=db\\ password=x",
            r"host='db\\'password=x'",
            "host=db password",
            "host='db password=x",
            "host=db\u{a0}x password=x",
            "host=db scram_client_key=x",
            "host=db later=x",
            "postgres://u:x@db",
            "postgres://u:@db",
            "postgres://u:x/y@db",
            "postgres://u:x?y@db",
            "postgres://u%3Ax@db",
            "postgres://u%40v:x@db",
            "POSTGRES://u:x@db",
            "dbname=postgres://u:x@db",
            "postgres://db/?password=x",
            "postgres://db/?pass%77ord=x",
            "postgres://db/?user=u&password=x",
            "postgres://db/d%3Fuser=u?password=x",
            "postgres://u?user=v@db?password=x",
            "db1 db2",
        ] {
            assert!(!is_public(conninfo), "{conninfo}");
        }
    }
}
