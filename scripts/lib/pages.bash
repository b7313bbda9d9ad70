# The host's pools of huge pages, mostly that of the default size.

# One run at a time changes the pools of a host; the tests in t/ take turns by the same file.
# shellcheck disable=SC2034 # the scripts use it
host_lock=/run/lock/pg_hugeinfo-host.lock

pool=/sys/kernel/mm/hugepages/hugepages-$(awk '/^Hugepagesize:/ {print $2}' /proc/meminfo)kB

# The persistent pages. Reading nr_hugepages includes surplus pages; writing to it does not.
pool_size() { # DIRECTORY
    echo $(($(<"$1/nr_hugepages") - $(<"$1/surplus_hugepages")))
}

# What a server that starts now can get.
pool_available() {
    local lendable=$(($(<"$pool/nr_overcommit_hugepages") - $(<"$pool/surplus_hugepages")))
    echo $(($(<"$pool/free_hugepages") - $(<"$pool/resv_hugepages") + (lendable > 0 ? lendable : 0)))
}

pool_settable() {
    [ -w "$pool/nr_hugepages" ]
}

# Never shrinks the pool: other servers may need its pages.
pool_grow_to() { # PAGES
    (($1 > $(pool_size "$pool"))) || return 0
    undo_pool

    echo "$1" >"$pool/nr_hugepages"
    if (($(pool_size "$pool") < $1)); then
        # Fragmented memory is the usual cause.
        echo 1 >/proc/sys/vm/compact_memory 2>/dev/null || true
        echo "$1" >"$pool/nr_hugepages"
    fi
    (($(pool_size "$pool") >= $1)) ||
        die "the kernel gave $(pool_size "$pool") of $1 huge pages: free memory is fragmented or too small"
}

# The janitor puts the present size back.
undo_pool() {
    local command
    while read -r -a command; do
        undo "${command[@]}"
    done < <(pool_as_it_is "$pool")
}

# The commands that put it back. On several nodes, one for each: otherwise the kernel would spread
# the sum over the nodes in its own way.
pool_as_it_is() { # DIRECTORY
    local place
    for place in "$1" /sys/devices/system/node/node*/hugepages/"${1##*/}"; do
        [ ! -d "$place" ] || echo "pool_set $place $(pool_size "$place")"
    done
}

pool_grow_by() { # PAGES
    pool_grow_to $(($(pool_size "$pool") + $1))
}

# Exactly this many. The kernel can give fewer pages without an error: make room and ask again.
pool_set() { # DIRECTORY PAGES [TRIES]
    local try
    for ((try = ${3:-60}; try; try--)); do
        echo "$2" >"$1/nr_hugepages" || return
        [ "$(pool_size "$1")" != "$2" ] || return 0
        make_room
        sleep 0.25
    done
    echo "==> $1/nr_hugepages: asked for $2 pages, the kernel gives $(pool_size "$1")" >&2
    return 1
}

# Frees memory in large blocks: a page of 1 GB needs a whole block, and a single kernel object in it
# prevents that. The kernel keeps empty slabs until it is told to shrink them.
make_room() {
    local slab
    echo 3 >/proc/sys/vm/drop_caches
    for slab in /sys/kernel/slab/*/shrink; do
        echo 1 >"$slab"
    done
    echo 1 >/proc/sys/vm/compact_memory
} 2>/dev/null
