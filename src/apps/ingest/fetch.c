/*
 * fetch.c: gets pages; see fetch.h. An attempt is a request under a permit of its host; the rules
 * for another attempt are in next_attempt().
 */
#include "apps/ingest/fetch.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "apps/ingest/permit.h"
#include "apps/ingest/robots.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"

#define CONNECT_MS 5000
#define READ_MS 20000
#define TOTAL_MS 40000
#define BACKOFF_MS 500
#define REDIRECTS_MAX 3
#define AGENT FETCH_AGENT "/" IL_VERSION
#define HOSTS_MAX 64 /* whose robots.txt is remembered */
#define ROBOTS_NS (INT64_C(3600) * 1000 * IL__NS_PER_MS)

_Static_assert(TOTAL_MS + FETCH_DELAY_MS_MAX < PERMIT_TTL_MS, "a permit is not renewed");

struct host {
    char          name[ADDRESS_HOST_BYTES]; /* "" = unused */
    struct robots robots;
    int64_t       until_ns;
};

struct fetcher {
    il                  *h;
    struct fetch_options o;
    char                 base[ADDRESS_BASE_BYTES_MAX + 1];
    struct net_headers   headers;
    struct il__mutex     mutex; /* protects the hosts */
    struct host          hosts[HOSTS_MAX];
    size_t               next_host; /* which is replaced when all are in use */
};

struct fetch_conn {
    struct fetcher    *f;
    struct net_conn   *net;
    struct fetch_calls calls;
    struct il__mutex   mutex;
    pthread_cond_t     woken;
};

/* ---- the fetcher ----------------------------------------------------------------------------- */

