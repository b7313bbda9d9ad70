# Of hugeinfo_status.

BEGIN {
    column = "GB touched, in small pages:"
    base = "status"
    name["status"] = "`SELECT status, reason FROM hugeinfo_status`, in the server"
    name["remedy"] = "`SELECT * FROM hugeinfo_status`: with the remedy, as this server is not well"
    name["client"] = "the same, as `psql` with an open connection sees it"
    name["floor"] = "the same system calls, in C"
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
        x = typical("status", at[i], "status", at[1])
        if (x < low)
            low = x
        if (x > high)
            high = x
    }
    flat = high / low
    cheaper = lowest_ratio("pmap", "status")
    printf("Cheaper than the pmap pipeline: %.1f times in the server, %.1f times as psql sees it. Wanted: 20 times in the server: %s.\n",
           cheaper, lowest_ratio("pmap", "client"), verdict(cheaper >= 20))
    printf("Flat as touched memory grows: within %.2f. Wanted: within 1.20: %s.\n", flat, verdict(flat <= 1.2))
}
