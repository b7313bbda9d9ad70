# What throughput.gp draws, from summary.csv and rounds.csv: a row for each case, with each round as
# a dot, and the median with its interval.

FILENAME ~ /summary.csv$/ && FNR > 1 {
    name[++cases] = $1
    number[$1] = cases
    tps[cases] = $4
    ratio[cases] = $5
    low[cases] = $6
    high[cases] = $7
}

FILENAME ~ /rounds.csv$/ && FNR > 1 {
    of_round[$2, $1] = $3
    if ($1 > rounds)
        rounds = $1
}

function percent(x) {
    return sprintf("%.3f", 100 * (x - 1))
}

# About five steps of a round figure.
function step(range,    unit) {
    for (unit = 0.001; unit * 5 < range; unit *= 10)
        if (unit * 2 * 5 >= range)
            return unit * 2
        else if (unit * 5 * 5 >= range)
            return unit * 5
    return unit
}

# Above the bar.
function print_dot(x, y) {
    x += 0
    print x, y + 0.13
    least = x < least ? x : least
    most = x > most ? x : most
}

END {
    base = page_words(name[1])
    print_heading("Throughput of pgbench -S, against " base " in the same round", of)
    print "cases = " cases
    print "$dots << EOD"
    for (i = 2; i <= cases; i++)
        for (round = 1; round <= rounds; round++)
            if ((name[i], round) in of_round && (name[1], round) in of_round)
                print_dot(percent(of_round[name[i], round] / of_round[name[1], round]), -i)
    print "EOD"
    print "set xtics " step(most - least)
    print "array colours[" cases "]"
    for (i = 1; i <= cases; i++) {
        print "colours[" i "] = " quoted(colour(i))
        said = number_words(tps[i]) " tps"
        if (i > 1 && ratio[i] != "")
            said = percent_words(ratio[i]) (low[i] == "" ? "" : sprintf(" (%+.1f to %+.1f)", percent(low[i]), percent(high[i]))) "\\n" said
        printf "set label %d %s at graph 1, first %d left offset 1.5, %s textcolor rgb %s\n", i, "\"" said "\"", -i,
            (i > 1 ? "0.5" : "0"), quoted(colour(i))
        printf "set label %d %s at graph 0, first %d right offset -1.5, 0 textcolor rgb %s\n", 100 + i, quoted(page_words(name[i])), -i,
            quoted(colour(i))
        printf "$case%d << EOD\n", i
        if (i > 1 && ratio[i] != "")
            print percent(ratio[i]), -i, percent(low[i] == "" ? ratio[i] : low[i]), percent(high[i] == "" ? ratio[i] : high[i])
        print "EOD"
    }
}
