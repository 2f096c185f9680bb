/*
 * links.h: the users of a tenant, and which of them are which drivers. il__ingest_match()
 * (persist.h) suggests and confirms links; docs/INGEST.md has the rules.
 *
 * All functions take a handle on the tables, block, and may be called from several threads.
 */
#ifndef IL_APPS_INGEST_LINKS_H
#define IL_APPS_INGEST_LINKS_H

#include "apps/ingest/persist.h"

#define INGEST_EMAIL_BYTES_MAX 254
#define INGEST_USERS_MAX 100000 /* of one import */

/* ---- users ----------------------------------------------------------------------------------- */

struct ingest_user {
    const char *email; /* compared without regard to case */
    const char *name;
    const char *transponder; /* NULL or "" = none */
};

/* A user as it is stored, in *mem: the email in lower case, name and transponder normalised (""
 * means no transponder). il__liverc_load() has returned IL_OK. IL_OK, IL_NOMEM, or IL_INVAL,
 * which says what is wrong with it. */
il_status il__ingest_user_take(const struct ingest_user *u, void **mem, struct ingest_user *ret,
                               il_error *reterr) MUST_USE;
/* Write users, keyed by email; those that are not among them stay. All of them or none. IL_INVAL:
 * one is not usable, or two have the same email. */
il_status il__ingest_users_write(il_guard *g, const struct ingest_write *w,
                                 const struct ingest_user *users, size_t n, il_error *reterr)
    MUST_USE;

/*
 * Read users from the text of a CSV file (RFC 4180; `,`, `;` or tabs; a first line that names the
 * columns email, name and transponder, in any order, among others). Blank lines are skipped. Texts
 * live in *mem. Each fault is passed to `fault` (may be NULL) with its line; a row that cannot be
 * split into fields is the last. IL_OK, IL_INVAL (there were faults; the first is also in *reterr),
 * IL_LIMIT (too many), IL_NOMEM.
 */
typedef void ingest_csv_fault_fn(void *cookie, size_t line, const char *text);
il_status    il__ingest_users_parse(const char *text, size_t n_bytes, void **mem,
                                    struct ingest_user **ret, size_t *ret_n,
                                    ingest_csv_fault_fn *fault, void *cookie, il_error *reterr)
    MUST_USE;

/* ---- links ----------------------------------------------------------------------------------- */

struct ingest_link {
    const char *id;
    const char *state; /* of il__liverc_links */
    int64_t     score_milli;
    const char *email, *user_name;
    const char *source_driver_id, *driver_name;
    const char *driver_id;
    const char *rival;    /* email of the other user of a conflict, or "" */
    int64_t     n_events; /* in which the two matched */
    int64_t     updated_ms;
};
/* Texts live for the call. */
typedef bool ingest_link_fn(void *cookie, const struct ingest_link *link);

/* Links in the order of their ids, until each() returns false: those in a state (NULL = all), after
 * an id (NULL = from the first). */
il_status il__ingest_links_list(il_guard *g, const char *tenant, const char *state,
                                const char *after, size_t limit, ingest_link_fn *each, void *cookie,
                                il_error *reterr) MUST_USE;
/* Decide about a link: LIVERC_LINK_CONFIRMED or _REJECTED, whatever it was. `email`: confirm it for
 * this user, compared without regard to case; NULL: the one it has. Later matching does not touch
 * it. each() gets the new link. IL_NOT_FOUND: no such link, or user. */
il_status il__ingest_link_set(il_guard *g, const struct ingest_write *w, const char *id,
                              enum liverc_link to, const char *email, ingest_link_fn *each,
                              void *cookie, il_error *reterr) MUST_USE;

#endif
