# shellcheck shell=bash
# check and docs: the parts are programs of their own, scripts/check/PART.

CHECKS=(format includes text docs tidy)

# cmd_check [PART…]
cmd_check() {
    local part start failed=()
    packages_need "${packages_build[@]}" "${packages_check[@]}"
    (($# > 0)) || set -- "${CHECKS[@]}"
    for part in "$@"; do
        [[ -x $ROOT/scripts/check/$part ]] || usage_error "$part is no check; there are: ${CHECKS[*]}"
    done
    if [[ " $* " == *' docs '* || " $* " == *' tidy '* ]]; then
        [[ -n ${DUNLIN_BIN:-} ]] || build_preset release
    fi
    for part in "$@"; do
        start=$(now_ms)
        if DUNLIN_BIN=$BIN "$ROOT/scripts/check/$part"; then
            row "$part" "good, $(seconds_since "$start") s"
        else
            failed+=("$part")
            row "$part" "FAILED, $(seconds_since "$start") s"
        fi
    done
    ((${#failed[@]} == 0)) || die "check failed: ${failed[*]}"
}

cmd_docs() {
    packages_need "${packages_build[@]}"
    build_programs
    DUNLIN_BIN=$BIN "$ROOT/scripts/check/docs" --write
}
