/*
 * auth.c: maps the API key of a request to its caller, or refuses the request. auth.h states the
 * rules; auth_keys.c caches what is known about keys.
 */
#include "http/auth.h"

#include <stdio.h>
#include <strings.h>

#include "base/clock.h"
#include "base/error.h"
#include "http/auth_keys.h"
#include "http/limits.h"
#include "http/log.h"
#include "http/metrics.h"
#include "http/samples.h"
#include "http/server.h"
#include "http/ui.h"

#define MS INT64_C(1000000)
/* after this time a request triggers a new lookup of its key, without waiting for it */
#define ASK_AHEAD_NS (250 * MS)
#define FRESH_NS (500 * MS)   /* after this time requests wait for the lookup */
#define OUTAGE_NS (5000 * MS) /* how long a result stays valid while the store cannot be reached */
#define ASKING_MAX 1024       /* lookups in progress */
#define FAILURES_PER_MINUTE 10
/* lookups for addresses with too many failures: 100 per second ... */
#define TRY_EVERY_NS (10 * MS)
#define TRY_BURST 100 /* ... and burst */

il_status
http_auth_open(struct http_server *s, il_error *reterr)
{
    s->auth = il__calloc(1, sizeof *s->auth);
    if (s->auth == NULL)
        return il__error_nomem(reterr);
    http_keys_init(s->auth);
    return IL_OK;
}

void
http_auth_close(struct http_server *s)
{
    if (s->auth == NULL)
        return;
    http_keys_release(s->auth);
    http_failures_release(&s->auth->failures);
    il__free(s->auth);
    s->auth = NULL;
}

/* ---- refusals -------------------------------------------------------------------------------- */

static int64_t
failures_per_minute(const struct http_server *s)
{
    return s->o->login_failures_per_minute != 0 ? s->o->login_failures_per_minute
                                                : FAILURES_PER_MINUTE;
}

static void
log_peer(struct http_request *r, enum http_event event)
{
    if (!http_log_begin(r->server, event))
        return;
    http_log_who(r->server, r);
    http_log_text(r->server, "peer", r->peer);
    http_log_end(r->server);
}

static void
refuse(struct http_request *r, const char *message)
{
    http_count(r->server, HTTP_COUNT_logins_failed, 1);
    http_header(r, "WWW-Authenticate", "Bearer realm=\"interlock\"");
    http_fail(r, 401, "UNAUTHORIZED", "auth", NULL, "%s", message);
}

static void
refuse_address(struct http_request *r, int64_t wait_ms)
{
    AUTO_BUF struct il__buf details;

    http_count(r->server, HTTP_COUNT_logins_limited, 1);
    log_peer(r, HTTP_EVENT_login_limited);
    il__buf_init(&details, 64);
    il__buf_addf(&details, "{\"retry_after_ms\":%lld}", (long long)wait_ms);
    http_retry_after(r, wait_ms);
    http_fail(r, 429, "RATE_LIMITED", "auth", il__buf_str(&details),
              "too many failed logins from this address; try again later");
}

static int64_t
address_wait_ms(const struct http_request *r)
{
    return http_failures_wait_ms(&r->server->auth->failures, r->peer,
                                 failures_per_minute(r->server), il__clock_boot_ns());
}

void
http_auth_refuse(struct http_request *r, const char *message)
{
    int64_t wait_ms = address_wait_ms(r);

    if (wait_ms > 0) {
        refuse_address(r, wait_ms);
        return;
    }
    http_failures_add(&r->server->auth->failures, r->peer, failures_per_minute(r->server),
                      il__clock_boot_ns());
    log_peer(r, HTTP_EVENT_login_failed);
    refuse(r, message);
}

/* Unknown, revoked, expired and malformed keys all get the same answer. */
static void
refuse_key(struct http_request *r)
{
    http_auth_refuse(r, "invalid API key");
}

/* Reported like any store outage: requests whose cached key is still valid fail the same way
 * later. */
static void
refuse_outage(struct http_request *r)
{
    http_retry_after(r, 1000);
    http_fail(r, 503, il_status_name(IL_STORE), "store", NULL, "%s",
              r->store_text != NULL ? r->store_text : il_status_text(IL_STORE));
}

/* ---- the key of a request -------------------------------------------------------------------- */

