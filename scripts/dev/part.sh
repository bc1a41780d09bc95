# shellcheck shell=bash
# Starting and stopping one part, whatever its kind (parts.sh).

READY_SECONDS=60

part_ready() {
    process_pid "$1" >/dev/null && "$(part_kind "$1")_ready" "$1"
}

part_port() {
    printf '%s' "${PORT[$1]:-}"
}

# part_start NAME: returns with the process begun; part_await sees it ready.
part_start() {
    local name=$1 kind port
    kind=$(part_kind "$name")
    for port in $(part_ports "$name"); do
        port_choose "$port"
        ! port_taken "${PORT[$port]}" || part_port_taken "$name" "${PORT[$port]}"
    done
    "${kind}_prepare" "$name"
    process_spawn "$name" "${kind}_run" "$name"
}

part_port_taken() {
    local hint=
    [[ $1 != redirector ]] || hint='; --port N takes another'
    die "$1 can't start: port $2 is taken ($(port_holder "$2"))$hint; end of its last log:$(part_log_end "$1")"
}

# part_await NAME START_MS
part_await() {
    local name=$1 start=$2 end
    end=$((start + READY_SECONDS * 1000))
    until part_ready "$name"; do
        process_pid "$name" >/dev/null || die "$name failed to start; end of its log:$(part_log_end "$name")"
        if (($(now_ms) > end)); then
            die "$name is not ready after $READY_SECONDS s$(part_reason "$name"); end of its log:$(part_log_end "$name")"
        fi
        sleep 0.05
    done
    row "$name" "127.0.0.1:$(part_port "$name"), ready in $(seconds_since "$start") s"
}

part_reason() {
    local reason
    [[ $(part_kind "$1") == service ]] || return 0
    reason=$(service_reason "$1")
    printf '%s' "${reason:+ ($reason)}"
}

part_log_end() {
    local log=$DIR/log/$1.log
    if [[ -s $log ]]; then
        printf '\n'
        tail -n 20 "$log"
    else
        printf ' (empty)'
    fi
}

# parts_start NAME…: starts those that don't run, all at once, then waits for each.
parts_start() {
    local name start pid
    local begun=()
    start=$(now_ms)
    for name in "$@"; do
        if pid=$(process_pid "$name"); then
            part_ready "$name" || part_await "$name" "$(now_ms)"
            row "$name" "127.0.0.1:$(part_port "$name"), runs already (pid $pid)"
        else
            part_start "$name"
            begun+=("$name")
        fi
    done
    for name in "${begun[@]}"; do
        part_await "$name" "$start"
    done
}

# part_stop NAME [SIGNAL]
part_stop() {
    local kind start
    if ! process_pid "$1" >/dev/null; then
        rm -f "$DIR/run/$1"
        return 0
    fi
    start=$(now_ms)
    kind=$(part_kind "$1")
    if [[ $kind == service ]]; then
        service_stop "$@"
    else
        "${kind}_stop" "${@:2}"
    fi
    row "$1" "stopped in $(seconds_since "$start") s"
}
