# shellcheck shell=bash
# test: everything that tests the project, against backends of its own, as one run of ctest over two builds.

# cmd_test [CTEST ARGUMENT…]
cmd_test() {
    packages_need "${packages_build[@]}" "${packages_run[@]}" "${packages_check[@]}"
    build_preset release
    build_preset sanitize
    kafka_resolve
    test_backends
    test_ctest "$@"
}

# In a fresh folder that goes away with us, whatever happens.
test_backends() {
    DIR=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/dunlin-test-XXXXXX")")
    stack_create
    trap test_cleanup EXIT
    trap 'exit 130' INT TERM HUP
    stack_lock
    backends_start
    stack_unlock
    export DUNLIN_TEST_PG DUNLIN_TEST_REDIS DUNLIN_TEST_KAFKA DUNLIN_DEV DUNLIN_BIN
    DUNLIN_TEST_PG=$(pg_url postgres postgres)
    DUNLIN_TEST_REDIS=redis://127.0.0.1:${PORT[redis]}
    DUNLIN_TEST_KAFKA=127.0.0.1:${PORT[kafka]}
    DUNLIN_DEV=$ROOT/dev
    DUNLIN_BIN=$ROOT/build/release/bin
    unset DUNLIN_DIR # a test that runs ./dev names its own
}

# Silent, so that ctest's summary is the last thing on the screen.
test_cleanup() {
    local status=$?
    trap '' INT TERM HUP
    stack_load
    (down_everything && stack_delete) >/dev/null || printf 'dev: %s may still hold something\n' "$DIR" >&2
    exit "$status"
}

test_ctest() {
    printf 'subdirs("release" "sanitize")\n' >"$ROOT/build/CTestTestfile.cmake"
    ctest --test-dir "$ROOT/build" --output-on-failure -j2 "$@"
}
