/*
 * auth_keys.h: the keys that were shown lately, by their HMAC, and what the data store says of them. For auth.c alone.
 *
 * An entry stands for a good key, or for one that is unknown, revoked or expired. `checked_ns` is when the question was asked that its answer came of, so however
 * long the data store takes, what was true before never counts for longer than it should. Entries live in one table and in two lists in order of
 * their use, so that a flood of wrong keys can push out only other wrong keys.
 */
#ifndef IL_HTTP_AUTH_KEYS_H
#define IL_HTTP_AUTH_KEYS_H

#include "base/map.h"
#include "http/auth_failures.h"
#include "http/http.h"
#include "http/office.h"

struct http_key;

/* A caller is shared by its entry and its requests. */
struct http_held_caller {
    struct http_caller c;
    unsigned char      hash[DATA_HASH_BYTES];
    unsigned           n_refs;
};
void http_caller_unref(struct http_held_caller *c);
bool http_caller_same(const struct http_caller *a, const struct http_caller *b);

/* A request that waits for an answer; in the request's memory. */
struct http_key_waiter {
    struct http_key        *key;
    struct http_request    *r;
    http_fn                *then;
    struct http_key_waiter *next;
};

struct http_key {
    struct http_server      *server;
    unsigned char            hash[DATA_HASH_BYTES];
    struct http_held_caller *caller; /* NULL: not a good key */
    int64_t                  expires_at_ms;
    int64_t                  checked_ns; /* 0 = never, or it does not count any more */
    int64_t retry_ns; /* the data store could not be asked: again then; 0 = it could */
    bool    asking;
    struct http_key_waiter *waiting;
    struct http_key_waiter *told; /* of those that waited, the ones that are still to be told */

    /* auth_keys.c's own: */
    unsigned         n_pins; /* somebody has a pointer to it that must stay good */
    int64_t          asked_ns;
    uint64_t         asked_epoch;
    struct http_key *newer, *older; /* in the list of good or bad ones */
    struct http_job  ask, note;
    bool             noting;
    int64_t          used_at_ms;
    struct answer {                    /* what the office thread found out */
        il_status              status; /* OK, NOT_FOUND, or why it could not be asked */
        struct http_caller     caller;
        int64_t                expires_at_ms, used_at_ms, revoked_at_ms;
        struct il__data_limits limits;
    } answer;
};

struct http_auth {
    struct il__map map; /* all keys */
    struct http_key_list {
        struct http_key *newest, *oldest;
        size_t           n, max;
    } good, bad;
    size_t               n_asking;
    int64_t              tries_ns; /* auth.c: the bucket of those that may be looked up for addresses that failed too often */
    uint64_t             epoch; /* counted up when this server changes keys */
    bool                 down;  /* the data store, when it was asked last */
    struct http_failures failures;
};

void http_keys_init(struct http_auth *a);
void http_keys_release(struct http_auth *a);

struct http_key *http_key_find(const struct http_auth *a, const unsigned char hash[DATA_HASH_BYTES]);
/* NULL: no memory. */
struct http_key *http_key_add(struct http_server *s, const unsigned char hash[DATA_HASH_BYTES]);
void             http_key_touch(struct http_key *k); /* it is used */

/* Have it looked up, unless it is being looked up; http_key_answered() (auth.c) follows on the loop. */
void http_key_ask(struct http_key *k);
void http_key_answered(struct http_key *k);

#endif
