# How much memory may be taken.

# Nobody's to take: for what else runs here, and for what no estimate has.
margin_mb() {
    awk '/^MemTotal:/ {mb = int($2 / 1024 / 20); print (mb > 512 ? mb : 512)}' /proc/meminfo
}

# What is there, less the margin. In a container its group may allow less than the host has.
spare_mb() {
    local mb group limit used left
    mb=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo)
    group=$(sed -n 's/^0:://p' /proc/self/cgroup)
    while :; do
        limit=/sys/fs/cgroup$group/memory.max used=/sys/fs/cgroup$group/memory.current
        if [ -r "$limit" ] && [ "$(<"$limit")" != max ]; then
            left=$((($(<"$limit") - $(<"$used")) >> 20))
            ((mb <= left)) || mb=$left
        fi
        [ -n "${group%/}" ] || break
        group=${group%/*}
    done
    echo $((mb - $(margin_mb)))
}

disk_mb() {
    df --output=avail --block-size=1M "$TMPDIR" | tail -n 1
}