/* The text after "Bearer "; NULL: another scheme. */
static const char *
bearer(const char *authorization)
{
    if (strncasecmp(authorization, "Bearer", 6) != 0 || authorization[6] != ' ')
        return NULL;
    authorization += 6;
    return authorization + strspn(authorization, " ");
}

/* Does it have the form of a key: sk_TENANT_ followed by URL-safe characters? */
static bool
is_key(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

    return strncmp(text, "sk_", 3) == 0 && text[n] == '\0' && n < DATA_KEY_BYTES_MAX;
}

/* The key sent with a request; NULL: the request has been answered. */
static const char *
shown_key(struct http_request *r)
{
    const char *plain         = r->api_key;
    const char *authorization = r->authorization;
    const char *token         = authorization != NULL ? bearer(authorization) : NULL;

    if (plain == NULL && authorization == NULL) {
        refuse(r, "missing API key: send X-API-Key or Authorization: Bearer");
        return NULL;
    }
    if (plain != NULL && authorization != NULL && (token == NULL || strcmp(plain, token) != 0)) {
        http_fail(r, 400, il_status_name(IL_INVAL), "auth", NULL,
                  "X-API-Key and Authorization contain different keys");
        return NULL;
    }
    if (plain == NULL && token == NULL) {
        refuse(r, "Authorization must be 'Bearer' followed by an API key");
        return NULL;
    }
    return plain != NULL ? plain : token;
}

/* ---- deciding -------------------------------------------------------------------------------- */

/* Is the cached result still valid? It stays valid longer while the store cannot be reached. */
static bool
is_known(const struct http_key *k, int64_t now_ns)
{
#ifdef IL_MUTANT_revoked_key_lives_on
    now_ns = k->checked_ns;
#endif
    return k->checked_ns != 0 && now_ns - k->checked_ns < (k->retry_ns != 0 ? OUTAGE_NS : FRESH_NS);
}

static bool
is_good(const struct http_key *k)
{
    int64_t end_ms = k->caller != NULL ? k->caller->c.expires_at_ms : 0;

    return k->caller != NULL && (end_ms == 0 || end_ms > il__clock_wall_ms());
}

static void
decide(struct http_request *r, const struct http_key *k, http_fn *then)
{
    if (!is_good(k)) {
        if (k->id[0] != '\0')
            http_ui_refuse(r, "the API key of this session was revoked or has expired");
        else
            refuse_key(r);
        return;
    }
    k->caller->n_refs++;
    r->caller = &k->caller->c;
    http_samples_request(r->server, r->caller->tenant);
    if (!http_may_call(r->caller, r->route))
        http_forbid(r, r->route);
    else if (!http_may_names(r->caller, r->route))
        http_forbid_names(r, r->route);
    else if (http_limits_request(r))
        then(r);
}

void
http_key_answered(struct http_key *k)
{
    bool known = k->retry_ns == 0 || is_known(k, il__clock_boot_ns());

    /* Requests that arrive meanwhile and must wait do so for the next result; requests that end
     * leave the list. */
    k->told = TAKE(k->waiting);
    while (k->told != NULL) {
        struct http_key_waiter *w = k->told;
        k->told                   = w->next;
        w->r->key_waiter          = NULL;
        if (known)
            decide(w->r, k, w->then);
        else
            refuse_outage(w->r);
    }
}

static bool
leave_list(struct http_key_waiter **at, const struct http_key_waiter *w)
{
    while (*at != NULL && *at != w)
        at = &(*at)->next;
    if (*at == NULL)
        return false;
    *at = w->next;
    return true;
}

static void
wait_for_answer(struct http_request *r, struct http_key *k, http_fn *then)
{
    struct http_key_waiter *w = http_calloc(r, sizeof *w);

    if (w == NULL)
        return;
    *w            = (struct http_key_waiter){ .key = k, .r = r, .then = then, .next = k->waiting };
    k->waiting    = w;
    r->key_waiter = w;
    http_key_ask(k);
}

/* The cached result is missing or too old. */
static void
look_up(struct http_request *r, struct http_key *k, const unsigned char hash[DATA_HASH_BYTES],
        const char *id, http_fn *then)
{
    struct http_server *s = r->server;

    if (k != NULL && k->retry_ns > il__clock_boot_ns()) {
        refuse_outage(r);
        return;
    }
    if (k == NULL && s->auth->n_asking < ASKING_MAX)
        k = http_key_add(s, hash, id);
    if (k == NULL)
        refuse_outage(r);
    else
        wait_for_answer(r, k, then);
}

