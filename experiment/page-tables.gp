set logscale x 2
set logscale y 2
set xrange [0.9:connections * 1.1]
set yrange [least / 2:most * 2]
set xtics out
set ytics ("1 kB" 2**10, "4 kB" 2**12, "16 kB" 2**14, "64 kB" 2**16, "256 kB" 2**18, "1 MB" 2**20, "4 MB" 2**22, "16 MB" 2**24, \
    "64 MB" 2**26, "256 MB" 2**28, "1 GB" 2**30, "4 GB" 2**32, "16 GB" 2**34, "64 GB" 2**36, "256 GB" 2**38, "1 TB" 2**40)
set xlabel "connections"
set ylabel "sum of their page tables (log scale)"
set lmargin 12
set rmargin 33
# What comes later is thinner: lines that lie on one another are all seen.
plot for [i = 1:cases] "$case".i using 1:2 with linespoints linewidth 3 + 3 * (cases - i) pointtype 5 + 2 * (i % 2) pointsize 0.7 + 0.35 * (cases - i) linecolor rgb colours[i]
