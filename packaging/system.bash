# Clean systems for tests of packages. Source it after lib.bash.

. tools/machines/lib/systems.bash
. tools/lib/pages.bash

# Runs a program of packaging/inside in a system that the caller has unpacked. The program ends with
# this script. Holds the lock, because the program starts servers.
inside() { # SUITE ROOT PROGRAM ARGUMENT…
    make_lock_directory
    cp -a packaging/inside "$2/srv/"
    flock --close "$host_lock" setpriv --pdeathsig KILL unshare --mount --propagation private --pid --ipc --fork --kill-child \
        tools/machines/bare/enter "$2" "$cache" "$1" root "/srv/inside/${*:3}"
}
