# The cases: small pages, each size of huge pages, and transparent huge pages. Which of them this
# machine can have, and how the host is made so.

cases=()
left_out=()
declare -A page_kb=()

thp=/sys/kernel/mm/transparent_hugepage

# As PostgreSQL writes sizes.
size_name() { # KB
    local size=$1 unit
    for unit in kB MB GB TB; do
        ((size >= 1024 && size % 1024 == 0)) || break
        ((size /= 1024))
    done
    echo "$size$unit"
}

# As on a page.
in_words() { # CASE
    case $1 in
        thp) echo "transparent huge pages" ;;
        *) echo "${1%%[kMGT]*} ${1##*[0-9]} pages" ;;
    esac
}

leave_out() { # CASE REASON
    left_out+=("$(in_words "$1"): $2")
    say "left out: $(in_words "$1"): $2"
}

# Small pages come first: the others are compared with the first.
choose_cases() {
    local kb name known=() why
    small=$(size_name $(($(getconf PAGESIZE) / 1024)))
    page_kb[$small]=$(($(getconf PAGESIZE) / 1024))
    known=("$small")
    # The articles' sizes are missed where they are not there.
    for kb in $(printf '%s\n' 2048 1048576 /sys/kernel/mm/hugepages/* | sed 's/.*hugepages-\([0-9]*\)kB/\1/; /\*/d' | sort -nu); do
        name=$(size_name "$kb")
        known+=("$name")
        page_kb[$name]=$kb
    done
    known+=(thp)
    page_kb[thp]=$(($(cat "$thp/hpage_pmd_size" 2>/dev/null || echo 0) / 1024))

    for name in "${pages[@]}"; do
        [[ " ${known[*]} " = *" $name "* ]] || die "PAGES: there is no $name here. There is: ${known[*]}"
    done
    for name in "${known[@]}"; do
        ((!${#pages[@]})) || [[ " ${pages[*]} " = *" $name "* ]] || continue
        why=$(why_not "$name")
        if [ -n "$why" ]; then
            leave_out "$name" "$why"
        else
            cases+=("$name")
        fi
    done
    ((${#cases[@]})) || die "nothing is left to measure"
}

thp_shmem_mode() {
    sed 's/.*\[\(.*\)\].*/\1/' "$thp/shmem_enabled" 2>/dev/null || echo never
}

# The main segment is shared anonymous memory, and PostgreSQL does not advise: these modes put it on
# transparent huge pages.
is_thp_mode() {
    [[ $1 = always || $1 = within_size || $1 = force ]]
}

# As far as it can be told before it is tried; nothing where nothing is in the way.
why_not() { # CASE
    local mode pool=/sys/kernel/mm/hugepages/hugepages-${page_kb[$1]}kB
    mode=$(thp_shmem_mode)
    case $1 in
        "$small")
            ! is_thp_mode "$mode" || [ -w "$thp/shmem_enabled" ] ||
                echo "shared memory lies on transparent huge pages here, as $thp/shmem_enabled is $mode, and it may not be written"
            ;;
        thp)
            if [ ! -e "$thp/shmem_enabled" ]; then
                echo "this kernel has none for shared memory"
            elif ! is_thp_mode "$mode" && [ ! -w "$thp/shmem_enabled" ]; then
                echo "$thp/shmem_enabled is $mode, and it may not be written"
            fi
            ;;
        *)
            if [ ! -d "$pool" ]; then
                echo "this kernel has none"
            elif ! pool_settable && (($(pool_available) == 0)); then
                echo "the pool is empty, and $pool/nr_hugepages may not be written"
            fi
            ;;
    esac
}

# Pages of its size that the server takes.
pages_of() { # CASE, SEGMENT IN MB
    echo $((($2 * 1024 + page_kb[$1] - 1) / page_kb[$1]))
}

is_huge() { # CASE
    [[ $1 != "$small" && $1 != thp ]]
}

# Memory of such a server when all connections have touched all of it: the segment, page tables, and
# about 6 MB a process.
case_mb() { # CASE, SEGMENT IN MB
    local kb=${page_kb[$1]} segment_mb=$2 table_mb
    # The kernel may fall back to small ones.
    [ "$1" != thp ] || kb=${page_kb[$small]}
    table_mb=$(($2 * 8 / kb / 1024 + 1))
    ! is_huge "$1" || segment_mb=$(($(pages_of "$1" "$2") * page_kb[$1] / 1024))
    echo $((segment_mb + (clients + 10) * (table_mb + 6)))
}

# Makes the host so; false with the reason in $why where it cannot be had.
host_for() { # CASE, SEGMENT IN MB
    local mb spare
    mb=$(case_mb "$1" "$2") spare=$(spare_mb)
    if is_huge "$1"; then
        local pool=/sys/kernel/mm/hugepages/hugepages-${page_kb[$1]}kB needed missing
        needed=$(pages_of "$1" "$2")
        missing=$((needed - $(pool_available)))
        ((mb -= (needed - (missing > 0 ? missing : 0)) * page_kb[$1] / 1024)) || true
    fi
    ((mb <= spare)) || { why="it takes $mb MB, and $spare MB are to be had"; return 1; }
    if is_huge "$1"; then
        thp_set never || return
        pool_add "$missing"
    elif [ "$1" = thp ]; then
        thp_set always
    else
        thp_set never
    fi
}

# As it is now suits, or it is set.
thp_set() { # always OR never
    local mode
    mode=$(thp_shmem_mode)
    ! { is_thp_mode "$mode" && [ "$1" = always ] || ! is_thp_mode "$mode" && [ "$1" = never ]; } || return 0
    # On huge pages of the pool it makes no difference.
    [ -w "$thp/shmem_enabled" ] || return 0
    host set "$thp/shmem_enabled" "$1"
}

# To the pool in $pool.
pool_add() { # PAGES
    local before
    (($1 > 0)) || return 0
    before=$(pool_size "$pool")
    if ! pool_settable; then
        why="the pool is short by $1 pages, and $pool/nr_hugepages may not be written"
        return 1
    fi
    grown=$pool grown_from=$before
    # It says itself what the kernel gave.
    host pool "$pool" $((before + $1)) 10 && return
    why="the kernel gave $(pool_size "$pool") of $((before + $1)) pages: too little memory is free in one piece"
    pool_give_back
    return 1
}
grown=

# The next case wants the memory.
pool_give_back() {
    [ -n "$grown" ] || return 0
    host pool "$grown" "$grown_from"
    grown=
}
