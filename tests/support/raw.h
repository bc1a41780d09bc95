// SPDX-License-Identifier: MIT
// Conversations below the level of our own clients: NNG's frames (SP over TCP, as its mapping describes it)
// with bytes that no stub would pack, and Redis commands as text. Waits are bounded by 5 s.
#pragma once

#include "common/buf/buf.h"
#include <stdbool.h>

struct raw; // one connection

// `address`: "tcp://ADDRESS:PORT", "redis://ADDRESS:PORT". NULL where nobody accepts.
struct raw *raw_open(const char *address);
void raw_close(struct raw *raw); // NULL is fine
// False where the peer has closed.
bool raw_send(struct raw *raw, const void *bytes, size_t len);
// Exactly `len` bytes, appended; false where the stream ends or time is up before.
MUST_CHECK bool raw_read(struct raw *raw, size_t len, struct buf *out);
// A line without its CR LF, appended.
MUST_CHECK bool raw_read_line(struct raw *raw, struct buf *out);

// As a requester: greets and hears the greeting of a replier.
MUST_CHECK bool raw_sp_greet(struct raw *raw);
// One request frame with a request id of its own, the envelope being these bytes.
bool raw_sp_ask(struct raw *raw, const void *envelope, size_t len);
// The next answer's envelope, appended; false where none comes.
MUST_CHECK bool raw_sp_answer(struct raw *raw, struct buf *out);
