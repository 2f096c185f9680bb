/*
 * classic.c: finds the locks of classic clients (classic=yes). These are plain strings set by other
 * programs, so no index contains them and a listing needs SCAN.
 *
 * SCAN covers the whole database, all tenants at once, in steps that block the server for some 500
 * keys each. It uses its own connection, so no other call waits for it. In a small database each
 * listing scans by itself and shows what existed when it began. In a larger one, the result of a
 * scan serves all listings for ten times as long as the scan took: with millions of keys a lock
 * shows up seconds late, and the server spends at most a tenth of its time on scans. A listing
 * waits for a scan no longer than the store's timeout. Later listings continue a scan that takes
 * longer; until it is complete, they show what it has found so far plus the result of the previous
 * scan. A lock that no longer exists is never shown, because the listing checks each string
 * (lua/lock_show.lua).
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "core/cursor.h"
#include "core/op.h"
#include "store/redis/redis_internal.h"

#define PREFIX "pipeline_lock:"
#define KEY_PREFIX "pipeline:"
#define STEP "500"   /* buckets of one SCAN: half a millisecond */
#define STEPS_FEW 32 /* cheap enough for each listing */
#define SERVES 10    /* times as long as it took */

void
il__redis_classic_init(struct redis_store *s)
{
    il__mutex_init(&s->classic.mutex, IL__MUTEX_classic);
    il__redis_conn_init(&s->classic.conn, &s->url, NULL);
}

static void
forget(struct redis_classic *k)
{
    for (size_t i = 0; i < k->n; i++)
        il__free(k->names[i].text);
    il__free(k->names);
    k->names     = NULL;
    k->n         = 0;
    k->cursor[0] = '\0';
}

void
il__redis_classic_release(struct redis_store *s)
{
    forget(&s->classic);
    il__redis_conn_release(&s->classic.conn);
    il__mutex_destroy(&s->classic.mutex);
}

/* ---- looking --------------------------------------------------------------------------------- */

/* "TENANT:KEY" for a name that could be a lock of ours: PREFIX, tenant, colon, rest of a key. */
static char *
kept_as(const redisReply *r)
{
    const char *tenant = r->str + sizeof PREFIX - 1;

    if (strlen(r->str) != r->len || r->len < sizeof PREFIX)
        return NULL;
    const char *colon = strchr(tenant, ':');
    size_t      n     = r->len + sizeof KEY_PREFIX;
    char       *text  = colon != NULL && colon[1] != '\0' ? il__alloc(n) : NULL;
    if (text == NULL)
        return NULL;
    (void)snprintf(text, n, "%.*s:" KEY_PREFIX "%s", (int)(colon - tenant), tenant, colon + 1);
    if (il_check_key(strchr(text, ':') + 1, NULL) != IL_OK)
        il__free(TAKE(text));
    return text;
}

static il_status
keep(struct redis_classic *k, const redisReply *found, il_error *reterr)
{
    if (found->elements == 0)
        return IL_OK;
    size_t                     n     = k->n + found->elements;
    struct redis_classic_name *names = il__realloc(k->names, n * sizeof *names);
    if (names == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a listing");
    k->names = names;
    for (size_t i = 0; i < found->elements; i++) {
        const redisReply *one  = found->element[i];
        char             *name = one->type == REDIS_REPLY_STRING ? kept_as(one) : NULL;
        if (name != NULL)
            k->names[k->n++] = (struct redis_classic_name){ name, k->look };
    }
    return IL_OK;
}

/* One step of the scan: advances the cursor, which is "" after the last one. */
static il_status
step(struct redis_store *s, int64_t deadline_ns, il_error *reterr)
{
    struct redis_classic  *k    = &s->classic;
    const char            *from = k->cursor[0] != '\0' ? k->cursor : "0";
    redisReply *AUTO_REPLY r    = NULL;

    il_status st = il__redis_connect(s, &k->conn, deadline_ns, reterr);
    if (st == IL_OK)
        st = il__redis_ask(&k->conn, deadline_ns, &r, reterr, "SCAN", from, "MATCH", (PREFIX "*"),
                           "COUNT", STEP);
    if (st != IL_OK)
        return st;
    if (r->type != REDIS_REPLY_ARRAY || r->elements != 2 ||
        r->element[0]->type != REDIS_REPLY_STRING || r->element[0]->len >= REDIS_CURSOR_BYTES ||
        r->element[1]->type != REDIS_REPLY_ARRAY) {
        const char *text = r->type == REDIS_REPLY_ERROR ? r->str : "unexpected reply to SCAN";
        if (il__redis_map(&s->url, text, reterr) == REDIS_ERROR_DROP)
            il__redis_conn_drop(&k->conn);
        return IL_STORE;
    }
    const char *to = strcmp(r->element[0]->str, "0") != 0 ? r->element[0]->str : "";
    (void)snprintf(k->cursor, sizeof k->cursor, "%s", to); /* there is room */
    return keep(k, r->element[1], reterr);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct redis_classic_name *)a)->text,
                  ((const struct redis_classic_name *)b)->text);
}

