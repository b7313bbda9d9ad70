# How large the server is, how much data it gets, and how long all of it takes.

choose_size() {
    local fits case
    case $(stat --file-system --format=%T "$TMPDIR") in
        tmpfs | ramfs) die "$TMPDIR lies in memory: name a directory on a disk, as in TMPDIR=/srv make experiment" ;;
    esac
    fits=$(largest_mb)
    ((fits >= 32)) || die "too little is free: $(spare_mb) MB of memory beyond a margin, $(disk_mb) MB on the disk of $TMPDIR"
    if [ -z "$shared_buffers_mb" ]; then
        shared_buffers_mb=$fits
        while (($(estimate) > 1800 && shared_buffers_mb > 1024)); do
            ((shared_buffers_mb = shared_buffers_mb * 3 / 4))
        done
        # A round figure.
        ((shared_buffers_mb < 2048)) || ((shared_buffers_mb -= shared_buffers_mb % 1024))
    fi
    (($(segment_estimate) <= $(spare_mb))) ||
        die "SHARED_BUFFERS=$(size_name $((shared_buffers_mb * 1024))): memory has room for $fits MB: $(spare_mb) MB are free beyond a margin"
    (($(data_mb) + 2048 <= $(disk_mb))) ||
        die "the data takes $(data_mb) MB and 2 GB more must stay free, and the disk of $TMPDIR has $(disk_mb) MB: name another, as in TMPDIR=/srv make experiment"
}

# The segment and the file cache hold the data, each.
largest_mb() {
    local spare disk mb
    spare=$(spare_mb) disk=$(($(disk_mb) - 2048))
    # Of small pages, page tables take 8 bytes for each of each connection.
    mb=$(((spare - clients * 6) * 100 / (200 + 100 * clients * 8 / (1024 * ${page_kb[$small]}))))
    echo $((mb < disk ? mb : disk))
}

# PostgreSQL tells exactly, once there is a server.
segment_estimate() {
    echo $((shared_buffers_mb * 103 / 100 + clients / 4 + 16))
}

# pgbench's table and index take 15.3 MB for each unit of scale, and 90 % of the buffers.
scale() {
    local scale=$((shared_buffers_mb * 9 / 153))
    echo $((scale > 1 ? scale : 1))
}

data_mb() {
    echo $(($(scale) * 154 / 10 + 100))
}

# Seconds of each part, for one case, on a machine of some years. The rest of the time is told by
# what has passed.
seconds_to_load() { echo $((5 + $(data_mb) / 60)); }
seconds_to_warm() { echo $((3 + $(data_mb) / 1000)); }
seconds_to_connect() { echo $((4 + clients * shared_buffers_mb * 3 / 8192 / 2)); }
seconds_to_measure() { echo $((warm_up + duration + 1)); }

estimate() {
    echo $(($(seconds_to_load) + ${#cases[@]} * ($(seconds_to_warm) + $(seconds_to_connect)) +
        ${#cases[@]} * rounds * ($(seconds_to_warm) + $(seconds_to_measure))))
}
