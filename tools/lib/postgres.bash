# A private copy of PostgreSQL with this extension installed, and a throwaway server, both in
# $workspace. Nothing is installed into the host's PostgreSQL, so this needs no root and affects no
# server of the host, and user postgres needs no access to the sources.

# PostgreSQL refuses to run as root.
as_owner=()
if [ "$(id -u)" = 0 ]; then
    as_owner=(env -C / setpriv --reuid=postgres --regid=postgres --init-groups --)
fi

# The user's settings for psql are meant for other servers.
for name in $(compgen -e | grep '^PG' | grep -v '^PG_CONFIG$'); do
    unset "$name"
done

# The directory with the built extension, if it is not that of `make build`.
package=''

# A copy with the same layout is a complete installation, because programs find their files by
# relative paths.
postgres_copy() {
    PG_CONFIG=$(tools/pg-config)
    local bindir directory
    bindir=$("$PG_CONFIG" --bindir)
    mkdir -p "$workspace$bindir"
    # One by one, because some distributions keep them in /usr/bin.
    for program in postgres initdb pg_ctl pg_config psql pg_basebackup pg_controldata pg_isready pg_waldump pgbench; do
        cp -L "$bindir/$program" "$workspace$bindir/"
    done
    for directory in "$("$PG_CONFIG" --pkglibdir)" "$("$PG_CONFIG" --sharedir)"; do
        mkdir -p "$workspace$directory"
        run_job cp -a "$directory/." "$workspace$directory/"
    done
    run_job make --no-print-directory --quiet install PG_CONFIG="$PG_CONFIG" DESTDIR="$workspace" ${package:+PACKAGE="$package"}
    bin=$workspace$bindir
}

# Sets $sources to the directory with the files that tests pass to other programs, and with these
# programs. It is a copy if the user of the servers cannot read this checkout.
sources_for_owner() {
    sources=$PWD
    ((${#as_owner[@]})) && ! "${as_owner[@]}" test -r "$PWD/README.md" || return 0
    sources=$workspace/sources
    mkdir -p "$sources"/{t,target}
    local path
    for path in docs monitoring tools t/report target/monitoring target/program target/tools; do
        [ ! -e "$path" ] || run_job cp -a "$path" "$sources/$path"
    done
    run_job chmod -R go+rX "$sources"
}

# Creates a new cluster for tests to copy, which is much faster than initdb. The locale is that of
# PostgreSQL's TAP modules.
cluster_template() {
    export INITDB_TEMPLATE=$workspace/template
    mkdir "$INITDB_TEMPLATE"
    ((!${#as_owner[@]})) || chown postgres: "$INITDB_TEMPLATE"
    run_job "${as_owner[@]}" env -u LANGUAGE -u LC_ALL LC_MESSAGES=C \
        "$bin/initdb" --pgdata="$INITDB_TEMPLATE" --auth=trust --no-sync >"$workspace/initdb.log" 2>&1 ||
        { cat "$workspace/initdb.log"; die "initdb failed"; }
}

# Each call creates another server. The functions below use the last one.
server_create() { # SETTING…
    local home=$workspace/server$((++servers))
    data=$home/data
    log=$home/log
    mkdir "$home"
    [ -z "${as_owner[*]}" ] || chown postgres: "$home"
    "${as_owner[@]}" "$bin/initdb" --pgdata="$data" --username=postgres --auth=trust --encoding=UTF8 --locale=C \
        --no-sync >"$workspace/initdb.log" 2>&1 || { cat "$workspace/initdb.log"; die "initdb failed"; }
    printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$home'" "fsync = off" "$@" |
        "${as_owner[@]}" tee -a "$data/postgresql.conf" >/dev/null
    export PGHOST=$home PGUSER=postgres
}
servers=0

# The number of huge pages of the default size that the server requests.
server_pages() {
    "${as_owner[@]}" "$bin/postgres" -D "$data" -C shared_memory_size_in_huge_pages 2>/dev/null
}

server_start() {
    "${as_owner[@]}" "$bin/pg_ctl" start --silent --pgdata="$data" --log="$log" >/dev/null || { cat "$log"; die "the server did not start"; }
}

server_stop() {
    "${as_owner[@]}" "$bin/pg_ctl" stop --silent --pgdata="$data" --mode=fast
}

sql() { # PSQL'S ARGUMENTS
    "$bin/psql" --no-psqlrc --dbname=postgres --set=ON_ERROR_STOP=1 "$@"
}
