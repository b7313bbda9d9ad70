# Installs programs that only tests use: exporters, agents and a browser.

tools=$PWD/target/tools

# Adds packages to $missing or $lacking, as check() in tools/setup does.
check_tools() {
    case $wanted in
    monitoring)
        want python3 command -v python3
        want python3-yaml python3 -c 'import yaml'
        # Use the distribution's Python, because the user that runs servers must be able to read the
        # modules.
        want python3-pip /usr/bin/python3 -m pip --version
        want libmonitoring-plugin-perl perl -MMonitoring::Plugin::Performance -e 1
        want php-cli command -v php
        want php-pgsql php -r 'exit(extension_loaded("pgsql") ? 0 : 1);'
        want php-mbstring php -r 'exit(extension_loaded("mbstring") ? 0 : 1);'
        want php-xml php -r 'exit(extension_loaded("simplexml") ? 0 : 1);'
        want php-bcmath php -r 'exit(extension_loaded("bcmath") ? 0 : 1);'
        ;;
    bench | experiment)
        want python3 command -v python3
        [ "$wanted" = bench ] || want gnuplot-nox command -v gnuplot
        ;;
    patroni)
        want python3-pip /usr/bin/python3 -m pip --version
        want sudo command -v sudo
        ;;
    report)
        want nodejs command -v node
        want npm command -v npm
        want_browser
        ;;
    esac
}

# Ubuntu has only a snap of it, which cannot access our directories. Without a browser, the tests
# that look at reports are skipped.
want_browser() {
    command -v chromium >/dev/null || ! may_install || need_lists
    ! offered chromium || want chromium command -v chromium
}

# A package that apt cannot install does not prevent the installation of others. Setup reports it
# and fails at the end.
want() { # PACKAGE COMMAND…
    ! "${@:2}" >/dev/null 2>&1 || return 0
    if may_install && offered perl && ! installable "$1"; then
        lacking+=("$1")
    else
        missing+=("$1")
    fi
}

# Unpacks or compiles programs below target/tools instead of installing them.
unpack_tools() {
    case $wanted in
    monitoring)
        ! may_install || need_lists
        # If installed, these packages would start a service now and at each boot.
        unpack_packages prometheus prometheus-postgres-exporter prometheus-sql-exporter zabbix-agent2 \
            zabbix-frontend-php zabbix-server-pgsql check-postgres
        python_packages python monitoring/tests/python
        go_tool telegraf 1.37.2 github.com/influxdata/telegraf/cmd/telegraf \
            custom,inputs.postgresql_extensible,outputs.file,serializers.json
        ;;
    patroni)
        ! may_install || need_lists
        unpack_packages etcd-server
        python_packages patroni t/patroni
        ;;
    report) npm_tools report t/report ;;
    workflow) go_tool actionlint 1.7.12 github.com/rhysd/actionlint/cmd/actionlint '' ;;
    esac
}

unpack_packages() { # PACKAGE…
    local package directory
    for package; do
        [ ! -d "$tools/$package" ] || continue
        if offered perl && ! offered "$package"; then
            say "setup: apt does not have the package $package: its tests are skipped"
            continue
        fi
        say "unpacking $package below target/tools"
        mkdir -p "$tools"
        # Rename the directory when complete, so that an interrupted run does not leave a partial
        # one.
        directory=$(mktemp -d -p "$tools" new.XXXXXX)
        (cd "$directory" && apt-get download -qq "$package" 2>/dev/null && dpkg-deb --extract ./*.deb root) ||
            die "setup: could not download the package $package"
        mv "$directory/root" "$tools/$package"
        rm -rf "$directory"
    done
}

# Installs the packages of a package.json of npm, which names exact versions.
npm_tools() { # NAME DIRECTORY
    local made=$tools/$1
    ! cmp --silent "$2/package.json" "$made/package.json" && command -v npm >/dev/null || return 0
    say "npm install in $2, below target/tools"
    rm -rf "$made" "$made.new"
    mkdir -p "$made.new"
    cp "$2/package.json" "$made.new/"
    npm --prefix "$made.new" install --no-save --no-package-lock --ignore-scripts --no-audit --no-fund \
        --loglevel=error ||
        die "setup: could not install the packages in $2/package.json"
    mv "$made.new" "$made"
}

# Installs a list of PyPI packages, for PYTHONPATH.
python_packages() { # NAME DIRECTORY
    local made=$tools/$1
    ! cmp --silent "$2/requirements.txt" "$made/requirements.txt" &&
        /usr/bin/python3 -m pip --version >/dev/null 2>&1 || return 0
    say "pip install in $2, below target/tools"
    rm -rf "$made" "$made.new"
    /usr/bin/python3 -m pip install --quiet --no-deps --disable-pip-version-check --root-user-action=ignore \
        --target "$made.new" --requirement "$2/requirements.txt" ||
        die "setup: could not install the packages in $2/requirements.txt"
    cp "$2/requirements.txt" "$made.new/"
    mv "$made.new" "$made"
}

# Compiles a Go program with these build tags. Without Go, the test that uses the program is
# skipped.
go_tool() { # NAME VERSION PACKAGE TAGS
    local made=$tools/$1-$2
    [ ! -d "$made" ] && command -v go >/dev/null || return 0
    say "building $1 $2 below target/tools: a minute or two"
    rm -rf "$tools/$1"-*
    mkdir -p "$tools"
    GOBIN=$made.new/usr/bin go install -trimpath -ldflags '-s -w' -tags "$4" "$3@v$2" >"$tools/$1.log" 2>&1 ||
        { cat "$tools/$1.log"; die "setup: could not build $1 $2"; }
    rm "$tools/$1.log"
    mv "$made.new" "$made"
}