/* The scan is complete: drop names that only earlier ones have found. */
static void
drop_earlier(struct redis_classic *k)
{
    size_t n = 0;

    for (size_t i = 0; i < k->n; i++) {
        if (k->names[i].look == k->look)
            k->names[n++] = k->names[i];
        else
            il__free(k->names[i].text);
    }
    k->n = n;
}

/*
 * Bring the names up to date, or closer to it; the mutex is held. No step starts in the second half
 * of the time, so that the last one has enough of it. Callers that waited for the mutex find usable
 * names.
 */
static il_status
look(struct redis_store *s, il_error *reterr)
{
    struct redis_classic *k        = &s->classic;
    int64_t               began_ns = il__clock_boot_ns();
    int64_t               time_ns  = s->timeout_ms * IL__NS_PER_MS;
    unsigned              n_steps  = 0;
    il_status             st;

#ifdef IL_MUTANT_classic_look_endless
    time_ns *= 100;
#endif
    if (began_ns < k->until_ns)
        return IL_OK;
    /* A cursor is good for one server. */
    if (il__redis_conn_is_dead(&k->conn) || k->conn.generation != atomic_load(&s->generation))
        forget(k);
    if (k->cursor[0] == '\0')
        k->look++;
    do {
        st = step(s, began_ns + time_ns, reterr);
        n_steps++;
    } while (st == IL_OK && k->cursor[0] != '\0' && il__clock_boot_ns() - began_ns < time_ns / 2);
    if (st != IL_OK) {
        forget(k);
        return st;
    }
    bool whole = k->cursor[0] == '\0';
    if (whole)
        drop_earlier(k);
    if (k->n > 1)
        qsort(k->names, k->n, sizeof *k->names, by_name);
    if (!whole || n_steps > STEPS_FEW)
        k->until_ns = began_ns + SERVES * (il__clock_boot_ns() - began_ns);
    return IL_OK;
}

/* ---- a listing's request --------------------------------------------------------------------- */

bool
il__redis_classic_lists(const struct redis_store *s, const struct remote_call *call)
{
    const il_op *op = call->n == 1 ? call->requests[0].op : NULL;

    return s->url.classic && op != NULL && op->type == IL_OP_LIST &&
           (op->flags & IL_LIST_WAITERS) == 0 && strchr(op->tenant, ':') == NULL;
}

/* The key of a name if the listing of `op` may show it, else NULL. */
static const char *
listed(const char *name, const il_op *op, const char *after)
{
    const char *prefix   = op->in.list.prefix != NULL ? op->in.list.prefix : "";
    size_t      n_tenant = strlen(op->tenant);
    const char *key      = name + n_tenant + 1;

    if (strncmp(name, op->tenant, n_tenant) != 0 || name[n_tenant] != ':')
        return NULL;
    return strncmp(key, prefix, strlen(prefix)) == 0 && strcmp(key, after) >= 0 ? key : NULL;
}

/*
 * Names of one tenant sort like their keys. No more than a page needs are sent: then the listing
 * ends at the last one, and continues from there.
 */
static void
put_names(const struct redis_classic *k, const il_op *op, const char **keys,
          struct remote_request *ret)
{
    const char *after = "";
    uint64_t    number;
    size_t      n = 0;
    size_t      i = 0;

    if (op->in.list.cursor != NULL)
        CHECK(il__cursor_parse(op->in.list.cursor, &after, &number));
    for (; i < k->n && n <= op->in.list.limit; i++) {
        const char *key = listed(k->names[i].text, op, after);
        if (key != NULL && (n == 0 || strcmp(key, keys[n - 1]) != 0)) /* some are there twice */
            keys[n++] = key;
    }
    il__remote_put_texts(ret, "classic", keys, n);
    if (i < k->n && n > 0)
        il__remote_put_text(ret, "classic_last", keys[n - 1]);
}

il_status
il__redis_classic_request(struct redis_store *s, const struct remote_request *r,
                          struct remote_request *ret, il_error *reterr)
{
    AUTO_FREE const char **keys = il__calloc(r->op->in.list.limit + 1, sizeof *keys);

    if (keys == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a listing");
    il__buf_init(&ret->json, r->json.n_bytes_max);
    il__buf_add(&ret->json, r->json.data, r->json.n_bytes - 1); /* without its brace */
    il__mutex_lock(&s->classic.mutex);
    il_status st = look(s, reterr);
    if (st == IL_OK)
        put_names(&s->classic, r->op, keys, ret);
    il__mutex_unlock(&s->classic.mutex);
    if (!il__remote_end(ret) && st == IL_OK)
        st = il__error_set(reterr, IL_NOMEM, "out of memory for a listing");
    return st;
}
