# Of hugeinfo_memory.

BEGIN {
    column = "GB touched, in small pages:"
    base = "floor"
    name["function"] = "`SELECT * FROM hugeinfo_memory(pid)`, in the server"
    name["floor"] = "reading `/proc/PID/smaps_rollup`, in C"
    name["pss"] = "`awk '/^Pss:/ …' /proc/PID/smaps`"
}
