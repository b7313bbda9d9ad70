# What page-tables.gp draws, from summary.csv and connections.csv: a line for each case, named at
# its end.

FILENAME ~ /summary.csv$/ && FNR > 1 {
    name[++cases] = $1
    end[cases] = $10
    connections = $9
}

FILENAME ~ /connections.csv$/ && FNR > 1 {
    rows[$1] = rows[$1] $2 " " $3 "\n"
}

# Names keep a distance of their height, from top to bottom.
function place_names(    i, j, swap, floor) {
    for (i = 1; i <= cases; i++)
        order[i] = i
    for (i = 1; i <= cases; i++)
        for (j = i + 1; j <= cases; j++)
            if (end[order[j]] > end[order[i]]) {
                swap = order[i]
                order[i] = order[j]
                order[j] = swap
            }
    highest = lowest = 0
    for (i = 1; i <= cases; i++) {
        at[order[i]] = log(end[order[i]])
        if (i > 1 && at[order[i]] > at[order[i - 1]] - distance)
            at[order[i]] = at[order[i - 1]] - distance
    }
}

END {
    least = most = end[1]
    for (i = 1; i <= cases; i++) {
        split(rows[name[i]], first, /[ \n]/)
        if (first[2] < least)
            least = first[2]
        if (end[i] > most)
            most = end[i]
    }
    # A twelfth of the height.
    distance = (log(most) - log(least) + 2) / 14
    place_names()
    print_heading("Page tables of connections that have touched all data in shared buffers", of)
    printf "least = %.0f\nmost = %.0f\nconnections = %d\ncases = %d\n", least, most, connections, cases
    print "array colours[" cases "]"
    for (i = 1; i <= cases; i++) {
        printf "$case%d << EOD\n%sEOD\n", i, rows[name[i]]
        printf "colours[%d] = %s\n", i, quoted(colour(i))
        printf "set label %d %s at %d, %.0f left offset 1.2, 0 textcolor rgb %s\n", i,
            quoted(page_words(name[i]) ": " bytes_words(end[i])), connections, exp(at[i]), quoted(colour(i))
    }
}
