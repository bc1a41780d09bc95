# shellcheck shell=bash
# Debian packages, under names that Debian 12 and 13 share. Installs only what is missing, and never starts, enables or
# sets up a system service.

packages_build=(gcc libc6-dev cmake ninja-build pkg-config protobuf-c-compiler libprotobuf-c-dev libnng-dev libpq-dev
    libhiredis-dev librdkafka-dev libmicrohttpd-dev libuv1-dev libsodium-dev libjansson-dev libidn2-dev libcmocka-dev)
packages_run=(postgresql redis-server default-jre-headless maven curl ca-certificates)
packages_check=(clang clang-tidy clang-format)

# packages_need PACKAGE…
packages_need() {
    local package installed
    local missing=()
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null) || true
    for package in "$@"; do
        [[ $'\n'$installed$'\n' == *$'\n'"$package installed"$'\n'* ]] || missing+=("$package")
    done
    ((${#missing[@]} > 0)) || return 0
    command -v apt-get >/dev/null || die "these Debian packages are needed: ${missing[*]}"
    local sudo=()
    if ((EUID != 0)); then
        command -v sudo >/dev/null || die "not root and no sudo; as root: apt-get install ${missing[*]}"
        sudo=(sudo)
    fi
    local start
    start=$(now_ms)
    row packages "installing ${missing[*]}"
    # In a process of its own, so that its traps undo what it changed whatever happens.
    "${sudo[@]}" bash "$ROOT/scripts/dev/install-packages" "${missing[@]}" || die "apt-get could not install them"
    row packages "installed in $(seconds_since "$start") s"
}
