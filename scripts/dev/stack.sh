# shellcheck shell=bash
# A stack is everything that runs out of one data folder: DIR, from --dir, else DUNLIN_DIR, else .dunlin in the checkout.
# What a stack remembers is one small file per thing:
#   settings/NAME  ports/NAME  secrets/NAME (for our eyes only)  run/NAME (a process)  log/NAME.log
#   redis/ kafka/ postgres/ (the data; Postgres' may be elsewhere, see postgres.sh)

DIR=
declare -A PORT=() SECRET=()

# stack_find [DIR]
stack_find() {
    DIR=$(realpath -m -- "${1:-${DUNLIN_DIR:-$ROOT/.dunlin}}")
    stack_load
}

stack_exists() {
    [[ -e $DIR/dunlin-stack ]]
}

stack_create() {
    if ! stack_exists && [[ -n $(ls -A -- "$DIR" 2>/dev/null) ]]; then
        die "$DIR holds something else; name an empty folder, since ./dev reset deletes it"
    fi
    mkdir -p -- "$DIR"
    chmod 0711 "$DIR" # Postgres passes through where it runs as another user
    : >"$DIR/dunlin-stack"
    mkdir -p -m 0700 "$DIR"/{settings,ports,secrets,run,log,redis,kafka}
}

stack_load() {
    local file line
    PORT=() SECRET=()
    for file in "$DIR"/ports/* "$DIR"/secrets/*; do
        line=$(file_line "$file") || continue
        case $file in
        */ports/*) PORT[${file##*/}]=$line ;;
        */secrets/*) SECRET[${file##*/}]=$line ;;
        esac
    done
}

# One ./dev at a time changes a stack. The folder may have been deleted and made anew while we waited.
stack_lock() {
    exec {LOCK}>>"$DIR/lock"
    if ! flock -n "$LOCK"; then
        say "another ./dev works on $DIR; waiting for it"
        flock -w 300 "$LOCK" || die "it still works on $DIR after 300 s"
    fi
    [[ /proc/self/fd/$LOCK -ef $DIR/lock ]] || die "$DIR was deleted while this ./dev waited; run it again"
    stack_load
}

stack_unlock() {
    exec {LOCK}>&-
}

# setting NAME [DEFAULT]
setting() {
    file_line "$DIR/settings/$1" || printf '%s' "${2:-}"
}

setting_keep() {
    printf '%s\n' "$2" >"$DIR/settings/$1"
}

secret_keep() {
    (umask 077 && printf '%s\n' "$2" >"$DIR/secrets/$1.new" && mv -f "$DIR/secrets/$1.new" "$DIR/secrets/$1")
    SECRET[$1]=$2
}

# secret_make NAME BYTES: random, in hex, made once.
secret_make() {
    [[ -z ${SECRET[$1]:-} ]] || return 0
    secret_keep "$1" "$(od -An -v -tx1 -N"$2" /dev/urandom | tr -d ' \n')"
}
