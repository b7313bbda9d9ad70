# Packages, by apt.

# Debian's postgresql packages create a server, "main", and start it. A drop-in that exists only
# while apt runs prevents that.
no_server=/etc/postgresql-common/createcluster.d/pg_hugeinfo.conf

may_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null
}

update_lists() {
    apt-get update -qq || say "could not update the package lists"
}

# Images of containers come without lists.
need_lists() {
    [ -n "$(apt-get indextargets)" ] || update_lists
}

# apt's words are translated: what reads them asks for C.
offered() { # PACKAGE
    [[ $(LC_ALL=C apt-cache policy "$1" 2>/dev/null) =~ Candidate:\ [^\(] ]]
}

# In a suite that moves, not all is offered that a package depends on.
installable() { # PACKAGE
    apt-get install --simulate -qq --no-install-recommends --no-remove "$1" >/dev/null 2>&1
}

# A run that was killed may have left it, and no package would make a server any more.
remove_leftover() {
    local lock
    [ -e "$no_server" ] || return 0
    exec {lock}<"${no_server%/*}"
    ! flock --nonblock "$lock" || rm -f "$no_server"
    exec {lock}<&-
}

apt_install() { # PACKAGES…
    say "apt-get install $*"
    local status=0 lock
    mkdir -p "${no_server%/*}"
    # Locked while a run installs: others leave the drop-in alone. No service that a package starts
    # gets the lock.
    exec {lock}<"${no_server%/*}"
    if ! flock --nonblock "$lock"; then
        say "waiting for another run of apt to end"
        flock "$lock"
    fi
    trap 'rm -f "$no_server"' EXIT
    trap 'exit 1' INT TERM HUP
    echo 'create_main_cluster = false' >"$no_server"

    # --no-remove: never remove a package for our tests. The timeout: a new machine is often still
    # busy with its own updates. No needrestart: it would restart servers whose libraries were
    # updated.
    DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 apt-get install -qq -y \
        --no-install-recommends --no-remove -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 \
        -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@" </dev/null {lock}<&- || status=$?

    rm -f "$no_server"
    trap - EXIT INT TERM HUP
    exec {lock}<&-
    return "$status"
}
