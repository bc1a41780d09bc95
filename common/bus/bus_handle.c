// SPDX-License-Identifier: MIT
#include "common/bus/bus_handle.h"

#include <syslog.h>

#define MAGIC 0xb05b05U
#define ERROR_TEXT_MAX 512

// X-list row order is enum bus_metric's.
#define BUS_METRICS(M)                                                                                       \
    M(up, GAUGE, "dunlin_bus_up", NULL, "role", "1 while a Kafka broker answers.",                           \
        "At 0: are the brokers up and reachable?")                                                           \
    M(errors, COUNTER, "dunlin_bus_errors_total", "errors", "role", "Errors that librdkafka reported.",      \
        "Read the log lines of the same role.")                                                              \
    M(produced, COUNTER, "dunlin_bus_produced_total", "records", "outcome",                                  \
        "Records by what became of them: delivered, failed, refused (queue full).",                          \
        "Refused or failed: Kafka is slow or away.")                                                         \
    M(consumed, COUNTER, "dunlin_bus_consumed_total", "records", NULL, "Records read.",                      \
        "Standing still with lag: see dunlin_bus_up and dunlin_bus_partitions.")                             \
    M(consumed_bytes, COUNTER, "dunlin_bus_consumed_bytes_total", "bytes", NULL,                             \
        "Bytes of records read, uncompressed.", "For capacity planning.")                                    \
    M(assignments, COUNTER, "dunlin_bus_assignments_total", "assignments", "outcome",                        \
        "Times that the group gave us partitions: done, or failed for want of a position.",                  \
        "Often: group members come and go, or Postgres is away.")                                            \
    M(partitions, GAUGE, "dunlin_bus_partitions", "partitions", NULL, "Partitions that are ours.",           \
        "0 for long: no broker, no topic, or more members than partitions.")                                 \
    M(out_of_range, COUNTER, "dunlin_bus_out_of_range_total", "positions", NULL,                             \
        "Positions that the log did not hold any more.",                                                     \
        "Records were lost before they were read: is retention too short, was a topic made anew?")

const struct metric_family bus_metrics[] = {BUS_METRICS(METRIC_ROW)};
const size_t bus_metrics_count = ARRAY_LEN(bus_metrics);

void bus_handle_init(struct bus_handle *handle, const char *role, void *owner) {
    *handle = (struct bus_handle){.magic = MAGIC, .role = role, .owner = owner};
    if (owner != NULL) {
        handle->errors = metric_add(&bus_metrics[BUS_errors], role);
        handle->up_gauge = metric_add(&bus_metrics[BUS_up], role);
    }
}

struct bus_handle *bus_handle_of(void *opaque) {
    struct bus_handle *handle = opaque;
    REQUIRE(handle != NULL && handle->magic == MAGIC);
    return handle;
}

static void count_error(struct bus_handle *handle) {
    if (handle->errors != NULL) {
        metric_inc(handle->errors);
    }
}

void bus_handle_set_up(struct bus_handle *handle, bool up) {
    if (atomic_exchange(&handle->up, up) == up || handle->up_gauge == NULL) {
        return;
    }
    metric_set(handle->up_gauge, up ? 1 : 0);
    if (up) {
        log_info("Kafka answers", log_text("role", handle->role));
    } else {
        log_warn("no Kafka broker answers", log_text("role", handle->role));
    }
}

void bus_handle_error(struct bus_handle *handle, const char *what, rd_kafka_resp_err_t error) {
    count_error(handle);
    int64_t suppressed = 0;
    if (log_allowed(&handle->limit, &suppressed)) {
        log_warn("Kafka error", log_text("role", handle->role), log_text("what", what),
            log_text("error", rd_kafka_err2name(error)), log_int("suppressed", suppressed));
    }
}

static enum log_level level_of(int syslog_level) {
    if (syslog_level <= LOG_ERR) {
        return LOG_LEVEL_ERROR;
    }
    if (syslog_level == LOG_WARNING) {
        return LOG_LEVEL_WARN;
    }
    return syslog_level == LOG_DEBUG ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO;
}

