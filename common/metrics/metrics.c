// SPDX-License-Identifier: MIT
#include "common/metrics/metrics.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LINE 64

// Upper bounds of the buckets, from a cached redirect (0.1 ms) to a deadline that was missed by far. The text
// is what a scrape shows and must not change with a locale.
static const struct {
    int64_t us;
    const char *seconds;
} bounds[] = {
    {100, "0.0001"},
    {250, "0.00025"},
    {500, "0.0005"},
    {1000, "0.001"},
    {2500, "0.0025"},
    {5000, "0.005"},
    {10000, "0.01"},
    {25000, "0.025"},
    {50000, "0.05"},
    {100000, "0.1"},
    {250000, "0.25"},
    {500000, "0.5"},
    {1000000, "1"},
    {2500000, "2.5"},
    {5000000, "5"},
    {10000000, "10"},
};
#define BUCKETS (ARRAY_LEN(bounds) + 1) // the last is +Inf

struct metric {
    _Atomic int64_t value; // a histogram's sum in microseconds
    struct metric *next;   // the next shard of the series
    int64_t (*read)(void *arg);
    void *arg;
    _Atomic int64_t buckets[]; // of a histogram: BUCKETS, each alone (not cumulative)
};

struct series {
    const struct metric_family *family;
    char *labels; // as shown: `method="GET",status="302"`, "" for none
    struct metric *shards;
    struct series *next; // ordered by family name, then by labels
};

static struct series *registry;
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;

static void put_escaped(struct buf *out, const char *text, bool quotes) {
    for (; *text != '\0'; text++) {
        if (*text == '\\')
            buf_puts(out, "\\\\");
        else if (*text == '\n')
            buf_puts(out, "\\n");
        else if (quotes && *text == '"')
            buf_puts(out, "\\\"");
        else
            buf_putc(out, *text);
    }
}

static char *labels_text(const struct metric_family *family, va_list values) {
    struct buf text;
    buf_init(&text, 4096);
    const char *name = family->labels;
    while (name != NULL && *name != '\0') {
        size_t len = strcspn(name, ",");
        if (text.len > 0)
            buf_putc(&text, ',');
        buf_append(&text, name, len);
        buf_puts(&text, "=\"");
        put_escaped(&text, va_arg(values, const char *), true);
        buf_putc(&text, '"');
        name += len + (name[len] == ',');
    }
    REQUIRE(buf_ok(&text));
    return buf_take(&text, NULL);
}

static int compare_series(
    const struct series *series, const struct metric_family *family, const char *labels) {
    int order = strcmp(series->family->name, family->name);
    return order != 0 ? order : strcmp(series->labels, labels);
}

// Takes `labels` over.
static struct series *find_or_insert(const struct metric_family *family, char *labels) {
    struct series **link = &registry;
    while (*link != NULL && compare_series(*link, family, labels) < 0)
        link = &(*link)->next;
    if (*link != NULL && compare_series(*link, family, labels) == 0) {
        REQUIRE((*link)->family->kind == family->kind);
        free(labels);
        return *link;
    }
    struct series *series = base_calloc(1, sizeof *series);
    series->family = family;
    series->labels = labels;
    series->next = *link;
    *link = series;
    return series;
}

