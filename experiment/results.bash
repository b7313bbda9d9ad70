# What is left of a run: CSV, a table, plots and a page, all in $output.

plots=(page-tables throughput)

make_output() {
    if ! mkdir -p "$output" 2>/dev/null || [ ! -w "$output" ]; then
        die "OUTPUT=$output: it may not be written"
    fi
    output=$(realpath "$output")
    # Of an earlier run: nothing must look as if it were of this one.
    rm -f "$output"/{pages,connections,processes,rounds,summary}.csv "$output"/experiment.{md,html} "$output"/{page-tables,throughput}.svg
}

draw_results() {
    awk -F, -f bench/median.awk -f experiment/interval.awk -f experiment/summary.awk \
        "$output"/{pages,connections,processes,rounds}.csv >"$output/summary.csv"
    write_table md >"$output/experiment.md"
    draw_plots
    write_page >"$output/experiment.html"
    echo
    cat "$output/experiment.md"
    echo
    say "$output: experiment.html has all of it; experiment.md, CSV${drawn:+ and SVG} lie beside it"
}

# The table, what it is of, and what is missing.
write_table() { # md OR html
    awk -F, -f experiment/words.awk -f experiment/table.awk -v as="$1" "$output/summary.csv"
    echo
    notes | awk -f experiment/words.awk -f experiment/notes.awk -v as="$1"
}

notes() {
    local note
    echo "$(machine). shared_buffers = $(size_name $((shared_buffers_mb * 1024))), of which pgbench's table at scale $(scale) fills $((table_pages / 128)) MB; $clients connections."
    echo "Throughput is that of pgbench -S: the median of rounds of $duration s, each case in turn; rounds: $rounds." \
        "A ratio compares with the first line of the same round, and is the median of these."
    ((rounds >= 6)) || echo "A 95 % interval takes 6 rounds."
    for note in "${left_out[@]}"; do
        echo "Left out: $note."
    done
    is_compared || echo "Left out: a plot of throughput: there is nothing to compare with."
    [ -n "$drawn" ] || echo "Left out: plots: gnuplot is missing. Run: sudo scripts/setup packages gnuplot-nox"
}

drawn=
command -v gnuplot >/dev/null && drawn=yes

is_compared() {
    ((${#cases[@]} > 1))
}

draw_plots() {
    local plot
    [ -n "$drawn" ] || return 0
    for plot in "${plots[@]}"; do
        [ "$plot" != throughput ] || is_compared || continue
        {
            awk -F, -f experiment/words.awk -f experiment/plot.awk -f "experiment/$plot.awk" \
                -v of="shared_buffers = $(size_name $((shared_buffers_mb * 1024))); $(machine)" "$output"/{summary,connections,rounds}.csv
            cat experiment/plot.gp "experiment/$plot.gp"
        } | LC_ALL=C.UTF-8 gnuplot >"$output/$plot.svg"
    done
}

# All on one page that needs no other file and no network.
write_page() {
    local plot
    sed '/@content@/,$d' experiment/page.html
    for plot in "${plots[@]}"; do
        # Without what only a file of its own begins with.
        [ ! -s "$output/$plot.svg" ] || { echo '<figure>'; sed '1,/^<svg/{/^<svg/!d}' "$output/$plot.svg"; echo '</figure>'; }
    done
    write_table html
    for table in summary rounds connections processes; do
        printf '<details><summary>%s.csv</summary><pre>' "$table"
        sed 's/&/\&amp;/g; s/</\&lt;/g' "$output/$table.csv"
        echo '</pre></details>'
    done
    sed '1,/@content@/d' experiment/page.html
}
