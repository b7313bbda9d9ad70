# The table and the verdict, from lines ROUND METHOD TPS, with -v called=WHEN, and -v list=METHODS,
# of which the first is nothing: of each round the ratio to the time without a call, of these the
# median and its 95 % confidence interval. That is between two of the ratios, whatever their
# distribution: as many lie below the true median as coins show heads.

function verdict(low, high) {
    if (low >= 0.99)
        return "met"
    if (high < 0.99)
        return "NOT MET"
    return "open, more rounds or a quieter machine will tell"
}

{
    tps[$1, $2] = $3
    rounds = $1 + 1
}

END {
    name["nothing"] = "nothing"
    name["backends"] = "`SELECT * FROM hugeinfo_backends`"
    name["status"] = "`SELECT * FROM hugeinfo_status`"
    name["often"] = "one scrape a second"
    name["scrape"] = "all metrics, by postgres_exporter"
    printf("| %s | `pgbench -S`, tps | ratio | 95 %% interval |\n", called)
    print "|---|---:|---:|---:|"
    rank = int((rounds - 1.96 * sqrt(rounds)) / 2)
    if (rank < 1)
        rank = 1
    methods = split(list, method, " ")
    for (m = 1; m <= methods; m++) {
        for (round = 0; round < rounds; round++) {
            all[round + 1] = tps[round, method[m]]
            ratio[round + 1] = all[round + 1] / tps[round, "nothing"]
        }
        typical = median(ratio, rounds)
        low = ratio[rank]
        high = ratio[rounds + 1 - rank]
        interval = method[m] == "nothing" ? "" : sprintf("%.3f to %.3f", low, high)
        printf("| %s | %.0f | %.3f | %s |\n", name[method[m]], median(all, rounds), typical, interval)
        if (interval && method[m] != "often")
            says = says sprintf("%s: %.3f. Goal: 0.99: %s.\n", name[method[m]], typical, verdict(low, high))
    }
    printf("\n%s", says)
}
