# Commands for scripts/janitor that undo changes to the host. Each is registered before its change,
# so it does nothing if there is nothing to undo.

put_back() { # FILE OF THE KERNEL, CONTENTS
    [ -e "$1" ] && echo "$2" >"$1" && return
    echo "==> not put back: $1 should be $2 again" >&2
    return 1
}

move_back() { # PROCESS, CONTROL GROUP
    [ ! -d "/proc/$1" ] || put_back "$2/cgroup.procs" "$1"
}

# Unless others use it by now: their limits would be gone.
withdraw_controller() { # CONTROL GROUP OF VERSION 2, CONTROLLER
    local file
    # "max" is a number of 19 digits where the kernel has rounded it.
    for file in "$1"/*/"$2".*{max,high}; do
        [ ! -e "$file" ] || [[ $(<"$file") =~ ^(max|[0-9]{19})$ ]] || return 0
    done
    ! grep -qw "$2" "$1"/*/cgroup.subtree_control 2>/dev/null || return 0
    put_back "$1/cgroup.subtree_control" "-$2"
}

# A group is busy until its last process has been reaped.
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

# What has janitors of its own ends when they have. Another process may get its number.
await_end() { # PROCESS, WHEN IT STARTED
    # It had ended when that was asked.
    [ -n "$2" ] || return 0
    while [ "$(started "$1")" = "$2" ]; do
        sleep 0.1
    done
}

# In ticks since boot; nothing if it has ended, also where its parent never asks how.
started() { # PROCESS
    sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '$1 != "Z" {print $20}'
}
