// SPDX-License-Identifier: MIT
#include "common/service/service.h"

#include "common/crypto/crypto.h"
#include "common/log/log.h"
#include "common/service/service_state.h"
#include "common/service/watchdog.h"
#include "common/web/web_listen.h"
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define READY_PERIOD_MS 100
#define REASON_PERIOD_US (10 * US_PER_S)

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

#define SERVICE_CONFIG(F)                                                                                    \
    F(TEXT, admin_listen, "ADMIN_LISTEN", "", 1, 80, "host:port", CONFIG_REQUIRED,                           \
        "Where /metrics, /healthz and /readyz are served, without authentication: a numeric address, "       \
        "[...] around IPv6. Port 0 takes a free one and logs it.")                                           \
    F(CHOICE, log_level, "LOG_LEVEL", "info", 0, 0, "debug|info|warn|error", 0,                              \
        "The lowest level that is logged.")                                                                  \
    F(INT, drain_delay_ms, "DRAIN_DELAY_MS", "5000", 0, 600000, "ms", 0,                                     \
        "How long to serve on after SIGTERM, so that load balancers see /readyz say no. 0 for development.") \
    F(INT, shutdown_timeout_ms, "SHUTDOWN_TIMEOUT_MS", "20000", 100, 600000, "ms", 0,                        \
        "How long finishing what is in flight may take after that.")

struct service_config {
    SERVICE_CONFIG(CONFIG_MEMBER)
};
#define CONFIG_STRUCT service_config
static const struct config_field service_config_fields[] = {SERVICE_CONFIG(CONFIG_ROW)};

// The one service of this process.
static struct {
    struct service_state shared;
    struct service_config config;
    struct config_field fields[ARRAY_LEN(service_config_fields)];
    struct config_section *sections; // ours, then the service's
    size_t section_count;
    struct metric *ready;
    bool was_ready;
    bool has_been_ready;
    atomic_bool has_failed; // service_fail() was called
    int64_t next_reason_us;
    _Atomic int64_t stop_deadline_us; // 0 before the drain
} self = {.shared = {.lock = PTHREAD_MUTEX_INITIALIZER}};

int64_t service_stop_time_left_us(void) {
    int64_t deadline = atomic_load(&self.stop_deadline_us);
    if (deadline == 0)
        return self.config.shutdown_timeout_ms * US_PER_MS;
    int64_t left = deadline - base_monotonic_us();
    return left > 0 ? left : 0;
}

static void compose_settings(const struct service *service) {
    memcpy(self.fields, service_config_fields, sizeof self.fields);
    if (service->admin_preset != NULL) {
        self.fields[0].preset = service->admin_preset;
        self.fields[0].flags = 0;
    }
    self.section_count = service->config_count + 1;
    self.sections = base_calloc(self.section_count, sizeof *self.sections);
    self.sections[0] = (struct config_section){
        .title = "service",
        .fields = self.fields,
        .count = ARRAY_LEN(self.fields),
        .into = &self.config,
    };
    if (service->config_count > 0)
        memcpy(self.sections + 1, service->config, service->config_count * sizeof *self.sections);
}

static bool load_settings(struct buf *why) {
    if (!config_load(self.sections, self.section_count, why))
        return false;
    char host[ADMIN_HOST_MAX];
    uint16_t port;
    if (!web_listen_parse(self.config.admin_listen, host, sizeof host, &port)) {
        buf_printf(why,
            "ADMIN_LISTEN=\"%s\": must be a numeric address and a port, 127.0.0.1:9100 or [::1]:9100",
            self.config.admin_listen);
        return false;
    }
    return true;
}

