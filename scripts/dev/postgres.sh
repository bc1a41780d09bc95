# shellcheck shell=bash
# A Postgres of our own: on loopback TCP alone, passwords by SCRAM, no Unix socket (a deep data folder would make its path
# too long). It refuses to run as root, so root runs it as the user postgres.

POSTGRES_AS=()
((EUID != 0)) || POSTGRES_AS=(setpriv --reuid=postgres --regid=postgres --init-groups)

# The folder that holds data/.
postgres_home() {
    setting postgres-home "$DIR/postgres"
}

# Prints the programs' folder: that of the version which made the data, else the newest.
postgres_bin() {
    local version newest
    version=$(cat "$(postgres_home)/data/PG_VERSION" 2>/dev/null) || version='*'
    # shellcheck disable=SC2086
    newest=$(printf '%s\n' /usr/lib/postgresql/$version/bin | sort -V | tail -n 1)
    [[ -x $newest/postgres ]] || die "no Postgres under /usr/lib/postgresql for data of version $version"
    printf '%s' "$newest"
}

postgres_prepare() {
    local home
    secret_make postgres 16
    secret_make dunlin_owner 16
    if [[ ! -f $DIR/settings/postgres-home ]]; then
        postgres_choose_home
    fi
    home=$(postgres_home)
    [[ -d $home/data ]] || postgres_initdb "$home"
    postgres_forget_dead "$home/data/postmaster.pid"
}

# Postgres refuses to start while the process in this file exists, if only as a zombie that nobody reaps (containers).
postgres_forget_dead() {
    local pid
    pid=$(file_line "$1") || return 0
    process_identity "$pid" >/dev/null || rm -f "$1"
}

# Where the user postgres can't reach our folder, such as a checkout below /root, the data goes elsewhere.
postgres_choose_home() {
    local home=$DIR/postgres
    mkdir -p -m 0700 "$home"
    if ((EUID == 0)); then
        chown postgres: "$home"
        if ! "${POSTGRES_AS[@]}" test -w "$home"; then
            rmdir "$home"
            home=$(mktemp -d /var/lib/dunlin-postgres-XXXXXX)
            chown postgres: "$home"
        fi
    fi
    setting_keep postgres-home "$home"
}

# A run that is killed half way leaves data.new, which the next one throws away.
postgres_initdb() {
    local home=$1 bin
    bin=$(postgres_bin)
    rm -rf "$home/data.new"
    (umask 077 && printf '%s\n' "${SECRET[postgres]}" >"$home/password")
    ((EUID != 0)) || chown postgres: "$home/password"
    (cd / && quietly "$DIR/log/initdb.log" "${POSTGRES_AS[@]}" "$bin/initdb" --pgdata="$home/data.new" --username=postgres \
        --pwfile="$home/password" --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8) || die "initdb failed"
    rm -f "$home/password"
    mv "$home/data.new" "$home/data"
}

postgres_run() {
    local home bin
    home=$(postgres_home)
    bin=$(postgres_bin)
    exec setsid "${POSTGRES_AS[@]}" "$bin/postgres" -D "$home/data" -p "${PORT[postgres]}" \
        -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200 -c timezone=UTC \
        -c log_timezone=UTC
}

postgres_ready() {
    "$(postgres_bin)/pg_isready" -q -h 127.0.0.1 -p "${PORT[postgres]}" -t 2
}

postgres_stop() {
    process_stop postgres "${1:-INT}" 60 # INT: disconnects everybody, writes a checkpoint
}

# Runs standard input as the superuser.
postgres_admin() {
    PGPASSWORD=${SECRET[postgres]} "$(postgres_bin)/psql" -X -q -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "${PORT[postgres]}" \
        -U postgres -d postgres -f - >/dev/null
}

# The owner and its database. Migrations make the roles of the services, so the owner may make roles.
postgres_make_owner() {
    postgres_admin <<SQL
SELECT 'CREATE ROLE dunlin_owner' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'dunlin_owner') \\gexec
ALTER ROLE dunlin_owner LOGIN CREATEROLE PASSWORD '${SECRET[dunlin_owner]}';
SELECT 'CREATE DATABASE dunlin OWNER dunlin_owner'
 WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'dunlin') \\gexec
SQL
}

# Migrations make the roles without a password.
postgres_let_services_in() {
    local role
    for role in "${SERVICE_ROLES[@]}"; do
        secret_make "$role" 16
        printf "ALTER ROLE %s LOGIN PASSWORD '%s';\n" "$role" "${SECRET[$role]}"
    done >"$DIR/secrets/roles.sql"
    postgres_admin <"$DIR/secrets/roles.sql" || die "the services' roles could not be given passwords"
    rm -f "$DIR/secrets/roles.sql"
}
