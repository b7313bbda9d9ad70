# The table, from lines ROUND CASE METHOD MICROSECONDS: a row for each method, a column for each
# case. Ratios are taken within a round, then the median of these: other work on the machine slows
# all samples of a round.
#
# The file after this one sets name[METHOD], column (what a case is) and base (which method others
# are compared with), and ends with a verdict.

# Of one method in one case, or of its ratio to another; -1 where there are no samples.
function typical(method, where, to_method, to_where,    list, n, round) {
    n = 0
    for (round = 0; round < rounds; round++)
        if ((round, where, method) in value)
            list[++n] = value[round, where, method] / (to_method == "" ? 1 : value[round, to_where, to_method])
    return n ? median(list, n) : -1
}

function cell(x, format) {
    return x < 0 ? "–" : sprintf(format, x)
}

function verdict(is_met) {
    return is_met ? "met" : "NOT MET"
}

NF > 3 {
    value[$1, $2, $3] = $4
    rounds = $1 + 1
}

END {
    last = split(cases, at, " ")
    head = "| " column " |"
    line = "|---|"
    for (i = 1; i <= last; i++) {
        head = head " " at[i] ", µs |"
        line = line "---:|"
    }
    for (i = 1; i <= last; i++) {
        head = head " " at[i] ", ratio |"
        line = line "---:|"
    }
    print head
    print line
    rows = split(methods, method, " ")
    for (m = 1; m <= rows; m++) {
        row = "| " name[method[m]] " |"
        for (i = 1; i <= last; i++)
            row = row " " cell(typical(method[m], at[i]), "%.0f") " |"
        for (i = 1; i <= last; i++)
            row = row " " cell(typical(method[m], at[i], base, at[i]), "%.2f") " |"
        print row
    }
    print ""
}
