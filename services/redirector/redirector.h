// SPDX-License-Identifier: MIT
// What the service is made of: its settings, its metrics and its state.
#pragma once

#include "common/config/config.h"
#include "common/metrics/metrics.h"
#include "common/rpc/rpc_client.h"
#include "common/target/target.h"
#include "services/redirector/never_issued.h"

#define REDIRECTOR_CONFIG(F)                                                                                 \
    F(TEXT, listen, "HTTP_LISTEN", "127.0.0.1:8080", 1, 255, "address:port", 0,                              \
        "Where browsers and API clients are answered.")                                                      \
    F(INT, workers, "WORKERS", "0", 0, 256, "threads", 0,                                                    \
        "Event loops, each with its own connections. 0: one per core.")                                      \
    F(INT, connections, "HTTP_CONNECTIONS", "10000", 16, 1000000, "connections", 0,                          \
        "Connections that one worker keeps open; more wait in the kernel.")                                  \
    F(TEXT, public_url, "PUBLIC_URL", "http://127.0.0.1:8080", 8, 300, "URL", 0,                             \
        "What short URLs begin with: scheme, host and port.")                                                \
    F(TEXT, allowed_hosts, "ALLOWED_HOSTS", "", 0, 4096, "hosts", 0,                                         \
        "Our other short hosts, separated by commas. Set: another Host than these and PUBLIC_URL's is 421.") \
    F(TEXT, pg_url, "PG_URL", "", 1, 4096, "URL", CONFIG_SECRET | CONFIG_REQUIRED,                           \
        "Postgres, as role dunlin_redirector.")                                                              \
    F(INT, pg_connections, "PG_CONNECTIONS", "2", 1, 32, "connections", 0,                                   \
        "Postgres connections per worker.")                                                                  \
    F(INT, pg_queue, "PG_QUEUE", "512", 1, 100000, "lookups", 0,                                             \
        "Lookups that one worker may have waiting or under way in Postgres; more are 503.")                  \
    F(INT, pg_deadline, "PG_DEADLINE_MS", "500", 10, 60000, "ms", 0,                                         \
        "How long a lookup in Postgres may take.")                                                           \
    F(TEXT, redis_url, "REDIS_URL", "", 0, 4096, "URL", CONFIG_SECRET,                                       \
        "Redis: redis://[:PASSWORD@]HOST:PORT[/DB]. Empty: the fleet runs without it.")                      \
    F(INT, cache_bytes, "CACHE_BYTES", "67108864", 65536, 1099511627776, "bytes", 0,                         \
        "What one worker's in-process cache may take.")                                                      \
    F(INT, redis_deadline, "REDIS_DEADLINE_MS", "50", 1, 10000, "ms", 0,                                     \
        "How long a lookup in Redis may take before Postgres is asked instead.")                             \
    F(TEXT, writer, "WRITER_TARGET", "tcp://127.0.0.1:7002", 1, 4096, "addresses", 0,                        \
        "The writer services, separated by commas.")                                                         \
    F(TEXT, clicks, "CLICKS_TARGET", "tcp://127.0.0.1:7003", 1, 4096, "addresses", 0,                        \
        "The clicks services, separated by commas.")                                                         \
    F(INT, api_threads, "API_THREADS", "8", 1, 256, "threads", 0,                                            \
        "API requests that are worked on at once.")                                                          \
    F(INT, api_queue, "API_QUEUE", "256", 1, 100000, "requests", 0,                                          \
        "API requests that may wait; more are 503.")                                                         \
    F(TEXT, brokers, "KAFKA_BROKERS", "127.0.0.1:9092", 1, 4096, "addresses", 0, "Kafka, for the clicks.")   \
    F(TEXT, topic, "CLICKS_TOPIC", "clicks", 1, 249, "topic", 0, "The topic that clicks are sent to.")       \
    F(INT, ring, "CLICK_RING", "65536", 1024, 16777216, "clicks", 0,                                         \
        "Clicks that one worker may hold before the sender takes them; more are lost, and counted.")

struct redirector_config {
    REDIRECTOR_CONFIG(CONFIG_MEMBER)
};
extern const struct config_field redirector_config_fields[];
extern const size_t redirector_config_count;

