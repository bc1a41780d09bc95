# shellcheck shell=bash
# The table of parts: which there are, what they listen on, and the environment that each service gets.

BACKENDS=(postgres redis kafka)
SERVICE_ROLES=(dunlin_keyrange dunlin_writer dunlin_redirector dunlin_clicks)

# The services, in the order in which they start.
services() {
    local i count
    count=$(setting redirectors 1)
    printf '%s\n' keyrange writer clicks redirector
    for ((i = 2; i <= count; i++)); do
        printf '%s\n' "redirector-$i"
    done
}

# All parts of this stack, in that order too.
parts() {
    printf '%s\n' "${BACKENDS[@]}"
    services
}

part_known() {
    [[ $'\n'$(parts)$'\n' == *$'\n'"$1"$'\n'* ]]
}

# The kind decides which KIND_prepare, KIND_run, KIND_ready and KIND_stop act for a part.
part_kind() {
    case $1 in
    postgres | redis | kafka) printf '%s' "$1" ;;
    *) printf 'service' ;;
    esac
}

# What a part listens on, its main port first: names for ports.sh.
part_ports() {
    case $1 in
    postgres | redis) printf '%s\n' "$1" ;;
    kafka) printf '%s\n' kafka kafka-controller ;;
    *) printf '%s\n' "$1" "$1-admin" ;;
    esac
}

# pg_url ROLE [DATABASE]
pg_url() {
    printf 'postgresql://%s:%s@127.0.0.1:%s/%s' "$1" "${SECRET[$1]}" "${PORT[postgres]}" "${2:-dunlin}"
}

public_url() {
    printf 'http://127.0.0.1:%s' "${PORT[redirector]}"
}

# service_environment NAME: sets variables; the caller exports them. What is not named here comes from our own
# environment, so `CLICK_RING=1024 ./dev start redirector` works.
service_environment() {
    local name=$1
    local keyrange=tcp://127.0.0.1:${PORT[keyrange]}
    local writer=tcp://127.0.0.1:${PORT[writer]}
    local clicks=tcp://127.0.0.1:${PORT[clicks]}
    local redis=redis://127.0.0.1:${PORT[redis]}
    local kafka=127.0.0.1:${PORT[kafka]}

    ADMIN_LISTEN=127.0.0.1:${PORT[$name-admin]}
    LOG_LEVEL=${LOG_LEVEL:-info}
    DRAIN_DELAY_MS=${DRAIN_DELAY_MS:-0}
    case $name in
    keyrange)
        KEYRANGE_LISTEN=$keyrange
        PG_URL=$(pg_url dunlin_keyrange)
        ;;
    writer)
        WRITER_LISTEN=$writer
        PG_URL=$(pg_url dunlin_writer)
        REDIS_URL=$redis
        KEYRANGE_TARGET=$keyrange
        PERMUTATION_KEY=${SECRET[permutation_key]}
        PUBLIC_URL=$(public_url)
        ;;
    clicks)
        CLICKS_LISTEN=$clicks
        PG_URL=$(pg_url dunlin_clicks)
        KAFKA_BROKERS=$kafka
        ;;
    redirector*)
        HTTP_LISTEN=127.0.0.1:${PORT[$name]}
        PG_URL=$(pg_url dunlin_redirector)
        REDIS_URL=$redis
        KAFKA_BROKERS=$kafka
        WRITER_TARGET=$writer
        CLICKS_TARGET=$clicks
        KEYRANGE_TARGET=$keyrange
        PERMUTATION_KEY=${PERMUTATION_KEY-${SECRET[permutation_key]}}
        PUBLIC_URL=$(public_url)
        WORKERS=${WORKERS:-2}
        ;;
    esac
}

# What ./dev env prints, NAME=VALUE a line.
stack_environment() {
    local name urls=
    for name in $(services); do
        [[ $name != redirector* ]] || urls+=,http://127.0.0.1:${PORT[$name]}
    done
    printf '%s\n' "DUNLIN_URL=$(public_url)" "DUNLIN_URLS=${urls#,}" "DUNLIN_API_KEY=${SECRET[demo_key]:-}" \
        "DUNLIN_WRITER=tcp://127.0.0.1:${PORT[writer]}" "DUNLIN_KEYRANGE=tcp://127.0.0.1:${PORT[keyrange]}" \
        "DUNLIN_CLICKS=tcp://127.0.0.1:${PORT[clicks]}" "DUNLIN_PG=$(pg_url dunlin_owner)" \
        "DUNLIN_REDIS=redis://127.0.0.1:${PORT[redis]}" "DUNLIN_KAFKA=127.0.0.1:${PORT[kafka]}"
}
