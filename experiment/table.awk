# The table, as Markdown or HTML, of summary.csv.

function row(tag,    i, line) {
    if (as == "md") {
        line = "|"
        for (i = 1; i <= cells; i++)
            line = line " " cell[i] " |"
        print line
        return
    }
    line = "<tr>"
    for (i = 1; i <= cells; i++)
        line = line "<" (i == 1 ? "th" : tag) ">" html(cell[i]) "</" (i == 1 ? "th" : tag) ">"
    print line "</tr>"
}

function or_none(value, words) {
    return value == "" ? "–" : words
}

NR == 1 {
    if (as == "html")
        print "<table>"
    next
}

NR == 2 {
    base = page_words($1)
    cells = split("main segment on;pgbench -S, tps;against " base ";95 % interval;page faults/s;page tables of one connection;" \
        "of all " $9 ";page faults of one;PSS of one", cell, ";")
    row("th")
    if (as == "md")
        print "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
}

{
    cell[1] = page_words($1)
    cell[2] = or_none($4, number_words($4))
    cell[3] = NR == 2 ? "" : or_none($5, percent_words($5))
    cell[4] = NR == 2 ? "" : or_none($6, percent_words($6) " to " percent_words($7))
    cell[5] = or_none($8, number_words($8))
    cell[6] = bytes_words($12)
    cell[7] = bytes_words($10)
    cell[8] = number_words($14)
    cell[9] = bytes_words($15)
    row("td")
}

END {
    if (as == "html")
        print "</table>"
}
