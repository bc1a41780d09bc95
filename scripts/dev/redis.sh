# shellcheck shell=bash
# A Redis of our own: a cache, so nothing goes to disk.

redis_prepare() {
    :
}

redis_run() {
    exec setsid redis-server --port "${PORT[redis]}" --bind 127.0.0.1 --dir "$DIR/redis" --save '' --appendonly no \
        --maxmemory 256mb --maxmemory-policy allkeys-lru
}

redis_ready() {
    [[ $(timeout 2 redis-cli -h 127.0.0.1 -p "${PORT[redis]}" ping 2>/dev/null) == PONG ]]
}

redis_stop() {
    process_stop redis "${1:-TERM}" 20
}
