# However a script ends, be it by kill -9, scripts/janitor undoes what it has done to the host: it
# ends the programs in $workspace, runs the commands that `undo` has told it, and removes
# $workspace.

# shellcheck disable=SC2120 # a script that changes no pool needs no lock
janitor_start() { # [LOCK FILE]
    # Of a coprocess no child inherits the pipe: a server that outlives the script must not hold it
    # open. In a session of its own, so that nothing that ends the script's process group ends the
    # janitor.
    coproc JANITOR { exec setsid scripts/janitor "$@"; }
    janitor=$JANITOR_PID janitor_out=${JANITOR[0]} janitor_in=${JANITOR[1]}
    read -r workspace <&"$janitor_out" || die "scripts/janitor did not start"
    # For the user that the server runs as.
    chmod 755 "$workspace"
}

# To be said before the deed.
undo() { # COMMAND…
    printf '%q ' "$@" >&"$janitor_in"
    echo >&"$janitor_in"
    read -r <&"$janitor_out" || die "scripts/janitor has gone: nothing more is changed"
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

# Runs a long command so that a signal to the script, which bash would otherwise only heed
# afterwards, ends it at once: in a process group of its own, so that all of its children are
# reached, and with a signal for it should the script be killed.
run_job() { # COMMAND…
    set -m
    setpriv --pdeathsig TERM -- "$@" </dev/null &
    job=$!
    set +m
    local status=0
    wait "$job" || status=$?
    job=
    return "$status"
}

end_job() {
    [ -n "${job:-}" ] || return 0
    kill -TERM -- "-$job" 2>/dev/null || true
    wait "$job" || true
    job=
}

on_exit() {
    local status=$?
    # From here on a second Ctrl-C changes nothing: all that is left is to put things back.
    trap '' HUP INT TERM
    end_job
    janitor_finish || status=$((status ? status : 1))
    exit "$status"
}

trap on_exit EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
