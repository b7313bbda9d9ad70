# The table and the verdict, from lines ROUND GB METHOD MICROSECONDS. Of the samples of each round ratios are
# taken, and of these the median: what else runs on the machine slows all samples of a round.

function median(list, n,    i, j, x) {
    for (i = 2; i <= n; i++) {
        x = list[i]
        for (j = i - 1; j > 0 && list[j] > x; j--)
            list[j + 1] = list[j]
        list[j + 1] = x
    }
    return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}

# Of one method with so much memory touched, or of its ratio to another; -1 where there are no samples.
function typical(method, gb, to_method, to_gb,    list, n, round) {
    n = 0
    for (round = 0; round < rounds; round++)
        if ((round, gb, method) in value)
            list[++n] = value[round, gb, method] / (to_method == "" ? 1 : value[round, to_gb, to_method])
    return n ? median(list, n) : -1
}

function cell(x, format) {
    return x < 0 ? "–" : sprintf(format, x)
}

function lowest_ratio(method, to_method,    i, x, lowest) {
    for (i = 1; i <= last; i++) {
        x = typical(method, size[i], to_method, size[i])
        if (i == 1 || x < lowest)
            lowest = x
    }
    return lowest
}

function verdict(is_met) {
    return is_met ? "met" : "NOT MET"
}

NF > 3 {
    value[$1, $2, $3] = $4
    rounds = $1 + 1
}

END {
    name["status"] = "`SELECT * FROM hugeinfo_status`, in the server"
    name["client"] = "the same, as `psql` with an open connection sees it"
    name["floor"] = "the same system calls, in C"
    name["pmap"] = "`pmap PM \\| grep -E 'anon_hugepage\\|zero'`"
    name["smaps"] = "reading `/proc/PID/smaps`, in C"

    last = split(sizes, size, " ")
    head = "| GB touched, in small pages: |"
    line = "|---|"
    for (i = 1; i <= last; i++) {
        head = head " " size[i] ", µs |"
        line = line "---:|"
    }
    for (i = 1; i <= last; i++) {
        head = head " " size[i] ", ratio |"
        line = line "---:|"
    }
    print head
    print line
    rows = split(methods, method, " ")
    for (m = 1; m <= rows; m++) {
        row = "| " name[method[m]] " |"
        for (i = 1; i <= last; i++)
            row = row " " cell(typical(method[m], size[i]), "%.0f") " |"
        for (i = 1; i <= last; i++)
            row = row " " cell(typical(method[m], size[i], "status", size[i]), "%.2f") " |"
        print row
    }

    low = high = 1
    for (i = 2; i <= last; i++) {
        x = typical("status", size[i], "status", size[1])
        if (x < low)
            low = x
        if (x > high)
            high = x
    }
    flat = high / low
    cheaper = lowest_ratio("pmap", "status")
    printf("\nCheaper than the pmap pipeline: %.1f times in the server, %.1f times as psql sees it. Wanted: 20 times in the server: %s.\n",
           cheaper, lowest_ratio("pmap", "client"), verdict(cheaper >= 20))
    printf("Flat as touched memory grows: within %.2f. Wanted: within 1.20: %s.\n", flat, verdict(flat <= 1.2))
}
