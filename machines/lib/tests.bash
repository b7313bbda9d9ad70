# What tests in such systems share: they are made where that can be, and results are told as TAP.
# After scripts/lib/{common,apt,janitor,pages}.bash, with $logs set.

. machines/lib/systems.bash

skip() {
    say "skipped: $*"
    exit 77
}

# Installs what it takes to make a system: PACKAGE COMMAND for each further one.
can_make_systems() { # [PACKAGE COMMAND]…
    local missing=()
    ((EUID == 0)) || skip "only root can make systems"
    command -v apt-get >/dev/null || skip "there is no apt here to install debootstrap with"
    pool_settable || skip "$pool/nr_hugepages may not be written here"
    has_room
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
    set -- debootstrap debootstrap "$@"
    while (($#)); do
        command -v "$2" >/dev/null || missing+=("$1")
        shift 2
    done
    install_or_skip "${missing[@]}"
}

# In the end 15 GB stay in the cache; what is being tried takes up to 5 GB.
has_room() {
    local kept
    mkdir -p "$cache"
    # Those for arm64 are further ones. Another run may remove files meanwhile.
    kept=$({ du -sk --exclude=arm64 "$cache" 2>/dev/null || true; } | cut -f 1)
    kept=$((kept >> 20))
    if [ "$(stat -c %d "$cache")" = "$(stat -c %d "$TMPDIR")" ]; then
        has_left "$cache" $((20 - kept))
    else
        has_left "$cache" $((15 - kept))
        has_left "$TMPDIR" 5
    fi
}

has_left() { # DIRECTORY GIGABYTES
    local left
    left=$(($(df --output=avail -k "$1" | tail -n 1) >> 20))
    ((left >= $2)) || skip "systems take $2 GB more in $1, which has $left GB left"
}

install_or_skip() { # PACKAGE…
    local package
    (($#)) || return 0
    update_lists
    for package; do
        offered "$package" || skip "apt has no $package here"
    done
    # In a subshell, since it has traps of its own.
    (apt_install "$@")
}

# Debian's mirror that apt knows here, if there is one.
debian_mirror() {
    need_lists
    # shellcheck disable=SC2016 # apt's own variables
    apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' |
        awk '$1 == "Debian" && $2 == "Debian" && $3 ~ /^https?:/ && !found++ {print $3}'
}

# A system older than 30 days says too little about today's.
fresh_base() { # SUITE
    local directory=$cache/$1 root=$workspace/base-$1 log=$logs/debootstrap-$1.log mirror script
    [ -z "$(find "$directory/base.tar" -mtime -30 2>/dev/null)" ] || return 0
    say "debootstrap $1"
    mkdir -p "$directory/"{debs,target,cargo-pgrx} "$cache/registry"
    find "$directory/debs" -name '*.deb' -ctime +30 -delete
    # On Debian the mirror of this host, else debootstrap's own choice.
    mirror=$(debian_mirror)
    # It does not know suites that are younger than itself.
    script=/usr/share/debootstrap/scripts/$1
    [ -e "$script" ] || script=${script%/*}/sid
    # With mounts of its own, however it ends.
    run_job unshare --mount --propagation private debootstrap --variant=minbase --cache-dir="$directory/debs" "$1" "$root" \
        "$mirror" "$script" >"$log" || {
        tail -n 20 "$log"
        [ -e "$directory/base.tar" ] || die "debootstrap $1 failed"
        say "the system that is kept is used"
        return 0
    }
    run_job tar -C "$root" --exclude=./var/cache/apt/archives/\*.deb -cf "$directory/base.tar.new" .
    mv "$directory/base.tar.new" "$directory/base.tar"
    rm -rf "$root"
}

# Calls a function when nobody else has servers on this host, or changes its pools.
alone() { # FUNCTION
    local lock
    [ -e "$host_lock" ] || : >>"$host_lock"
    exec {lock}<"$host_lock"
    flock "$lock"
    # A server that it starts has no part in the lock.
    "$@" {lock}<&-
    exec {lock}<&-
}

number=0 failed=0

report() { # STATUS TITLE SECONDS LOG
    result "$@"
    ((!$1)) || sed 's/^/# /' <(tail -n 40 "$4") <(echo "all of it: $4")
}

# The line of a test in TAP.
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
