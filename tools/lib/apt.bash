# Installs packages with apt.

# Debian's postgresql packages create a server, "main", and start it. A drop-in that exists only
# while apt runs prevents that.
no_server=/etc/postgresql-common/createcluster.d/pg_hugeinfo.conf

may_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null
}

update_lists() {
    apt-get update -qq || say "could not update the package lists"
}

# Container images contain no package lists.
need_lists() {
    [ -n "$(apt-get indextargets)" ] || update_lists
}

# Sets LC_ALL=C, because apt translates its output.
offered() { # PACKAGE
    [[ $(LC_ALL=C apt-cache policy "$1" 2>/dev/null) =~ Candidate:\ [^\(] ]]
}

# In testing and unstable, dependencies of a package can be missing.
installable() { # PACKAGE
    apt-get install --simulate -qq --no-install-recommends --no-remove "$1" >/dev/null 2>&1
}

# Removes the drop-in of a run that was killed. With it, no package would ever create a server.
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
    # While a run holds the lock, other runs do not remove the drop-in. Services that a package
    # starts do not inherit the lock.
    exec {lock}<"${no_server%/*}"
    if ! flock --nonblock "$lock"; then
        say "waiting for another run of apt to end"
        flock "$lock"
    fi
    trap 'rm -f "$no_server"' EXIT
    trap 'exit 1' INT TERM HUP
    echo 'create_main_cluster = false' >"$no_server"

    # --no-remove, because our tests must not remove a package. With a timeout, because a new
    # machine is often still busy with its own updates. Without needrestart, which would restart
    # servers whose libraries were updated.
    DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 apt-get install -qq -y \
        --no-install-recommends --no-remove -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 \
        -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@" </dev/null {lock}<&- || status=$?

    rm -f "$no_server"
    trap - EXIT INT TERM HUP
    exec {lock}<&-
    return "$status"
}
