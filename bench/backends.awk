# Of hugeinfo_backends.

BEGIN {
    column = "backends:"
    base = "floor"
    name["function"] = "`SELECT * FROM hugeinfo_backends()`, in the server"
    name["figures"] = "`SELECT pid, page_table_bytes, minor_faults, major_faults FROM hugeinfo_backends`, in the server"
    name["footprint"] = "`SELECT * FROM hugeinfo_footprint`, in the server"
    name["floor"] = "`stat` and `status` of each process, in C"
    name["view"] = "`SELECT * FROM hugeinfo_backends`, in the server"
    name["floor4"] = "these and `oom_score`, `oom_score_adj`, in C"
    name["core"] = "`pg_read_file('/proc/' \\|\\| pid \\|\\| '/status')` of `pg_stat_activity`, VmPTE alone"
    name["ps"] = "`ps -o pid,min_flt,maj_flt,rss --ppid PM`"
    name["grep"] = "`grep VmPTE /proc/PID/status` in a loop"
    name["pss"] = "`awk '/^Pss:/ …' /proc/PID/smaps` in a loop"
}

# Where there are so few backends that what a query costs in any case is much of it, nothing is
# wanted.
function within(what, method, of, most,    i, x) {
    for (i = 1; i <= last; i++)
        if (at[i] >= 200) {
            x = typical(method, at[i], of, at[i])
            printf("%s, %d backends: %.2f times %s. Goal: %.2f: %s.\n", what, at[i], x, name[of], most, verdict(x <= most))
        }
}

# How much more a backend costs among many: in each round, so that noise cancels out.
function growth(method) {
    return typical(method, at[last], method, at[last - 1]) * at[last - 1] / at[last]
}

END {
    within("The function", "function", "floor", 1.25)
    within("Four columns of the view", "figures", "floor", 1.25)
    within("The same", "figures", "core", 1)
    within("All columns", "view", "floor4", 1.5)
    within("The footprint", "footprint", "function", 1.5)
    if (last > 1) {
        x = growth("function")
        printf("A backend among %d costs %.2f times one among %d (in C %.2f times). Goal: 1.10: %s.\n",
               at[last], x, at[last - 1], growth("floor"), verdict(x <= 1.1))
    }
}