// On librdkafka's threads. An outage repeats its lines for every broker and attempt, hence the limit.
static void on_log(const rd_kafka_t *kafka, int level, const char *facility, const char *text) {
    struct bus_handle *handle = kafka != NULL ? rd_kafka_opaque(kafka) : NULL;
    int64_t suppressed = 0;
    if (handle != NULL && !log_allowed(&handle->limit, &suppressed)) {
        return;
    }
    log_write(level_of(level), "librdkafka", log_text("role", handle != NULL ? handle->role : ""),
        log_text("facility", facility), log_text("text", text), log_int("suppressed", suppressed),
        (struct log_field){0});
}

static void on_error(rd_kafka_t *kafka, int error, const char *reason, void *opaque) {
    struct bus_handle *handle = bus_handle_of(opaque);
    if (error == RD_KAFKA_RESP_ERR__FATAL) {
        char text[ERROR_TEXT_MAX] = "";
        rd_kafka_resp_err_t cause = rd_kafka_fatal_error(kafka, text, sizeof(text));
        atomic_store(&handle->fatal, true);
        count_error(handle);
        log_error("Kafka handle is lost", log_text("role", handle->role),
            log_text("error", rd_kafka_err2name(cause)), log_text("text", text));
        return;
    }
    if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
        bus_handle_set_up(handle, false);
    }
    bus_handle_error(handle, reason, (rd_kafka_resp_err_t)error);
}

// api.version.request stays at its default: the fallback lists are too old for Kafka 4.
static const struct bus_setting common_settings[] = {
    {"socket.nagle.disable", "true"},
    {"socket.keepalive.enable", "true"},
    {"log.connection.close", "false"},
    {"reconnect.backoff.ms", "100"},
    {"reconnect.backoff.max.ms", "2000"},
    {"topic.metadata.refresh.interval.ms", "10000"},
};

static bool set_all(
    rd_kafka_conf_t *conf, const struct bus_setting *settings, size_t count, char *text, size_t size) {
    for (size_t i = 0; i < count; i++) {
        if (rd_kafka_conf_set(conf, settings[i].name, settings[i].value, text, size) != RD_KAFKA_CONF_OK) {
            return false;
        }
    }
    return true;
}

void bus_handle_end(struct bus_handle *handle) {
    atomic_store(&handle->up, false);
    metric_set(handle->up_gauge, 0);
}

rd_kafka_conf_t *bus_handle_conf(struct bus_handle *handle, const char *brokers, const char *client,
    const struct bus_setting *settings, size_t count, struct problem *why) {
    const struct bus_setting own[] = {{"bootstrap.servers", brokers}, {"client.id", client}};
    char text[ERROR_TEXT_MAX] = "";
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    REQUIRE(conf != NULL);
    rd_kafka_conf_set_opaque(conf, handle);
    rd_kafka_conf_set_log_cb(conf, on_log);
    rd_kafka_conf_set_error_cb(conf, on_error);
    if (set_all(conf, common_settings, ARRAY_LEN(common_settings), text, sizeof(text)) &&
        set_all(conf, own, ARRAY_LEN(own), text, sizeof(text)) &&
        set_all(conf, settings, count, text, sizeof(text))) {
        return conf;
    }
    rd_kafka_conf_destroy(conf);
    (void)problem_set(why, STATUS_INVALID_ARGUMENT, "", "Kafka settings: %s", text);
    return NULL;
}

rd_kafka_t *bus_handle_new(rd_kafka_type_t type, rd_kafka_conf_t *conf, struct problem *why) {
    char text[ERROR_TEXT_MAX] = "";
    rd_kafka_t *kafka = rd_kafka_new(type, conf, text, sizeof(text));
    if (kafka == NULL) {
        rd_kafka_conf_destroy(conf);
        (void)problem_set(why, STATUS_INVALID_ARGUMENT, "", "Kafka: %s", text);
    }
    return kafka;
}

int32_t bus_handle_ask(
    struct bus_handle *handle, rd_kafka_t *kafka, rd_kafka_topic_t *topic, int timeout_ms) {
    const struct rd_kafka_metadata *answer = NULL;
    if (rd_kafka_metadata(kafka, 0, topic, &answer, timeout_ms) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return -1; // the time may have been short: that all are down, on_error() is told
    }
    bus_handle_set_up(handle, true);
    int32_t partitions = 0;
    if (answer->topic_cnt == 1 && answer->topics[0].err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        partitions = answer->topics[0].partition_cnt;
    }
    rd_kafka_metadata_destroy(answer);
    return partitions;
}