// Whole cache lines, so that two threads' shards never share one.
static struct metric *shard_create(enum metric_kind kind) {
    size_t size = sizeof(struct metric) + (kind == METRIC_HISTOGRAM ? BUCKETS * sizeof(_Atomic int64_t) : 0);
    size = (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    struct metric *shard = aligned_alloc(CACHE_LINE, size);
    REQUIRE(shard != NULL);
    memset(shard, 0, size);
    return shard;
}

// Takes `labels` over. A shard is complete before a scrape can meet it.
static struct metric *add(
    const struct metric_family *family, char *labels, int64_t (*read)(void *), void *arg) {
    struct metric *shard = shard_create(family->kind);
    shard->read = read;
    shard->arg = arg;
    (void)pthread_mutex_lock(&registry_lock);
    struct series *series = find_or_insert(family, labels);
    shard->next = series->shards;
    series->shards = shard;
    (void)pthread_mutex_unlock(&registry_lock);
    return shard;
}

struct metric *metric_add(const struct metric_family *family, ...) {
    va_list values;
    va_start(values, family);
    char *labels = labels_text(family, values);
    va_end(values);
    return add(family, labels, NULL, NULL);
}

void metric_add_read(const struct metric_family *family, int64_t (*read)(void *arg), void *arg) {
    REQUIRE(family->labels == NULL && family->kind != METRIC_HISTOGRAM);
    (void)add(family, base_strdup(""), read, arg);
}

void metric_inc(struct metric *counter) {
    metric_count(counter, 1);
}

void metric_count(struct metric *counter, uint64_t more) {
    (void)atomic_fetch_add_explicit(&counter->value, (int64_t)more, memory_order_relaxed);
}

void metric_set(struct metric *gauge, int64_t value) {
    atomic_store_explicit(&gauge->value, value, memory_order_relaxed);
}

void metric_move(struct metric *gauge, int64_t delta) {
    (void)atomic_fetch_add_explicit(&gauge->value, delta, memory_order_relaxed);
}

void metric_observe_us(struct metric *histogram, int64_t us) {
    if (us < 0)
        us = 0;
    size_t bucket = 0;
    while (bucket < ARRAY_LEN(bounds) && us > bounds[bucket].us)
        bucket++;
    (void)atomic_fetch_add_explicit(&histogram->buckets[bucket], 1, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&histogram->value, us, memory_order_relaxed);
}

int64_t metric_value(const struct metric *metric) {
    return metric->read != NULL ? metric->read(metric->arg)
                                : atomic_load_explicit(&metric->value, memory_order_relaxed);
}

static int64_t sum_values(const struct series *series) {
    int64_t sum = 0;
    for (const struct metric *shard = series->shards; shard != NULL; shard = shard->next)
        sum += metric_value(shard);
    return sum;
}

static int64_t sum_bucket(const struct series *series, size_t bucket) {
    int64_t sum = 0;
    for (const struct metric *shard = series->shards; shard != NULL; shard = shard->next)
        sum += atomic_load_explicit(&shard->buckets[bucket], memory_order_relaxed);
    return sum;
}

static void put_name(struct buf *out, const struct series *series, const char *suffix, const char *le) {
    buf_printf(out, "%s%s", series->family->name, suffix);
    bool labelled = series->labels[0] != '\0';
    if (!labelled && le == NULL) {
        buf_putc(out, ' ');
        return;
    }
    buf_putc(out, '{');
    buf_puts(out, series->labels);
    if (le != NULL)
        buf_printf(out, "%sle=\"%s\"", labelled ? "," : "", le);
    buf_puts(out, "} ");
}

// The count is the sum of the buckets as they were read, so that it always equals le="+Inf".
static void put_histogram(struct buf *out, const struct series *series) {
    int64_t total = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        total += sum_bucket(series, i);
        put_name(out, series, "_bucket", i < ARRAY_LEN(bounds) ? bounds[i].seconds : "+Inf");
        buf_printf(out, "%lld\n", (long long)total);
    }
    int64_t sum = sum_values(series);
    put_name(out, series, "_sum", NULL);
    buf_printf(out, "%lld.%06lld\n", (long long)(sum / US_PER_S), (long long)(sum % US_PER_S));
    put_name(out, series, "_count", NULL);
    buf_printf(out, "%lld\n", (long long)total);
}

static const char *kind_name(enum metric_kind kind) {
    static const char *const names[] = {"counter", "gauge", "histogram"};
    return names[kind];
}

static void put_head(struct buf *out, const struct metric_family *family) {
    buf_printf(out, "# HELP %s ", family->name);
    put_escaped(out, family->help, false);
    buf_printf(out, "\n# TYPE %s %s\n", family->name, kind_name(family->kind));
}

void metrics_render(struct buf *out) {
    (void)pthread_mutex_lock(&registry_lock);
    const char *family = "";
    for (const struct series *series = registry; series != NULL; series = series->next) {
        if (strcmp(series->family->name, family) != 0) {
            family = series->family->name;
            put_head(out, series->family);
        }
        if (series->family->kind == METRIC_HISTOGRAM) {
            put_histogram(out, series);
        } else {
            put_name(out, series, "", NULL);
            buf_printf(out, "%lld\n", (long long)sum_values(series));
        }
    }
    (void)pthread_mutex_unlock(&registry_lock);
}

static void print_cell(FILE *out, const char *text) {
    (void)fputs("| ", out);
    for (; text != NULL && *text != '\0'; text++)
        (void)fprintf(out, "%s%c", *text == '|' ? "\\" : "", *text == '\n' ? ' ' : *text);
    (void)fputc(' ', out);
}

static void print_row(FILE *out, const struct metric_family *family) {
    (void)fprintf(out, "| `%s` ", family->name);
    print_cell(out, kind_name(family->kind));
    print_cell(out, family->unit);
    print_cell(out, family->labels);
    print_cell(out, family->help);
    print_cell(out, family->action);
    (void)fputs("|\n", out);
}

void metrics_print_markdown(FILE *out, const struct metric_section *sections, size_t count) {
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(out, "## %s\n\n", sections[i].title);
        (void)fputs("| metric | kind | unit | labels | counts | when it moves |\n", out);
        (void)fputs("|---|---|---|---|---|---|\n", out);
        for (size_t j = 0; j < sections[i].count; j++)
            print_row(out, &sections[i].families[j]);
        (void)fputc('\n', out);
    }
}