static void print_usage(FILE *out, const struct service *service) {
    (void)fprintf(out,
        "Usage: dunlin-%s [--help | --version | --check | --describe=settings | --describe=metrics]\n\n%s\n\n"
        "  --check               validate the settings, exit with 0 or 2\n"
        "  --describe=settings   the settings as Markdown\n"
        "  --describe=metrics    the metrics as Markdown\n\n"
        "SIGTERM and SIGINT drain and end it, a second one at once.\n"
        "Exit codes: 0 done or drained, 1 a part failed or the end was forced, 2 usage or settings.\n\n"
        "Settings are environment variables.\n\n",
        service->name, service->summary);
}

static void print_metrics(const struct service *service) {
    const struct metric_section ours = {"service", service_metrics, service_metrics_count};
    metrics_print_markdown(stdout, &ours, 1);
    metrics_print_markdown(stdout, service->metrics, service->metrics_count);
}

static int check_settings(const struct service *service) {
    struct buf why;
    buf_init(&why, 4096);
    bool is_good = load_settings(&why);
    if (is_good)
        (void)printf("dunlin-%s: the settings are valid\n", service->name);
    else
        (void)fprintf(stderr, "dunlin-%s: %s\n", service->name, buf_text(&why));
    buf_done(&why);
    return is_good ? EXIT_DONE : EXIT_USAGE;
}

