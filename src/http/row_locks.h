/*
 * row_locks.h: row locks of guarded transactions (interlock-guard.h) in the apps of this server:
 * log lines, histograms, and the newest of them for `interlock locks --report`.
 */
#ifndef IL_HTTP_ROW_LOCKS_H
#define IL_HTTP_ROW_LOCKS_H

#include "http/metrics_internal.h"

#define HTTP_ROW_LOCKS_KEPT 4096     /* the newest ones */
#define HTTP_ROW_LOCK_SERIES_MAX 200 /* (pipeline, entity) pairs with series of their own */

struct http_row_locks;

il_status http_row_locks_open(struct http_server *s, il_error *reterr) MUST_USE;
void      http_row_locks_close(struct http_server *s);

uint64_t http_row_locks_dropped(const struct http_server *s);

/* One series of the histograms: locks of an entity in a pipeline. */
struct http_row_series {
    char                 *pipeline, *entity; /* "other": beyond the limit */
    uint64_t              n_violations;      /* integrity rollbacks */
    struct http_histogram wait, hold;
};
size_t                        http_row_series_count(const struct http_server *s);
const struct http_row_series *http_row_series(const struct http_server *s, size_t i);

extern const struct wire_object http_in_row_locks, http_out_row_lock;

#endif
