# shellcheck shell=bash
# The builds, in build/PRESET.

BIN=${DUNLIN_BIN:-$ROOT/build/release/bin}

cmd_build() {
    packages_need "${packages_build[@]}"
    build_preset "${1:-release}"
}

# build_preset PRESET: two at once in one folder would spoil it, so they take turns.
build_preset() {
    local preset=$1 start fd
    start=$(now_ms)
    mkdir -p "$ROOT/build"
    exec {fd}>"$ROOT/build/.lock"
    flock "$fd"
    (
        cd "$ROOT"
        quietly "build/$preset.log" cmake --preset "$preset" || die "cmake --preset $preset failed"
        if [[ -t 1 ]]; then
            cmake --build --preset "$preset" --parallel "$(nproc)"
        else
            quietly "build/$preset.log" cmake --build --preset "$preset" --parallel "$(nproc)"
        fi || die "the build of $preset failed"
    ) {fd}>&-
    exec {fd}>&-
    row build "$preset, $(seconds_since "$start") s"
}

# The services' programs: DUNLIN_BIN says that somebody else built them.
build_programs() {
    [[ -n ${DUNLIN_BIN:-} ]] || build_preset release
}
