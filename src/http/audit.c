/*
 * audit.c: writes administrative actions to the data store. See audit.h.
 */
#include "http/audit.h"

#include "base/clock.h"
#include "base/error.h"
#include "http/errands.h"
#include "http/log.h"
#include "http/metrics.h"
#include "http/server.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)
#define KEEP_MS (365 * DAY_MS)
#define PURGE_EVERY_NS (INT64_C(3600) * 1000 * IL__NS_PER_MS)
#define PURGE_AGAIN_NS (INT64_C(1000) * IL__NS_PER_MS) /* when one call did not purge everything */
#define PURGE_ROWS 1000

struct http_audit {
    struct http_server *server;
    struct http_job     purge;
    bool                purging;
    int64_t             purge_at_ns, older_than_ms;
    uint64_t            n_purged;
    struct self        *selves; /* writes in progress, so that close can free them */
};

il_status
http_audit_open(struct http_server *s, il_error *reterr)
{
    s->audit = il__calloc(1, sizeof *s->audit);
    if (s->audit == NULL)
        return il__error_nomem(reterr);
    s->audit->server = s;
    return IL_OK;
}

/* ---- rows of a request ----------------------------------------------------------------------- */

/* A write in progress, in the request's memory. Its `state` replaces the handler's meanwhile. */
struct entry {
    struct il__data_action *actions;
    size_t                  n;
    http_fn                *then;
    void                   *state; /* the handler's */
    il_status               status;
    il_error                error;
};

static void
write_rows(struct http_request *r)
{
    struct entry *e = r->state;

    e->status = il__data_audit_add(r->server->data, e->actions, e->n, &e->error);
}

static void
log_action(struct http_server *s, enum http_event event, const char *request_id,
           const struct il__data_action *a, const il_error *err)
{
    if (!http_log_begin(s, event))
        return;
    http_log_text(s, "request_id", request_id);
    http_log_text(s, "tenant_id", a->tenant);
    http_log_text(s, "who", a->who);
    http_log_text(s, "action", a->action);
    http_log_text(s, "what", a->what);
    http_log_text(s, "reason", a->reason);
    http_log_text(s, "outcome", a->outcome);
    if (err != NULL)
        http_log_text(s, "message", err->message);
    http_log_end(s);
}

static void
count_rows(struct http_server *s, const char *request_id, const struct il__data_action *actions,
           size_t n, il_status st, const il_error *err)
{
    http_count(s, st == IL_OK ? HTTP_COUNT_audit_actions : HTTP_COUNT_audit_failures, (int64_t)n);
    for (size_t i = 0; i < n; i++)
        log_action(s, st == IL_OK ? HTTP_EVENT_audit_action : HTTP_EVENT_audit_failed, request_id,
                   &actions[i], st == IL_OK ? NULL : err);
}

static void
rows_written(struct http_request *r)
{
    struct entry *e = r->state;

    count_rows(r->server, r->id, e->actions, e->n, e->status, &e->error);
    r->state = e->state;
    e->then(r);
}

/* Out of memory. The actions have happened: the log is the only place left to report them. */
static void
not_written(struct http_request *r, const struct il__data_action *actions, size_t n)
{
    il_error err = { .status = IL_NOMEM, .message = "out of memory" };

    count_rows(r->server, r->id, actions, n, IL_NOMEM, &err);
}

static void
start(struct http_request *r, struct il__data_action *actions, size_t n, http_fn *then)
{
    struct entry *e = http_alloc(r, sizeof *e);

    if (e == NULL) {
        not_written(r, actions, n);
        then(r);
        return;
    }
    *e       = (struct entry){ .actions = actions, .n = n, .then = then, .state = r->state };
    r->state = e;
    http_errand(r, write_rows, rows_written);
}

static const char *
who_of(const struct http_request *r)
{
    return r->caller != NULL ? r->caller->key_id : "nobody";
}

static struct il__data_action
row_of(const struct http_request *r, const il_op *op)
{
    il_status st = r->call.status != IL_OK ? r->call.status : op->status;

    return il__data_action_of(op, st, r->caller != NULL ? r->caller->tenant : "default", who_of(r));
}

