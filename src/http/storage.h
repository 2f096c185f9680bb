/*
 * storage.h: how many bytes a tenant stores, for its limit `bytes`. Part of limits.c; used on the
 * loop only.
 *
 * There is no counter that every write would have to update. Instead, while a tenant with such a
 * limit adds data, its storage is measured every 10 s, page by page: cached values, answers, jobs,
 * runs and schedules by reads of the store (IL_OP_USAGE), which wait for no writer; the history of
 * runs by the errand thread. In between, what this server has admitted is added. So the limit is
 * soft: writes of other servers, deletions and replacements count after the next measurement. After
 * a refusal the next measurement follows within a second. A measurement that took t is followed by
 * 20 t without one, and it stops as soon as the limit is exceeded.
 */
#ifndef IL_HTTP_STORAGE_H
#define IL_HTTP_STORAGE_H

#include "http/limits.h"

#define HTTP_ROW_BYTES 256 /* overhead counted per row */

struct http_storage {
    int64_t seen;                 /* by the last measurement */
    int64_t since;                /* admitted by this server since it began */
    int64_t asked;                /* under way */
    int64_t measured_ns, took_ns; /* when the last measurement ended, and how long it took */
    bool    measuring;
    bool    refused; /* something, since it began */

    struct http_measure *measure; /* allocated on first use, then reused */
};

void http_storage_release(struct http_storage *st);

/* The most that an op adds, and once it is answered, what it has added. */
int64_t http_storage_by(const il_op *op, bool answered);
/* Should an op be refused for the bytes it adds? Not if it ends something or is the server's
 * own. */
bool http_storage_may_refuse(const il_op *op);

static inline int64_t
http_storage_used(const struct http_storage *st)
{
    return st->seen + st->since + st->asked;
}

/* Start a measurement unless it is too early. `st` is part of this tenant; max: its limit. */
void http_storage_tick(struct http_server *s, struct http_storage *st, const char *tenant,
                       int64_t max, int64_t now_ns);

#endif
