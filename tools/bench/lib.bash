# Shared code of the measurements: throwaway servers, persistent connections, alternating samples,
# and a table.
# shellcheck disable=SC2154 # each script sets cases, methods and rounds

. tools/lib/host.bash
. tools/lib/postgres.bash
export LC_ALL=C

bench_start() { # MEGABYTES
    bin=$("${PG_CONFIG:?is not set. Run: tools/with-postgres $0}" --bindir)
    [ -e "$("$PG_CONFIG" --sharedir)/extension/pg_hugeinfo.control" ] ||
        die "the PostgreSQL of $PG_CONFIG has no pg_hugeinfo. Run: tools/with-postgres $0"
    # Leaves 512 MB for processes. MemAvailable includes the file cache.
    (($(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo) > $1 + 512)) ||
        die "this needs $1 MB of free memory. To use less, see tools/bench/README.md"

    # shellcheck disable=SC2119 # no lock, because the host does not change
    host_start
    private=$workspace/private
    mkdir "$private"
}

# Starts a server, by default on small pages. Sessions and queries use the last server.
bench_server() { # MEGABYTES SETTING…
    local settings=("shared_buffers = ${1}MB" 'huge_pages = off' 'autovacuum = off' "${@:2}")
    # Otherwise, another process would read the buffers for a backend, and fault them in.
    [[ $("$PG_CONFIG" --version) =~ ^PostgreSQL\ 1[5-7] ]] || settings+=('io_method = sync')
    server_create "${settings[@]}"
    server_start
    postmaster=$(head -n 1 "$data/postmaster.pid")
    # The kernel shows shared anonymous memory as /dev/zero, and on huge pages as /anon_hugepage.
    address=$(awk '$6 == "/dev/zero" || $6 == "/anon_hugepage" {split($1, ends, "-"); print ends[1]; exit}' "/proc/$postmaster/maps")
    sql --quiet --command='CREATE EXTENSION pg_hugeinfo' --command='CREATE EXTENSION pg_prewarm'
}

# Creates an SQL function that runs a query repeatedly and returns the microseconds per query.
timer() { # NAME QUERY, WITHOUT ITS SELECT
    sql --quiet --file=- <<SQL
CREATE FUNCTION $1(times integer) RETURNS numeric LANGUAGE plpgsql AS \$\$
DECLARE
    start timestamptz := clock_timestamp();
BEGIN
    FOR i IN 1..times LOOP
        PERFORM $2;
    END LOOP;
    RETURN round(extract(epoch FROM clock_timestamp() - start) * 1e6 / times, 1);
END \$\$;
SQL
}

# By case: the session's PID, its pipes, and the MB of the main segment that it has faulted in.
declare -A backend=() to=() from=() rss=()

# Starts a psql that stays connected.
session_open() { # CASE
    mkfifo "$private/to.$1" "$private/from.$1"
    PGOPTIONS='-c client_min_messages=warning' "$bin/psql" --no-psqlrc --dbname=postgres --quiet \
        --no-align --tuples-only --set=ON_ERROR_STOP=1 <"$private/to.$1" >"$private/from.$1" &
    local in out
    exec {in}>"$private/to.$1" {out}<"$private/from.$1"
    to[$1]=$in from[$1]=$out
    backend[$1]=$(ask "$1" 'SELECT pg_backend_pid();')
}

ask() { # CASE SQL
    local answer
    echo "$2" >&"${to[$1]}"
    read -r answer <&"${from[$1]}" || die "psql has ended: see above"
    echo "$answer"
}

# Opens connections that run a query and then stay idle.
connect() { # NUMBER QUERY
    (($1)) || return 0
    local script
    script=$(mktemp "$private/connect.XXXXXX")
    printf '%s\n' "$2;" '\sleep 1000 s' >"$script"
    # With pdeathsig, because a sleeping pgbench does not notice when the server ends.
    setpriv --pdeathsig TERM -- "$bin/pgbench" --no-vacuum --client="$1" --file="$script" postgres </dev/null \
        >"$private/pgbench.log" 2>&1 &
    # Suppresses bash's message when it ends.
    disown
}