void
http_audit_ops(struct http_request *r, http_fn *then)
{
    size_t n = 0;

#ifndef IL_MUTANT_action_not_recorded
    for (size_t i = 0; i < r->call.n; i++)
        n += il__data_action_name(&r->call.ops[i]) != NULL;
#endif
    if (n == 0) {
        then(r);
        return;
    }
    struct il__data_action *actions = http_alloc(r, n * sizeof *actions);
    size_t                  at      = 0;
    for (size_t i = 0; i < r->call.n; i++) {
        const il_op *op = &r->call.ops[i];
        if (il__data_action_name(op) == NULL)
            continue;
        struct il__data_action row = row_of(r, op);
        if (actions != NULL)
            actions[at++] = row;
        else
            not_written(r, &row, 1);
    }
    if (actions != NULL)
        start(r, actions, n, then);
    else
        then(r);
}

void
http_audit(struct http_request *r, const struct http_action *action, http_fn *then)
{
    struct il__data_action  row  = { .at_ms = il__clock_wall_ms(),
                                     .tenant =
                                       action->tenant != NULL ? action->tenant : r->caller->tenant,
                                     .who     = who_of(r),
                                     .action  = action->action,
                                     .what    = action->what,
                                     .reason  = action->reason,
                                     .outcome = action->outcome,
                                     .details = action->details };
    struct il__data_action *copy = http_alloc(r, sizeof *copy);

    if (copy == NULL) {
        not_written(r, &row, 1);
        then(r);
        return;
    }
    *copy = row;
    start(r, copy, 1, then);
}

/* ---- actions of the server itself ------------------------------------------------------------ */

struct self {
    struct http_job        job;
    struct http_server    *server;
    struct self           *next;
    struct il__data_action action; /* strings follow the struct */
    il_status              status;
    il_error               error;
};

static void
write_self(struct http_job *job)
{
    struct self *e = container_of(job, struct self, job);

    e->status = il__data_audit_add(e->server->data, &e->action, 1, &e->error);
}

static void
self_written(struct http_job *job)
{
    struct self  *e  = container_of(job, struct self, job);
    struct self **at = &e->server->audit->selves;

    count_rows(e->server, NULL, &e->action, 1, e->status, &e->error);
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    il__free(e);
}

void
http_audit_self(struct http_server *s, const struct http_action *action)
{
    const char  *texts[5] = { action->action, action->what, action->reason, action->outcome,
                              action->details };
    size_t       n_bytes  = 0;
    struct self *e;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        n_bytes += (texts[i] != NULL ? strlen(texts[i]) : 0) + 1;
    e = il__calloc(1, sizeof *e + n_bytes);
    if (e == NULL)
        return;
    char *at = (char *)(e + 1);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        texts[i] = il__put(&at, texts[i] != NULL ? texts[i] : "",
                           (texts[i] != NULL ? strlen(texts[i]) : 0) + 1);
    e->server        = s;
    e->action        = (struct il__data_action){ .at_ms   = il__clock_wall_ms(),
                                                 .tenant  = "default",
                                                 .who     = "server",
                                                 .action  = texts[0],
                                                 .what    = texts[1],
                                                 .reason  = texts[2],
                                                 .outcome = texts[3],
                                                 .details = texts[4] };
    e->job           = (struct http_job){ .work = write_self, .then = self_written };
    e->next          = s->audit->selves;
    s->audit->selves = e;
    http_errand_send(s, &e->job);
}

/* ---- purging --------------------------------------------------------------------------------- */

static void
purge(struct http_job *job)
{
    struct http_audit *a = container_of(job, struct http_audit, purge);

    a->n_purged = 0;
    IGNORE(il__data_audit_purge(a->server->data, a->older_than_ms, &a->n_purged, NULL) !=
           IL_OK); /* again in an hour */
}

static void
purged(struct http_job *job)
{
    struct http_audit *a = container_of(job, struct http_audit, purge);

    a->purging = false;
    a->purge_at_ns =
        il__clock_boot_ns() + (a->n_purged >= PURGE_ROWS ? PURGE_AGAIN_NS : PURGE_EVERY_NS);
}

void
http_audit_tick(struct http_server *s, int64_t now_ns)
{
    struct http_audit *a       = s->audit;
    int64_t            keep_ms = s->o->audit_keep_ms != 0 ? s->o->audit_keep_ms : KEEP_MS;

    if (a->purging || keep_ms < 0 || now_ns < a->purge_at_ns)
        return;
    a->purging       = true;
    a->older_than_ms = il__clock_wall_ms() - keep_ms;
    a->purge         = (struct http_job){ .work = purge, .then = purged };
    http_errand_send(s, &a->purge);
}

void
http_audit_close(struct http_server *s)
{
    if (s->audit == NULL)
        return;
    for (struct self *e = s->audit->selves, *next; e != NULL; e = next) {
        next = e->next;
        il__free(e);
    }
    il__free(s->audit);
    s->audit = NULL;
}
