// SPDX-License-Identifier: MIT
// Where a statement ends, by the lexical rules of https://www.postgresql.org/docs/15/sql-syntax-lexical.html
#include "cli/migrate/migrate.h"

#include <string.h>
#include <strings.h>

static bool is_word_start(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' || (byte & 0x80) != 0;
}

static bool is_word(char byte) {
    return is_word_start(byte) || (byte >= '0' && byte <= '9') || byte == '$';
}

// Text between `at` and `end`; every skip_ returns the first byte after what it skips, `end` where that isn't
// closed.
static const char *skip_quoted(const char *at, const char *end, char quote, bool backslashes) {
    for (at++; at < end; at++) {
        if (*at == quote) {
            return at + 1; // a doubled quote goes on as the next string
        }
        at += backslashes && *at == '\\' && at + 1 < end ? 1 : 0;
    }
    return end;
}

static const char *skip_line_comment(const char *at, const char *end) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return newline == NULL ? end : newline + 1;
}

static const char *skip_block_comment(const char *at, const char *end) {
    unsigned depth = 0;
    while (end - at >= 2) {
        if (memcmp(at, "/*", 2) == 0) {
            depth++;
            at += 2;
        } else if (memcmp(at, "*/", 2) == 0) {
            at += 2;
            if (--depth == 0) {
                return at;
            }
        } else {
            at++;
        }
    }
    return end;
}

// $$…$$ or $tag$…$tag$; a lone dollar is one byte.
static const char *skip_dollar(const char *at, const char *end) {
    const char *close = at + 1;
    while (close < end && *close != '$' && is_word(*close)) {
        close++;
    }
    if (close >= end || *close != '$' || (at[1] >= '0' && at[1] <= '9')) {
        return at + 1;
    }
    size_t tag_len = (size_t)(close - at) + 1;
    const char *found = memmem(close + 1, (size_t)(end - close) - 1, at, tag_len);
    return found == NULL ? end : found + tag_len;
}

// Blanks and comments; returns `at` where neither stands there.
static const char *skip_void(const char *at, const char *end) {
    if (strchr(" \t\r\n\f", *at) != NULL) {
        return at + 1;
    }
    if (end - at >= 2 && memcmp(at, "--", 2) == 0) {
        return skip_line_comment(at, end);
    }
    return end - at >= 2 && memcmp(at, "/*", 2) == 0 ? skip_block_comment(at, end) : at;
}

struct nesting {
    unsigned parentheses;
    unsigned blocks; // within BEGIN ATOMIC … END, whose CASE … END count too
    bool after_begin;
};

static bool word_is(const char *at, size_t len, const char *word) {
    return len == strlen(word) && strncasecmp(at, word, len) == 0;
}

static const char *skip_word(const char *at, const char *end, struct nesting *nesting) {
    const char *after = at;
    while (after < end && is_word(*after)) {
        after++;
    }
    size_t len = (size_t)(after - at);
    if (len == 1 && (*at == 'e' || *at == 'E') && after < end && *after == '\'') {
        return skip_quoted(after, end, '\'', true);
    }
    if (nesting->after_begin && word_is(at, len, "atomic")) {
        nesting->blocks = 1;
    } else if (nesting->blocks > 0 && word_is(at, len, "case")) {
        nesting->blocks++;
    } else if (nesting->blocks > 0 && word_is(at, len, "end")) {
        nesting->blocks--;
    }
    nesting->after_begin = word_is(at, len, "begin");
    return after;
}

// One token that is neither blank nor comment.
static const char *skip_token(const char *at, const char *end, struct nesting *nesting) {
    switch (*at) {
    case '\'':
    case '"':
        return skip_quoted(at, end, *at, false);
    case '$':
        return skip_dollar(at, end);
    case '(':
        nesting->parentheses++;
        return at + 1;
    case ')':
        nesting->parentheses -= nesting->parentheses > 0 ? 1 : 0;
        return at + 1;
    default:
        return is_word_start(*at) ? skip_word(at, end, nesting) : at + 1;
    }
}

static unsigned line_at(const struct migrate_file *file, const char *at) {
    unsigned line = 1;
    for (const char *byte = file->sql; byte < at; byte++) {
        line += *byte == '\n' ? 1 : 0;
    }
    return line;
}

bool migrate_next(const struct migrate_file *file, size_t *at, struct migrate_statement *out) {
    const char *end = file->sql + file->sql_len;
    const char *next = file->sql + *at;
    const char *start = NULL;
    struct nesting nesting = {0};
    while (next < end) {
        const char *after_void = skip_void(next, end);
        if (after_void != next) {
            next = after_void;
            continue;
        }
        if (*next == ';' && nesting.parentheses == 0 && nesting.blocks == 0) {
            if (start != NULL) {
                break;
            }
            next++;
            continue;
        }
        start = start == NULL ? next : start;
        next = skip_token(next, end, &nesting);
    }
    if (start == NULL) {
        return false;
    }
    *out = (struct migrate_statement){
        .text = start, .len = (size_t)(next - start), .line = line_at(file, start)};
    *at = (size_t)(next - file->sql) + (next < end ? 1 : 0);
    return true;
}

bool migrate_is_transaction_control(const struct migrate_statement *statement) {
    static const char *const words[] = {
        "begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "prepare"};
    size_t len = 0;
    while (len < statement->len && is_word(statement->text[len])) {
        len++;
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (word_is(statement->text, len, words[i])) {
            return true;
        }
    }
    return false;
}
