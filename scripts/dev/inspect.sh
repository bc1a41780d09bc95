# shellcheck shell=bash
# status, logs and env: what a stack is and says. They change nothing and wait for no lock.

cmd_status() {
    local name pid ready port separator='' json=no
    [[ $# == 0 || $1 == --json && $# == 1 ]] || usage_error "status takes --json or nothing"
    [[ $# == 0 ]] || json=yes
    [[ $json == yes ]] && printf '[' || printf '%-13s %-7s %-9s %s\n' part port pid health
    for name in $(parts); do
        pid=$(process_pid "$name") || pid=
        port=$(part_port "$name")
        ready=false
        [[ -z $pid ]] || ! part_ready "$name" || ready=true
        if [[ $json == yes ]]; then
            printf '%s{"name":"%s","pid":%s,"port":%s,"ready":%s}' "$separator" "$name" "${pid:-null}" "${port:-null}" \
                "$ready"
            separator=,
        else
            printf '%-13s %-7s %-9s %s\n' "$name" "${port:--}" "${pid:--}" "$(status_health "$name" "$pid" "$ready")"
        fi
    done
    [[ $json == no ]] || printf ']\n'
    [[ $json == yes ]] || status_folders
}

status_health() {
    if [[ -z $2 ]]; then
        printf 'down'
    elif [[ $3 == true ]]; then
        printf 'ready'
    else
        printf 'not ready%s' "$(part_reason "$1" | tr '\n' ' ')"
    fi
}

status_folders() {
    stack_exists || return 0
    say ''
    row data "$DIR"
    row 'Postgres data' "$(postgres_home)/data"
}

cmd_logs() {
    local name='' follow=no
    while (($# > 0)); do
        case $1 in
        -f) follow=yes ;;
        *) [[ -z $name ]] && name=$1 || usage_error "logs takes one part" ;;
        esac
        shift
    done
    [[ -n $name ]] || usage_error "logs takes the name of a part"
    stack_must_know "$name"
    if [[ $follow == yes ]]; then
        exec tail -n +1 -F "$DIR/log/$name.log"
    fi
    [[ -e $DIR/log/$name.log ]] || die "$name has not run yet"
    cat "$DIR/log/$name.log"
}

cmd_env() {
    local line name running=no
    [[ $# == 0 ]] || usage_error "env takes nothing"
    for name in $(parts); do
        ! process_pid "$name" >/dev/null || running=yes
    done
    [[ $running == yes ]] || die "nothing runs in $DIR (./dev up)"
    stack_environment | while IFS= read -r line; do
        printf "export %s='%s'\n" "${line%%=*}" "${line#*=}"
    done
}
