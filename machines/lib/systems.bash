# Systems of Debian and Ubuntu for tests, each in a directory. What is downloaded and compiled
# is kept in $cache.

cache=${XDG_CACHE_HOME:-$HOME/.cache}/pg_hugeinfo/machines
# A place for a whole system. On some machines /tmp is in memory, where it would take gigabytes.
export TMPDIR=${HUGEINFO_SYSTEMS:-/var/tmp}

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
    share_network "$2"
}

# How this machine finds and trusts others today.
share_network() { # ROOT
    cp -L /etc/resolv.conf "$1/etc/"
    cp "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$1/etc/host-ca.crt"
}

# What is kept is made anew beside it, and gives way to what is whole. A run that was killed in
# between is gone on from.
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

# Younger than its base, and made as it would be made today.
is_young() { # SYSTEM SUITE SCRIPT
    [ "$1" -nt "$cache/$2/base.tar" ] && cmp -s "$3" "$1/made-by"
}

# The cargo-pgrx of this machine will often do, and saves minutes.
share_pgrx() { # SUITE SYSTEM
    local built
    for built in "${cache%/*}"/cargo-pgrx-*; do
        # None, if the user has one elsewhere.
        [[ -e $built && ! -e "$cache/$1/cargo-pgrx/${built##*/}" ]] || continue
        # What is interrupted has another name.
        cp -a "$built" "$2/var/tmp/pgrx"
        mv "$2/var/tmp/pgrx" "$cache/$1/cargo-pgrx/${built##*/}"
    done
}

# For what adds to a kept system. Links will do for what dpkg replaces. Into files of these two,
# packages also write, and dpkg takes all rights from a setuid file before it replaces it.
copy_beside() { # DIRECTORY
    cp -al "$1" "$1.new"
    rm -r "$1.new"/{etc,var}
    cp -a "$1"/{etc,var} "$1.new/"
    (cd "$1" && find . -xdev -type f -perm /7000 -exec cp -a --parents --remove-destination -t "$1.new" {} +)
    share_network "$1.new"
}

is_ubuntu() { [[ $1 = @(noble|resolute) ]]; }

archives() { # SUITE MIRROR
    # The lists of a suite that moves run out soon, and a mirror may have old ones.
    local moves="deb [check-valid-until=no] $2"
    case $1 in
    sid) printf '%s main\n' "$moves sid" "$moves experimental" ;;
    forky) echo "$moves forky main" ;;
    noble | resolute) printf 'deb %s main universe\n' "$2 $1" "$2 $1-updates" "$2 $1-security" ;;
    *) printf 'deb %s main\n' "$2 $1" "$2 $1-updates" "${2%/}-security $1-security" ;;
    esac
}

# From here on apt works with lists and a state of its own, as on a machine on which nothing is
# installed: nothing of this machine's changes.
use_own_apt() { # DIRECTORY ARCHITECTURE SUITE MIRROR
    mkdir -p "$1"/{lists,archives}/partial
    : >"$1/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $4 $3 main" >"$1/sources.list"
    # The lists of an old suite may be past their date.
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

# Keeps of what a former system has compiled only what depends on no header.
forget_headers() { # TARGET
    find "$1" -depth \( -name '*pgrx[-_]pg[-_]sys*' -o -name '*hugeinfo*' -o -name 'package-*' \) \
        -exec rm -rf {} +
}
