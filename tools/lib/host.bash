# All changes to the host go through tools/lib/host.pl. When this script ends, even by kill -9,
# that program ends all programs in $workspace, undoes every change, and removes $workspace.

# shellcheck disable=SC2120 # a script that changes no pool needs no lock
host_start() { # [LOCK FILE]
    # Use a coprocess because children do not inherit its pipes. A server that outlives the script
    # then does not keep them open.
    coproc HOST { exec tools/lib/host.pl "$@"; }
    host=$HOST_PID host_out=${HOST[0]} host_in=${HOST[1]}
    host_answer || die "$answer"
    workspace=$answer
    # host.pl chooses another directory if servers cannot run from TMPDIR.
    [ -z "${TMPDIR:-}" ] || TMPDIR=${workspace%/*}
    # The user that runs servers needs access.
    chmod 755 "$workspace"
}

# Requests a change, with a verb of tools/lib/host.pl. Stores the answer or the error in $answer.
host() { # VERB [WORD…]
    printf '%s\0' "$#" "$@" >&"$host_in"
    host_answer
}

host_answer() {
    local verdict
    answer=
    { IFS= read -r -d '' verdict && IFS= read -r -d '' answer; } <&"$host_out" ||
        die "tools/lib/host.pl has ended unexpectedly"
    [ "$verdict" = ok ]
}

# Undoes all changes before it returns. If a signal interrupts it, the trap calls it again.
host_finish() {
    [ -n "${host:-}" ] || return 0
    local status=0
    exec {host_in}>&-
    wait "$host" || status=$?
    host=
    return "$status"
}

# Runs a long command that a signal to the script ends at once; otherwise bash would handle the
# signal only after the command. It has its own process group, so that its children get the signal,
# too. If the script is killed, the kernel signals the command.
run_job() { # COMMAND…
    start_job "$@"
    wait_job
}

# Like run_job. Also shows the output and writes it to a file.
run_job_shown() { # FILE COMMAND…
    local out tee status=0
    exec {out}> >(exec tee "$1")
    tee=$!
    run_job "${@:2}" >&"$out" 2>&1 || status=$?
    exec {out}>&-
    wait "$tee"
    return "$status"
}

start_job() { # COMMAND…
    set -m
    setpriv --pdeathsig TERM -- "$@" </dev/null &
    job=$!
    set +m
}

wait_job() {
    local status=0
    wait "$job" || status=$?
    job=
    return "$status"
}

# Ends the job, and the jobs that a script has added to $beside.
end_jobs() {
    local each
    for each in ${job:-} ${beside:-}; do
        kill -TERM -- "-$each" 2>/dev/null || true
        wait "$each" || true
    done
    job='' beside=''
}

on_exit() {
    local status=$?
    # A second Ctrl-C must not interrupt the undo of the changes.
    trap '' HUP INT TERM
    end_jobs
    host_finish || status=$((status ? status : 1))
    restore_target_owner
    exit "$status"
}

trap on_exit EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
