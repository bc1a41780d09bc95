# shellcheck shell=bash
# up and start: a running fleet.

cmd_up() {
    local port='' redirectors=''
    while (($# > 0)); do
        case $1 in
        --port=* | --redirectors=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
        --port | --redirectors)
            [[ ${2:-} =~ ^[0-9]{1,5}$ ]] || usage_error "$1 takes a number"
            [[ $1 == --port ]] && port=$((10#$2)) || redirectors=$((10#$2))
            shift 2
            ;;
        *) usage_error "up doesn't know $1" ;;
        esac
    done
    ((${port:-0} <= 65535)) || usage_error "--port takes 0 to 65535"
    [[ -z $redirectors ]] || ((redirectors >= 1 && redirectors <= 32)) || usage_error "--redirectors takes 1 to 32"

    stack_create
    stack_lock
    up_settings "$port" "$redirectors"
    up_everything
    stack_unlock
    up_welcome
}

# What was said on the command line holds until it is said differently.
up_settings() {
    local port=$1 redirectors=$2 name
    [[ -z $redirectors ]] || up_fewer_redirectors "$redirectors"
    ports_refresh
    case $port in
    '' | "${PORT[redirector]:-none}") [[ -n ${PORT[redirector]:-} ]] || port_keep redirector 8080 ;;
    0) up_any_public_port ;;
    *)
        for name in $(services); do
            ! process_pid "$name" >/dev/null ||
                die "$name runs already and knows the public port as ${PORT[redirector]}; ./dev down first"
        done
        port_keep redirector "$port"
        ;;
    esac
    # Better told now than after everything else was built and started.
    if ! process_pid redirector >/dev/null && port_taken "${PORT[redirector]}"; then
        part_port_taken redirector "${PORT[redirector]}"
    fi
}

# The one that we have will do, unless somebody else took it.
up_any_public_port() {
    if [[ -n ${PORT[redirector]:-} ]] && ! process_pid redirector >/dev/null && port_taken "${PORT[redirector]}"; then
        port_forget redirector
    fi
    port_choose redirector
}

# With fewer redirectors than before, those beyond stop.
up_fewer_redirectors() {
    local i
    for ((i = $1 + 1; i <= $(setting redirectors 1); i++)); do
        part_stop "redirector-$i"
    done
    setting_keep redirectors "$1"
}

# While nothing runs, nobody relies on a chosen port, so one that somebody took since is chosen anew.
ports_refresh() {
    local name
    for name in $(parts); do
        ! process_pid "$name" >/dev/null || return 0
    done
    for name in "${!PORT[@]}"; do
        if [[ $name != redirector ]] && port_taken "${PORT[$name]}"; then
            port_forget "$name"
        fi
    done
}

up_everything() {
    local name port
    if ! stack_complete; then
        packages_need "${packages_build[@]}" "${packages_run[@]}"
        build_programs
        kafka_resolve
    fi
    # All are known before anything starts, since the parts are told of each other.
    for name in $(parts); do
        for port in $(part_ports "$name"); do
            port_choose "$port"
        done
    done
    backends_start
    up_database
    # shellcheck disable=SC2046
    parts_start $(services)
    up_demo_key
}

stack_complete() {
    local name
    for name in $(parts); do
        part_ready "$name" || return 1
    done
}

backends_start() {
    parts_start "${BACKENDS[@]}"
    postgres_make_owner || die "the database could not be made"
}

up_database() {
    local start
    start=$(now_ms)
    secret_make permutation_key 16
    PG_URL=$(pg_url dunlin_owner) quietly "$DIR/log/migrate.log" "$BIN/dunlin-migrate" --sql "$ROOT/deploy/sql" ||
        die "dunlin-migrate failed"
    postgres_let_services_in
    row migrations "up to date, $(seconds_since "$start") s"
}

up_demo_key() {
    local key
    [[ -z ${SECRET[demo_key]:-} ]] || return 0
    key=$(DUNLIN_WRITER=tcp://127.0.0.1:${PORT[writer]} "$BIN/dunlinctl" key create --owner demo) ||
        die "dunlinctl could not make a demo API key"
    secret_keep demo_key "$key"
}

up_welcome() {
    local url name alias
    url=$(public_url)
    alias=demo-$(od -An -v -tx1 -N3 /dev/urandom | tr -d ' \n')
    say ''
    for name in $(services); do
        [[ $name != redirector* ]] || row "$name" "http://127.0.0.1:${PORT[$name]}"
    done
    row 'demo API key' "${SECRET[demo_key]}"
    cat <<TEXT

Create a link, follow it, see its clicks (within 5 s):

  curl -i $url/api/v1/links -H 'Authorization: Bearer ${SECRET[demo_key]}' -H 'Content-Type: application/json' -d '{"url": "https://example.com/", "alias": "$alias"}'
  curl -i $url/$alias
  curl -i $url/api/v1/links/$alias/clicks -H 'Authorization: Bearer ${SECRET[demo_key]}'
TEXT
}

# One part of a stack that is there.
cmd_start() {
    [[ $# == 1 ]] || usage_error "start takes the name of a part"
    stack_must_know "$1"
    stack_lock
    parts_start "$1"
    stack_unlock
}

stack_must_know() {
    stack_exists || die "there is no stack in $DIR (./dev up)"
    # shellcheck disable=SC2046
    part_known "$1" || die "$1 is no part; there are:$(printf ' %s' $(parts))"
}
