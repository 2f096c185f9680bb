/*
 * redis.c: pairs on the Redis engine, compared with a hand-written loop using hiredis on the same
 * server: SET NX PX, and a script that deletes the key if it is still ours. One caller, one
 * connection.
 */
#include <stdio.h>

#include "load.h"
#include "servers.h"

#define N_KEYS 1024
#define BATCH 16
#define TTL_MS "30000"
#define RELEASE                                                                                    \
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return " \
    "0 end"
#define SHA_BYTES 41

/* ---- by hand --------------------------------------------------------------------------------- */

struct by_hand {
    redisContext *c;
    char          sha[SHA_BYTES];
};

static redisReply *
must_reply(struct by_hand *r, void *reply)
{
    redisReply *got = reply;

    if (got == NULL || got->type == REDIS_REPLY_ERROR)
        die("raw Redis: %s", got != NULL ? got->str : r->c->errstr);
    return got;
}

static void
by_hand_open(struct by_hand *r, struct bench *b, bool durable)
{
    r->c              = redis_open(b, durable);
    redisReply *reply = must_reply(r, redisCommand(r->c, "SCRIPT LOAD %s", RELEASE));
    (void)snprintf(r->sha, sizeof r->sha, "%s", reply->str);
    freeReplyObject(reply);
}

static void
send_acquire(struct by_hand *r, const struct names *n)
{
    const char *argv[]  = { "SET", n->key, n->holder, "NX", "PX", TTL_MS };
    size_t      bytes[] = { 3, strlen(n->key), strlen(n->holder), 2, 2, strlen(TTL_MS) };

    if (redisAppendCommandArgv(r->c, ARRAY_LEN(argv), argv, bytes) != REDIS_OK)
        die("raw Redis: %s", r->c->errstr);
}

static void
send_release(struct by_hand *r, const struct names *n)
{
    const char *argv[]  = { "EVALSHA", r->sha, "1", n->key, n->holder };
    size_t      bytes[] = { 7, strlen(r->sha), 1, strlen(n->key), strlen(n->holder) };

    if (redisAppendCommandArgv(r->c, ARRAY_LEN(argv), argv, bytes) != REDIS_OK)
        die("raw Redis: %s", r->c->errstr);
}

/* "+OK" from SET, 1 from the script. */
static void
read_reply(struct by_hand *r, int type, const char *what)
{
    void *reply = NULL;

    if (redisGetReply(r->c, &reply) != REDIS_OK)
        die("raw Redis: %s", r->c->errstr);
    redisReply *got = must_reply(r, reply);
    if (got->type != type || (type == REDIS_REPLY_INTEGER && got->integer != 1))
        die("raw Redis: %s failed", what);
    freeReplyObject(got);
}

static unsigned
by_hand_pairs(struct by_hand *r, struct caller *c, unsigned n)
{
    struct names names = c->names;

    for (unsigned i = 0; i < n; i++, names_next(&names))
        send_acquire(r, &names);
    for (unsigned i = 0; i < n; i++)
        read_reply(r, REDIS_REPLY_STATUS, "SET NX");
    for (unsigned i = 0; i < n; i++, names_next(&c->names))
        send_release(r, &c->names);
    for (unsigned i = 0; i < n; i++)
        read_reply(r, REDIS_REPLY_INTEGER, "the script");
    return n;
}

static unsigned
by_hand_pair(void *cookie, struct caller *c)
{
    return by_hand_pairs(cookie, c, 1);
}

static unsigned
by_hand_batch(void *cookie, struct caller *c)
{
    return by_hand_pairs(cookie, c, BATCH);
}

/* ---- ours ------------------------------------------------------------------------------------ */

/* The step of a batch: an il_apply() of acquires, and one of releases. The cookie is an `il **`. */
static unsigned
our_batch(void *cookie, struct caller *c)
{
    il         **h = cookie;
    struct names names[BATCH];
    il_op        ops[BATCH];
    uint64_t     fences[BATCH];

    for (unsigned i = 0; i < BATCH; i++, names_next(&c->names)) {
        names[i] = c->names;
        ops[i]   = (il_op){ .type = IL_OP_ACQUIRE, .key = names[i].key, .holder = names[i].holder };
    }
    store_apply(*h, ops, BATCH, fences, &c->err);
    for (unsigned i = 0; i < BATCH; i++) {
        ops[i].type  = IL_OP_RELEASE;
        ops[i].fence = fences[i];
    }
    store_apply(*h, ops, BATCH, NULL, &c->err);
    return BATCH;
}

/* ---- both ------------------------------------------------------------------------------------ */

static const struct {
    const char *name, *what, *against;
    bool        batches, durable;
    double      wanted;
} rows[] = {
    { "redis-1", "acquire+release, one op per call, one caller",
      "hiredis: SET NX PX, then EVALSHA, one by one", false, false, 0.5 },
    { "redis-16", "batches of 16 acquires, then of 16 releases", "hiredis: the same, 16 under way",
      true, false, 0.2 },
    { "redis-aof", "acquire+release, one op per call, one caller",
      "hiredis: SET NX PX, then EVALSHA, one by one", false, true, 0.6 },
};

void
bench_redis(struct bench *b, unsigned row)
{
    CHECK(row < ARRAY_LEN(rows));
    bool           durable = rows[row].durable;
    bool           batches = rows[row].batches;
    struct by_hand raw     = { 0 };
    struct result  r       = { .name         = rows[row].name,
                               .what         = rows[row].what,
                               .against      = rows[row].against,
                               .durability   = durable ? BENCH_REDIS_AOF : BENCH_REDIS,
                               .unit         = UNIT_PAIRS_PER_S,
                               .wanted       = WANTED_RATIO_AT_LEAST,
                               .wanted_value = rows[row].wanted };
    char           url[BENCH_URL_BYTES];
    const char    *why;

    if (!redis_ready(b, durable, &why)) {
        report_leave_out(&b->report, r.name, why);
        return;
    }
    by_hand_open(&raw, b, durable);
    struct kept store = store_open_kept(redis_url(b, durable, url));
    struct load ours  = { .n_threads    = 1,
                          .n_keys       = N_KEYS,
                          .sample_every = 1,
                          .round_ns     = b->round_ns,
                          .step         = batches ? our_batch : load_il_pair,
                          .cookie       = &store.h };
    struct load base  = ours;
    base.step         = batches ? by_hand_batch : by_hand_pair;
    base.cookie       = &raw;
    load_init(&ours);
    load_init(&base);
    compare(&r, b->n_rounds, (struct side){ load_side, &ours }, (struct side){ load_side, &base });
    r.ours_latency     = load_latency(&ours);
    r.baseline_latency = load_latency(&base);
    load_release(&ours);
    load_release(&base);
    store_close_kept(&store);
    redisFree(raw.c);
    redis_empty(b, durable);
    report_add(&b->report, &r);
}
