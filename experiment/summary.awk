# One row for each case, of pages.csv, connections.csv, processes.csv and rounds.csv.

FNR == 1 {
    table = FILENAME
    sub(/.*\//, "", table)
    next
}

table == "pages.csv" {
    page[++cases] = $1
    size[$1] = $2
    foretold[$1] = $4
}

# The last row of a case is that of all connections.
table == "connections.csv" {
    connections[$1] = $2
    tables[$1] = $3
    server_tables[$1] = $4
}

table == "processes.csv" {
    if ($2 != at[$1]) {
        at[$1] = $2
        n[$1] = pss[$1] = faults[$1] = most[$1] = 0
    }
    if ($5 == "t") {
        n[$1]++
        pss[$1] += $9
        faults[$1] += $7
    }
}

table == "rounds.csv" {
    tps[$2, $1] = $3
    fault_rate[$2, $1] = $4
    if ($1 > rounds)
        rounds = $1
}

# Of those rounds that have both.
function collect(case_, base,    round, count) {
    count = 0
    for (round = 1; round <= rounds; round++)
        if ((case_, round) in tps && (base == "" || (base, round) in tps)) {
            count++
            list[count] = base == "" ? tps[case_, round] : tps[case_, round] / tps[base, round]
            rates[count] = fault_rate[case_, round]
        }
    return count
}

END {
    print "pages,page_size_bytes,rounds,tps,tps_ratio,tps_ratio_low,tps_ratio_high,minor_faults_per_second,connections," \
        "page_table_bytes,server_page_table_bytes,one_page_table_bytes,one_foretold_bytes,one_minor_faults,one_pss_bytes"
    for (i = 1; i <= cases; i++) {
        c = page[i]
        count = collect(c, "")
        typical = rate = ratio = low = high = ""
        if (count) {
            typical = sprintf("%.1f", median(list, count))
            rate = sprintf("%.0f", median(rates, count))
        }
        count = collect(c, page[1])
        if (count) {
            ratio = sprintf("%.4f", median(list, count))
            rank = interval_rank(count)
            if (rank && i > 1) {
                low = sprintf("%.4f", list[rank])
                high = sprintf("%.4f", list[count + 1 - rank])
            }
        }
        printf "%s,%.0f,%d,%s,%s,%s,%s,%s,%d,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f\n", c, size[c], count, typical, ratio, low, high, rate, connections[c],
            tables[c], server_tables[c], tables[c] / n[c], foretold[c], faults[c] / n[c], pss[c] / n[c]
    }
}