static int run_option(const struct service *service, const char *option) {
    if (strcmp(option, "--check") == 0)
        return check_settings(service);
    if (strcmp(option, "--help") == 0) {
        print_usage(stdout, service);
        config_print_help(stdout, self.sections, self.section_count);
    } else if (strcmp(option, "--version") == 0) {
        (void)printf("dunlin-%s %s\n", service->name, DUNLIN_VERSION);
    } else if (strcmp(option, "--describe=settings") == 0) {
        config_print_markdown(stdout, self.sections, self.section_count);
    } else if (strcmp(option, "--describe=metrics") == 0) {
        print_metrics(service);
    } else {
        (void)fprintf(
            stderr, "dunlin-%s: unknown argument; see dunlin-%s --help\n", service->name, service->name);
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

static void set_phase(enum service_phase phase) {
    (void)pthread_mutex_lock(&self.shared.lock);
    self.shared.phase = phase;
    (void)pthread_mutex_unlock(&self.shared.lock);
}

static bool start_parts(const struct service *service, size_t *started) {
    for (*started = 0; *started < service->part_count; ++*started) {
        const struct service_part *part = &service->parts[*started];
        struct problem why = {0};
        enum status status = part->start(part->state, &why);
        if (status != STATUS_OK) {
            log_error("a part failed to start", log_text("part", part->name),
                log_text("status", status_name(status)), log_text("reason", why.message));
            return false;
        }
        log_debug("part started", log_text("part", part->name));
    }
    return true;
}

static void log_reason(struct buf *reason) {
    for (size_t i = 0; i + 1 < reason->len; i++)
        if (reason->data[i] == '\n')
            reason->data[i] = ';';
    size_t len = reason->len > 0 ? reason->len - 1 : 0;
    log_warn("not ready", log_bytes("reason", buf_text(reason), len));
}

void service_fail(const char *reason) {
    log_critical("this process can't go on", log_text("reason", reason));
    atomic_store(&self.has_failed, true);
}

// Says when it becomes ready, and why it isn't: at once when that changes, then every now and then.
static void watch_ready(void) {
    struct buf reason;
    buf_init(&reason, 4096);
    bool is_ready = service_state_ready(&self.shared, &reason);
    int64_t now = base_monotonic_us();
    metric_set(self.ready, is_ready);
    if (is_ready && !self.was_ready) {
        log_info(self.has_been_ready ? "ready again" : "ready");
        self.has_been_ready = true;
    } else if (!is_ready && (self.was_ready || now >= self.next_reason_us)) {
        log_reason(&reason);
        self.next_reason_us = now + REASON_PERIOD_US;
    }
    self.was_ready = is_ready;
    buf_done(&reason);
}

// The signal, or 0 after service_fail().
static int wait_for_signal(const sigset_t *signals) {
    const struct timespec period = {.tv_nsec = READY_PERIOD_MS * 1000000L};
    while (!atomic_load(&self.has_failed)) {
        watch_ready();
        int got = sigtimedwait(signals, NULL, &period);
        if (got > 0)
            return got;
    }
    return 0;
}

static void leave(const struct service *service) {
    set_phase(SERVICE_LEAVING);
    metric_set(self.ready, 0);
    for (size_t i = service->part_count; i-- > 0;)
        if (service->parts[i].leaving != NULL)
            service->parts[i].leaving(service->parts[i].state);
    int64_t ms = self.config.drain_delay_ms;
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * 1000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        continue;
}

static void stop_parts(const struct service *service, size_t started) {
    atomic_store(&self.stop_deadline_us, base_monotonic_us() + self.config.shutdown_timeout_ms * US_PER_MS);
    for (size_t i = started; i-- > 0;)
        if (service->parts[i].drain != NULL)
            service->parts[i].drain(service->parts[i].state);
    set_phase(SERVICE_STOPPING);
    for (size_t i = started; i-- > 0;)
        if (service->parts[i].stop != NULL)
            service->parts[i].stop(service->parts[i].state);
}

// The life between the admin port's opening and its closing.
static int run_parts(const struct service *service, const sigset_t *signals) {
    size_t started;
    bool is_up = start_parts(service, &started);
    int64_t budget_us = (self.config.shutdown_timeout_ms + 1000) * US_PER_MS;
    struct watchdog watchdog;
    if (is_up) {
        set_phase(SERVICE_RUNNING);
        int got = wait_for_signal(signals);
        log_info("draining",
            log_text("signal", got == 0        ? "none"
                               : got == SIGINT ? "SIGINT"
                                               : "SIGTERM"),
            log_int("delay_ms", self.config.drain_delay_ms));
        watchdog_start(&watchdog, signals, budget_us + self.config.drain_delay_ms * US_PER_MS);
        leave(service);
    } else {
        watchdog_start(&watchdog, signals, budget_us);
    }
    stop_parts(service, started);
    watchdog_stop(&watchdog);
    return is_up && !atomic_load(&self.has_failed) ? EXIT_DONE : EXIT_FAILED;
}

// Blocks the signals before any thread exists, so that all of them inherit the mask.
static void take_signals(sigset_t *signals) {
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL);
    (void)sigemptyset(signals);
    (void)sigaddset(signals, SIGTERM);
    (void)sigaddset(signals, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, signals, NULL);
}

static int run(const struct service *service) {
    struct buf bad;
    buf_init(&bad, 4096);
    crypto_init();
    REQUIRE(log_open(service->name, "info"));
    if (!load_settings(&bad)) {
        log_error("a setting is bad", log_text("reason", buf_text(&bad)));
        buf_done(&bad);
        return EXIT_USAGE;
    }
    REQUIRE(log_open(service->name, self.config.log_level));
    sigset_t signals;
    take_signals(&signals);
    log_info("starting", log_text("version", DUNLIN_VERSION));
    config_log(self.sections, self.section_count);
    self.ready = service_metrics_add(service);
    struct admin *admin;
    struct problem why = {0};
    if (admin_start(&self.shared, self.config.admin_listen, &admin, &why) != STATUS_OK) {
        log_error("the admin port can't be opened", log_text("ADMIN_LISTEN", self.config.admin_listen),
            log_text("reason", why.message));
        return EXIT_FAILED;
    }
    int code = run_parts(service, &signals);
    admin_stop(admin);
    log_info("stopped", log_int("exit_code", code));
    return code;
}

int service_main(const struct service *service, int argc, char **argv) {
    self.shared.service = service;
    compose_settings(service);
    int code = EXIT_USAGE;
    if (argc == 1)
        code = run(service);
    else if (argc == 2)
        code = run_option(service, argv[1]);
    else
        print_usage(stderr, service);
    free(self.sections);
    self.sections = NULL;
    return code;
}
