# Mounts the parts of this machine that a system in a directory needs. Use it only in a separate
# mount namespace. Otherwise, removing the directory would also empty the mounted directories.

if [ /proc/self/ns/mnt -ef /proc/1/ns/mnt ]; then
    echo "==> $0: must run in a separate mount namespace" >&2
    exit 1
fi

# Mounts the kernel's file systems. The pools of huge pages are those of the host.
mount_kernel() { # ROOT
    mount -t proc proc "$1/proc"
    mount --rbind /sys "$1/sys"
    mount --bind /dev "$1/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
}

share() { # FROM TO
    mkdir -p "$2"
    mount --bind "$1" "$2"
}

# Passes the proxy and the certificates of the network.
network_environment() {
    local name
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
        [ -z "${!name:-}" ] || echo "$name=${!name}"
    done
    printf '%s=/etc/host-ca.crt\n' SSL_CERT_FILE CARGO_HTTP_CAINFO PIP_CERT
}

programs=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
