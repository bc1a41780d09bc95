# shellcheck shell=bash
# Dunlin's own services: one program a kind, settings from the table in parts.sh, health from the admin port.

service_prepare() {
    local program=$BIN/dunlin-${1%%-[0-9]*}
    [[ -x $program ]] || die "$program is not there (./dev build)"
}

service_run() {
    set -a
    service_environment "$1"
    set +a
    exec setsid "$BIN/dunlin-${1%%-[0-9]*}"
}

service_ready() {
    curl -fs -o /dev/null --noproxy '*' --max-time 2 "http://127.0.0.1:${PORT[$1-admin]}/readyz"
}

service_stop() {
    process_stop "$1" "${2:-TERM}" 30
}

# What it says itself about why it is not ready.
service_reason() {
    curl -s --noproxy '*' --max-time 2 "http://127.0.0.1:${PORT[$1-admin]}/readyz" 2>/dev/null || true
}
