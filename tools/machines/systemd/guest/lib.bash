# Functions of situations. Each situation is a file with two functions: prepare() runs before
# systemd, and verify() after the boot.

export PATH=/usr/sbin:/usr/bin LANG=C.UTF-8
major=$(ls /etc/postgresql)
failed=0

# Before the boot.

set_in() { # CLUSTER LINE…
    printf '%s\n' "${@:2}" >>"/etc/postgresql/$major/$1/postgresql.conf"
}

start_at_boot() { # CLUSTER…
    local cluster
    for cluster in main my-db third; do
        [[ " $* " = *" $cluster "* ]] || echo manual >"/etc/postgresql/$major/$cluster/start.conf"
    done
    # systemd writes the instance's name with a slash for each dash, so Debian's unit searches
    # for a cluster in a directory that does not exist.
    local directory=/etc/systemd/system/postgresql@$major-my-db.service.d
    mkdir -p "$directory"
    printf '%s\n' '[Unit]' AssertPathExists= >"$directory/dash.conf"
}

enable_at_boot() { SYSTEMD_OFFLINE=1 systemctl --quiet enable hugeinfo-pool.service; }

enable_at_start() {
    local directory=/etc/systemd/system/postgresql@.service.d
    mkdir -p "$directory"
    ln -s /usr/lib/hugeinfo/start-debian.conf "$directory/hugeinfo.conf"
}

sysctl_d() { echo "vm.nr_hugepages = $1" >/etc/sysctl.d/60-hugepages.conf; }

# After the boot.

is() { # TITLE GOT EXPECTED
    if [ "$2" = "$3" ]; then
        echo "ok - $1: $2"
    else
        echo "not ok - $1: got $2, expected $3"
        failed=1
    fi
}

# A regular expression.
like() { # TITLE TEXT PATTERN
    if grep -qE -e "$3" <<<"$2"; then
        echo "ok - $1"
    else
        printf 'not ok - %s: expected %s, got\n' "$1" "$3"
        awk '{print "#   " $0}' <<<"$2"
        failed=1
    fi
}

end() {
    echo "# exit status $failed"
    sync
    sleep 0.5
    echo o >/proc/sysrq-trigger
    sleep 60
}

pool() { cat /proc/sys/vm/nr_hugepages; }

# The pages on which the main segment of a server is, or "down".
pages_of() { # DATA-DIRECTORY
    local pid
    pid=$(head -n 1 "$1/postmaster.pid" 2>/dev/null)
    if [ -z "$pid" ] || ! [ -d "/proc/$pid" ]; then
        echo down
    elif grep -q /anon_hugepage "/proc/$pid/maps"; then
        echo huge
    else
        echo small
    fi
}

started() { # CLUSTER huge|small|down [TITLE]
    is "start of $1${3:+, $3}" "$(pages_of "/var/lib/postgresql/$major/$1")" "$2"
}

# The pages that servers need, according to them.
need() { # CLUSTER…
    local cluster sum=0
    for cluster; do
        ((sum += $(ask --cluster "$major/$cluster"))) || return
    done
    echo "$sum"
}
ask() { # OPTION…
    runuser -u postgres -- psql -XAtc 'SHOW shared_memory_size_in_huge_pages' "$@"
}

journal() { # UNIT
    journalctl --boot --no-pager --output=cat --unit="$1"
}

# Microseconds since boot.
time_of() { # UNIT ExecMainStart|ExecMainExit|InactiveExit
    systemctl show --value --property="$2TimestampMonotonic" "$1"
}

# systemd drops a job to break a cycle.
no_cycle() {
    is 'ordering cycles' "$(journalctl --boot --no-pager --output=cat | grep -c 'ordering cycle')" 0
}

in_order() { # TITLE TIME TIME
    is "$1" "$(($2 < $3))" 1
}

boot_unit_comes_in_between() { # CLUSTER…
    local cluster unit=hugeinfo-pool.service ended
    ended=$(time_of $unit ExecMainExit)
    in_order 'the pool is set after sysctl.d' "$(time_of systemd-sysctl.service ExecMainExit)" \
        "$(time_of $unit ExecMainStart)"
    for cluster; do
        in_order "$cluster starts after that" "$ended" "$(time_of "postgresql@$major-$cluster" InactiveExit)"
    done
}

# shellcheck source=/dev/null
. "/guest/$(sed -n 's/.*\brun=\(\S*\).*/\1/p' /proc/cmdline)"
