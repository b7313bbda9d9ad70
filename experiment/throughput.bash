# pgbench -S on each case in turn, round by round, so that all meet the same noise.

measure_throughput() {
    local round case i
    echo 'round,pages,tps,minor_faults_per_second,page_table_bytes' >"$output/rounds.csv"
    for ((round = 1; round <= rounds; round++)); do
        for ((i = 0; i < ${#cases[@]}; i++)); do
            # Each case comes first, second, … equally often.
            case=${cases[(i + round - 1) % ${#cases[@]}]}
            if case_begin "$case"; then
                measure_case "$case" "$round" >>"$output/rounds.csv"
                case_end "$case"
                progress $(($(seconds_to_warm) + $(seconds_to_measure))) \
                    "round $round of $rounds, $(in_words "$case"): $(tail -n 1 "$output/rounds.csv" | cut -d, -f3) tps"
            else
                leave_out "$case" "in round $round $why"
                not_planned $(($(seconds_to_warm) + $(seconds_to_measure)))
            fi
        done
    done
}

# Transactions of each second without those of the warm-up, by one pgbench whose connections stay.
measure_case() { # CASE ROUND
    local second=0 sum=0 kind tps faults=0 faults_before=0 tables jobs at both lines
    jobs=$(nproc)
    rm -f "$private/progress"
    mkfifo "$private/progress"
    # Open for both, or each end would wait for the other.
    exec {both}<>"$private/progress"
    # The same rows for each case of a round.
    start_job "$bin/pgbench" --no-vacuum --select-only --client="$clients" --jobs=$((jobs < clients ? jobs : clients)) \
        --random-seed="$2" --progress=1 --time=$((warm_up + duration + 1)) postgres >"$private/progress" 2>&1
    exec {lines}<"$private/progress" {both}>&-
    while read -r kind _ _ tps _; do
        [ "$kind" = progress: ] || continue
        ((++second))
        if ((second == warm_up)); then
            faults_before=$(client_faults "$1") at=${EPOCHREALTIME/./}
        elif ((second > warm_up && second <= warm_up + duration)); then
            sum="$sum + $tps"
            if ((second == warm_up + duration)); then
                faults=$((($(client_faults "$1") - faults_before) * 1000000 / (${EPOCHREALTIME/./} - at)))
                tables=$(ask "$1" 'SELECT page_table_bytes FROM hugeinfo_footprint;')
            fi
        fi
    done <&"$lines"
    exec {lines}<&-
    wait_job
    ((second >= warm_up + duration)) || die "pgbench ended early"
    awk -v OFS=, "BEGIN {print $2, \"$1\", sprintf(\"%.1f\", ($sum) / $duration), $faults, $tables}"
}

client_faults() { # CASE
    ask "$1" "SELECT sum(minor_faults) FROM hugeinfo_backends WHERE application_name = 'pgbench';"
}
