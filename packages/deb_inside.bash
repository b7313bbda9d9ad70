# Within a clean system: packages/try_deb. Ends at the first failure.
set -euxo pipefail
major=$1 version=$2
bin=/usr/lib/postgresql/$major/bin
export DEBIAN_FRONTEND=noninteractive PGHOST=/srv/socket PGUSER=postgres

apt() { apt-get -qq -y --no-install-recommends "$@"; }
sql() { psql --no-psqlrc --no-align --tuples-only --set=ON_ERROR_STOP=1 postgres "$@"; }
files() { find / -xdev -not -path '/var/lib/dpkg/*' -not -path '/var/log/*' -not -path '/srv/*' -not -path '/tmp/*' | sort; }
works() {
    # The kernel's own answer, of the server's process.
    local huge=f
    ! grep -q anon_hugepage "/proc/$(head -n 1 /srv/data/postmaster.pid)/maps" || huge=t
    sql --expanded --command 'SELECT * FROM hugeinfo_status'
    [ "$(sql --command 'SELECT in_use FROM hugeinfo_status')" = $huge ]
    [ "$(sql --command "SELECT extversion FROM pg_extension WHERE extname = 'pg_hugeinfo'")" = "$version" ]
}

cd /
mkdir -p /etc/postgresql-common/createcluster.d
echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/test.conf
apt update
apt install "postgresql-$major" perl
files >/srv/before
install -d -o postgres -m 755 /srv/socket
setpriv --reuid=postgres --regid=postgres --init-groups "$bin/initdb" --auth=trust /srv/socket/data >/dev/null
ln -s socket/data /srv/data
setpriv --reuid=postgres --regid=postgres --init-groups "$bin/pg_ctl" start --wait --silent --pgdata=/srv/data \
    --log=/srv/socket/log --options="-c listen_addresses= -c unix_socket_directories=$PGHOST"

apt install /srv/1/*.deb
zgrep -q '^pgrx ' "/usr/share/doc/postgresql-$major-pg-hugeinfo/third-party-licenses.gz"
sql --command 'CREATE EXTENSION pg_hugeinfo'
works
check_pg_hugeinfo() { /usr/lib/nagios/plugins/check_pg_hugeinfo "$@"; }
[[ $(check_pg_hugeinfo --version) = *"$version"* ]]
# The finding is the machine's; 3 would be a question that was not asked.
check_pg_hugeinfo || (($? < 3))
echo "host=$PGHOST" | hugeinfo-fleet --list - || (($? < 3))

apt install /srv/2/*.deb
[[ $(dpkg-query --show --showformat='${Version}' "postgresql-$major-pg-hugeinfo") = *-2 ]]
works
sql --command 'ALTER EXTENSION pg_hugeinfo UPDATE'

sql --command 'DROP EXTENSION pg_hugeinfo'
apt purge "postgresql-$major-pg-hugeinfo" pg-hugeinfo-tools
setpriv --reuid=postgres --regid=postgres --init-groups "$bin/pg_ctl" stop --silent --pgdata=/srv/data
files | diff /srv/before -
