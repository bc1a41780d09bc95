// SPDX-License-Identifier: MIT
// The JSON documents that stand for our messages (docs/http-api.md): the API answers with them, dunlinctl
// prints them. Pure.
#pragma once

#include "common/json/json.h"
#include "dunlin/v1/clicks.pb-c.h"
#include "dunlin/v1/link.pb-c.h"

// "active", "disabled", "deleted", "expired".
const char *documents_state_name(Dunlin__V1__LinkState state);

void documents_put_link(struct json_writer *json, const Dunlin__V1__Link *link);
void documents_put_clicks(struct json_writer *json, const Dunlin__V1__GetClicksResponse *clicks);
