// SPDX-License-Identifier: MIT
// The rules for a target (the long URL of a link): what is refused, and the one spelling that is stored.
// Contacts nobody. RFC 3986; hosts by UTS 46 non-transitional (libidn2; this is its only includer). Any
// thread.
#pragma once

#include "common/buf/buf.h"
#include "common/status/status.h"

#define TARGET_MAX 8192 // bytes, after normalisation

// Our own short host: links to ourselves would make loops.
struct target_own {
    char *host;    // A-labels, lower case, no trailing dot; an IPv6 address without brackets
    uint16_t port; // 80 stands for 443 too
};
struct target_rules {
    struct target_own *own;
    size_t own_count;
    char *
        public_url; // what short URLs begin with: as configured, with A-labels and without a slash at its end
};
// From PUBLIC_URL ("http://host[:port]", no path but "/") and ALLOWED_HOSTS (hosts separated by ',' or
// spaces, "" for none). False with a sentence in `why` for anything else.
MUST_CHECK bool target_rules_init(
    struct target_rules *rules, const char *public_url, const char *allowed_hosts, struct buf *why);
// Is this a host of ours? A Host field's value; its port does not count.
bool target_rules_serve(const struct target_rules *rules, const char *host);
void target_rules_done(struct target_rules *rules);

// Checks `url` and appends its stored form to `out` (which is left as it was on failure; give it a limit of
// at least TARGET_MAX). A broken rule is added to `why` for field "url".
MUST_CHECK enum status target_normalise(
    const struct target_rules *rules, const char *url, size_t len, struct buf *out, struct problem *why);

// Could these bytes be a stored target? 1 to TARGET_MAX bytes of printable ASCII without a space, beginning
// with http:// or https:// in any letter case. For what comes back from a store: anything else never goes
// into a header.
bool target_is_sendable(const char *url, size_t len);
