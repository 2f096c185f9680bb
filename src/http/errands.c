/* errands.c: the errand thread, and errands of a request. See errands.h. */
#include "http/errands.h"

#include "http/pool.h"
#include "http/server.h"
#include "http/threads.h"

il_status
http_errands_open(struct http_server *s, il_error *reterr)
{
    return http_threads_open(s, 1, &s->errands, reterr);
}

void
http_errands_stop(struct http_server *s)
{
    http_threads_stop(s->errands);
}

void
http_errands_close(struct http_server *s)
{
    http_threads_close(TAKE(s->errands));
}

static void
bring_back(struct http_item *item)
{
    struct http_job *job = container_of(item, struct http_job, item);

    job->then(job);
}

void
http_errand_send(struct http_server *s, struct http_job *job)
{
    job->item.fn = bring_back;
    http_threads_give(s->errands, job);
}

/* ---- errands of a request -------------------------------------------------------------------- */

static void
errand_work(struct http_job *job)
{
    struct http_request *r = container_of(job, struct http_request, job);

    r->work(r);
    if (r->pooled) /* what it has registered may have been on its stack */
        http_unbind_deadline(r);
}

static void
errand_then(struct http_job *job)
{
    struct http_request *r = container_of(job, struct http_request, job);

    r->in_errand     = false;
    r->pooled        = false;
    r->disconnect_fn = NULL; /* its work is done */
    if (r->left)
        http_request_end(r);
    else if (!http_request_is_cut_off(r))
        r->errand_then(r);
}

void
http_errand_set_up(struct http_request *r, http_fn *work, http_fn *then)
{
    CHECK(!r->in_errand && !r->delayed);
    r->in_errand   = true;
    r->work        = work;
    r->errand_then = then;
    r->job         = (struct http_job){
                .work   = errand_work,
                .then   = errand_then,
                .tenant = r->caller != NULL ? r->caller->tenant : NULL,
    };
}

void
http_errand(struct http_request *r, http_fn *work, http_fn *then)
{
    http_errand_set_up(r, work, then);
    http_errand_send(r->server, &r->job);
}

void
http_errand_slow(struct http_request *r, http_fn *work, http_fn *then)
{
    http_errand_set_up(r, work, then);
    http_pool_send(r->server, &r->job);
}

void
http_errand_hold(struct http_request *r, http_fn *then)
{
    http_errand_set_up(r, NULL, then);
}

void
http_errand_resume(struct http_request *r)
{
    errand_then(&r->job);
}
