# shellcheck shell=bash
# The subcommands.

cmd_help() {
    cat <<'TEXT'
Usage: ./dev COMMAND

A running fleet (in .dunlin, or the folder that --dir DIR or DUNLIN_DIR names; several run side by side)
  up [--port N] [--redirectors N]   install what is missing, build, and start what does not run yet;
                                    the public port is 8080 unless told otherwise, 0 takes any that is free
  down                              stop what was started, keep the data
  reset                             down, and delete the data
  status [--json]                   each part with port, pid and health
  logs NAME [-f]                    what a part has logged; -f follows
  env                               shell assignments for the running stack: eval "$(./dev env)"
  start NAME                        one part of a stack: postgres redis kafka keyrange writer clicks redirector …
  stop NAME [--kill]                stop it with SIGTERM, or SIGKILL

Work on the code
  build [PRESET]                    release (the default), sanitize or clang, in build/PRESET
  test [CTEST ARGUMENT…]            build and run every test against backends of its own; -L unit, -R NAME, … narrow it
  check [PART…]                     format, includes, text, docs, tidy
  docs                              write docs/configuration.md and docs/metrics.md from the programs
  help                              this
TEXT
}

main() {
    local command=${1:-help} dir=''
    local arguments=()
    (($# == 0)) || shift
    unset "${!PG@}" # libpq's own variables would lead our clients elsewhere
    case $command in
    up | down | reset | status | logs | env | start | stop)
        while (($# > 0)); do
            case $1 in
            --dir)
                [[ -n ${2:-} ]] || usage_error "--dir takes a folder"
                dir=$2
                shift
                ;;
            --dir=*) dir=${1#*=} ;;
            *) arguments+=("$1") ;;
            esac
            shift
        done
        stack_find "$dir"
        "cmd_$command" "${arguments[@]}"
        ;;
    build | test | check | docs) "cmd_$command" "$@" ;;
    help | -h | --help) cmd_help ;;
    *) usage_error "there is no command $command" ;;
    esac
}
