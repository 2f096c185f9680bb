/* auth_keys.c: the cache of API keys and the lookups that fill it. See auth_keys.h. */
#include "http/auth_keys.h"

#include "base/clock.h"
#include "http/limits.h"
#include "http/log.h"
#include "http/metrics.h"
#include "http/server.h"

/* between two attempts to reach a data store that is down */
#define RETRY_NS (INT64_C(250) * IL__NS_PER_MS)
#define USED_EVERY_MS 60000 /* resolution of last-used */
#define GOOD_MAX 16384      /* valid keys cached */
#define BAD_MAX 4096        /* ... and invalid ones */

static void
copy(char *to, size_t size, const char *from)
{
    size_t n = strnlen(from != NULL ? from : "", size - 1);

    memcpy(to, from != NULL ? from : "", n);
    to[n] = '\0';
}

/* ---- callers --------------------------------------------------------------------------------- */

void
http_caller_unref(struct http_held_caller *c)
{
    if (c == NULL || --c->n_refs > 0)
        return;
    http_tenant_unref(c->c.limits);
    il__free(c);
}

bool
http_caller_same(const struct http_caller *a, const struct http_caller *b)
{
    return strcmp(a->key_id, b->key_id) == 0 && strcmp(a->tenant, b->tenant) == 0 &&
           a->role == b->role && strcmp(a->permissions, b->permissions) == 0 &&
           strcmp(a->prefix, b->prefix) == 0 && a->expires_at_ms == b->expires_at_ms;
}

static void
drop_caller(struct http_key *k)
{
    http_caller_unref(k->caller);
    k->caller = NULL;
}

