// SPDX-License-Identifier: MIT
// dunlin-migrate: see migrate.h and deploy/sql/README.md.
#include "cli/migrate/migrate.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef DUNLIN_SQL_DIR
#define DUNLIN_SQL_DIR "deploy/sql"
#endif
#define WAIT_MAX_S 86400

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const char usage[] =
    "usage: dunlin-migrate [--database URI] [--sql DIR] [--wait SECONDS] [--status] [--help]\n"
    "\n"
    "Applies the numbered migrations that a database doesn't have yet, each in one transaction.\n"
    "Run it again at will, before the services that need them; two at once wait for each other.\n"
    "\n"
    "  --database URI  the database, as its owner (default: the environment's PG_URL, which other\n"
    "                  users of the machine can't read)\n"
    "  --sql DIR       the migrations (default: " DUNLIN_SQL_DIR ")\n"
    "  --wait SECONDS  how long to wait for the database, and for another run's end (default: 30)\n"
    "  --status        say which are applied and which are pending, and change nothing\n"
    "\n"
    "Exit codes: 0 done, 1 failed, 2 usage.\n";

static void print_line(void *arg, const char *line) {
    (void)arg;
    (void)printf("%s\n", line);
    (void)fflush(stdout);
}

static int bad_usage(const char *what) {
    (void)fprintf(stderr, "dunlin-migrate: %s\n\n%s", what, usage);
    return EXIT_USAGE;
}

static bool parse_wait(const char *text, int64_t *out_us) {
    char *end;
    errno = 0;
    long seconds = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || seconds < 0 || seconds > WAIT_MAX_S) {
        return false;
    }
    *out_us = seconds * US_PER_S;
    return true;
}

static int run(const struct migrate_options *options) {
    crypto_init();
    struct buf why;
    buf_init(&why, MIGRATE_WHY_MAX);
    bool ok = migrate_run(options, &why);
    if (!ok) {
        (void)fprintf(stderr, "dunlin-migrate: %s\n", buf_text(&why));
    }
    buf_done(&why);
    return ok ? EXIT_DONE : EXIT_FAILED;
}

int main(int argc, char **argv) {
    static const struct option options[] = {{"database", required_argument, NULL, 'd'},
        {"sql", required_argument, NULL, 's'}, {"wait", required_argument, NULL, 'w'},
        {"status", no_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    struct migrate_options how = {
        .conninfo = getenv("PG_URL"), .dir = DUNLIN_SQL_DIR, .wait_us = 30 * US_PER_S, .say = print_line};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'd':
            how.conninfo = optarg;
            break;
        case 's':
            how.dir = optarg;
            break;
        case 'w':
            if (!parse_wait(optarg, &how.wait_us)) {
                return bad_usage("--wait is 0 to 86400 seconds");
            }
            break;
        case 't':
            how.status_only = true;
            break;
        case 'h':
            (void)fputs(usage, stdout);
            return EXIT_DONE;
        default:
            return bad_usage("unknown option or missing value");
        }
    }
    if (optind < argc) {
        return bad_usage("takes options only");
    }
    if (how.conninfo == NULL || how.conninfo[0] == '\0') {
        return bad_usage("no database: give --database or set PG_URL");
    }
    return run(&how);
}
