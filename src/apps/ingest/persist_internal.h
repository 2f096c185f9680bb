/*
 * persist_internal.h: what the files that write share: a transaction of an ingestion.
 */
#ifndef IL_APPS_INGEST_PERSIST_INTERNAL_H
#define IL_APPS_INGEST_PERSIST_INTERNAL_H

#include "apps/ingest/persist.h"
#include "apps/ingest/rows.h"

#define INGEST_UUID_BYTES 37
#define INGEST_NAME_BYTES_MAX 4096 /* of a name in upper case, or in the form that is compared */

/* An attempt of a transaction. */
struct ingest_tx {
    il_guard_tx               *tx;
    const struct ingest_write *w;
    int64_t                    now_ms;
    struct ingest_totals       totals; /* of this attempt */
    void                      *mem;    /* of this attempt: il__arena */
};
typedef il_status ingest_fn(struct ingest_tx *t, void *cookie, il_error *reterr);

/* Run fn in a transaction as `w` says, then store the validators and commit. Since every write is
 * idempotent, one whose commit has an unknown outcome is repeated. `caller` is for events. */
il_status il__ingest_transact(il_guard *g, const struct ingest_write *w, const char *caller,
                              ingest_fn *fn, void *cookie, il_error *reterr) MUST_USE;
/* The same for reads: one snapshot, without a retry. */
il_status il__ingest_read(il_guard *g, const char *tenant, ingest_fn *fn, void *cookie,
                          il_error *reterr) MUST_USE;

/* Run one statement. IL_CANCELLED: w->go_on() says so. */
il_status il__ingest_run(struct ingest_tx *t, const struct app_statement *s,
                         const il_guard_value *values, size_t n_values, il_guard_row_fn *each,
                         void *cookie, int64_t *ret_n_changed, il_error *reterr) MUST_USE;
/* The same for a statement that returns one number. */
il_status il__ingest_count(struct ingest_tx *t, const struct app_statement *s,
                           const il_guard_value *values, size_t n_values, int64_t *ret,
                           il_error *reterr) MUST_USE;
/*
 * Write rows of a table and count them; r->go_on is set here. `count`: of rows that belong to an
 * event, which this transaction has locked: how many there are, by the first two shared values.
 * NULL: others may write such rows meanwhile, and the statement returns 1 for each new one.
 */
il_status il__ingest_rows(struct ingest_tx *t, struct rows *r, enum ingest_table table,
                          const struct app_statement *count, il_error *reterr) MUST_USE;

/* Lock the row of the event and read what identifies it. Texts live in t->mem. IL_NOT_FOUND. */
struct ingest_head {
    const char       *source_event_id, *slug;
    enum ingest_depth depth;
};
il_status il__ingest_lock_event(struct ingest_tx *t, const char *event_id, struct ingest_head *ret,
                                il_error *reterr) MUST_USE;
/* The id of a track, which is created if it is new; it lives in t->mem. */
il_status il__ingest_track(struct ingest_tx *t, const char *slug, const char **ret,
                           il_error *reterr) MUST_USE;

/* A new id, in t->mem. NULL: no memory, or no random bytes; reported. */
const char *il__ingest_new_id(struct ingest_tx *t, il_error *reterr);
/* An email as it is stored: in lower case; in *mem. NULL: out of memory. */
const char *il__ingest_email(void **mem, const char *text);
/* A name in the form that is compared (il__liverc_match_name()), in t->mem. */
const char *il__ingest_match_name(struct ingest_tx *t, const char *name, il_error *reterr);
/* What a search looks at, in t->mem. */
const char *il__ingest_search_text(struct ingest_tx *t, const char *name, const char *slug,
                                   const char *source_event_id, il_error *reterr);

/* A number that the page may lack. */
static inline il_guard_value
il__ingest_number(int64_t number)
{
    return number == LIVERC_NONE ? il_guard_null() : il_guard_int(number);
}

/* Is it the id of an event (1 to 64 of A-Z a-z 0-9 . _ -)? A slug (the same without capitals)? */
bool il__ingest_is_id(const char *text, size_t n_max);

#endif
