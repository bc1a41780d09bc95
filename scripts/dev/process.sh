# shellcheck shell=bash
# Processes that outlive this script. run/NAME holds pid, start time and boot id: a recycled pid is never taken for ours.

BOOT_ID=$(</proc/sys/kernel/random/boot_id)

# process_identity PID: fails for what is dead or a zombie.
process_identity() {
    local stat fields
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    read -ra fields <<<"${stat##*) }" # the name before it may hold anything
    [[ ${fields[0]} != [ZX] ]] || return 1
    printf '%s %s %s' "$1" "${fields[19]}" "$BOOT_ID"
}

# process_pid NAME: its pid where it still lives.
process_pid() {
    local kept now
    kept=$(file_line "$DIR/run/$1") || return 1
    now=$(process_identity "${kept%% *}") || return 1
    [[ $kept == "$now" ]] || return 1
    printf '%s' "${kept%% *}"
}

# process_spawn NAME FUNCTION…: the function ends in exec, in a session of its own with NAME's log as output.
process_spawn() {
    local name=$1 pid
    shift
    (
        local fd
        for fd in /proc/self/fd/*; do # locks, and pipes of whoever called us
            ((${fd##*/} <= 2)) || eval "exec ${fd##*/}>&-"
        done
        exec </dev/null >>"$DIR/log/$name.log" 2>&1
        cd /
        "$@"
    ) &
    pid=$!
    process_identity "$pid" >"$DIR/run/$name" || true # dead already: whoever waits for it sees that
}

# process_stop NAME SIGNAL SECONDS: asks, waits, and insists.
process_stop() {
    local name=$1 signal=$2 patience=$3 pid
    if pid=$(process_pid "$name"); then
        local children
        children=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null) || true
        kill -s "$signal" "$pid" 2>/dev/null || true
        if ! process_gone "$patience" "$pid"; then
            row "$name" "did not stop within $patience s of SIG$signal; killed"
            kill -s KILL "$pid" 2>/dev/null || true
            process_gone 10 "$pid" || die "$name (pid $pid) can't be killed"
        fi
        # Postgres' children notice by themselves, and it does not start again before they are gone.
        # shellcheck disable=SC2086
        process_gone 10 $children || true
    fi
    rm -f "$DIR/run/$name"
}

# process_gone SECONDS PID…
process_gone() {
    local pid end=$(($(now_ms) + $1 * 1000))
    shift
    for pid in "$@"; do
        while process_identity "$pid" >/dev/null; do
            (($(now_ms) < end)) || return 1
            sleep 0.02
        done
    done
}
