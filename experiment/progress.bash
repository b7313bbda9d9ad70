# What is done, and how long the rest takes.

tell_plan() {
    planned=$(estimate) done_of_plan=0 started=$EPOCHSECONDS
    say "shared_buffers = $(size_name $((shared_buffers_mb * 1024))), filled by pgbench at scale $(scale); $clients connections;" \
        "rounds of $duration s on each of: ${cases[*]}; rounds: $rounds"
    say "takes about $(minutes "$planned"), and $(data_mb) MB of disk: the data lies in $workspace until the end"
}

minutes() { # SECONDS
    if (($1 < 90)); then
        echo "$1 seconds"
    else
        echo "$((($1 + 30) / 60)) minutes"
    fi
}

# At the end of a part. How fast the parts before were, compared with the plan, is how fast the
# rest will be.
progress() { # SECONDS IN THE PLAN, WORDS…
    local passed=$((EPOCHSECONDS - started)) left
    ((done_of_plan += $1))
    left=$((passed * (planned - done_of_plan) / done_of_plan))
    printf '==> %3d %%, %s left: %s\n' $((100 * done_of_plan / planned)) "$(minutes $((left > 0 ? left : 0)))" "${*:2}"
}

not_planned() { # SECONDS IN THE PLAN
    ((planned -= $1))
}
