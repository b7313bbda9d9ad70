# Shared code of tests in such systems: creates the systems if possible, and prints results as TAP.
# Source tools/lib/{common,apt,host,pages}.bash first, and set $logs.

. tools/machines/lib/systems.bash

skip() {
    say "skipped: $*"
    exit 77
}

# Installs the programs that create systems, and further packages, each with a command.
can_make_systems() { # [PACKAGE COMMAND]…
    local missing=() options
    ((EUID == 0)) || skip "only root can create systems"
    command -v apt-get >/dev/null || skip "installing debootstrap needs apt"
    pool_settable || skip "$pool/nr_hugepages is not writable here"
    has_room
    options=$(findmnt --noheadings --output OPTIONS --target "$TMPDIR")
    [[ ,$options, != *,@(noexec|nodev),* ]] ||
        skip "$TMPDIR is mounted with noexec or nodev: name another directory, as in HUGEINFO_SYSTEMS=/srv"
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
    set -- debootstrap debootstrap "$@"
    while (($#)); do
        command -v "$2" >/dev/null || missing+=("$1")
        shift 2
    done
    install_or_skip "${missing[@]}"
}

# Maximum size of all systems in the cache, in GB. One takes 5 GB at most. A running test needs up
# to 5 GB more.
keeps=29
# The number of systems that the arguments of the script name: 2 for "17 18", and 1 for
# "minimal-bookworm user-bookworm". Without arguments, the script tests all.
chosen=$(for word; do echo "${word##*-}"; done | sort -u | wc -l)

has_room() {
    local kept more
    mkdir -p "$cache"
    # Systems for arm64 count separately. Another run can remove files meanwhile.
    kept=$({ du -sk --exclude=arm64 "$cache" 2>/dev/null || true; } | cut -f 1)
    more=$((keeps - (kept >> 20)))
    ((more > 0)) || more=0
    ((!chosen || more < 5 * chosen)) || more=$((5 * chosen))
    if [ "$(stat -c %d "$cache")" = "$(stat -c %d "$TMPDIR")" ]; then
        has_left "$cache" $((more + 5))
    else
        has_left "$cache" "$more"
        has_left "$TMPDIR" 5
    fi
}

has_left() { # DIRECTORY GIGABYTES
    local left
    left=$(($(df --output=avail -k "$1" | tail -n 1) >> 20))
    ((left >= $2)) || skip "systems need $2 GB more in $1, which has $left GB left"
}

install_or_skip() { # PACKAGE…
    local package
    (($#)) || return 0
    update_lists
    for package; do
        offered "$package" || skip "apt has no $package here"
    done
    # In a subshell, because apt_install replaces traps.
    (apt_install "$@")
}

# The Debian mirror in apt's configuration, or else the public one.
debian_mirror() {
    local mirror
    need_lists >&2
    # shellcheck disable=SC2016 # apt's own variables
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' |
        awk '$1 == "Debian" && $2 == "Debian" && $3 ~ /^https?:/ && !found++ {print $3}')
    echo "${mirror:-http://deb.debian.org/debian}"
}

# Fails on Debian, where everything from Debian is available. Elsewhere, ends the run with its
# results so far.
cannot_have() { # WHAT
    ! grep -qx 'ID=debian' /etc/os-release || die "$1 cannot be downloaded"
    ((number)) || skip "$1 cannot be downloaded"
    say "skipped: all remaining tests: $1 cannot be downloaded"
    finish
}

ubuntu_mirror=http://archive.ubuntu.com/ubuntu

# True if the system is less than 30 days old. An older one differs too much from current systems.
is_kept() { # SUITE
    [ -n "$(find "$cache/$1/base.tar" -mtime -30 2>/dev/null)" ]
}

has_ubuntu() { # SUITE
    is_kept "$1" || answers "$ubuntu_mirror" "$1"
}

answers() { # MIRROR SUITE
    wget --quiet --tries=1 --timeout=20 --spider "$1/dists/$2/Release"
}

# Ubuntu's keys, from the oldest Debian release that has them.
ubuntu_keys() { # DIRECTORY
    (
        use_own_apt "$1/apt" "$(dpkg --print-architecture)" trixie "$(debian_mirror)" &&
            cd "$1" && apt-get -qq download ubuntu-keyring && dpkg-deb --extract ubuntu-keyring_*.deb .
    )
}

fresh_base() { # SUITE
    local directory=$cache/$1 root=$workspace/base-$1 log=$logs/debootstrap-$1.log mirror script keys
    ! is_kept "$1" || return 0
    say "debootstrap $1"
    mkdir -p "$directory/"{debs,target,cargo-pgrx} "$cache/registry"
    find "$directory/debs" -name '*.deb' -ctime +30 -delete
    if is_ubuntu "$1"; then
        mirror=$ubuntu_mirror script=/usr/share/debootstrap/scripts/gutsy keys=$workspace/keys
        ubuntu_keys "$keys" >"$log" 2>&1 || die "Ubuntu's keys cannot be downloaded: $log"
        keys+=/usr/share/keyrings/ubuntu-archive-keyring.gpg
    else
        mirror=$(debian_mirror)
        # debootstrap has no script for suites that are newer than itself.
        script=/usr/share/debootstrap/scripts/$1
        [ -e "$script" ] || script=${script%/*}/sid
        keys=/usr/share/keyrings/debian-archive-keyring.gpg
    fi
    # With its own mounts, which end with it.
    run_job unshare --mount --propagation private debootstrap --variant=minbase --keyring="$keys" --cache-dir="$directory/debs" \
        "$1" "$root" "$mirror" "$script" >"$log" || {
        tail -n 20 "$log"
        [ -e "$directory/base.tar" ] || cannot_have "the system of $1"
        say "using the cached system"
        return 0
    }
    run_job tar -C "$root" --exclude=./var/cache/apt/archives/\*.deb -cf "$directory/base.tar.new" .
    mv "$directory/base.tar.new" "$directory/base.tar"
    rm -rf "$root"
}

# Calls a function while no other run has servers on this host or changes its pools.
alone() { # FUNCTION
    local lock
    make_lock_directory
    exec {lock}>>"$host_lock"
    flock "$lock"
    # A server that it starts does not inherit the lock.
    "$@" {lock}<&-
    exec {lock}<&-
}

number=0 failed=0

report() { # STATUS TITLE SECONDS LOG
    result "$@"
    ((!$1)) || sed 's/^/# /' <(tail -n 40 "$4") <(echo "full log: $4")
}

# Prints the line of a test in TAP.
result() { # STATUS TITLE SECONDS
    local result=ok
    if (($1)); then
        result='not ok'
        ((++failed))
    fi
    printf '%s %d - %s (%d:%02d)\n' "$result" $((++number)) "$2" $(($3 / 60)) $(($3 % 60))
}

finish() {
    echo "1..$number"
    exit $((failed > 0))
}
