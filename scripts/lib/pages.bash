# The host's pool of huge pages of the default size.

# One run at a time changes the pools of a host; the tests in t/ take turns by the same file.
# shellcheck disable=SC2034 # the scripts use it
host_lock=/run/lock/pg_hugeinfo-host.lock

pool=/sys/kernel/mm/hugepages/hugepages-$(awk '/^Hugepagesize:/ {print $2}' /proc/meminfo)kB

# The pages that were asked for. nr_hugepages also counts those that overcommit has lent, while what
# is written to it does not.
pool_size() { # DIRECTORY
    echo $(($(<"$1/nr_hugepages") - $(<"$1/surplus_hugepages")))
}

# What a server that starts now can have.
pool_available() {
    local lendable=$(($(<"$pool/nr_overcommit_hugepages") - $(<"$pool/surplus_hugepages")))
    echo $(($(<"$pool/free_hugepages") - $(<"$pool/resv_hugepages") + (lendable > 0 ? lendable : 0)))
}

pool_settable() {
    [ -w "$pool/nr_hugepages" ]
}

# Never smaller: other servers may count on what is there.
pool_grow_to() { # PAGES
    (($1 > $(pool_size "$pool"))) || return 0
    undo_pool

    echo "$1" >"$pool/nr_hugepages"
    if (($(pool_size "$pool") < $1)); then
        # Free memory in small pieces is the usual cause.
        echo 1 >/proc/sys/vm/compact_memory 2>/dev/null || true
        echo "$1" >"$pool/nr_hugepages"
    fi
    (($(pool_size "$pool") >= $1)) ||
        die "the kernel gave $(pool_size "$pool") of $1 huge pages: too little memory is free in one piece"
}

# The janitor puts the present size back.
undo_pool() {
    local pages_of_node
    # On each node, where there are several: the kernel would share out the sum anew.
    for pages_of_node in /sys/devices/system/node/node*/hugepages/"${pool##*/}"; do
        undo pool_put_back "$pages_of_node" "$(pool_size "$pages_of_node")"
    done
    undo pool_put_back "$pool" "$(pool_size "$pool")"
}

pool_grow_by() { # PAGES
    pool_grow_to $(($(pool_size "$pool") + $1))
}

pool_put_back() { # DIRECTORY PAGES
    echo "$2" >"$1/nr_hugepages"
    [ "$(pool_size "$1")" = "$2" ] || {
        echo "==> $1/nr_hugepages should be $2 again, and the kernel left it at $(pool_size "$1")" >&2
        return 1
    }
}
