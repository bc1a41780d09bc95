// SPDX-License-Identifier: MIT
#include "common/buf/buf.h"
#include "common/db/db_internal.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One line: control characters become spaces, the end is trimmed.
static void copy_line(char *out, size_t size, const char *text) {
    size_t len = 0;
    for (const char *at = text; *at != '\0' && len + 1 < size; at++) {
        char byte = *at;
        if ((unsigned char)byte < ' ')
            byte = ' ';
        out[len++] = byte;
    }
    while (len > 0 && out[len - 1] == ' ')
        len--;
    out[len] = '\0';
}

void db_fault_set(struct db_fault *fault, const char *text) {
    *fault = (struct db_fault){0};
    copy_line(fault->text, sizeof fault->text, text);
}

void db_fault_from_conn(struct db_fault *fault, const PGconn *conn) {
    db_fault_set(fault, PQerrorMessage(conn));
}

void db_fault_from_result(struct db_fault *fault, const PGresult *result) {
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    if (message == NULL)
        message = PQresultErrorMessage(result);
    // Class 22, data exceptions, quotes the value that it complains about.
    if (sqlstate != NULL && strncmp(sqlstate, "22", 2) == 0)
        message = "a value does not fit (the server's message is left out, it quotes the value)";
    char line[sizeof fault->text];
    (void)snprintf(
        line, sizeof line, "%s%s%s", sqlstate != NULL ? sqlstate : "", sqlstate != NULL ? ": " : "", message);
    db_fault_set(fault, line);
    if (sqlstate != NULL)
        (void)snprintf(fault->sqlstate, sizeof fault->sqlstate, "%s", sqlstate);
    if (detail != NULL)
        (void)snprintf(fault->detail, sizeof fault->detail, "%s", detail);
}

// https://www.postgresql.org/docs/15/errcodes-appendix.html
enum status db_status_of(const char *sqlstate) {
    static const struct {
        const char *prefix;
        enum status status;
    } classes[] = {
        {"08", STATUS_UNAVAILABLE},          // connection exception
        {"25006", STATUS_UNAVAILABLE},       // read-only transaction: a standby
        {"53", STATUS_UNAVAILABLE},          // insufficient resources
        {"57P0", STATUS_UNAVAILABLE},        // shutdown, crash, starting up, idle session
        {"57014", STATUS_DEADLINE_EXCEEDED}, // query canceled
        {"55P03", STATUS_DEADLINE_EXCEEDED}, // lock not available
        {"40001", STATUS_ABORTED},           // serialization failure
        {"40P01", STATUS_ABORTED},           // deadlock
    };
    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        if (strncmp(sqlstate, classes[i].prefix, strlen(classes[i].prefix)) == 0)
            return classes[i].status;
    }
    return STATUS_INTERNAL;
}

bool db_statement_is_stale(const PGresult *error) {
    const char *sqlstate = PQresultErrorField(error, PG_DIAG_SQLSTATE);
    if (sqlstate == NULL)
        return false;
    if (strcmp(sqlstate, "26000") == 0)
        return true;
    // "cached plan must not change result type" shares its SQLSTATE with much else, and its message is
    // translated; the place in the server's source is the stable mark.
    const char *function = PQresultErrorField(error, PG_DIAG_SOURCE_FUNCTION);
    return strcmp(sqlstate, "0A000") == 0 && function != NULL &&
           strcmp(function, "RevalidateCachedQuery") == 0;
}

bool db_statement_name(struct db_statements *statements, const char *sql, char name[DB_STATEMENT_NAME]) {
    unsigned at = 0;
    while (at < statements->count && statements->sql[at] != sql)
        at++;
    REQUIRE(at < DB_STATEMENTS_MAX); // a statement whose text is no constant
    if (at == statements->count) {
        statements->sql[at] = sql;
        statements->serial[at] = 0;
        statements->count++;
    }
    bool is_new = statements->serial[at] == 0;
    if (is_new)
        statements->serial[at] = ++statements->last_serial;
    (void)snprintf(name, DB_STATEMENT_NAME, "d%u", statements->serial[at]);
    return is_new;
}

void db_statement_forget(struct db_statements *statements, const char *sql) {
    for (unsigned i = 0; i < statements->count; i++) {
        if (statements->sql[i] == sql)
            statements->serial[i] = 0;
    }
}

void db_rows_free(struct db_rows *rows) {
    if (rows == NULL)
        return;
    PQclear(rows->result);
    free(rows);
}

size_t db_rows_count(const struct db_rows *rows) {
    return rows->count;
}

static void check_cell(const struct db_rows *rows, size_t row, unsigned column) {
    REQUIRE(row < rows->count && column < (unsigned)PQnfields(rows->result));
}

bool db_is_null(const struct db_rows *rows, size_t row, unsigned column) {
    check_cell(rows, row, column);
    return PQgetisnull(rows->result, (int)row, (int)column) != 0;
}

const char *db_text(const struct db_rows *rows, size_t row, unsigned column) {
    check_cell(rows, row, column);
    return PQgetvalue(rows->result, (int)row, (int)column);
}

size_t db_text_len(const struct db_rows *rows, size_t row, unsigned column) {
    check_cell(rows, row, column);
    return (size_t)PQgetlength(rows->result, (int)row, (int)column);
}

int64_t db_int64(const struct db_rows *rows, size_t row, unsigned column) {
    return strtoll(db_text(rows, row, column), NULL, 10);
}

bool db_bool(const struct db_rows *rows, size_t row, unsigned column) {
    return db_text(rows, row, column)[0] == 't';
}

const char *db_param_int64(char out[DB_INT64_TEXT], int64_t number) {
    (void)snprintf(out, DB_INT64_TEXT, "%" PRId64, number);
    return out;
}

void db_array_begin(struct buf *out) {
    buf_putc(out, '{');
}

// An array under construction ends in its brace until it has an element; a quoted text never ends in a bare
// one.
static void separate(struct buf *out) {
    if (out->len > 0 && out->data[out->len - 1] != '{')
        buf_putc(out, ',');
}

void db_array_text(struct buf *out, const char *text, size_t len) {
    if (memchr(text, '\0', len) != NULL)
        out->overflowed = true;
    separate(out);
    buf_putc(out, '"');
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"' || text[i] == '\\')
            buf_putc(out, '\\');
        buf_putc(out, text[i]);
    }
    buf_putc(out, '"');
}

void db_array_int64(struct buf *out, int64_t number) {
    separate(out);
    buf_printf(out, "%" PRId64, number);
}

void db_array_end(struct buf *out) {
    buf_putc(out, '}');
}
