# Shared code of tests in QEMU: kernels, and situations in guests. Source it after
# tools/machines/lib/tests.bash, with $kept, the directory of cached kernels.

lacks() { # PACKAGE COMMAND…
    "${@:2}" >/dev/null 2>&1 || missing+=("$1")
}

# True if the directory has a copy of the script that created it, at most 30 days old. In a new
# clone all files are new.
is_fresh() { # FILE DIRECTORY
    local copy=$2/${1##*/}
    cmp -s "$1" "$copy" && [ -n "$(find "$copy" -mtime -30)" ]
}

fresh_kernel() { # NAME SUITE [PACKAGE]
    local mirror lock
    exec {lock}>"$kept/lock"
    flock "$lock"
    if ! is_fresh tools/machines/kernels/init "$kept/$1"; then
        mirror=$(debian_mirror)
        say "the kernel of $1"
        if run_job tools/machines/kernels/kernel "$2" "$mirror" "$kept/$1.new" "${@:3}" >"$logs/kernel-$1.log" 2>&1; then
            replace "$kept/$1"
        else
            tail -n 20 "$logs/kernel-$1.log"
            cmp -s tools/machines/kernels/init "$kept/$1/init" || cannot_have "the kernel of $1"
            say "using the cached kernel of $1"
        fi
    fi
    exec {lock}>&-
}

# True if the arguments after the two names are empty, or contain one of the names.
is_wanted() { # NAME OTHER NAME [WANTED…]
    (($# > 2)) || return 0
    [[ " ${*:3} " = *" $1 "* || " ${*:3} " = *" $2 "* ]]
}

# Options of QEMU.
memory() { printf -- '-object memory-backend-ram,id=memory%d,size=%dM ' "$1" "$2"; }
# shellcheck disable=SC2034 # the scripts use it
two_large="$(memory 0 2048)$(memory 1 2048)-numa node,memdev=memory0,cpus=0 -numa node,memdev=memory1,cpus=1"

is_skipped=''
# The command that boots a kernel.
boot=(tools/machines/kernels/boot)

# Runs a situation on $kernel. Environment variables describe the machine: see
# tools/machines/kernels/boot.
situation() { # NAME TITLE PROGRAM [ARGUMENT…]
    is_wanted "$1" "$1" "${names[@]}" || return 0
    local log=$logs/$version-$1.log start=$SECONDS status=0 count title left
    left=$(awk '$1 == "MemAvailable:" {print int($2 / 1024)}' /proc/meminfo)
    if ((left < ${MEMORY:-2048})); then
        say "skipped: $version, $2: it needs ${MEMORY:-2048} MB of memory, and $left MB are available"
        # shellcheck disable=SC2034 # the scripts use it
        is_skipped=yes
        return
    fi
    run_job "${boot[@]}" "$kernel" "$workspace" "$log" "${@:3}" || status=$?
    count=$(grep -c '^ok ' "$log") || status=1
    ! grep -qa '^not ok ' "$log" || status=1
    title="$version, $2: $count comparisons"
    result "$status" "$title" $((SECONDS - start))
    ((!status)) || what_failed "$log"
}

what_failed() { # LOG
    sed 's/^#\? \?/# /' <(grep -a -A 8 '^not ok ' "$1" | head -n 60) <(tail -n 1 "$1")
    echo "# full log: $1"
}
