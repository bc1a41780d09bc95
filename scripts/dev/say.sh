# shellcheck shell=bash
# What goes to the screen, what comes out of files, and time.

say() {
    printf '%s\n' "$*"
}

die() {
    printf 'dev: %s\n' "$*" >&2
    exit 1
}

usage_error() {
    printf 'dev: %s (./dev help lists everything)\n' "$*" >&2
    exit 2
}

# file_line FILE: its first line, or failure where it is gone. ($(<FILE) would end the whole script then.)
file_line() {
    local line=
    { IFS= read -r line <"$1"; } 2>/dev/null || [[ -n $line ]] || return 1
    printf '%s' "$line"
}

# row NAME TEXT: one line of progress.
row() {
    printf '%-13s %s\n' "$1" "$2"
}

now_ms() {
    local now=${EPOCHREALTIME/[.,]/}
    printf '%s' $((now / 1000))
}

# seconds_since START_MS: "1.2"
seconds_since() {
    local ms=$(($(now_ms) - $1))
    printf '%d.%d' $((ms / 1000)) $((ms % 1000 / 100))
}

# quietly LOG COMMAND…: keeps the output in LOG, and shows its end only where the command fails.
quietly() {
    local log=$1
    shift
    if ! "$@" >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        return 1
    fi
}
