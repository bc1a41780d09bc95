# shellcheck shell=bash
# A real Apache Kafka, one node in KRaft mode. Maven resolves its jars from the pinned pom, once per pom.

kafka_libs() {
    local sum
    sum=$(sha256sum <"$ROOT/deploy/kafka/pom.xml")
    printf '%s/build/kafka/%s' "$ROOT" "${sum:0:12}"
}

# Jars that are half there never count: they appear under their name all at once.
kafka_resolve() {
    local libs start fd
    libs=$(kafka_libs)
    [[ ! -d $libs ]] || return 0
    start=$(now_ms)
    mkdir -p "$ROOT/build/kafka"
    exec {fd}>"$ROOT/build/kafka/.lock"
    flock "$fd"
    if [[ ! -d $libs ]]; then
        row kafka "resolving its jars by Maven"
        rm -rf "$libs.new"
        quietly "$ROOT/build/kafka/maven.log" mvn -q -B -f "$ROOT/deploy/kafka/pom.xml" \
            package -DoutputDirectory="$libs.new" {fd}>&- ||
            die "Kafka's jars could not be had from Maven (deploy/kafka/pom.xml); there is no stand-in for it"
        mv "$libs.new" "$libs"
        row kafka "jars resolved in $(seconds_since "$start") s"
    fi
    exec {fd}>&-
}

# Sets KAFKA, the command that runs one of its classes. The first compiler alone starts it in two thirds of the time.
kafka_command() {
    KAFKA=(java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+ExitOnOutOfMemoryError
        -Dlog4j2.configurationFile="$ROOT/deploy/kafka/log4j2.properties" -cp "$(kafka_libs)/*")
}

kafka_prepare() {
    local properties
    kafka_resolve
    properties=$(<"$ROOT/deploy/kafka/server.properties.in")
    properties=${properties//@PORT@/"${PORT[kafka]}"}
    properties=${properties//@CONTROLLER_PORT@/"${PORT[kafka-controller]}"}
    properties=${properties//@DATA@/"$DIR/kafka/data"}
    printf '%s\n' "$properties" >"$DIR/kafka/server.properties"
    [[ -f $DIR/kafka/data/meta.properties ]] || kafka_format
}

kafka_format() {
    local id
    # A random UUID as Kafka writes one: 16 bytes in base64url; the leading A keeps it from looking like an option.
    id=A$(head -c 32 /dev/urandom | base64 -w 0 | tr '+/' '-_' | head -c 20)Q
    rm -rf "$DIR/kafka/data"
    kafka_command
    quietly "$DIR/log/kafka-format.log" "${KAFKA[@]}" kafka.tools.StorageTool format --standalone -t "$id" \
        -c "$DIR/kafka/server.properties" || die "Kafka's folder could not be formatted"
}

kafka_run() {
    kafka_command
    exec setsid "${KAFKA[@]}" kafka.Kafka "$DIR/kafka/server.properties"
}

# ApiVersions version 0, correlation id 1, client "dev". The broker answers once the controller has let it in.
kafka_ready() {
    local answer
    answer=$(
        exec 2>/dev/null
        exec 9<>"/dev/tcp/127.0.0.1/${PORT[kafka]}" || exit 1
        printf '\0\0\0\x0d\0\x12\0\0\0\0\0\x01\0\x03dev' >&9
        timeout 2 head -c 8 <&9 | od -An -v -tx1 | tr -d ' \n'
    ) || return 1
    [[ ${answer:8} == 00000001 ]]
}

kafka_stop() {
    process_stop kafka "${1:-TERM}" 30
}
