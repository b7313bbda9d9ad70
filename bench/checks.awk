# Of hugeinfo_checks.

BEGIN {
    column = "backends:"
    base = "view"
    name["checks"] = "`SELECT * FROM hugeinfo_checks` by a member of pg_monitor, in the server"
    name["planner"] = "the same by a role that may execute hugeinfo_plan()"
    name["view"] = "`SELECT * FROM hugeinfo_backends`, in the server"
}

END {
    for (i = 1; i <= last; i++)
        if (at[i] >= 200) {
            x = typical("checks", at[i], "view", at[i])
            printf("The checks, %d backends: %.2f times hugeinfo_backends. Goal: 1.50: %s.\n", at[i], x, verdict(x <= 1.5))
        }
}
