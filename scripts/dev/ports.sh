# shellcheck shell=bash
# Ports: chosen once, free when chosen, and remembered, so that what points at a stack stays true over its restarts.

# listening_inode PORT: the socket's inode where anything listens on it, on any address.
listening_inode() {
    local hex
    hex=$(printf '%04X' "$1")
    { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null || true; } |
        awk -v end=":$hex" '$4 == "0A" && substr($2, length($2) - 4) == end { print $10; found = 1; exit }
            END { exit !found }'
}

port_taken() {
    listening_inode "$1" >/dev/null
}

# port_holder PORT: "nginx, pid 123" as far as we may look.
port_holder() {
    local inode link pid
    inode=$(listening_inode "$1") || return 0
    link=$(find /proc/[0-9]*/fd -lname "socket:\[$inode\]" -print -quit 2>/dev/null) || true
    if [[ -z $link ]]; then
        printf 'a process of somebody else'
        return
    fi
    pid=${link#/proc/}
    pid=${pid%%/*}
    printf '%s, pid %s' "$(cat "/proc/$pid/comm" 2>/dev/null)" "$pid"
}

# port_choose NAME: remembers one that is free, unless one is known. The search starts where the folder's name says, so
# that stacks that start at the same moment look in different places; below what the kernel gives to outgoing connections.
port_choose() {
    [[ -z ${PORT[$1]:-} ]] || return 0
    local hash port
    hash=$(printf '%s' "$DIR" | cksum)
    port=$((18000 + ${hash%% *} % 400 * 32))
    while [[ " ${PORT[*]} " == *" $port "* ]] || port_taken "$port"; do
        port=$((port + 1))
    done
    port_keep "$1" "$port"
}

port_keep() {
    printf '%s\n' "$2" >"$DIR/ports/$1"
    PORT[$1]=$2
}

port_forget() {
    rm -f "$DIR/ports/$1"
    unset "PORT[$1]"
}
