# shellcheck shell=bash
# down, reset and stop: exactly what was started here, services before what they use.

cmd_down() {
    [[ $# == 0 ]] || usage_error "down doesn't know $1"
    if ! stack_exists; then
        say "nothing runs in $DIR"
        return 0
    fi
    stack_lock
    down_everything
    stack_unlock
}

down_everything() {
    local name stopped=0
    for name in $(parts | tac); do
        ! process_pid "$name" >/dev/null || stopped=$((stopped + 1))
        part_stop "$name"
    done
    ((stopped > 0)) || say "nothing runs in $DIR"
}

cmd_reset() {
    [[ $# == 0 ]] || usage_error "reset doesn't know $1"
    if ! stack_exists; then
        say "there is nothing in $DIR"
        return 0
    fi
    stack_lock
    down_everything
    stack_delete
    stack_unlock
    say "deleted $DIR"
}

stack_delete() {
    local home
    home=$(postgres_home)
    [[ $home == "$DIR"/* ]] || rm -rf -- "$home"
    rm -rf -- "$DIR"
}

cmd_stop() {
    local signal='' name=''
    while (($# > 0)); do
        case $1 in
        --kill) signal=KILL ;;
        *) [[ -z $name ]] && name=$1 || usage_error "stop takes one part" ;;
        esac
        shift
    done
    [[ -n $name ]] || usage_error "stop takes the name of a part"
    stack_must_know "$name"
    stack_lock
    if process_pid "$name" >/dev/null; then
        part_stop "$name" ${signal:+"$signal"}
    else
        row "$name" "does not run"
    fi
    stack_unlock
}
