# However a script ends, also by kill -9, scripts/janitor undoes its changes to the host: it ends
# the programs in $workspace, runs the commands given to `undo`, and removes $workspace.

# shellcheck disable=SC2120 # a script that changes no pool needs no lock
janitor_start() { # [LOCK FILE]
    # A coprocess, since no child inherits its pipe: a server that outlives the script must not keep
    # it open. In its own session, so that a signal to the script's process group does not end it.
    coproc JANITOR { exec setsid scripts/janitor "$@"; }
    janitor=$JANITOR_PID janitor_out=${JANITOR[0]} janitor_in=${JANITOR[1]}
    read -r workspace <&"$janitor_out" || die "scripts/janitor did not start"
    # It may have chosen another place than this, which its servers cannot use either.
    [ -z "${TMPDIR:-}" ] || TMPDIR=${workspace%/*}
    # The server's user has to get in.
    chmod 755 "$workspace"
}

# Call this before the change.
undo() { # COMMAND…
    printf '%q ' "$@" >&"$janitor_in"
    echo >&"$janitor_in"
    read -r <&"$janitor_out" || die "scripts/janitor has ended: nothing more is changed"
}

# Everything is undone when this returns. A signal may interrupt it: then the trap calls it again.
janitor_finish() {
    [ -n "${janitor:-}" ] || return 0
    local status=0
    exec {janitor_in}>&-
    wait "$janitor" || status=$?
    janitor=
    return "$status"
}

# Runs a long command that a signal to the script ends at once; otherwise bash would handle the
# signal only after the command. It has its own process group, so that its children get the signal,
# too. If the script is killed, the kernel signals the command.
run_job() { # COMMAND…
    start_job "$@"
    wait_job
}

# The same, with what it prints shown, and kept in a file.
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

# Also what a script runs beside its jobs.
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
    # From here on a second Ctrl-C has no effect: things are being put back.
    trap '' HUP INT TERM
    end_jobs
    janitor_finish || status=$((status ? status : 1))
    give_back_target
    exit "$status"
}

trap on_exit EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