await_idle() { # SESSION NUMBER
    local tries
    for ((tries = 600; tries; tries--)); do
        (($(ask "$1" "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle' AND query <> '';") != $2)) || return 0
        sleep 0.1
    done
    die "could not open $2 connections: $(cat "$private/pgbench.log")"
}

# Makes a backend fault in 1 GB of shared buffers, by reading a table. Its file is one large hole,
# which needs no disk space, because a page of zeros is valid. A backend faults in the buffers that
# it fills itself. Buffers that are already filled are faulted in only by access to their contents.
touch_1gb() { # CASE TABLE
    local file
    file=$(ask "$1" "CREATE TABLE $2 (); SELECT pg_relation_filepath('$2');")
    truncate --size=1G "$data/$file"
    [ "$(ask "$1" "SELECT pg_prewarm('$2') * current_setting('block_size')::int;")" = $((1 << 30)) ] ||
        die "pg_prewarm did not read 1 GB"
}

# Fails unless the process has faulted in this much of the main segment.
expect_touched() { # CASE PID GB
    rss[$1]=$(awk -v start="$address-" '/^[0-9a-f]+-/ {inside = index($1, start) == 1} inside && /^Rss:/ {print int($2 / 1024)}' \
        "/proc/$2/smaps")
    ((rss[$1] >= $3 * 1024 && rss[$1] < $3 * 1024 + 128)) ||
        die "smaps shows that process $2 has faulted in ${rss[$1]} MB of the main segment, not $3 GB"
}

# Prints the MB of each case.
touched() {
    local case list=()
    for case in "${cases[@]}"; do
        list+=("${rss[$case]}")
    done
    echo "${list[*]} MB"
}

# Compiles C programs that measure the time of the kernel.
floor_build() { # NAME…
    for name in "$@"; do
        cc -std=gnu11 -O2 -Wall -o "$private/$name" "tools/bench/$name.c"
    done
}

# Runs a program as the server's user. Prints microseconds and the number of reads.
floor_run() { # NAME ARGUMENT…
    "${as_owner[@]}" "$private/$1" "${@:2}"
}

# Runs all methods for all cases in turn, in many short samples, so that noise affects all of them
# equally. sample_METHOD gets the case and a number of calls, and prints microseconds. times_of
# prints that number; 0 skips the method in this round.
measure() {
    local round method case times i sample
    say "$rounds rounds, all methods in turn"
    for ((round = 0; round < rounds; round++)); do
        for method in "${methods[@]}"; do
            for ((i = 0; i < ${#cases[@]}; i++)); do
                # Each case is first, second, … equally often.
                case=${cases[(i + round) % ${#cases[@]}]}
                times=$(times_of "$method" "$case")
                ((times)) || continue
                sample=$("sample_$method" "$case" "$times")
                echo "$round $case $method $sample"
            done
        done
    done >"$private/samples"
    echo
}

per_time() { # START TIMES
    echo $(((${EPOCHREALTIME/./} - $1) / $2))
}

# An awk program that many articles use.
# shellcheck disable=SC2016,SC2034 # for awk; the scripts use it
sum_of_pss='/^Pss:/ {sum += $2} END {print sum}'

# Prints the table and whether the goals are met.
report() { # NAME
    tools/bench/summary "$1" "${methods[*]}" "${cases[*]}" <"$private/samples"
}

machine() {
    echo "$("$PG_CONFIG" --version); Linux $(uname -rm); $(lscpu | sed -n 's/^Model name: *//p' | head -n 1), $(nproc) CPUs"
}

# Verifies that the C program makes as many reads as the server, if the kernel counts reads. The
# session of the case runs the method.
compare_reads() { # CASE METHOD
    local before after reads of_floor
    before=$(reads_so_far "$1")
    "sample_$2" "$1" 10 >/dev/null
    after=$(reads_so_far "$1")
    of_floor=$(sample_floor "$1" 10)
    of_floor=${of_floor#* }
    reads=$(((after - before) / 10))
    [ -z "$before" ] || ((of_floor == reads)) ||
        echo "The C program is out of step: it makes $of_floor reads, the server makes $reads."
}

reads_so_far() { # CASE
    sed -n 's/^syscr: //p' "/proc/${backend[$1]}/io" 2>/dev/null || true
}
