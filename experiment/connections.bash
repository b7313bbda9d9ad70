# What page tables, faults and PSS become as more and more connections touch the buffers, once on
# each case. Figures are the extension's.

measure_connections() {
    local case remaining=()
    echo 'pages,connections,page_table_bytes,server_page_table_bytes,host_page_table_bytes,server_total_bytes' >"$output/connections.csv"
    echo 'pages,connections,pid,backend_type,is_connection,page_table_bytes,minor_faults,major_faults,pss_bytes' >"$output/processes.csv"
    echo 'pages,page_size_bytes,thp_bytes,foretold_bytes' >"$output/pages.csv"
    for case in "${cases[@]}"; do
        if case_begin "$case"; then
            note_pages "$case"
            connect_step_by_step "$case"
            kill "${sleeping[@]}"
            case_end "$case"
            remaining+=("$case")
            progress $(($(seconds_to_warm) + $(seconds_to_connect))) "$(in_words "$case"): $clients connections have touched the buffers"
        else
            leave_out "$case" "$why"
            not_planned $(($(seconds_to_warm) + $(seconds_to_connect) + rounds * ($(seconds_to_warm) + $(seconds_to_measure))))
        fi
    done
    cases=("${remaining[@]}")
    ((${#cases[@]})) || die "nothing is left to measure"
}

# Page tables of one backend as hugeinfo_page_tables foretells them.
note_pages() { # CASE
    sql_csv pages "SELECT '$1', $((page_kb[$1] * 1024)), $((has_thp_kb * 1024)),
        (SELECT one_backend_bytes FROM hugeinfo_page_tables WHERE page_size_bytes = $((page_kb[$1] * 1024)))"
}

sql_csv() { # FILE QUERY
    sql --quiet --csv --tuples-only --command="$2" >>"$output/$1.csv"
}

# 1, 2, 4, … and all.
connect_step_by_step() { # CASE
    local now=0 next=1
    sleeping=()
    while ((now < clients)); do
        connect $((next - now)) "$(touch_all)"
        sleeping+=($!)
        await_connections "$1" "$next" $!
        now=$next
        note_connections "$1" "$now"
        ((next = now * 2 < clients ? now * 2 : clients))
    done
}

# However long they take to touch all.
await_connections() { # CASE NUMBER PGBENCH
    until (($(ask "$1" "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench' AND state = 'idle' AND query <> '';") == $2)); do
        [ -d "/proc/$3" ] || die "the connections have gone: $(<"$private/pgbench.log")"
        sleep 0.1
    done
}

note_connections() { # CASE NUMBER
    local mine="application_name = 'pgbench'"
    sql_csv connections "
        SELECT '$1', $2, (SELECT sum(page_table_bytes) FROM hugeinfo_backends WHERE $mine), f.page_table_bytes, h.page_table_bytes, f.total_bytes
        FROM hugeinfo_footprint AS f, hugeinfo_host AS h"
    sql_csv processes "
        SELECT '$1', $2, b.pid, b.backend_type, coalesce($mine, false), b.page_table_bytes, b.minor_faults, b.major_faults, m.pss_bytes
        FROM hugeinfo_backends AS b, LATERAL hugeinfo_memory(b.pid) AS m
        WHERE b.pid <> pg_backend_pid()
        ORDER BY b.pid"
}
