# What the measurements share: throwaway servers, connections that stay open, samples in turn, a
# table.
# shellcheck disable=SC2154 # each script sets cases, methods and rounds

. scripts/lib/host.bash
. scripts/lib/postgres.bash
export LC_ALL=C

bench_start() { # MEGABYTES
    bin=$("${PG_CONFIG:?is not set. Run: scripts/with-postgres $0}" --bindir)
    [ -e "$("$PG_CONFIG" --sharedir)/extension/pg_hugeinfo.control" ] ||
        die "$PG_CONFIG is of a PostgreSQL without pg_hugeinfo. Run: scripts/with-postgres $0"
    # Some more for the processes. The file cache can be dropped.
    (($(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo) > $1 + 512)) ||
        die "this takes $1 MB of free memory. For less: bench/README.md"

    # shellcheck disable=SC2119 # no lock: nothing of the host is changed
    host_start
    private=$workspace/private
    mkdir "$private"
}

# On small pages. Sessions and queries go to the server started last.
bench_server() { # MEGABYTES SETTING…
    local settings=("shared_buffers = ${1}MB" 'huge_pages = off' 'autovacuum = off' "${@:2}")
    # Otherwise another process would read, and so touch, what a backend asks for.
    [[ $("$PG_CONFIG" --version) =~ ^PostgreSQL\ 1[5-7] ]] || settings+=('io_method = sync')
    server_create "${settings[@]}"
    server_start
    postmaster=$(head -n 1 "$data/postmaster.pid")
    # The name is that of shared anonymous memory in small pages.
    address=$(awk '$6 == "/dev/zero" {split($1, ends, "-"); print ends[1]; exit}' "/proc/$postmaster/maps")
    sql --quiet --command='CREATE EXTENSION pg_hugeinfo' --command='CREATE EXTENSION pg_prewarm'
}

# Makes an SQL function that runs a query this many times, and returns the microseconds for one.
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

# MB of the main segment that the session of each case has touched.
declare -A backend=() to=() from=() rss=()

# A psql that stays connected.
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
    read -r answer <&"${from[$1]}" || die "psql has gone: see above"
    echo "$answer"
}

# Connections that run a query and then stay: clients that sleep.
connect() { # NUMBER QUERY
    (($1)) || return 0
    local script
    script=$(mktemp "$private/connect.XXXXXX")
    printf '%s\n' "$2;" '\sleep 1000 s' >"$script"
    # While it sleeps it does not see the server's end: it ends with the script.
    setpriv --pdeathsig TERM -- "$bin/pgbench" --no-vacuum --client="$1" --file="$script" postgres </dev/null \
        >"$private/pgbench.log" 2>&1 &
    # No message when it ends.
    disown
}

await_idle() { # SESSION NUMBER
    local tries
    for ((tries = 600; tries; tries--)); do
        (($(ask "$1" "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle' AND query <> '';") != $2)) || return 0
        sleep 0.1
    done
    die "there are not $2 connections: $(cat "$private/pgbench.log")"
}

# A page of zeros is valid: the file of the table is one large hole, which takes no disk. A backend
# touches the buffers that it fills itself. A backend that finds them filled touches them only when
# it looks into them.
touch_1gb() { # CASE TABLE
    local file
    file=$(ask "$1" "CREATE TABLE $2 (); SELECT pg_relation_filepath('$2');")
    truncate --size=1G "$data/$file"
    [ "$(ask "$1" "SELECT pg_prewarm('$2') * current_setting('block_size')::int;")" = $((1 << 30)) ] ||
        die "pg_prewarm did not read 1 GB"
}

# Fails unless that process has touched this much of the main segment.
expect_touched() { # CASE PID GB
    rss[$1]=$(awk -v start="$address-" '/^[0-9a-f]+-/ {inside = index($1, start) == 1} inside && /^Rss:/ {print int($2 / 1024)}' \
        "/proc/$2/smaps")
    ((rss[$1] >= $3 * 1024 && rss[$1] < $3 * 1024 + 128)) ||
        die "smaps shows that process $2 has touched ${rss[$1]} MB of the main segment, not $3 GB"
}

# By each case.
touched() {
    local case list=()
    for case in "${cases[@]}"; do
        list+=("${rss[$case]}")
    done
    echo "${list[*]} MB"
}

# In C: what the kernel alone takes.
floor_build() { # NAME…
    for name in "$@"; do
        cc -std=gnu11 -O2 -Wall -o "$private/$name" "bench/$name.c"
    done
}

# As the server's user, like the server itself. Prints microseconds and the number of reads.
floor_run() { # NAME ARGUMENT…
    "${as_owner[@]}" "$private/$1" "${@:2}"
}

# All methods for all cases in turn, in many short samples, so that noise affects all alike.
# sample_METHOD takes the case and a number of times, and prints microseconds. times_of gives that
# number; 0 leaves the method out of this round.
measure() {
    local round method case times i sample
    say "$rounds rounds, all methods in turn"
    for ((round = 0; round < rounds; round++)); do
        for method in "${methods[@]}"; do
            for ((i = 0; i < ${#cases[@]}; i++)); do
                # Each case comes first, second, … equally often.
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

# As the articles do, for awk.
# shellcheck disable=SC2016,SC2034 # for awk; the scripts use it
sum_of_pss='/^Pss:/ {sum += $2} END {print sum}'

# Prints the table and whether the goals are met.
report() { # NAME
    bench/summary "$1" "${methods[*]}" "${cases[*]}" <"$private/samples"
}

machine() {
    echo "$("$PG_CONFIG" --version); Linux $(uname -rm); $(lscpu | sed -n 's/^Model name: *//p' | head -n 1), $(nproc) CPUs"
}

# Does the C program still read what the server reads? Unknown if the kernel does not count reads.
compare_reads() { # CASE METHOD, WHICH IS DONE BY THE SESSION OF THAT NAME
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
