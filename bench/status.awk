# Of hugeinfo_status.

BEGIN {
    column = "GB touched, in small pages:"
    base = "well"
    name["well"] = "`SELECT status, reason FROM hugeinfo_status` of a healthy server, in the server"
    name["client"] = "the same, as `psql` with an open connection sees it"
    name["status"] = "the same of a server that needs attention"
    name["remedy"] = "`SELECT *` there: with the remedy"
    name["floor"] = "the system calls of the first row, in C"
    name["pmap"] = "`pmap PM \\| grep -E 'anon_hugepage\\|zero'`"
    name["smaps"] = "reading `/proc/PID/smaps`, in C"
}

function lowest_ratio(method, to_method,    i, x, lowest) {
    for (i = 1; i <= last; i++) {
        x = typical(method, at[i], to_method, at[i])
        if (i == 1 || x < lowest)
            lowest = x
    }
    return lowest
}

END {
    low = high = 1
    for (i = 2; i <= last; i++) {
        x = typical("well", at[i], "well", at[1])
        if (x < low)
            low = x
        if (x > high)
            high = x
    }
    flat = high / low
    cheaper = lowest_ratio("pmap", "well")
    printf("Cheaper than the pmap pipeline: %.1f times in the server, %.1f times as psql sees it. Goal: 20 times in the server: %s.\n",
           cheaper, lowest_ratio("pmap", "client"), verdict(cheaper >= 20))
    printf("Flat as touched memory grows: within %.2f. Goal: within 1.20: %s.\n", flat, verdict(flat <= 1.2))
}
