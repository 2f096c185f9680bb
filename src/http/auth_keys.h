/*
 * auth_keys.h: a cache of recently used API keys, by HMAC, with the data store's answer for each.
 * For auth.c only.
 *
 * An entry stands for a valid key, or for one that is unknown, revoked or expired. `checked_ns` is
 * the time at which the lookup was started, not when it returned, so a slow data store cannot
 * extend the validity of an old result. Entries live in one table and in two LRU lists, one for
 * valid and one for invalid keys, so a flood of wrong keys can evict only other wrong keys.
 */
#ifndef IL_HTTP_AUTH_KEYS_H
#define IL_HTTP_AUTH_KEYS_H

#include "base/map.h"
#include "http/auth_failures.h"
#include "http/errands.h"
#include "http/http.h"

struct http_key;

/* A caller, shared by its cache entry and its requests. */
struct http_held_caller {
    struct http_caller c;
    unsigned char      hash[DATA_HASH_BYTES];
    bool               by_id; /* its entry is one for sessions */
    unsigned           n_refs;
};
void http_caller_unref(struct http_held_caller *c);
bool http_caller_same(const struct http_caller *a, const struct http_caller *b);

/* A request that waits for a lookup; in the request's memory. */
struct http_key_waiter {
    struct http_key        *key;
    struct http_request    *r;
    http_fn                *then;
    struct http_key_waiter *next;
};

struct http_key {
    struct http_server      *server;
    unsigned char            hash[DATA_HASH_BYTES];
    char                     id[DATA_ID_BYTES]; /* look it up by this; "" = by the hash */
    struct http_held_caller *caller;            /* NULL: not a valid key */
    int64_t                  checked_ns;        /* 0 = never, or no longer valid */
    int64_t                  retry_ns; /* data store unreachable: when to retry; 0 = reachable */
    bool                     asking;
    struct http_key_waiter  *waiting;
    struct http_key_waiter  *told; /* waiters that have not been called back yet */

    /* Private to auth_keys.c: */
    unsigned         n_pins; /* pinned: a pointer to it must stay valid */
    int64_t          asked_ns;
    uint64_t         asked_epoch;
    struct http_key *newer, *older; /* in the list of valid or invalid keys */
    struct http_job  ask, note;
    bool             noting;
    int64_t          used_at_ms;
    struct answer {                    /* result of the errand thread */
        il_status              status; /* OK, NOT_FOUND, or why the lookup failed */
        struct http_caller     caller;
        int64_t                used_at_ms, revoked_at_ms;
        struct il__data_limits limits;
    } answer;
};

struct http_auth {
    struct il__map map; /* all keys */
    struct http_key_list {
        struct http_key *newest, *oldest;
        size_t           n, max;
    } good, bad;
    size_t n_asking;
    /* auth.c: the bucket for lookups on behalf of addresses with too many failures */
    int64_t              tries_ns;
    uint64_t             epoch; /* incremented when this server changes keys */
    bool                 down;  /* state of the data store at the last lookup */
    struct http_failures failures;
};

void http_keys_init(struct http_auth *a);
void http_keys_release(struct http_auth *a);

struct http_key *http_key_find(const struct http_auth *a,
                               const unsigned char     hash[DATA_HASH_BYTES]);
/* id NULL: it is looked up by its hash. NULL: out of memory. */
struct http_key *http_key_add(struct http_server *s, const unsigned char hash[DATA_HASH_BYTES],
                              const char *id);
void             http_key_touch(struct http_key *k); /* it is used */

/* Start a lookup unless one is in progress; http_key_answered() (auth.c) follows on the loop. */
void http_key_ask(struct http_key *k);
void http_key_answered(struct http_key *k);

#endif
