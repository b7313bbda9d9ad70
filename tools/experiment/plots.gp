# Draws the plots. The program defines an array for each column of summary.csv, arrays cell1 to
# cell9 for the columns of the table, run[1] with the directory, run[2] with the subtitle, and $dots
# with a ratio of 1, and then the ratio of each round and the number of its case.

# Colors of Okabe and Ito, which color-blind people can distinguish, without the lightest ones.
color(i) = word("#D55E00 #0072B2 #009E73 #CC79A7 #000000 #56B4E9", (i - 1) % 6 + 1)
is_known(value) = strlen(value) > 0
percent(ratio) = 100 * (ratio - 1)
percent_or(value, default) = is_known(value) ? percent(value) : default
ratio(i) = percent_or(tps_ratio[i], NaN)
cases = |pages|
set encoding utf8
set terminal svg size 1100,600 fixed font "sans-serif,18" background "white"

do for [plot in cases > 1 ? "page-tables throughput" : "page-tables"] {
    reset
    set datafile separator comma
    set output run[1]."/".plot.".svg"
    set termoption noenhanced
    set border 3 linecolor rgb "#555555"
    set tics nomirror textcolor rgb "#333333"
    set xtics out
    unset key
    set tmargin 4.5
    heading = plot eq "throughput" ? "Throughput of pgbench -S, against ".cell1[1]." in the same round" : \
        "Page tables of connections that have touched all data in shared buffers"
    set label 1001 heading at screen 0.015, screen 0.945 left font ",24" textcolor rgb "#000000"
    set label 1002 run[2] at screen 0.015, screen 0.885 left font ",14" textcolor rgb "#555555"
    if (plot eq "page-tables") {
        file = run[1]."/connections.csv"
        stats file skip 1 using 2 name "x" nooutput
        stats file skip 1 using 3 name "y" nooutput
        set logscale x 2
        set logscale y 2
        set xrange [0.9:x_max * 1.1]
        set yrange [y_min / 2:y_max * 2]
        set grid y linecolor rgb "#dddddd" linetype 1 linewidth 1
        set ytics ("1 kB" 2**10, "4 kB" 2**12, "16 kB" 2**14, "64 kB" 2**16, "256 kB" 2**18, "1 MB" 2**20, "4 MB" 2**22, "16 MB" 2**24, \
            "64 MB" 2**26, "256 MB" 2**28, "1 GB" 2**30, "4 GB" 2**32, "16 GB" 2**34, "64 GB" 2**36, "256 GB" 2**38, "1 TB" 2**40)
        set xlabel "connections"
        set ylabel "sum of their page tables (log scale)"
        set lmargin 12
        set rmargin 33
        # Labels at the ends of the lines, from top to bottom. They are at least a twelfth of the
        # height apart.
        array is_placed[cases]
        do for [i=1:cases] { is_placed[i] = 0 }
        y = 2 * log(y_max)
        do for [n=1:cases] {
            top = 0
            do for [i=1:cases] { top = !is_placed[i] && (top == 0 || page_table_bytes[i] + 0 > page_table_bytes[top] + 0) ? i : top }
            is_placed[top] = 1
            end = log(page_table_bytes[top])
            below = y - (log(y_max) - log(y_min) + 2) / 14
            y = end < below ? end : below
            set label top cell1[top].": ".cell7[top] at x_max, exp(y) left offset 1.2, 0 textcolor rgb color(top)
        }
        # Later lines are thinner, so that lines on top of each other are all visible.
        plot for [i=1:cases] file skip 1 using (strcol(1) eq pages[i] ? $2 : NaN):3 with linespoints \
            linewidth 3 + 3 * (cases - i) pointtype 5 + 2 * (i % 2) pointsize 0.7 + 0.35 * (cases - i) linecolor rgb color(i)
    } else {
        do for [i=1:cases] {
            words = cell2[i]." tps"
            if (i > 1 && is_known(tps_ratio[i])) {
                interval = sprintf(" (%+.1f to %+.1f)", percent_or(tps_ratio_low[i], 0), percent_or(tps_ratio_high[i], 0))
                words = cell3[i].(is_known(tps_ratio_low[i]) ? interval : "")."\n".words
            }
            set label i words at graph 1, first -i left offset 1.5, (i > 1 ? 0.5 : 0) textcolor rgb color(i)
            set label 100 + i cell1[i] at graph 0, first -i right offset -1.5, 0 textcolor rgb color(i)
        }
        unset ytics
        set border 1
        set grid x linecolor rgb "#dddddd" linetype 1 linewidth 1
        # About five steps of a round number. stats ignores values outside of ranges.
        stats $dots using (percent($1)) name "x" nooutput
        fifth = (x_max - x_min) / 5
        unit = fifth > 0 ? 10 ** floor(log10(fifth)) : 0.001
        set xtics out font ",14" unit * (fifth <= unit ? 1 : fifth <= 2 * unit ? 2 : fifth <= 5 * unit ? 5 : 10)
        set format x "%+g%%"
        set yrange [-cases - 0.6:-0.4]
        set xlabel "difference; dot: a round; square and bar: median and its 95% interval"
        set lmargin 26
        set rmargin 31
        set offsets graph 0.05, graph 0.05, 0, 0
        set arrow 1 from 0, graph 0 to 0, graph 1 nohead linewidth 3 linecolor rgb color(1)
        plot $dots using ($2 > 1 ? percent($1) : NaN):(0.13 - $2) with points pointtype 7 pointsize 0.7 linecolor rgb "#999999", \
            for [i=2:cases] "+" using (ratio(i)):(-i):(percent_or(tps_ratio_low[i], ratio(i))):(percent_or(tps_ratio_high[i], ratio(i))) every ::::0 \
                with xerrorbars linewidth 3 pointtype 5 pointsize 1 linecolor rgb color(i), \
            "+" using (0):(-1):(1) every ::::0 with points pointtype 5 linecolor rgb color(1)
    }
}
