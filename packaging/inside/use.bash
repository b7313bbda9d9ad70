# The test of every kind of package, while a server runs and a session has loaded the library.
# Source it after server.bash. The caller defines install_first, install_newer, is_newer,
# remove_extension, install_again and remove_all.

files() { find / -xdev -not -path '/var/lib/dpkg/*' -not -path '/var/lib/rpm/*' -not -path '/var/log/*' -not -path '/srv/*' -not -path '/tmp/*' | sort; }

use_packages() { # VERSION
    local version=$1
    files >/srv/before
    install_first
    sql --command 'CREATE EXTENSION pg_hugeinfo'
    works "$version"
    session_works

    [[ $(hugeinfo --version) = "hugeinfo $version ("+([0-9a-f])")" ]]
    as_postgres hugeinfo plan --host-ram 64GB --page-size 2MB | grep '^[0-9]* huge pages of 2 MB'
    compgen -G '/usr/share/man/man1/hugeinfo-fleet.1*'
    compgen -G '/usr/share/man/man1/hugeinfo-plan.1*'
    bash -c '. /usr/share/bash-completion/completions/hugeinfo && complete -p hugeinfo'
    [ -z "$(find /etc -name '*hugeinfo*')" ]

    install_newer
    is_newer
    # The session keeps the library that it has loaded.
    session_works
    # shellcheck disable=SC2154 # session_works sets it
    grep -q '/pg_hugeinfo\.so (deleted)$' "/proc/$backend/maps"

    works "$version"

    # The extension still exists in the database.
    remove_extension
    session_works
    ! sql --command 'SELECT * FROM hugeinfo_status' 2>/srv/error || exit
    # shellcheck disable=SC2016
    grep -qE 'could not access file "(\$libdir/)?pg_hugeinfo": No such file or directory' /srv/error
    install_again
    works "$version"

    remove_all
    sql --command 'DROP EXTENSION pg_hugeinfo'
    stop_server
    files | diff /srv/before -
}