/* Copy the result of a lookup. False: out of memory. */
static bool
set_caller(struct http_key *k, const struct answer *a)
{
    if (k->caller == NULL || !http_caller_same(&k->caller->c, &a->caller)) {
        struct http_held_caller *c = il__calloc(1, sizeof *c);
        struct http_tenant *t = c != NULL ? http_tenant_ref(k->server, a->caller.tenant) : NULL;
        if (t == NULL) {
            il__free(c);
            return false;
        }
        drop_caller(k);
        *c = (struct http_held_caller){ .c = a->caller, .n_refs = 1 };
        memcpy(c->hash, k->hash, DATA_HASH_BYTES);
        c->by_id    = k->id[0] != '\0';
        c->c.limits = t;
        k->caller   = c;
    }
    http_tenant_limits(k->caller->c.limits, &a->limits);
    return true;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* An HMAC is as good as random, and unknown outside this process. */
static uint64_t
hash_of(const unsigned char hash[DATA_HASH_BYTES])
{
    uint64_t h;

    memcpy(&h, hash, sizeof h);
    return h;
}

struct http_key *
http_key_find(const struct http_auth *a, const unsigned char hash[DATA_HASH_BYTES])
{
    size_t           i = il__map_start(&a->map, hash_of(hash));
    struct http_key *k;

    while ((k = il__map_next(&a->map, hash_of(hash), &i)) != NULL &&
           memcmp(k->hash, hash, DATA_HASH_BYTES) != 0)
        i++;
    return k;
}

static void
list_remove(struct http_key_list *list, struct http_key *k)
{
    *(k->newer != NULL ? &k->newer->older : &list->newest) = k->older;
    *(k->older != NULL ? &k->older->newer : &list->oldest) = k->newer;
    k->newer = k->older = NULL;
    list->n--;
}

static void
list_add(struct http_key_list *list, struct http_key *k)
{
    k->older                                                       = list->newest;
    k->newer                                                       = NULL;
    *(list->newest != NULL ? &list->newest->newer : &list->oldest) = k;
    list->newest                                                   = k;
    list->n++;
}

static struct http_key_list *
list_of(struct http_auth *a, const struct http_key *k)
{
    return k->caller != NULL ? &a->good : &a->bad;
}

void
http_key_touch(struct http_key *k)
{
    struct http_auth *a = k->server->auth;

    if (list_of(a, k)->newest != k) {
        list_remove(list_of(a, k), k);
        list_add(list_of(a, k), k);
    }
}

/* Evict the least recently used keys, except those that the errand thread is using. */
static void
trim(struct http_auth *a, struct http_key_list *list)
{
    struct http_key *next;

    for (struct http_key *k = list->oldest; k != NULL && list->n > list->max; k = next) {
        next = k->newer;
        if (k->n_pins > 0)
            continue;
        list_remove(list, k);
        il__map_remove(&a->map, hash_of(k->hash), k);
        drop_caller(k);
        il__free(k);
    }
}

struct http_key *
http_key_add(struct http_server *s, const unsigned char hash[DATA_HASH_BYTES], const char *id)
{
    struct http_key *k = il__calloc(1, sizeof *k);

    if (k == NULL || !il__map_reserve(&s->auth->map)) {
        il__free(k);
        return NULL;
    }
    k->server = s;
    memcpy(k->hash, hash, DATA_HASH_BYTES);
    if (id != NULL)
        copy(k->id, sizeof k->id, id);
    il__map_add(&s->auth->map, hash_of(hash), k);
    list_add(&s->auth->bad, k); /* until it is known to be valid */
    trim(s->auth, &s->auth->bad);
    return k;
}

void
http_keys_init(struct http_auth *a)
{
    a->good.max = GOOD_MAX;
    a->bad.max  = BAD_MAX;
}

void
http_keys_release(struct http_auth *a)
{
    for (size_t i = 0; i < a->map.size; i++) {
        struct http_key *k = a->map.slots[i].item;
        if (k != NULL)
            drop_caller(k);
        il__free(k);
    }
    il__map_release(&a->map);
}

/* ---- asking the data store ------------------------------------------------------------------- */

static void
take_key(void *cookie, const struct il__data_key *key)
{
    struct answer *a = cookie;

    copy(a->caller.key_id, sizeof a->caller.key_id, key->id);
    copy(a->caller.tenant, sizeof a->caller.tenant, key->tenant);
    copy(a->caller.permissions, sizeof a->caller.permissions, key->permissions);
    copy(a->caller.prefix, sizeof a->caller.prefix, key->prefix);
    a->caller.role          = key->role;
    a->caller.expires_at_ms = key->expires_at_ms;
    a->revoked_at_ms        = key->revoked_at_ms;
    a->used_at_ms           = key->used_at_ms;
    /* A truncated prefix or permission list would mean something else: then allow nothing. */
    if (strlen(key->prefix) >= sizeof a->caller.prefix ||
        strlen(key->permissions) >= sizeof a->caller.permissions)
        a->revoked_at_ms = 1;
}

static void
take_limits(void *cookie, const struct il__data_tenant *tenant)
{
    struct answer *a = cookie;

    a->limits = tenant->limits;
}

/* On the errand thread. For an unknown key a tenant is looked up as well, so that it takes as
 * long as a known one. */
static void
ask(struct http_job *job)
{
    struct http_key *k = container_of(job, struct http_key, ask);
    struct answer   *a = &k->answer;

    memset(a, 0, sizeof *a);
    a->status = k->id[0] != '\0' ? il__data_key_get(k->server->data, NULL, k->id, take_key, a, NULL)
                                 : il__data_key_find(k->server->data, k->hash, take_key, a, NULL);
    const char *name = a->status == IL_OK ? a->caller.tenant : "default";
    il_status   st   = a->status;
    if (st == IL_OK || st == IL_NOT_FOUND)
        st = il__data_tenant_get(k->server->data, name, take_limits, a, NULL);
    if (st != IL_OK && st != IL_NOT_FOUND)
        a->status = st;
}

static void
note_used(struct http_job *job)
{
    struct http_key *k = container_of(job, struct http_key, note);

    /* Informational only; the next minute brings another chance. */
    IGNORE(il__data_key_used(k->server->data, k->answer.caller.key_id, k->used_at_ms, NULL) !=
           IL_OK);
}

static void
noted(struct http_job *job)
{
    struct http_key *k = container_of(job, struct http_key, note);

    k->noting = false;
    k->n_pins--;
}

static void answered(struct http_job *job);

void
http_key_ask(struct http_key *k)
{
    if (k->asking)
        return;
    k->asking = true;
    k->n_pins++;
    k->asked_ns    = il__clock_boot_ns();
    k->asked_epoch = k->server->auth->epoch;
    k->ask         = (struct http_job){ .work = ask, .then = answered };
    http_count(k->server, HTTP_COUNT_key_lookups, 1);
    k->server->auth->n_asking++;
    http_errand_send(k->server, &k->ask);
}

static bool
is_good(const struct answer *a)
{
    return a->status == IL_OK && a->revoked_at_ms == 0 &&
           (a->caller.expires_at_ms == 0 || a->caller.expires_at_ms > il__clock_wall_ms());
}

static void
tell_outage(struct http_server *s, bool down)
{
    if (s->auth->down == down)
        return;
    s->auth->down = down;
    http_log(s, down ? HTTP_EVENT_data_down : HTTP_EVENT_data_up, NULL);
}

/* Copy the result into the entry. */
static void
learn(struct http_key *k)
{
    const struct answer *a    = &k->answer;
    struct http_auth    *auth = k->server->auth;
    bool                 down = a->status != IL_OK && a->status != IL_NOT_FOUND;

    tell_outage(k->server, down);
    if (down) {
        k->retry_ns = il__clock_boot_ns() + RETRY_NS;
        return;
    }
    list_remove(list_of(auth, k), k);
    if (!is_good(a)) {
        drop_caller(k);
    } else if (!set_caller(k, a)) {
        k->retry_ns = il__clock_boot_ns() + RETRY_NS; /* out of memory: treat as unreachable */
        list_add(list_of(auth, k), k);
        return;
    }
    list_add(list_of(auth, k), k);
    k->checked_ns  = k->asked_ns;
    k->retry_ns    = 0;
    int64_t now_ms = il__clock_wall_ms();
    if (k->caller != NULL && now_ms - a->used_at_ms >= USED_EVERY_MS && !k->noting) {
        k->noting = true;
        k->n_pins++;
        k->used_at_ms = now_ms;
        k->note       = (struct http_job){ .work = note_used, .then = noted };
        http_errand_send(k->server, &k->note);
    }
}

/* On the loop: the errand thread has finished a lookup. */
static void
answered(struct http_job *job)
{
    struct http_key    *k = container_of(job, struct http_key, ask);
    struct http_server *s = k->server;

    k->asking = false;
    s->auth->n_asking--;
    /* keys changed meanwhile: the lookup may have read the old state */
    if (k->asked_epoch != s->auth->epoch) {
        http_key_ask(k);
    } else {
        learn(k);
        http_key_answered(k); /* may start other lookups, or this one again: it is still pinned */
    }
    k->n_pins--;
    trim(s->auth, &s->auth->good);
    trim(s->auth, &s->auth->bad);
}
