set yrange [-cases - 0.6:-0.4]
unset ytics
set border 1
unset grid
set grid x linecolor rgb "#dddddd" linetype 1 linewidth 1
set xtics out font ",14"
set format x "%+g %%"
set xlabel "difference; dot: a round; square and bar: median and its 95 % interval"
set lmargin 26
set rmargin 31
set offsets graph 0.05, graph 0.05, 0, 0
set arrow 1 from 0, graph 0 to 0, graph 1 nohead linewidth 3 linecolor rgb colours[1]
plot "$dots" using 1:2 with points pointtype 7 pointsize 0.7 linecolor rgb "#999999", \
    for [i = 2:cases] "$case".i using 1:2:3:4 with xerrorbars linewidth 3 pointtype 5 pointsize 1 linecolor rgb colours[i], \
    "+" using (0):(-1):(1) every ::::0 with points pointtype 5 linecolor rgb colours[1]
