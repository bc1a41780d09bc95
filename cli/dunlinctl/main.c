// SPDX-License-Identifier: MIT
// dunlinctl: Dunlin from the command line, over RPC.
#include "cli/dunlinctl/dunlinctl.h"
#include "common/crypto/crypto.h"
#include "common/log/log.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: dunlinctl [FLAGS] COMMAND ...\n"
    "\n"
    "  create URL [--alias A] [--expires-at T]   make a link, print its short URL\n"
    "  get CODE                                  show a link of yours\n"
    "  clicks CODE [--from DAY] [--to DAY]       its clicks per UTC day\n"
    "  decode CODE                               which slot and counter made a code\n"
    "  key create --owner NAME [--scope SCOPE]   make an API key, print it this once\n"
    "                                            (SCOPE: links, the default, or operator)\n"
    "  keyrange advance --slot N --to COUNTER    hand out no value below COUNTER any more\n"
    "                   [--force]                (by more than 2^33)\n"
    "\n"
    "flags, before or after the command:\n"
    "  --writer ADDRESS    the writer, tcp://HOST:PORT      (else $DUNLIN_WRITER)\n"
    "  --clicks ADDRESS    the clicks service               (else $DUNLIN_CLICKS)\n"
    "  --keyrange ADDRESS  the keyrange service             (else $DUNLIN_KEYRANGE)\n"
    "  --api-key KEY       better by the environment, where other users can't see it  (else "
    "$DUNLIN_API_KEY)\n"
    "  --timeout SECONDS   1 to 60, default 5\n"
    "  --json              print JSON\n"
    "  --version, --help\n"
    "\n"
    "exit codes: 0 done, 1 refused, 2 usage, 3 unavailable\n";

enum flag {
    FLAG_WRITER = 256,
    FLAG_CLICKS,
    FLAG_API_KEY,
    FLAG_TIMEOUT,
    FLAG_JSON,
    FLAG_ALIAS,
    FLAG_EXPIRES_AT,
    FLAG_FROM,
    FLAG_TO,
    FLAG_OWNER,
    FLAG_SCOPE,
    FLAG_KEYRANGE,
    FLAG_SLOT,
    FLAG_FORCE,
    FLAG_VERSION,
    FLAG_HELP,
};

static const struct option options[] = {
    {"writer", required_argument, NULL, FLAG_WRITER},
    {"clicks", required_argument, NULL, FLAG_CLICKS},
    {"api-key", required_argument, NULL, FLAG_API_KEY},
    {"timeout", required_argument, NULL, FLAG_TIMEOUT},
    {"json", no_argument, NULL, FLAG_JSON},
    {"alias", required_argument, NULL, FLAG_ALIAS},
    {"expires-at", required_argument, NULL, FLAG_EXPIRES_AT},
    {"from", required_argument, NULL, FLAG_FROM},
    {"to", required_argument, NULL, FLAG_TO},
    {"owner", required_argument, NULL, FLAG_OWNER},
    {"scope", required_argument, NULL, FLAG_SCOPE},
    {"keyrange", required_argument, NULL, FLAG_KEYRANGE},
    {"slot", required_argument, NULL, FLAG_SLOT},
    {"force", no_argument, NULL, FLAG_FORCE},
    {"version", no_argument, NULL, FLAG_VERSION},
    {"help", no_argument, NULL, FLAG_HELP},
    {NULL, 0, NULL, 0},
};

#define FLAG_BIT(flag) (1U << ((flag)-FLAG_WRITER))
#define COMMON_FLAGS                                                                                         \
    (FLAG_BIT(FLAG_WRITER) | FLAG_BIT(FLAG_CLICKS) | FLAG_BIT(FLAG_API_KEY) | FLAG_BIT(FLAG_TIMEOUT) |       \
        FLAG_BIT(FLAG_JSON) | FLAG_BIT(FLAG_KEYRANGE))

struct command {
    const char *name;
    const char *second; // of a two-word command
    bool has_argument;
    unsigned flags; // its own, beside the common ones
    int (*run)(const struct command_line *line);
};

