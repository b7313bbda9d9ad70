# Systems of Debian and Ubuntu for tests, each in a directory. Downloads and builds are cached in
# $cache.

cache=${XDG_CACHE_HOME:-$HOME/.cache}/pg_hugeinfo/machines
# The directory for systems. On some machines /tmp is in memory, where a system would take
# gigabytes.
export TMPDIR=${HUGEINFO_SYSTEMS:-/var/tmp}

# Unpacks a minimal system that uses and extends the package cache.
unpack_base() { # SUITE ROOT
    local mirror
    rm -rf "$2"
    mkdir "$2"
    tar -C "$2" -xf "$cache/$1/base.tar"
    read -r _ mirror _ <"$2/etc/apt/sources.list"
    archives "$1" "$mirror" >"$2/etc/apt/sources.list"
    # Packages of experimental are installed only on request.
    printf '%s\n' 'Package: src:postgresql-19' 'Pin: release a=experimental' 'Pin-Priority: 500' \
        >"$2/etc/apt/preferences.d/postgresql"
    echo 'APT::Keep-Downloaded-Packages "true";' >"$2/etc/apt/apt.conf.d/keep"
    # A temporary system needs no fsync.
    echo force-unsafe-io >"$2/etc/dpkg/dpkg.cfg.d/unsafe"
    share_network "$2"
}

# Copies the name resolution and the certificates of this machine.
share_network() { # ROOT
    cp -L /etc/resolv.conf "$1/etc/"
    cp "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$1/etc/host-ca.crt"
}

# Cached directories are rebuilt under another name, and replaced when complete. The next run
# recovers if this one was killed in between.
remove_new() { # DIRECTORY
    [ -e "$1" ] || [ ! -e "$1.old" ] || mv -T "$1.old" "$1"
    rm -rf "$1".{new,old}
}

replace() { # DIRECTORY
    rm -rf "$1.old"
    [ ! -e "$1" ] || mv -T "$1" "$1.old"
    mv -T "$1.new" "$1"
    rm -rf "$1.old"
}

# True if the system is newer than its base, and was created by the same script.
is_young() { # SYSTEM SUITE SCRIPT
    [ "$1" -nt "$cache/$2/base.tar" ] && cmp -s "$3" "$1/made-by"
}

# Reuses the cargo-pgrx of this machine if possible, which saves minutes.
share_pgrx() { # SUITE SYSTEM
    local built
    for built in "${cache%/*}"/cargo-pgrx-*; do
        # None if the user has installed it elsewhere.
        [[ -e $built && ! -e "$cache/$1/cargo-pgrx/${built##*/}" ]] || continue
        # An interrupted copy has another name.
        cp -a "$built" "$2/var/tmp/pgrx"
        mv "$2/var/tmp/pgrx" "$cache/$1/cargo-pgrx/${built##*/}"
    done
}

# Copies a cached system. Hard links are enough for files that dpkg replaces. Packages also write
# into files of these two directories, and dpkg changes the mode of a setuid file before it replaces
# it.
copy_beside() { # DIRECTORY
    cp -al "$1" "$1.new"
    rm -r "$1.new"/{etc,var}
    cp -a "$1"/{etc,var} "$1.new/"
    (cd "$1" && find . -xdev -type f -perm /7000 -exec cp -a --parents --remove-destination -t "$1.new" {} +)
    share_network "$1.new"
}

is_ubuntu() { [[ $1 = @(noble|resolute) ]]; }

archives() { # SUITE MIRROR
    # The lists of testing and unstable expire soon, and a mirror can have old ones.
    local moves="deb [check-valid-until=no] $2"
    case $1 in
    sid) printf '%s main\n' "$moves sid" "$moves experimental" ;;
    forky) echo "$moves forky main" ;;
    noble | resolute) printf 'deb %s main universe\n' "$2 $1" "$2 $1-updates" "$2 $1-security" ;;
    *) printf 'deb %s main\n' "$2 $1" "$2 $1-updates" "${2%/}-security $1-security" ;;
    esac
}

# Makes apt use its own lists and state from here on, as on a machine without installed packages.
# The state of this machine does not change.
use_own_apt() { # DIRECTORY ARCHITECTURE SUITE MIRROR
    mkdir -p "$1"/{lists,archives}/partial
    : >"$1/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $4 $3 main" >"$1/sources.list"
    # The lists of an old suite can have expired.
    cat >"$1/apt.conf" <<END
Dir::Etc::sourcelist "$1/sources.list";
Dir::Etc::sourceparts "-";
Dir::State "$1";
Dir::State::status "$1/status";
Dir::Cache "$1";
APT::Architecture "$2";
APT::Architectures "$2";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false";
END
    export APT_CONFIG=$1/apt.conf
    apt-get update -qq
}

# Keeps only the compiled objects of a former system that do not depend on headers.
forget_headers() { # TARGET
    find "$1" -depth \( -name '*pgrx[-_]pg[-_]sys*' -o -name '*hugeinfo*' -o -name 'package-*' \) \
        -exec rm -rf {} +
}
