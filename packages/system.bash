# Clean systems to try packages in. Comes after lib.bash.

. machines/lib/systems.bash
. scripts/lib/pages.bash

# A program of packages/inside in a system that the caller has unpacked; it ends with this script.
# It starts servers: these take turns.
inside() { # SUITE ROOT PROGRAM ARGUMENT…
    make_lock_directory
    cp -a packages/inside "$2/srv/"
    flock --close "$host_lock" setpriv --pdeathsig KILL unshare --mount --propagation private --pid --ipc --fork --kill-child \
        machines/bare/enter "$2" "$cache" "$1" root "/srv/inside/${*:3}"
}
