# One data directory, and one server at a time on the pages of a case.

load_data() {
    say "loading the data"
    server_create "shared_buffers = ${shared_buffers_mb}MB" "max_connections = $((clients + 20))" \
        "include_if_exists = '$workspace/case.conf'" 'autovacuum = off' 'max_parallel_workers_per_gather = 0' \
        'wal_level = minimal' 'max_wal_senders = 0' 'max_wal_size = 16GB' 'checkpoint_timeout = 1d' \
        "maintenance_work_mem = $((shared_buffers_mb / 8 + 1))MB"
    # Or I/O workers would touch the buffers.
    [[ $("$PG_CONFIG" --version) =~ ^PostgreSQL\ 1[5-7] ]] || echo 'io_method = sync' | "${as_owner[@]}" tee -a "$data/postgresql.conf" >/dev/null
    segment_mb=$("${as_owner[@]}" "$bin/postgres" -D "$data" -C shared_memory_size 2>/dev/null)
    (($(case_mb "${cases[0]}" "$segment_mb") <= $(spare_mb))) ||
        die "the server takes $(case_mb "${cases[0]}" "$segment_mb") MB with its connections, and $(spare_mb) MB are to be had"
    case_settings 'huge_pages = off'
    server_start
    sql --quiet --command='CREATE EXTENSION pg_hugeinfo' --command='CREATE EXTENSION pg_prewarm'
    run_job "$bin/pgbench" --initialize --unlogged-tables --scale="$(scale)" --quiet postgres >"$private/pgbench.log" 2>&1 ||
        die "$(<"$private/pgbench.log")"
    table_pages=$(ask_once "SELECT pg_relation_size('pgbench_accounts') / current_setting('block_size')::int")
    server_stop
    # Or it would be written while others are measured.
    run_job sync -f "$data"
    progress "$(seconds_to_load)" "$(ask_disk) MB of data are loaded"
}

ask_disk() {
    du --summarize --block-size=1M "$data/base" | cut -f1
}

ask_once() { # SQL
    sql --no-align --tuples-only --quiet --command="$1"
}

case_settings() { # SETTING…
    printf '%s\n' "$@" >"$workspace/case.conf"
    chmod 644 "$workspace/case.conf"
}

# The server of a case with its data in the buffers; false with the reason in $why.
case_begin() { # CASE
    local settings=('huge_pages = off')
    why=
    ! is_huge "$1" || settings=('huge_pages = on' "huge_page_size = $1")
    case_settings "${settings[@]}"
    host_for "$1" "$segment_mb" || return
    if ! "${as_owner[@]}" "$bin/pg_ctl" start --silent --pgdata="$data" --log="$log" >/dev/null; then
        why="the server did not start: $(grep FATAL "$log" | tail -n 1)"
        pool_give_back
        return 1
    fi
    fill_buffers
    session_open "$1"
    is_as_wanted "$1" || { case_end "$1"; return 1; }
}

# The process that fills a buffer touches it: in its own mappings it sees which pages there are.
fill_buffers() {
    run_job "$bin/psql" --no-psqlrc --dbname=postgres --quiet --no-align --tuples-only --set=ON_ERROR_STOP=1 --command="
        SELECT pg_prewarm('pgbench_accounts'), pg_prewarm('pgbench_accounts_pkey')" --command="
        SELECT page_size_bytes / 1024, (SELECT (sum(shmem_thp_bytes) / 1024)::bigint FROM hugeinfo_mappings WHERE kind = 'main segment')
        FROM hugeinfo_status" >"$private/pages" 2>&1 || die "$(<"$private/pages")"
    IFS='|' read -r has_page_kb has_thp_kb < <(tail -n 1 "$private/pages")
}

case_end() { # CASE
    session_close "$1"
    server_stop
    pool_give_back
}

# What is measured must be what it is called.
is_as_wanted() { # CASE
    case $1 in
        thp) ((has_thp_kb)) || why="the kernel put nothing of the segment on them" ;;
        "$small") ((!has_thp_kb && has_page_kb == page_kb[$1])) || why="the kernel put the segment on other pages" ;;
        *) ((has_page_kb == page_kb[$1])) || why="the segment lies on pages of $has_page_kb kB" ;;
    esac
    [ -z "$why" ]
}

# A row of each page of the table: what a backend finds in the buffers it touches as it looks into
# it.
touch_all() {
    echo "SELECT count(aid) FROM pgbench_accounts WHERE ctid = ANY (ARRAY(SELECT format('(%s,1)', page)::tid FROM generate_series(0, $((table_pages - 1))) AS page));"
}

session_close() { # CASE
    local in=${to[$1]} out=${from[$1]}
    exec {in}>&- {out}<&-
    rm "$private/to.$1" "$private/from.$1"
}
