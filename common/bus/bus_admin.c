// SPDX-License-Identifier: MIT
#include "common/bus/bus_handle.h"

#define NUMBER_TEXT 24
#define ERROR_TEXT_MAX 512

static enum status refuse(
    struct problem *why, const char *topic, rd_kafka_resp_err_t error, const char *text) {
    switch ((int)error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
    case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS:
        return STATUS_OK;
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR_INVALID_PARTITIONS:
    case RD_KAFKA_RESP_ERR_INVALID_CONFIG:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
        return problem_set(
            why, STATUS_FAILED_PRECONDITION, "", "Kafka topic \"%s\" can't be made: %s", topic, text);
    default: // too few brokers for the replication factor is one of these: they may be still starting
        return problem_set(
            why, STATUS_UNAVAILABLE, "", "Kafka topic \"%s\" can't be made now: %s", topic, text);
    }
}

static enum status read_result(rd_kafka_event_t *event, const char *topic, struct problem *why) {
    if (event == NULL) {
        return problem_set(why, STATUS_UNAVAILABLE, "", "Kafka did not answer in time");
    }
    const rd_kafka_CreateTopics_result_t *result = rd_kafka_event_CreateTopics_result(event);
    if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR || result == NULL) {
        return problem_set(why, STATUS_UNAVAILABLE, "", "Kafka: %s", rd_kafka_event_error_string(event));
    }
    size_t count = 0;
    const rd_kafka_topic_result_t **topics = rd_kafka_CreateTopics_result_topics(result, &count);
    if (count != 1) {
        return problem_set(why, STATUS_INTERNAL, "", "Kafka answered for %zu topics instead of one", count);
    }
    const char *text = rd_kafka_topic_result_error_string(topics[0]);
    return refuse(why, topic, rd_kafka_topic_result_error(topics[0]), text != NULL ? text : "");
}

static enum status create(
    rd_kafka_t *kafka, rd_kafka_NewTopic_t *topic, const char *name, int timeout_ms, struct problem *why) {
    rd_kafka_queue_t *queue = rd_kafka_queue_new(kafka);
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(kafka, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    (void)rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, NULL, 0);
    rd_kafka_CreateTopics(kafka, &topic, 1, options, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, timeout_ms);
    enum status status = read_result(event, name, why);
    if (event != NULL) {
        rd_kafka_event_destroy(event);
    }
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_queue_destroy(queue);
    return status;
}

enum status bus_topic_ensure(const char *brokers, const char *topic, int partitions, int replication,
    int64_t retention_ms, int timeout_ms, struct problem *why) {
    char text[ERROR_TEXT_MAX] = "";
    rd_kafka_NewTopic_t *wanted = rd_kafka_NewTopic_new(topic, partitions, replication, text, sizeof(text));
    if (wanted == NULL) {
        return problem_set(why, STATUS_INVALID_ARGUMENT, "", "Kafka topic \"%s\": %s", topic, text);
    }
    char retention[NUMBER_TEXT];
    (void)snprintf(retention, sizeof(retention), "%lld", (long long)retention_ms);
    (void)rd_kafka_NewTopic_set_config(wanted, "retention.ms", retention);

    struct bus_handle handle;
    bus_handle_init(&handle, "admin", NULL);
    enum status status = STATUS_INVALID_ARGUMENT;
    rd_kafka_conf_t *conf = bus_handle_conf(&handle, brokers, "dunlin-admin", NULL, 0, why);
    rd_kafka_t *kafka = conf != NULL ? bus_handle_new(RD_KAFKA_PRODUCER, conf, why) : NULL;
    if (kafka != NULL) {
        status = create(kafka, wanted, topic, timeout_ms, why);
        rd_kafka_destroy(kafka);
    }
    rd_kafka_NewTopic_destroy(wanted);
    return status;
}
