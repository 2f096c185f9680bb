/* storage.c: measures the bytes that a tenant stores. See storage.h. */
#include "http/storage.h"

#include <stdio.h>

#include "base/clock.h"
#include "data/history.h"
#include "http/errands.h"
#include "http/route.h"
#include "http/server.h"
#include "http/server_ops.h"

#define MEASURE_EVERY_NS (INT64_C(10000) * IL__NS_PER_MS)
#define MEASURE_SOON_NS (INT64_C(1000) * IL__NS_PER_MS) /* refused ops may fit by now */
#define MEASURE_SHARE 20
/* rows of a page: small, since key lookups share the data store's only connection */
#define HISTORY_RUNS 100

/* A measurement in progress. */
struct http_measure {
    struct http_server_call own;
    struct http_job         job;
    struct http_server     *server;
    struct http_tenant     *tenant; /* a reference: storage is part of it */
    struct http_storage    *storage;
    il_op                   op;
    char                    name[IL_TENANT_BYTES_MAX + 1];
    char                    cursor[IL_KEY_BYTES_MAX + 32];
    char                    after[IL_ID_BYTES_MAX + 1];
    struct il__data_usage   history;
    il_status               status;
    il_error                error;
    int64_t                 max, sum, since, began_ns;
};

void
http_storage_release(struct http_storage *st)
{
    if (st->measure != NULL)
        il_op_release(&st->measure->op);
    il__free(st->measure);
    st->measure = NULL;
}

/* ---- bytes added by ops ---------------------------------------------------------------------- */

static int64_t
text_bytes(const char *text)
{
    return text != NULL ? (int64_t)strlen(text) : 0;
}

int64_t
http_storage_by(const il_op *op, bool answered)
{
    if (answered && (op->status != IL_OK || (op->out.flags & IL_OUT_RENEWED) != 0))
        return 0;
    switch (op->type) {
    case IL_OP_CACHE_FILL:
        return HTTP_ROW_BYTES + text_bytes(op->key) + (int64_t)op->in.cache.value_bytes;
    case IL_OP_ONCE_BEGIN:
        return HTTP_ROW_BYTES + text_bytes(op->key) + text_bytes(op->in.once.meta);
    case IL_OP_ONCE_FINISH:
        return (int64_t)op->in.once.response_bytes;
    case IL_OP_JOB_PUSH:
        return HTTP_ROW_BYTES + text_bytes(op->in.job.id) + (int64_t)op->in.job.data_bytes;
    case IL_OP_JOB_FINISH:
        return (int64_t)op->in.job.data_bytes;
    case IL_OP_RUN_START:
        return HTTP_ROW_BYTES + text_bytes(op->in.run.id) + text_bytes(op->in.run.meta);
    case IL_OP_RUN_STAGE:
    case IL_OP_RUN_FINISH:
        return (int64_t)op->in.run.log_bytes;
#ifndef IL_MUTANT_schedules_not_counted
    case IL_OP_CRON_SET:
        return HTTP_ROW_BYTES + text_bytes(op->in.cron.name) + text_bytes(op->in.cron.schedule) +
               (int64_t)op->in.cron.data_bytes;
#endif
    default:
        return 0;
    }
}

/* An op that ends admitted work is never refused: the work would be done again. */
bool
http_storage_may_refuse(const il_op *op)
{
    switch (op->type) {
    case IL_OP_CACHE_FILL:
    case IL_OP_JOB_PUSH:
    case IL_OP_RUN_START:
    case IL_OP_CRON_SET:
        return true;
    case IL_OP_ONCE_BEGIN:
        return !http_once_reserved(op);
    default:
        return false;
    }
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void
end(struct http_measure *m)
{
    struct http_storage *st     = m->storage;
    int64_t              now_ns = il__clock_boot_ns();

    if (m->status == IL_OK) {
        st->seen = m->sum;
        st->since -= m->since; /* additions meanwhile may count twice, until the next time */
    }
    st->measuring   = false;
    st->measured_ns = now_ns;
    st->took_ns     = now_ns - m->began_ns;
    http_tenant_unref(m->tenant); /* may free it, and m with it */
}

static void
add(struct http_measure *m, uint64_t n_rows, uint64_t n_bytes)
{
    m->sum += (int64_t)(n_rows * HTTP_ROW_BYTES + n_bytes);
}

static void
read_history(struct http_job *job)
{
    struct http_measure *m = container_of(job, struct http_measure, job);

    m->status = il__data_history_usage(m->server->data, m->name, m->after, HISTORY_RUNS,
                                       &m->history, &m->error);
}

static void
history_came(struct http_job *job)
{
    struct http_measure *m = container_of(job, struct http_measure, job);

    if (m->status == IL_OK)
        add(m, m->history.n_rows, m->history.n_bytes);
    if (m->status != IL_OK || m->history.last[0] == '\0' || m->sum > m->max) {
        end(m);
        return;
    }
    memcpy(m->after, m->history.last, sizeof m->after);
    http_errand_send(m->server, &m->job);
}

static void
page_came(struct http_server_call *own)
{
    struct http_measure *m    = container_of(own, struct http_measure, own);
    bool                 more = false;

    m->status = own->call.status == IL_OK ? m->op.status : own->call.status;
    if (m->status == IL_OK) {
        add(m, m->op.out.usage.n_rows, m->op.out.usage.n_bytes);
        more = m->op.out.next != NULL && m->sum <= m->max;
        if (more)
            (void)snprintf(m->cursor, sizeof m->cursor, "%s", m->op.out.next); /* it fits */
    }
    il_op_release(&m->op);
    m->op.in.list.cursor = m->cursor;
    if (more && http_server_apply(m->server, own, &m->op, 1, page_came))
        return;
    if (more || m->status != IL_OK || m->sum > m->max) {
        m->status = more ? IL_CANCELLED : m->status;
        end(m);
        return;
    }
    m->after[0] = '\0';
    m->job      = (struct http_job){ .work = read_history, .then = history_came };
    http_errand_send(m->server, &m->job);
}

void
http_storage_tick(struct http_server *s, struct http_storage *st, const char *tenant, int64_t max,
                  int64_t now_ns)
{
    int64_t pause_ns =
        MAX(st->refused ? MEASURE_SOON_NS : MEASURE_EVERY_NS, MEASURE_SHARE * st->took_ns);

    if (st->measuring || (st->measured_ns != 0 && now_ns - st->measured_ns < pause_ns))
        return;
    if (st->measure == NULL && (st->measure = il__calloc(1, sizeof *st->measure)) == NULL)
        return;
    struct http_measure *m = st->measure;
    m->server              = s;
    m->storage             = st;
    m->max                 = max;
    m->sum                 = 0;
    m->since               = st->since;
    m->began_ns            = now_ns;
    st->refused            = false;
    (void)snprintf(m->name, sizeof m->name, "%s", tenant); /* it fits */
    m->op     = (il_op){ .type    = IL_OP_USAGE,
                         .tenant  = m->name,
                         .in.list = { .limit = IL_PAGE_ITEMS_MAX } };
    m->tenant = http_tenant_ref(s, tenant);
    if (m->tenant == NULL)
        return;
    st->measuring = http_server_apply(s, &m->own, &m->op, 1, page_came);
    if (!st->measuring)
        http_tenant_unref(m->tenant);
}
