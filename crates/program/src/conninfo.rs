//! Connection strings, which psql gets as they are. Every user of this host can see them in its
//! command line.

use std::net::Ipv6Addr;

/// Keywords of libpq whose values are not secret.
const PUBLIC: &str = "application_name channel_binding client_encoding connect_timeout dbname \
    gssencmode host hostaddr keepalives_idle krbsrvname load_balance_hosts max_protocol_version \
    min_protocol_version options passfile port require_auth requirepeer service sslcert \
    sslcertmode sslcrl sslkey sslmode sslnegotiation sslrootcert target_session_attrs \
    tcp_user_timeout user";

/// The connection string of a service.
pub(crate) fn of_service(name: &str) -> String {
    let name = name.replace('\\', r"\\").replace('\'', r"\'");
    format!("service='{name}'")
}

/// The connection string of `HOST`, `HOST:PORT` or `[HOST]:PORT`. A host can be a directory with
/// Unix sockets. `None`: it is not an address.
pub(crate) fn of_address(address: &str) -> Option<String> {
    let (host, port) = if let Some(rest) = address.strip_prefix('[') {
        rest.split_once(']')?
    } else if address.parse::<Ipv6Addr>().is_ok() {
        (address, "")
    } else {
        address.split_at(address.find(':').unwrap_or(address.len()))
    };
    let is_odd = |c: char| c.is_whitespace() || "=@[]'\\".contains(c);
    let is_name = host.starts_with('/') || !host.contains('/');
    if host.is_empty() || host.contains(is_odd) || !is_name {
        return None;
    }
    if port.is_empty() {
        return Some(format!("host={host}"));
    }
    let digits = port.strip_prefix(':')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| format!("host={host} port={digits}"))
}

/// True if no part of a connection string can be a secret. Rejects more than libpq: quotes,
/// backslashes, and percent signs in a URI, because they could hide a keyword.
pub(crate) fn is_public(conninfo: &str) -> bool {
    if conninfo.contains(['\'', '\\']) {
        return false;
    }
    let Some((scheme, rest)) = conninfo.split_once("://") else {
        return conninfo.split_whitespace().all(is_public_pair);
    };
    // The user name can contain any character by mistake, also those that begin the next part.
    let (user, _) = rest.rsplit_once('@').unwrap_or_default();
    ["postgres", "postgresql"].contains(&scheme)
        && !user.contains(':')
        && !rest.contains(|c: char| c == '%' || c.is_whitespace())
        && rest.split(['?', '&']).skip(1).all(is_public_pair)
}

fn is_public_pair(pair: &str) -> bool {
    let keyword = pair.split_once('=').map(|(keyword, _)| keyword);
    keyword.is_some_and(|keyword| PUBLIC.split(' ').any(|public| public == keyword))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hosts_with_or_without_a_port() {
        for (address, expected) in [
            ("db1", Some("host=db1")),
            ("db1:5433", Some("host=db1 port=5433")),
            ("10.0.0.1:5433", Some("host=10.0.0.1 port=5433")),
            ("::1", Some("host=::1")),
            ("[fe80::1%eth0]:5433", Some("host=fe80::1%eth0 port=5433")),
            ("[::1]", Some("host=::1")),
            ("/run/a:5433", Some("host=/run/a port=5433")),
            ("/run/a'b", None),
            ("/run/a\\", None),
            ("user:secret", None),
            ("user:secret@db1", None),
            ("user@db1", None),
            ("password=secret", None),
            ("postgres://db1", None),
            ("db1:", None),
            (":5433", None),
            ("[::1]5433", None),
            ("[::1", None),
            ("a b", None),
            ("", None),
        ] {
            assert_eq!(of_address(address).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn names_of_services_are_quoted() {
        assert_eq!(of_service(r"it's a\b"), r"service='it\'s a\\b'");
    }

    #[test]
    fn only_known_keywords_are_public() {
        for conninfo in [
            "host=db",
            "  host=db\tport=5433 ",
            "host=/run options=-ca.b=c sslmode=require",
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
            "host= password=x",
            "host=db password = x",
            "host='db'password=x",
            r"host=db\\ password=x",
            r"host='db\\'password=x'",
            r"sslkey=/k\ password=x sslmode=require",
            "options='-c a.b=c'",
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
            "host=db dbname=postgres://u:x@db",
            "postgres://db/ password=x",
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