static const struct command commands[] = {
    {"create", NULL, true, FLAG_BIT(FLAG_ALIAS) | FLAG_BIT(FLAG_EXPIRES_AT), command_create},
    {"get", NULL, true, 0, command_get},
    {"clicks", NULL, true, FLAG_BIT(FLAG_FROM) | FLAG_BIT(FLAG_TO), command_clicks},
    {"decode", NULL, true, 0, command_decode},
    {"key", "create", false, FLAG_BIT(FLAG_OWNER) | FLAG_BIT(FLAG_SCOPE), command_key_create},
    {"keyrange", "advance", false, FLAG_BIT(FLAG_SLOT) | FLAG_BIT(FLAG_TO) | FLAG_BIT(FLAG_FORCE),
        command_keyrange_advance},
};

static int usage(const char *sentence, const char *word) {
    (void)fprintf(stderr, "dunlinctl: %s%s%s\nTry: dunlinctl --help\n", sentence, word == NULL ? "" : " ",
        word == NULL ? "" : word);
    return EXIT_USAGE;
}

static bool read_timeout(const char *text, int64_t *out) {
    char *end;
    long seconds = strtol(text, &end, 10);
    *out = (int64_t)seconds * US_PER_S;
    return *text != '\0' && *end == '\0' && seconds >= 1 && seconds <= 60;
}

static const char **text_of(struct command_line *line, int flag) {
    switch (flag) {
    case FLAG_WRITER:
        return &line->writer;
    case FLAG_CLICKS:
        return &line->clicks;
    case FLAG_API_KEY:
        return &line->api_key;
    case FLAG_ALIAS:
        return &line->alias;
    case FLAG_EXPIRES_AT:
        return &line->expires_at;
    case FLAG_FROM:
        return &line->from;
    case FLAG_TO:
        return &line->to;
    case FLAG_KEYRANGE:
        return &line->keyrange;
    case FLAG_SLOT:
        return &line->slot;
    case FLAG_OWNER:
        return &line->owner;
    default:
        return &line->scope;
    }
}

// -1: go on; else the exit code.
static int read_flags(int argc, char **argv, struct command_line *line, unsigned *given) {
    int flag;
    while ((flag = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (flag == FLAG_HELP || flag == FLAG_VERSION) {
            (void)printf("%s", flag == FLAG_HELP ? help : "dunlinctl " DUNLIN_VERSION "\n");
            return EXIT_DONE;
        }
        if (flag == '?')
            return usage("what it said above", NULL);
        *given |= FLAG_BIT(flag);
        if (flag == FLAG_JSON)
            line->json = true;
        else if (flag == FLAG_FORCE)
            line->force = true;
        else if (flag != FLAG_TIMEOUT)
            *text_of(line, flag) = optarg;
        else if (!read_timeout(optarg, &line->timeout_us))
            return usage("--timeout must be 1 to 60 seconds, not", optarg);
    }
    return -1;
}

static const struct command *find(char **words, int count) {
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (count == 0 || strcmp(words[0], commands[i].name) != 0)
            continue;
        if (commands[i].second == NULL || (count > 1 && strcmp(words[1], commands[i].second) == 0))
            return &commands[i];
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct command_line line = {
        .writer = getenv("DUNLIN_WRITER"),
        .clicks = getenv("DUNLIN_CLICKS"),
        .keyrange = getenv("DUNLIN_KEYRANGE"),
        .api_key = getenv("DUNLIN_API_KEY"),
        .timeout_us = 5 * US_PER_S,
    };
    (void)signal(SIGPIPE, SIG_IGN);
    crypto_init();
    // What went wrong is said in words of our own; only what is worse than that is worth a log line.
    if (!log_open("dunlinctl", "error"))
        return EXIT_USAGE;
    unsigned given = 0;
    int code = read_flags(argc, argv, &line, &given);
    if (code >= 0)
        return code;
    char **words = argv + optind;
    int count = argc - optind;
    const struct command *command = find(words, count);
    if (command == NULL)
        return usage(count == 0 ? "no command" : "no such command:", count == 0 ? NULL : words[0]);
    if ((given & ~(COMMON_FLAGS | command->flags)) != 0)
        return usage("a flag does not belong to the command", command->name);
    int wanted = 1 + (command->second != NULL) + command->has_argument;
    if (count != wanted)
        return usage(count < wanted ? "too few words for" : "too many words for", command->name);
    line.argument = command->has_argument ? words[wanted - 1] : NULL;
    return command->run(&line);
}
