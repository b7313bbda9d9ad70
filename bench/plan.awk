# Of hugeinfo_plan.

BEGIN {
    column = "GB touched, in small pages:"
    base = "hand"
    name["function"] = "`SELECT * FROM hugeinfo_plan()`, in the server"
    name["hand"] = "`postgres -C shared_memory_size_in_huge_pages` by hand"
}

END {
    highest = 0
    for (i = 1; i <= last; i++)
        if ((x = typical("function", at[i], "hand", at[i])) > highest)
            highest = x
    printf("Against the program by hand: at most %.2f. Goal: 1.30: %s.\n", highest, verdict(highest <= 1.3))
}
