# NAME=VALUE, as make has them. An empty value is none: the default depends on the machine.
# shellcheck disable=SC2034 # the other files use them
# (SECONDS itself is bash's own.)

names=(SHARED_BUFFERS CLIENTS SECONDS ROUNDS PAGES OUTPUT)
shared_buffers_mb='' clients=64 duration=20 warm_up=5 rounds=6 pages=() output=target/experiment

read_options() { # NAME=VALUE…
    local name value
    for argument; do
        name=${argument%%=*} value=${argument#*=}
        [[ $argument = *=* && " ${names[*]} " = *" $name "* ]] ||
            die "not understood: $argument. Wanted is NAME=VALUE, and the names are ${names[*]}"
        [ -z "$value" ] || "read_$name" "$value"
    done
}

# The unit is one of PostgreSQL's.
read_SHARED_BUFFERS() {
    local -A megabytes=([MB]=1 [GB]=1024 [TB]=1048576)
    [[ $1 =~ ^([1-9][0-9]{0,6})(MB|GB|TB)$ ]] || die "SHARED_BUFFERS=$1: wanted is a size such as 512MB or 8GB"
    shared_buffers_mb=$((BASH_REMATCH[1] * megabytes[${BASH_REMATCH[2]}]))
    # The smallest table of pgbench takes half of it.
    ((shared_buffers_mb >= 32)) || die "SHARED_BUFFERS=$1: wanted is at least 32MB"
}

read_CLIENTS() { clients=$(number CLIENTS "$1" 1000); }
read_SECONDS() {
    duration=$(number SECONDS "$1" 3600)
    warm_up=$((duration < 10 ? (duration + 1) / 2 : 5))
}
read_ROUNDS() { rounds=$(number ROUNDS "$1" 1000); }

number() { # NAME VALUE MAXIMUM
    if ! [[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || (($2 > $3)); then
        die "$1=$2: wanted is a number from 1 to $3"
    fi
    echo "$2"
}

# What there is of them, choose_cases knows.
read_PAGES() {
    read -ra pages <<<"${1//,/ }"
    ((${#pages[@]})) || die "PAGES=$1: wanted are names such as 4kB 2MB thp"
}

read_OUTPUT() { output=$1; }
