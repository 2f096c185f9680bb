/* refusal_report.c: reports refusals to the store. See refusal_report.h. */
#include "http/refusal_report.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/parse.h"
#include "http/server.h"
#include "http/server_ops.h"

#define REPORT_MAX 128                            /* in one report */
#define REPORT_NS (INT64_C(1000) * IL__NS_PER_MS) /* between two of them */
#define NAME_BYTES_MAX 200                        /* of a host, a user or a command of a caller */
#define CALLER_BYTES_MAX ((size_t)8 * NAME_BYTES_MAX)

struct refusal {
    struct refusal *next; /* in the order of the first */
    uint64_t        hash;
    int64_t         first_ns, last_ns;
    int64_t         held_ms; /* of the conflicting lease, when it was refused last; 0 = unknown */
    uint64_t        fence;
    uint64_t        attempt; /* hash of the holder that was refused last */
    uint32_t        count;
    bool            skips;
    char           *holder, *other;        /* of that lease; owned, may be NULL */
    const char     *tenant, *key, *caller; /* behind the struct */
};

struct report {
    struct http_server_call own;
    struct http_refusals   *all;
    size_t                  n;
    struct refusal         *items[REPORT_MAX];
    il_op                   ops[REPORT_MAX];
};

struct http_refusals {
    struct il__map  map; /* by tenant, key and caller */
    struct refusal *first, *last;
    struct report  *report;  /* the one in progress, or NULL */
    int64_t         next_ns; /* when the next one may begin */
};

/* ---- who was refused ------------------------------------------------------------------------- */

static void
add_name(json_t *to, const char *name, const char *text)
{
    if (text != NULL && text[0] != '\0') /* out of memory: it is left out */
        (void)json_object_set_new(to, name, json_stringn(text, il__utf8_cut(text, NAME_BYTES_MAX)));
}

/* What stays the same from one attempt of a caller to the next: no process id. */
static void
add_caller(struct il__buf *b, const struct http_request *r, const il_op *op)
{
    bool        is_run = op->type == IL_OP_RUN_START;
    const char *meta   = is_run ? op->in.run.meta : op->in.lock.meta;
    json_t     *given  = meta != NULL ? json_loads(meta, 0, NULL) : NULL;
    json_t     *caller = json_object();

    static const char *const names[] = { "host", "user", "command" };
    for (size_t i = 0; caller != NULL && i < ARRAY_LEN(names); i++)
        add_name(caller, names[i], json_string_value(json_object_get(given, names[i])));
    if (caller != NULL && is_run) {
        add_name(caller, "trigger", op->in.run.trigger);
        add_name(caller, "by", op->in.run.by);
    }
    if (caller != NULL)
        add_name(caller, r->caller != NULL ? "api_key" : "peer",
                 r->caller != NULL ? r->caller->key_id : r->peer);
    char *text = caller != NULL ? json_dumps(caller, JSON_COMPACT) : NULL;
    il__buf_adds(b, text != NULL ? text : "");
    free(text);
    json_decref(caller);
    json_decref(given);
}

/* ---- counting -------------------------------------------------------------------------------- */

static struct refusal *
find(const struct http_refusals *all, uint64_t hash, const char *tenant, const char *key,
     const char *caller)
{
    size_t          i = il__map_start(&all->map, hash);
    struct refusal *e;

    for (; (e = il__map_next(&all->map, hash, &i)) != NULL; i++) {
        if (strcmp(e->key, key) == 0 && strcmp(e->caller, caller) == 0 &&
            strcmp(e->tenant, tenant) == 0)
            break;
    }
    return e;
}

static void
refusal_free(struct refusal *e)
{
    il__free(e->holder);
    il__free(e->other);
    il__free(e);
}

/* NULL: there are too many, or no memory. */
static struct refusal *
add(struct http_refusals *all, uint64_t hash, const char *tenant, const char *key,
    const char *caller)
{
    size_t n[3] = { strlen(tenant) + 1, strlen(key) + 1, strlen(caller) + 1 };

    if (all->map.n >= HTTP_REFUSALS_MAX || !il__map_reserve(&all->map))
        return NULL;
    struct refusal *e = il__calloc(1, sizeof *e + n[0] + n[1] + n[2]);
    if (e == NULL)
        return NULL;
    char *at    = (char *)(e + 1);
    e->tenant   = il__put(&at, tenant, n[0]);
    e->key      = il__put(&at, key, n[1]);
    e->caller   = il__put(&at, caller, n[2]);
    e->hash     = hash;
    e->first_ns = il__clock_boot_ns();
    il__map_add(&all->map, hash, e);
    *(all->last != NULL ? &all->last->next : &all->first) = e;
    all->last                                             = e;
    return e;
}

