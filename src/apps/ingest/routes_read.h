/*
 * routes_read.h: the handlers of routes_read.def.
 */
#ifndef IL_APPS_INGEST_ROUTES_READ_H
#define IL_APPS_INGEST_ROUTES_READ_H

#include "apps/ingest/query.h"
#include "http/handler.h"

/* routes_read.c */
http_fn il__ingest_http_events_list, il__ingest_http_event_get, il__ingest_http_race_get,
    il__ingest_http_laps_list, il__ingest_http_verify;
/* routes_links.c */
http_fn il__ingest_http_links_list, il__ingest_http_link_confirm, il__ingest_http_link_reject,
    il__ingest_http_users_import;

/* Answer with the error of a read or write of the tables: the code is that of il__ingest_code(). A
 * database that cannot be reached, is full or takes too long is STORE_UNAVAILABLE, STORE_FULL or
 * TIMEOUT, and a refused statement 500 PERSISTENCE_ERROR, without the words of the database. */
void il__ingest_fail(struct http_request *r, const il_error *err);

#endif
