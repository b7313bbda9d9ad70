# Systems of Debian for tests, each in a directory. What is downloaded and compiled
# is kept in $cache.

cache=${XDG_CACHE_HOME:-$HOME/.cache}/pg_hugeinfo/machines
# A place for a whole system. On some machines /tmp is in memory, where it would take gigabytes.
export TMPDIR=/var/tmp

# A minimal system that finds its packages, and keeps them.
unpack_base() { # SUITE ROOT
    local mirror
    rm -rf "$2"
    mkdir "$2"
    tar -C "$2" -xf "$cache/$1/base.tar"
    read -r _ mirror _ <"$2/etc/apt/sources.list"
    archives "$1" "$mirror" >"$2/etc/apt/sources.list"
    # Packages of experimental are installed only where that is asked for.
    printf '%s\n' 'Package: src:postgresql-19' 'Pin: release a=experimental' 'Pin-Priority: 500' \
        >"$2/etc/apt/preferences.d/postgresql"
    echo 'APT::Keep-Downloaded-Packages "true";' >"$2/etc/apt/apt.conf.d/keep"
    # A system that is thrown away needs no fsync.
    echo force-unsafe-io >"$2/etc/dpkg/dpkg.cfg.d/unsafe"
    cp -L /etc/resolv.conf "$2/etc/"
    cp "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$2/etc/host-ca.crt"
}

archives() { # SUITE MIRROR
    # The lists of a suite that moves run out soon, and a mirror may have old ones.
    local moves="deb [check-valid-until=no] $2"
    case $1 in
    sid) printf '%s main\n' "$moves sid" "$moves experimental" ;;
    forky) echo "$moves forky main" ;;
    *) printf 'deb %s main\n' "$2 $1" "$2 $1-updates" "${2%/}-security $1-security" ;;
    esac
}

# Keeps of what a former system has compiled only what depends on no header.
forget_headers() { # TARGET
    find "$1" -depth \( -name '*pgrx[-_]pg[-_]sys*' -o -name '*hugeinfo*' -o -name 'package-*' \) \
        -exec rm -rf {} +
}