#define REDIRECTOR_METRICS(M)                                                                                \
    M(answers, COUNTER, "dunlin_redirect_answers_total", "answers", "status",                                \
        "Answers to /{code}, by HTTP status.", "5xx: see the lookup metrics for the part that is away.")     \
    M(latency, HISTOGRAM, "dunlin_redirect_seconds", "seconds", "source",                                    \
        "Time from a request for /{code} to its answer, by where the link was found.",                       \
        "The promise is a p99 of 5 ms from a cache and 50 ms on a miss.")                                    \
    M(lookups, COUNTER, "dunlin_lookups_total", "lookups", "source,result",                                  \
        "Lookups of a code per layer and result (hit, absent, failed).",                                     \
        "Many failed: that layer is away or overloaded.")                                                    \
    M(flights_joined, COUNTER, "dunlin_flights_joined_total", "requests", NULL,                              \
        "Requests that waited for a fetch of their code that was under way already.",                        \
        "A burst: a link became hot, or storage is slow.")                                                   \
    M(refreshes, COUNTER, "dunlin_cache_refreshes_total", "fetches", NULL,                                   \
        "Fetches in the background of hot links whose entry in the in-process cache was about to end.",      \
        "Some per hot link, worker and 5 s.")                                                                \
    M(api, COUNTER, "dunlin_api_answers_total", "answers", "status",                                         \
        "Answers of the JSON API, by HTTP status.", "5xx: is the writer or the clicks service away?")        \
    M(clicks_recorded, COUNTER, "dunlin_clicks_recorded_total", "clicks", NULL,                              \
        "Clicks put into the rings.", "Compare with dunlin_clicks_sent_total.")                              \
    M(clicks_lost, COUNTER, "dunlin_clicks_lost_total", "clicks", "why",                                     \
        "Clicks given up: ring full, or left over at shutdown.", "Is Kafka reachable? Enlarge CLICK_RING.")  \
    M(clicks_sent, COUNTER, "dunlin_clicks_sent_total", "clicks", NULL,                                      \
        "Clicks that Kafka has acknowledged.", "Stands still while clicks are recorded: Kafka is away.")     \
    M(batches_resent, COUNTER, "dunlin_click_batches_resent_total", "batches", NULL,                         \
        "Batches handed to Kafka once more after a failure.", "Look at the brokers.")

extern const struct metric_family redirector_metrics[];
extern const size_t redirector_metrics_count;
enum redirector_metric {
    REDIRECTOR_METRIC_ANSWERS,
    REDIRECTOR_METRIC_LATENCY,
    REDIRECTOR_METRIC_LOOKUPS,
    REDIRECTOR_METRIC_FLIGHTS_JOINED,
    REDIRECTOR_METRIC_REFRESHES,
    REDIRECTOR_METRIC_API,
    REDIRECTOR_METRIC_CLICKS_RECORDED,
    REDIRECTOR_METRIC_CLICKS_LOST,
    REDIRECTOR_METRIC_CLICKS_SENT,
    REDIRECTOR_METRIC_BATCHES_RESENT,
};

struct click_ring;
struct click_sender;
struct gateway;
struct worker;

struct redirector {
    struct redirector_config config;
    char address[64];
    uint16_t port;
    struct target_rules hosts; // which Host fields are served, where ALLOWED_HOSTS is set
    size_t worker_count;
    struct worker **workers;
    struct click_ring **rings; // one per worker
    struct click_sender *sender;
    struct rpc_client *writer;
    struct rpc_client *clicks;
    struct gateway *gateway;
    struct never_issued_config never_issued_config;
    struct rpc_client *keyrange;
    struct never_issued *never_issued;
};

// Derives the state from the loaded configuration; FAILED_PRECONDITION names the setting that is no good.
MUST_CHECK enum status redirector_init(struct redirector *redirector, struct problem *why);
void redirector_done(struct redirector *redirector);
// Is this Host field's host one of ours (API.md: ports are not compared)? True where ALLOWED_HOSTS is empty.
bool redirector_serves_host(const struct redirector *redirector, const char *host);
