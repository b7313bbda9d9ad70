# What scripts/janitor is told to do with what has been changed on a host. Each does nothing where
# there is nothing to undo: it is told before the deed.

put_back() { # FILE OF THE KERNEL, CONTENTS
    [ -e "$1" ] && echo "$2" >"$1" && return
    echo "==> not put back: $1 should be $2 again" >&2
    return 1
}

move_back() { # PROCESS, CONTROL GROUP
    [ ! -d "/proc/$1" ] || put_back "$2/cgroup.procs" "$1"
}

# It is busy until its last process has been waited for.
remove_group() { # CONTROL GROUP
    local try
    for try in {1..100}; do
        [ -d "$1" ] || return 0
        rmdir "$1" 2>/dev/null || sleep 0.1
    done
    [ ! -d "$1" ] || rmdir "$1"
}

unmount() { # DIRECTORY
    ! mountpoint --quiet "$1" || umount "$1" || return
    [ ! -d "$1" ] || rmdir "$1"
}

remove_swap() { # FILE
    ! grep -q "^$1\s" /proc/swaps || swapoff "$1" || return
    rm -f "$1"
}