il_status
il__fetcher_open(il *h, const struct fetch_options *o, struct fetcher **ret, il_error *reterr)
{
    struct fetcher *f = il__calloc(1, sizeof *f);

    CHECK(o->permits >= 1 && o->permits <= FETCH_PERMITS_MAX);
    CHECK(o->delay_ms >= 0 && o->delay_ms <= FETCH_DELAY_MS_MAX);
    if (f == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for fetching pages");
    f->h            = h;
    f->o            = *o;
    f->o.connect_ms = o->connect_ms != 0 ? o->connect_ms : CONNECT_MS;
    f->o.read_ms    = o->read_ms != 0 ? o->read_ms : READ_MS;
    f->o.total_ms   = o->total_ms != 0 ? o->total_ms : TOTAL_MS;
    f->o.backoff_ms = o->backoff_ms != 0 ? o->backoff_ms : BACKOFF_MS;
    (void)snprintf(f->base, sizeof f->base, "%s", o->base);
    f->o.base = f->base;
    il__mutex_init(&f->mutex, IL__MUTEX_fetcher);
    il_status st =
        il__net_headers_add(&f->headers, "User-Agent", AGENT, strlen(AGENT), reterr); /* loads it */
    if (st != IL_OK) {
        il__fetcher_close(f);
        return st;
    }
    *ret = f;
    return IL_OK;
}

void
il__fetcher_close(struct fetcher *f)
{
    if (f == NULL)
        return;
    for (size_t i = 0; i < HOSTS_MAX; i++)
        il__robots_release(&f->hosts[i].robots);
    il__net_headers_release(&f->headers);
    il__mutex_destroy(&f->mutex);
    il__free(f);
}

il_status
il__fetch_address(const struct fetcher *f, const struct fetch_what *what, struct address *ret,
                  il_error *reterr)
{
    return il__address_of(f->base, what->kind, what->slug, what->id, ret, reterr);
}

/* ---- connections ----------------------------------------------------------------------------- */

il_status
il__fetch_open(struct fetcher *f, const struct fetch_calls *calls, struct fetch_conn **ret,
               il_error *reterr)
{
    static const struct net_options options;
    struct fetch_conn              *c = il__calloc(1, sizeof *c);

    if (c == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for fetching pages");
    *c = (struct fetch_conn){ .f = f, .calls = *calls };
    il__mutex_init(&c->mutex, IL__MUTEX_fetch_conn);
    il__cond_init(&c->woken);
    il_status st = il__net_open(&options, &c->net, reterr);
    if (st != IL_OK) {
        il__fetch_close(c);
        return st;
    }
    *ret = c;
    return IL_OK;
}

void
il__fetch_close(struct fetch_conn *c)
{
    if (c == NULL)
        return;
    il__net_close(c->net);
    CHECK(pthread_cond_destroy(&c->woken) == 0);
    il__mutex_destroy(&c->mutex);
    il__free(c);
}

void
il__fetch_wake(struct fetch_conn *c)
{
    il__mutex_lock(&c->mutex);
    CHECK(pthread_cond_broadcast(&c->woken) == 0);
    il__mutex_unlock(&c->mutex);
    il__net_wake(c->net);
}

static bool
should_stop(void *cookie)
{
    const struct fetch_conn *c = cookie;

    return c->calls.should_stop(c->calls.cookie);
}

/* A stop that comes before the wait is seen by the first look, since it is asked for under the
 * mutex that il__fetch_wake() takes. */
static bool
fetch_sleep(struct fetch_conn *c, int64_t ms)
{
    int64_t until_ns = il__clock_boot_ns() + ms * IL__NS_PER_MS;
    int64_t left_ns  = ms * IL__NS_PER_MS;

    il__mutex_lock(&c->mutex);
    bool stop = c->calls.should_stop(c->calls.cookie);
    while (!stop && left_ns > 0) {
        (void)il__cond_wait(&c->woken, &c->mutex, left_ns);
        stop    = c->calls.should_stop(c->calls.cookie);
        left_ns = until_ns - il__clock_boot_ns();
    }
    il__mutex_unlock(&c->mutex);
    return !stop;
}

void
il__fetched_release(struct fetched *f)
{
    il__buf_release(&f->body);
}

/* ---- one request ----------------------------------------------------------------------------- */

struct taking {
    struct fetch_conn *c;
    struct il__buf    *body;
};

static bool
taking_stop(void *cookie)
{
    return should_stop(((struct taking *)cookie)->c);
}

static bool
take(void *cookie, const void *data, size_t n_bytes)
{
    struct taking *t = cookie;

    il__buf_add(t->body, data, n_bytes);
    return !t->body->failed;
}

static bool
permit_stop(void *cookie)
{
    const struct fetch_conn *c = cookie;

    if (c->calls.waits != NULL)
        c->calls.waits(c->calls.cookie);
    return should_stop(cookie);
}

/* Send the request under a permit, which is kept for a while after the response. */
static il_status
send_once(struct fetch_conn *c, const struct address *at, const struct net_headers *headers,
          struct il__buf *body, struct net_answer *answer, il_error *reterr)
{
    const struct fetch_options *o = &c->f->o;
    struct taking               t = { c, body };
    struct permit               permit;
    char                        key[sizeof FETCH_KEY + ADDRESS_HOST_BYTES];
    struct net_request          r = { .method         = "GET",
                                      .url            = at->url,
                                      .headers        = headers,
                                      .connect_ms     = o->connect_ms,
                                      .idle_ms        = o->read_ms,
                                      .total_ms       = o->total_ms,
                                      .body_bytes_max = LIVERC_BODY_BYTES_MAX,
                                      .redirects_max  = REDIRECTS_MAX,
                                      .should_stop    = taking_stop,
                                      .take           = take,
                                      .cookie         = &t };

    (void)snprintf(key, sizeof key, FETCH_KEY "%s", at->host);
    il__buf_clear(body);
    il_status st = il__permit_take(&permit, c->f->h, key, o->permits, permit_stop, c, reterr);
    if (st != IL_OK) {
        *answer = (struct net_answer){ .status = -1 }; /* the site was not asked */
        return st;
    }
    st = il__net_send(c->net, &r, answer, reterr);
    IGNORE(fetch_sleep(c, o->delay_ms)); /* cut short if it is to stop: then no request follows */
    il__permit_release(&permit);
    return st;
}

/* ---- several attempts ------------------------------------------------------------------------ */

/* How long to wait before another attempt; -1: no more attempts. */
static int64_t
next_attempt(const struct fetch_conn *c, unsigned n, il_status st, const struct net_answer *a)
{
    int64_t pause_ms = c->f->o.backoff_ms << (n - 1);
    bool    later    = st == IL_OK ? a->status >= 500 || a->status == 429
                                   : (st == IL_STORE || st == IL_TIMEOUT) && a->status != -1;

    if (!later || n >= FETCH_ATTEMPTS || a->retry_after_s * 1000 > FETCH_RETRY_AFTER_MS_MAX)
        return -1;
    if (st == IL_OK && a->retry_after_s > 0)
        return a->retry_after_s * 1000;
    return pause_ms + il__clock_boot_ns() / 1000 % (pause_ms / 2 + 1); /* clients do not march */
}

static il_status
send_often(struct fetch_conn *c, const struct address *at, const struct net_headers *headers,
           struct fetched *ret, struct net_answer *answer, il_error *reterr)
{
    for (;;) {
        il_status st = send_once(c, at, headers, &ret->body, answer, reterr);
        ret->n_attempts++;
        int64_t pause_ms = next_attempt(c, ret->n_attempts, st, answer);
        if (pause_ms < 0)
            return st;
        if (!fetch_sleep(c, pause_ms))
            return il__error_set(reterr, IL_CANCELLED, "asked to stop");
    }
}

/* The site has failed: say so, with the address. It has no secrets: see il__address_check(). */
static il_status
fail(struct fetched *ret, const char *text, il_error *reterr)
{
    char why[250];

    (void)snprintf(why, sizeof why, "%.249s", text); /* it may be that of *reterr */
    ret->code = LIVERC_CONNECTOR_HTTP_ERROR;
    return il__error_set(reterr, IL_INVAL, "GET %.220s: %s%s", ret->address.url, why,
                         ret->n_attempts > 1 ? " (after retries)" : "");
}

/* Failures that are ours, not the site's. */
static bool
is_own(il_status st, const struct net_answer *a)
{
    return st == IL_CANCELLED || st == IL_NOMEM || a->status == -1;
}

/* ---- robots.txt ------------------------------------------------------------------------------ */

/* Is it known what the host allows? */
static bool
look_up(struct fetcher *f, const struct address *at, bool *ret_allow)
{
    bool known = false;

    il__mutex_lock(&f->mutex);
    for (size_t i = 0; i < HOSTS_MAX && !known; i++) {
        const struct host *h = &f->hosts[i];
        known                = strcmp(h->name, at->host) == 0 && il__clock_boot_ns() < h->until_ns;
        if (known)
            *ret_allow = il__robots_allow(&h->robots, at->url + at->n_origin);
    }
    il__mutex_unlock(&f->mutex);
    return known;
}

static void
remember(struct fetcher *f, const char *name, struct robots *robots)
{
    size_t i = 0;

    il__mutex_lock(&f->mutex);
    while (i < HOSTS_MAX && f->hosts[i].name[0] != '\0' && strcmp(f->hosts[i].name, name) != 0)
        i++;
    if (i == HOSTS_MAX)
        i = f->next_host++ % HOSTS_MAX;
    struct host *h = &f->hosts[i];
    il__robots_release(&h->robots);
    (void)snprintf(h->name, sizeof h->name, "%s", name);
    h->robots   = *robots;
    h->until_ns = il__clock_boot_ns() + ROBOTS_NS;
    il__mutex_unlock(&f->mutex);
}

/* Read the robots.txt of the host. Two threads may do so at once; that is harmless. */
static il_status
read_robots(struct fetch_conn *c, struct fetched *ret, il_error *reterr)
{
    struct address    at;
    struct net_answer answer = { .url = "" };
    struct robots     robots = { .n = 0 };

    il__address_robots(&ret->address, &at);
    il_status st = send_often(c, &at, &c->f->headers, ret, &answer, reterr);
    if (st != IL_OK && is_own(st, &answer))
        return st;
    if (st != IL_OK)
        return fail(ret, reterr->message, reterr);
    bool found = answer.status >= 200 && answer.status < 300;
    if (!found && (answer.status < 400 || answer.status >= 500 || answer.status == 429))
        return fail(ret, "cannot read robots.txt of the host", reterr);
    if (found &&
        !il__robots_parse(&robots, il__buf_str(&ret->body), ret->body.n_bytes, FETCH_AGENT))
        return il__error_set(reterr, IL_NOMEM, "out of memory for robots.txt");
    remember(c->f, ret->address.host, &robots);
    return IL_OK;
}

static il_status
ask_robots(struct fetch_conn *c, struct fetched *ret, il_error *reterr)
{
    bool allow = false;

    while (!look_up(c->f, &ret->address, &allow)) {
        ret->n_attempts = 0;
        il_status st    = read_robots(c, ret, reterr);
        if (st != IL_OK)
            return st;
    }
    ret->n_attempts = 0;
    return allow ? IL_OK : fail(ret, "disallowed by robots.txt", reterr);
}

/* ---- a page ---------------------------------------------------------------------------------- */

static bool
is_page(const char *type)
{
    static const char *const types[] = { "text/html", "application/xhtml+xml", "text/plain" };

    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        size_t n = strlen(types[i]);
        if (strncasecmp(type, types[i], n) == 0 && strchr("; \t", type[n]) != NULL)
            return true;
    }
    return type[0] == '\0';
}

static il_status
judge(struct fetched *ret, bool conditional, const struct net_answer *a, il_error *reterr)
{
    char text[160];

    if (a->status == 304 && conditional) {
        ret->unchanged = true;
        return IL_OK;
    }
    if (a->status == 200 && is_page(a->type))
        return IL_OK;
    if (a->status == 200)
        (void)snprintf(text, sizeof text, "expected an HTML page, got %.100s", a->type);
    else
        (void)snprintf(text, sizeof text, "HTTP status %ld", a->status);
    return fail(ret, text, reterr);
}

static il_status
get_page(struct fetch_conn *c, const struct fetch_what *what, struct fetched *ret, il_error *reterr)
{
    struct net_headers AUTO(il__net_headers_release) headers = { 0 };
    struct net_answer  answer                                = { .url = "" };
    const char        *etag = what->etag, *modified = what->modified;
    bool               conditional =
        (etag != NULL && etag[0] != '\0') || (modified != NULL && modified[0] != '\0');

    il_status st = il__net_headers_add(&headers, "User-Agent", AGENT, strlen(AGENT), reterr);
    if (st == IL_OK)
        st = il__net_headers_unless(&headers, etag, modified, reterr);
    if (st != IL_OK)
        return st;
    st = send_often(c, &ret->address, &headers, ret, &answer, reterr);
    if (st != IL_OK && is_own(st, &answer))
        return st;
    if (st != IL_OK)
        return fail(ret, reterr->message, reterr);
    (void)snprintf(ret->etag, sizeof ret->etag, "%s", answer.etag);
    (void)snprintf(ret->modified, sizeof ret->modified, "%s", answer.modified);
    return judge(ret, conditional, &answer, reterr);
}

il_status
il__fetch(struct fetch_conn *c, const struct fetch_what *what, struct fetched *ret,
          il_error *reterr)
{
    il_error  own = { .message = "" };
    il_error *err = reterr != NULL ? reterr : &own;

    *ret = (struct fetched){ .code = LIVERC_OK };
    il__buf_init(&ret->body, LIVERC_BODY_BYTES_MAX);
    il_status st = il__fetch_address(c->f, what, &ret->address, err);
    if (st == IL_INVAL)
        ret->code = LIVERC_VALIDATION_ERROR;
    if (st == IL_OK)
        st = ask_robots(c, ret, err);
    return st == IL_OK ? get_page(c, what, ret, err) : st;
}