static struct refusal *
take_first(struct http_refusals *all)
{
    struct refusal *e = all->first;

    il__map_remove(&all->map, e->hash, e);
    all->first = e->next;
    if (all->first == NULL)
        all->last = NULL;
    return e;
}

static void
set_text(char **to, const char *text)
{
    if (text == NULL || (*to != NULL && strcmp(*to, text) == 0))
        return;
    il__free(*to);
    *to = il__strdup(text);
}

/* The holder of the conflicting lease now. */
static void
note_holder(struct refusal *e, const il_op *op)
{
    const il_run_info *run = op->out.n_runs > 0 ? op->out.runs : NULL;

    if (op->out.n_items > 0) {
        set_text(&e->holder, op->out.items->holder);
        set_text(&e->other, op->out.items->meta);
        e->fence   = op->out.items->fence;
        e->held_ms = MIN(MAX(op->out.items->age_ms, 1), IL_DELAY_MS_MAX);
    } else if (op->type == IL_OP_RUN_START && run != NULL) {
        set_text(&e->holder, run->holder);
        set_text(&e->other, run->meta);
        e->fence = run->fence;
    }
}

void
http_refused(struct http_request *r, const char *tenant, const il_op *op)
{
    struct http_refusals   *all    = r->server->refusals;
    bool                    skips  = (op->out.flags & IL_OUT_SKIPPED) != 0;
    struct il__buf AUTO_BUF caller = { .n_bytes_max = CALLER_BYTES_MAX };

    if (op->status != IL_HELD && !skips)
        return;
    add_caller(&caller, r, op);
    if (caller.failed || caller.n_bytes == 0)
        return;
    const char     *text = il__buf_str(&caller);
    uint64_t        hash = il__hash_mix(il__hash_bytes(op->key, strlen(op->key)),
                                        il__hash_bytes(text, caller.n_bytes));
    struct refusal *e    = find(all, hash, tenant, op->key, text);
    if (e == NULL && (e = add(all, hash, tenant, op->key, text)) == NULL)
        return;
    uint64_t attempt = op->holder != NULL ? il__hash_bytes(op->holder, strlen(op->holder)) : 0;
    /* A waiter asks once more when its time is up, and is told the same: that counts once. */
    if (attempt == 0 || attempt != e->attempt)
        e->count += e->count < INT32_MAX;
    e->attempt = attempt;
    e->last_ns = il__clock_boot_ns();
    e->skips   = skips;
    note_holder(e, op);
}

/* ---- reporting ------------------------------------------------------------------------------- */

static void
report_free(struct report *report)
{
    for (size_t i = 0; i < report->n; i++) {
        il_op_release(&report->ops[i]);
        refusal_free(report->items[i]);
    }
    il__free(report);
}

/* Whether the store took them or not. */
static void
reported(struct http_server_call *own)
{
    struct report *report = container_of(own, struct report, own);

    report->all->report = NULL;
    report_free(report);
}

static il_op
op_of(const struct refusal *e)
{
    return (il_op){
        .type       = IL_OP_REFUSED,
        .tenant     = e->tenant,
        .key        = e->key,
        .holder     = e->holder != NULL && e->holder[0] != '\0' ? e->holder : NULL,
        .fence      = e->fence,
        .in.refused = { .meta    = e->caller,
                        .other   = e->other,
                        .reason  = e->skips ? "skipped" : NULL,
                        .count   = e->count,
                        .span_ms = (e->last_ns - e->first_ns) / IL__NS_PER_MS,
                        .held_ms = e->held_ms },
    };
}

void
http_refusals_tick(struct http_server *s, int64_t now_ns)
{
    struct http_refusals *all    = s->refusals;
    struct report        *report = NULL;

    if (all->report != NULL || all->first == NULL || now_ns < all->next_ns ||
        (report = il__calloc(1, sizeof *report)) == NULL)
        return;
    all->next_ns = now_ns + REPORT_NS;
    report->all  = all;
    for (; report->n < REPORT_MAX && all->first != NULL; report->n++) {
        report->items[report->n] = take_first(all);
        report->ops[report->n]   = op_of(report->items[report->n]);
    }
    all->report = report;
    if (http_server_apply(s, &report->own, report->ops, report->n, reported))
        return;
    all->report = NULL; /* the server is shutting down */
    report_free(report);
}

il_status
http_refusals_open(struct http_server *s, il_error *reterr)
{
    s->refusals = il__calloc(1, sizeof *s->refusals);
    if (s->refusals == NULL)
        return il__error_nomem(reterr);
    return IL_OK;
}

void
http_refusals_close(struct http_server *s)
{
    struct http_refusals *all = TAKE(s->refusals);

    if (all == NULL)
        return;
    while (all->first != NULL)
        refusal_free(take_first(all));
    if (all->report != NULL)
        report_free(all->report);
    il__map_release(&all->map);
    il__free(all);
}
