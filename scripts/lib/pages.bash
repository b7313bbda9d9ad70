# The pools of huge pages of the host, above all that of the default size.

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
    local command
    while read -r -a command; do
        undo "${command[@]}"
    done < <(pool_as_it_is "$pool")
}

# The commands that put it back: on each node, where there are several, since the kernel would share
# out the sum anew.
pool_as_it_is() { # DIRECTORY
    local place
    for place in "$1" /sys/devices/system/node/node*/hugepages/"${1##*/}"; do
        [ ! -d "$place" ] || echo "pool_set $place $(pool_size "$place")"
    done
}

pool_grow_by() { # PAGES
    pool_grow_to $(($(pool_size "$pool") + $1))
}

# Exactly so many. The kernel gives fewer pages than asked without an error: ask again after making
# room.
pool_set() { # DIRECTORY PAGES
    local try
    for try in {1..60}; do
        echo "$2" >"$1/nr_hugepages" || return
        [ "$(pool_size "$1")" != "$2" ] || return 0
        make_room
        sleep 0.25
    done
    echo "==> $1/nr_hugepages: asked for $2 pages, the kernel gives $(pool_size "$1")" >&2
    return 1
}

# Gives free memory back in large pieces: a page of 1 GB needs a whole one, and a single object of
# the kernel's in it is enough to deny it. Slabs whose objects have all gone are kept until they are
# asked for.
make_room() {
    local slab
    echo 3 >/proc/sys/vm/drop_caches
    for slab in /sys/kernel/slab/*/shrink; do
        echo 1 >"$slab"
    done
    echo 1 >/proc/sys/vm/compact_memory
} 2>/dev/null
