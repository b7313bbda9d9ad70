# Programs that only tests use: for monitoring, and for looking at web pages as people do.

# Debian's packages of these start a service, now and at each boot. So they are unpacked, not
# installed. Ordinary users can do that, too, and `make clean` removes them.
unpacked=(prometheus prometheus-postgres-exporter prometheus-sql-exporter zabbix-agent2)
tools=$PWD/target/tools

# Packages that may be installed; adds to $missing, as check() in scripts/setup does.
check_tools() {
    need python3 command -v python3
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
}
