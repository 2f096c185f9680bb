/*
 * fetch.h: fetches LiveRC pages: limited per host, obeying robots.txt, from no other host.
 *
 *   - Per host, over all processes on the store, only so many requests run at once: each holds a
 *     permit of the lease `liverc_host:{host}` in a tenant of our own, and keeps it for a while
 *     after its response.
 *   - robots.txt is honoured. It is read once per host and hour.
 *   - Connections that fail, timeouts, 5xx and 429 are tried again, three times in all.
 *   - Redirects stay on their host; a page has at most LIVERC_BODY_BYTES_MAX bytes.
 *
 * Every wait ends soon after should_stop() has become true and il__fetch_wake() was called.
 */
#ifndef IL_APPS_INGEST_FETCH_H
#define IL_APPS_INGEST_FETCH_H

#include "apps/ingest/address.h"
#include "net/net.h"

#define FETCH_AGENT "interlock" /* as robots.txt calls us */
#define FETCH_TENANT "interlock.liverc"
#define FETCH_KEY "liverc_host:"
#define FETCH_ATTEMPTS 3
#define FETCH_PERMITS_MAX 16
#define FETCH_DELAY_MS_MAX 10000
#define FETCH_RETRY_AFTER_MS_MAX 60000 /* a site that wants us to wait for longer has failed */

struct fetch_options {
    const char *base;     /* URL with {slug}, checked (address.h); copied */
    uint32_t    permits;  /* requests at once per host: 1 to FETCH_PERMITS_MAX */
    int64_t     delay_ms; /* after a request, before the next may begin */
    /* 0: the default */
    int64_t connect_ms; /* 5 s */
    int64_t read_ms;    /* without a byte: 20 s */
    int64_t total_ms;   /* of one attempt: 40 s */
    int64_t backoff_ms; /* before the second attempt: 0.5 s; twice that before the third */
};

/* What this process knows of the hosts. One for all threads. */
struct fetcher;
struct fetch_what;
/* `h` outlives it. IL_OK, IL_NOMEM, IL_STORE (no libcurl). */
il_status il__fetcher_open(il *h, const struct fetch_options *o, struct fetcher **ret,
                           il_error *reterr) MUST_USE;
void      il__fetcher_close(struct fetcher *f); /* NULL is fine; no fetch_conn is left */

/* The address of a page. IL_OK, IL_INVAL, IL_NOMEM: as il__address_of(). */
il_status il__fetch_address(const struct fetcher *f, const struct fetch_what *what,
                            struct address *ret, il_error *reterr) MUST_USE;

/* A connection: of one thread at a time, but for il__fetch_wake(). */
struct fetch_conn;
struct fetch_calls {
    bool (*should_stop)(void *cookie);
    /* while it waits for a permit, several times a second; may be NULL */
    void (*waits)(void *cookie);
    void *cookie;
};
il_status il__fetch_open(struct fetcher *f, const struct fetch_calls *calls,
                         struct fetch_conn **ret, il_error *reterr) MUST_USE;
void      il__fetch_close(struct fetch_conn *c); /* NULL is fine */
/* Have should_stop() asked at once. Any thread; never blocks. */
void il__fetch_wake(struct fetch_conn *c);

/* A page, by the ids in its address; see il__address_of(). */
struct fetch_what {
    enum liverc_kind kind;
    const char      *slug, *id;
    /* of an earlier response: if nothing has changed since, no body comes. NULL or "": none */
    const char *etag, *modified;
};

struct fetched {
    struct il__buf   body;
    bool             unchanged; /* since the response with those */
    char             etag[NET_ETAG_BYTES];
    char             modified[NET_MODIFIED_BYTES];
    struct address   address;
    enum liverc_code code; /* why there is no page; LIVERC_OK if for another reason */
    unsigned         n_attempts;
};
void il__fetched_release(struct fetched *f);

/*
 * Get a page; blocks. *ret is always written: release it. IL_OK: a body, or `unchanged`. IL_INVAL
 * with ret->code: the site does not give it, or an id is not one (LIVERC_VALIDATION_ERROR).
 * IL_CANCELLED: should_stop(). IL_STORE and kin: of the store.
 */
il_status il__fetch(struct fetch_conn *c, const struct fetch_what *what, struct fetched *ret,
                    il_error *reterr) MUST_USE;

#endif
