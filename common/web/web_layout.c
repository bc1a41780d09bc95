// SPDX-License-Identifier: MIT
// libmicrohttpd hands out a head as C strings. Before 1.0 its parser is lax: a NUL cuts a target or a value
// short, bare line feeds and doubled spaces pass, and a folded line spoils the field before it. None of that
// shows in the strings, but all of them lie in one buffer in the order of arrival, so it shows in where they
// lie: in a sound head each string begins right behind the one before and its delimiter. From 1.0 on its
// parser refuses all this by itself.
#include "common/web/web_internal.h"

#include <string.h>
#include <strings.h>

// CR and LF, which libmicrohttpd overwrites with NULs.
#define LINE_END 2

struct walk {
    struct web_head *head;
    const char *next; // where the next field's name must lie
    bool sound;
};

#if MHD_VERSION < 0x01000000
static bool blanks_only(const char *from, const char *to) {
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    return from == to;
}

// The old parser leaves white space at a value's end, and false is returned where that has misled it: it has
// chosen the body's framing by then.
static bool trim(const char *name, char *value, size_t *len) {
    size_t before = *len;
    while (*len > 0 && (value[*len - 1] == ' ' || value[*len - 1] == '\t'))
        value[--*len] = '\0';
    return *len == before || strcasecmp(name, "Transfer-Encoding") != 0;
}

static void check_place(
    struct walk *walk, const char *name, size_t name_len, const char *value, size_t *value_len) {
    const char *behind_colon = name + name_len + 1;
    if (name != walk->next || value < behind_colon || !blanks_only(behind_colon, value)) {
        walk->sound = false;
        return;
    }
    walk->next = value + *value_len + LINE_END;
    if (!trim(name, (char *)(uintptr_t)value, value_len))
        web_head_refuse(walk->head, 400, "White space follows the transfer coding.");
}

static bool line_is_sound(const struct web_request *request, const char *method, const char *version) {
    const char *target = request->line_target;
    return target == method + strlen(method) + 1 && version == target + request->target_len + 1;
}
#else
static void check_place(
    struct walk *walk, const char *name, size_t name_len, const char *value, size_t *value_len) {
    (void)walk, (void)name, (void)name_len, (void)value, (void)value_len;
}

static bool line_is_sound(const struct web_request *request, const char *method, const char *version) {
    (void)request, (void)method, (void)version;
    return true;
}
#endif

static web_result each_field(void *arg, enum MHD_ValueKind kind, const char *name, size_t name_len,
    const char *value, size_t value_len) {
    struct walk *walk = arg;
    (void)kind;
    if (value == NULL)
        value_len = 0;
    check_place(walk, name, name_len, value, &value_len);
    web_head_field(walk->head, name, name_len, value == NULL ? "" : value, value_len);
    return walk->sound && walk->head->fields <= WEB_FIELDS_MAX ? MHD_YES : MHD_NO;
}

bool web_layout_read(
    struct web_request *request, const char *method, const char *version, size_t *line_len, size_t *len) {
    struct MHD_Connection *mhd = request->conn->mhd;
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const char *line_end = version + strlen(version);
    size_t bytes = size == NULL ? 0 : size->header_size; // with the empty line at the end
    struct walk walk = {&request->head, line_end + LINE_END, line_is_sound(request, method, version)};
    if (walk.sound)
        (void)MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, each_field, &walk);
    size_t ends = LINE_END * (request->head.fields + 2);
    *line_len = (size_t)(line_end - method);
    *len = bytes > ends ? bytes - ends : 0;
#if MHD_VERSION < 0x01000000
    bool all = request->head.fields <= WEB_FIELDS_MAX;
    return walk.sound && (!all || walk.next + LINE_END == method + bytes);
#else
    return walk.sound;
#endif
}
