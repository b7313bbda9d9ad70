# Shared code of the scripts in this directory: a server in a clean system. Scripts exit at the
# first failure, and stop the server.
set -euxo pipefail
export DEBIAN_FRONTEND=noninteractive PGHOST=/srv/socket PGUSER=postgres
data=/srv/socket/data

apt() { apt-get -qq -y --no-install-recommends "$@"; }
sql() { psql --no-psqlrc --no-align --tuples-only --quiet --set=ON_ERROR_STOP=1 postgres "$@"; }
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }

install_server() { # MAJOR
    mkdir -p /etc/postgresql-common/createcluster.d
    echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/test.conf
    apt update
    apt install "postgresql-$1" perl
}

start_server() { # MAJOR [SETTING=VALUE…]
    local setting
    bin=/usr/lib/postgresql/$1/bin
    install -d -o postgres -m 755 /srv/socket
    cd /srv/socket
    as_postgres "$bin/initdb" --auth=trust "$data" >/dev/null
    for setting in listen_addresses= "unix_socket_directories=$PGHOST" "${@:2}"; do
        echo "${setting%%=*} = '${setting#*=}'" >>"$data/postgresql.conf"
    done
    trap stop_server EXIT
    as_postgres "$bin/pg_ctl" start --wait --silent --pgdata="$data" --log=/srv/socket/log
}

stop_server() {
    trap - EXIT
    as_postgres "$bin/pg_ctl" stop --silent --mode=fast --pgdata="$data"
}

# Reads from the kernel whether the server is on huge pages.
on_huge_pages() {
    if grep -q anon_hugepage "/proc/$(head -n 1 "$data/postmaster.pid")/maps"; then echo t; else echo f; fi
}

works() { # VERSION
    sql --expanded --command 'SELECT * FROM hugeinfo_status'
    [ "$(sql --command 'SELECT in_use FROM hugeinfo_status')" = "$(on_huge_pages)" ]
    [ "$(sql --command "SELECT extversion FROM pg_extension WHERE extname = 'pg_hugeinfo'")" = "$1" ]
}

# Runs a query in a session that stays open after the first one. Sets $answer.
query() { # SQL
    [ -n "${SESSION_PID:-}" ] || coproc SESSION { sql; }
    echo "$1;" >&"${SESSION[1]}"
    IFS= read -r answer <&"${SESSION[0]}"
}

session_works() {
    query 'SELECT in_use FROM hugeinfo_status'
    [ "$answer" = "$(on_huge_pages)" ]
    query 'SELECT pg_backend_pid()'
    # shellcheck disable=SC2034 # the scripts use it
    backend=$answer
}