/*
 * An address with too many failures may still send a valid key; otherwise clients that share the
 * address (behind a proxy) would be locked out by others. Keys not seen before are looked up for
 * such an address only at a limited rate; wrong keys are told to wait.
 */
static bool
may_try(struct http_server *s, int64_t now_ns)
{
    struct http_auth *a = s->auth;

    if (a->tries_ns > now_ns + TRY_BURST * TRY_EVERY_NS)
        return false;
    a->tries_ns = MAX(a->tries_ns, now_ns) + TRY_EVERY_NS;
    return true;
}

/* id NULL: the client has shown the key itself, and may be guessing. */
static void
authenticate(struct http_request *r, const unsigned char hash[DATA_HASH_BYTES], const char *id,
             http_fn *then)
{
    struct http_server *s      = r->server;
    int64_t             now_ns = il__clock_boot_ns();
    struct http_key    *k      = http_key_find(s->auth, hash);

    if (k != NULL && is_known(k, now_ns)) {
        http_key_touch(k);
        if (now_ns - k->checked_ns >= ASK_AHEAD_NS && now_ns >= k->retry_ns)
            http_key_ask(k);
        decide(r, k, then);
        return;
    }
    int64_t wait_ms = id != NULL || (k != NULL && k->caller != NULL) ? 0 : address_wait_ms(r);
    if (wait_ms > 0 && !may_try(s, now_ns))
        refuse_address(r, wait_ms);
    else
        look_up(r, k, hash, id, then);
}

void
http_auth_key(struct http_request *r, const char *key, http_fn *then)
{
    unsigned char hash[DATA_HASH_BYTES];

    if (!is_key(key)) {
        refuse_key(r);
        return;
    }
    http_conn_key_hash(r->server, r->c, key, hash);
    authenticate(r, hash, NULL, then);
}

void
http_auth_id(struct http_request *r, const char *key_id, http_fn *then)
{
    char          text[sizeof "id:" + DATA_ID_BYTES]; /* (no API key looks like that) */
    unsigned char hash[DATA_HASH_BYTES];

    (void)snprintf(text, sizeof text, "id:%s", key_id); /* ids are shorter */
    http_conn_key_hash(r->server, r->c, text, hash);
    authenticate(r, hash, key_id, then);
}

void
http_auth(struct http_request *r, http_fn *then)
{
    if (r->is_ui) {
        http_ui_auth(r, then);
        return;
    }
    const char *text = shown_key(r);
    if (text != NULL)
        http_auth_key(r, text, then);
}

void
http_auth_end(struct http_request *r)
{
    struct http_key_waiter *w = TAKE(r->key_waiter);

    if (w != NULL)
        CHECK(leave_list(&w->key->waiting, w) || leave_list(&w->key->told, w));
    http_limits_end(r);
    if (r->caller == NULL)
        return;
    const struct http_held_caller *held = const_container_of(r->caller, struct http_held_caller, c);
    r->caller                           = NULL;
    struct http_held_caller *owned;
    /* requests must not change it; its lifetime is managed here */
    memcpy(&owned, &held, sizeof owned);
    http_caller_unref(owned);
}

bool
http_auth_alive(struct http_request *r)
{
    const struct http_held_caller *held = const_container_of(r->caller, struct http_held_caller, c);
    struct http_key               *k    = http_key_find(r->server->auth, held->hash);
    int64_t                        now_ns = il__clock_boot_ns();

    if (r->session_ends_ms != 0 && r->session_ends_ms <= il__clock_wall_ms())
        return false;
    if (k == NULL)
        k = http_key_add(r->server, held->hash, held->by_id ? held->c.key_id : NULL);
    if (k == NULL)
        return true; /* out of memory; the next lookup may succeed */
    if (now_ns - k->checked_ns >= ASK_AHEAD_NS && now_ns >= k->retry_ns)
        http_key_ask(k);
    if (k->checked_ns == 0)
        return true;
    return is_good(k) && http_caller_same(&k->caller->c, &held->c) &&
           now_ns - k->checked_ns < OUTAGE_NS;
}

void
http_auth_forget(struct http_server *s)
{
    s->auth->epoch++;
    for (size_t i = 0; i < s->auth->map.size; i++) {
        struct http_key *k = s->auth->map.slots[i].item;
        if (k != NULL)
            k->checked_ns = 0;
    }
}
