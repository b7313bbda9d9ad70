# Clean systems to try packages in. Comes after lib.bash.

. machines/lib/systems.bash
. scripts/lib/pages.bash

# In a clean system, a program of packages/inside with the packages of such names, and with those of
# the next revision in another directory.
use_both() { # PROGRAM MAJOR SUITE ROOT DIRECTORY PATTERN…
    local root=$4 pattern
    unpack_base "$3" "$root"
    mkdir -p "$root/srv/"{1,2}
    # shellcheck disable=SC2086 # patterns
    for pattern in "${@:6}"; do
        cp "$packages"/$pattern "$root/srv/1/"
        cp "$5"/$pattern "$root/srv/2/"
    done
    inside "$3" "$root" "$1" "$2" "$version"
    rm -rf "$root"
}

# A program of packages/inside in a system that the caller has unpacked; it ends with this script.
# It starts servers: these take turns.
inside() { # SUITE ROOT PROGRAM ARGUMENT…
    cp -a packages/inside "$2/srv/"
    flock --close "$host_lock" setpriv --pdeathsig KILL unshare --mount --propagation private --pid --ipc --fork --kill-child \
        machines/bare/enter "$2" "$cache" "$1" root "/srv/inside/${*:3}"
}
