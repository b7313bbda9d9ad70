# Functions for the host's pools of huge pages, mostly for the default size.

# Only one run at a time can change the pools of the host or compare numbers of the whole host. The
# directory belongs to root, so other users cannot hold the lock.
# shellcheck disable=SC2034 # the scripts use it
host_lock=/run/pg_hugeinfo/lock

# Creates the directory for programs that use the lock without tools/lib/host.pl.
make_lock_directory() {
    [ -d "${host_lock%/*}" ] || mkdir -m 700 "${host_lock%/*}"
}

pool=/sys/kernel/mm/hugepages/hugepages-$(awk '/^Hugepagesize:/ {print $2}' /proc/meminfo)kB

# The persistent pages. Reading nr_hugepages includes surplus pages; writing to it does not.
pool_size() { # DIRECTORY
    echo $(($(<"$1/nr_hugepages") - $(<"$1/surplus_hugepages")))
}

# The pages that are available to a server that starts now.
pool_available() {
    local lendable=$(($(<"$pool/nr_overcommit_hugepages") - $(<"$pool/surplus_hugepages")))
    echo $(($(<"$pool/free_hugepages") - $(<"$pool/resv_hugepages") + (lendable > 0 ? lendable : 0)))
}

pool_settable() {
    [ -w "$pool/nr_hugepages" ]
}

# Never shrinks the pool, because other servers might need its pages.
pool_grow_to() { # PAGES
    (($1 > $(pool_size "$pool"))) || return 0
    host pool "$pool" "$1" 1 && return
    # Fragmented memory is the usual cause.
    echo 1 >/proc/sys/vm/compact_memory 2>/dev/null || true
    # shellcheck disable=SC2154 # host sets $answer
    host pool "$pool" "$1" 1 || die "free memory is fragmented or too small: $answer"
}

pool_grow_by() { # PAGES
    pool_grow_to $(($(pool_size "$pool") + $1))
}
