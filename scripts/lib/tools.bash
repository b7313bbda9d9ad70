# Programs that only tests use: for monitoring, and for looking at web pages as people do.

# Debian's packages of these start a service, now and at each boot. So they are unpacked, not
# installed. Ordinary users can do that, too, and `make clean` removes them.
unpacked=(prometheus prometheus-postgres-exporter prometheus-sql-exporter zabbix-agent2)
tools=$PWD/target/tools

# Packages that may be installed; adds to $missing, as check() in scripts/setup does.
check_tools() {
    need python3 command -v python3
    need python3-yaml python3 -c 'import yaml'
    need nodejs command -v node
    need npm command -v npm
    need ansible-core command -v ansible-playbook
    need ansible-lint command -v ansible-lint
    need libmonitoring-plugin-perl perl -MMonitoring::Plugin::Performance -e 1
}

unpack_tools() {
    local package directory
    for package in "${unpacked[@]}"; do
        [ ! -d "$tools/$package" ] || continue
        offered "$package" || die "setup: apt has no $package here, or there is no apt"
        say "unpacking $package below target/tools"
        directory=$(mktemp -d)
        (cd "$directory" && apt-get download -qq "$package" 2>/dev/null && dpkg-deb --extract ./*.deb root) ||
            die "setup: could not download the package $package"
        mkdir -p "$tools"
        mv "$directory/root" "$tools/$package"
        rm -rf "$directory"
    done
    npm_tools grafana monitoring/tests/grafana tsc
}

# What a lock file of npm has.
npm_tools() { # NAME DIRECTORY PROGRAM…
    local made=$tools/$1 program
    ! cmp --silent "$2/package-lock.json" "$made/package-lock.json" || return 0
    say "npm ci in $2, below target/tools"
    rm -rf "$made" "$made.new"
    mkdir -p "$made.new/usr/bin"
    cp "$2"/package*.json "$made.new/"
    npm --prefix "$made.new" ci --ignore-scripts --no-audit --no-fund --loglevel=error ||
        die "setup: what $2/package-lock.json names could not be had"
    for program in "${@:3}"; do
        ln -s "../../node_modules/.bin/$program" "$made.new/usr/bin/$program"
    done
    mv "$made.new" "$made"
}
