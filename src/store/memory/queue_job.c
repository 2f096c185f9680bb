/*
 * queue_job.c: push, heartbeat, finish, fail, snooze, cancel, retry, seal and recovery in the
 * memory engine. The decision tables are in src/core/queue.md.
 *
 * Every change follows the same steps: reserve what it needs, remove the job from the containers of
 * its old state, let the core decide, add it to those of its new state, and wake the waiters.
 */
#include "core/op.h"
#include "store/memory/queue_internal.h"

/* ---- what follows from a change -------------------------------------------------------------- */

/* The parent has ended, so its children may now be purged. */
static void
unkeep_children(struct mem_store *m, struct mem_job *parent)
{
    for (unsigned i = CHILD_COMPLETED; i < N_CHILD_LISTS; i++) {
        struct mem_jobs list = parent->children[i];
        struct mem_job *next;
        for (struct mem_job *c = list.head; c != NULL; c = next) {
            next = c == list.tail ? NULL : c->links[LINK_CHILD].next;
            il__mem_job_leave(m, c);
            il__job_unkeep(&c->row, &c->queue->opts, m->wall_ms);
            il__mem_job_enter(m, c);
        }
    }
}

/* Ends the parent if its time has come. */
static void
end_parent(struct mem_store *m, struct mem_job *p)
{
    struct il__children children = il__mem_job_children(p);
    struct il__job_env  env      = il__mem_job_env(m, p);
    const char         *error;

    if (il__job_ended(p->row.state))
        return;
    il__mem_job_leave(m, p);
    bool ended = il__job_end_parent(&p->row, &env, &children, p->error_room, &error);
    il__mem_job_enter(m, p);
    il__mem_job_error(p, error, NULL);
    if (ended) {
        unkeep_children(m, p);
        il__mem_job_wake(m, p);
    }
}

/* The job has changed: wake those who wait for it or for its old or new state; its parent may
 * end. */
static void
changed(struct mem_store *m, struct mem_job *j)
{
    il_job_state state = j->row.state;

    il__mem_job_wake(m, j);
    if (state == IL_JOB_SCHEDULED || state == IL_JOB_READY || j->group->limited)
        il__mem_queue_wake(m, j->queue);
    if (j->parent != NULL && il__job_ended(state))
        end_parent(m, j->parent);
}

void
il__mem_job_recover(struct mem_store *m, struct mem_job *j)
{
    struct il__job_env env = il__mem_job_env(m, j);

    il__mem_job_leave(m, j);
    const char *error = il__job_recover(&j->row, &env);
    il__mem_job_enter(m, j);
    il__mem_job_error(j, error, NULL);
    changed(m, j);
}

/* The job that an op names, recovered if its claim is dead. */
static struct mem_job *
find_named(struct mem_store *m, const il_op *op)
{
    struct mem_job *j = il__mem_job_find(m, op->tenant, op->in.job.id);

    if (j != NULL && il__job_expired(&j->row, m->now_ms))
        il__mem_job_recover(m, j);
    return j;
}

/* ---- push ------------------------------------------------------------------------------------ */

static void
push_again(struct mem_store *m, il_op *op, const struct mem_job *j)
{
    const il_job_in *in = &op->in.job;

    if (strcmp(j->queue->name, op->key) == 0 && j->payload_bytes == in->data_bytes &&
        (in->data_bytes == 0 || memcmp(j->payload, in->data, in->data_bytes) == 0)) {
        il__mem_answer(m, op, j, IL_OK);
        op->out.flags |= IL_OUT_RENEWED;
        return;
    }
    il__mem_answer(m, op, j, IL_MISMATCH);
    if (op->status == IL_MISMATCH)
        il__op_end(op, IL_MISMATCH, IL__SAY_OTHER_JOB);
}

static void
push_new(struct mem_store *m, il_op *op, struct mem_queue *q, struct mem_job *parent)
{
    struct mem_job *j = il__mem_job_new(m, op, q);
    struct mem_room room;

    if (j == NULL) {
        op->status = IL_NOMEM;
        return;
    }
    if (!il__mem_result_room(op, j, 0, 0, &room)) {
        il__mem_job_drop(m, j);
        op->status = IL_NOMEM;
        return;
    }
    struct il__job_env env = il__mem_job_env(m, j);
    il__job_push(&j->row, &env, op, ++m->ticket);
    il__mem_job_link(m, j, parent);
    il__mem_show_job(m, op, j, 0, &room);
    op->status = IL_OK;
    if (!j->row.is_parent)
        il__mem_queue_wake(m, q); /* a new job has no waiters */
}

void
il__mem_push(struct mem_store *m, il_op *op)
{
    const il_job_in *in     = &op->in.job;
    struct mem_job  *parent = NULL;
    struct mem_job  *other  = NULL;
    const char      *detail;

    struct mem_job *j = find_named(m, op);
    if (j != NULL) {
        push_again(m, op, j);
        return;
    }
    if (in->parent != NULL) {
        parent = il__mem_job_find(m, op->tenant, in->parent);
        il_status st =
            il__job_may_adopt(parent != NULL ? &parent->row : NULL,
                              parent != NULL ? il__mem_job_children(parent).n : 0, &detail);
        if (st != IL_OK) {
            il__op_end(op, st, detail);
            return;
        }
    }
    struct mem_queue *q = il__mem_queue_get(m, op->tenant, op->key);
    if (q == NULL) {
        op->status = IL_NOMEM;
        return;
    }
    if (in->unique_key != NULL)
        other = il__mem_unique_find(m, q, in->unique_key);
    if (other != NULL && il__job_keeps_key(&other->row, m->wall_ms)) {
        il__mem_answer(m, op, other, IL_DUPLICATE);
        q->totals.duplicates += op->status == IL_DUPLICATE;
        return;
    }
    push_new(m, op, q, parent);
}

/* ---- ops of the worker that has claimed it --------------------------------------------------- */

/* What such an op needs besides room for its reply. */
struct claimed {
    struct mem_text *text;   /* heartbeat: message; fail: error */
    void            *result; /* finish */
};

static bool
claimed_reserve(const il_op *op, struct claimed *c)
{
    const il_job_in *in = &op->in.job;

    *c = (struct claimed){ 0 };
    if (op->type == IL_OP_JOB_FINISH && in->data_bytes > 0) {
        c->result = il__alloc(in->data_bytes);
        if (c->result == NULL)
            return false;
        memcpy(c->result, in->data, in->data_bytes);
    }
    if (in->text != NULL && (op->type == IL_OP_JOB_HEARTBEAT || op->type == IL_OP_JOB_FAIL))
        c->text = il__mem_text_new(in->text);
    return c->text != NULL || in->text == NULL || op->type == IL_OP_JOB_FINISH ||
           op->type == IL_OP_JOB_SNOOZE;
}

static void
claimed_release(struct claimed *c)
{
    il__mem_text_unref(c->text);
    il__free(c->result);
}

static void
claimed_change(struct mem_store *m, const il_op *op, struct mem_job *j, struct claimed *c)
{
    struct il__job_env env = il__mem_job_env(m, j);

    if (op->type == IL_OP_JOB_HEARTBEAT) {
        il__job_heartbeat(&j->row, &env, op);
        if (c->text != NULL) {
            il__mem_text_unref(j->message);
            j->message = TAKE(c->text);
        }
    } else if (op->type == IL_OP_JOB_FINISH) {
        il__job_finish(&j->row, &env);
        j->result       = TAKE(c->result);
        j->result_bytes = op->in.job.data_bytes;
    } else if (op->type == IL_OP_JOB_FAIL) {
        const char *error = il__job_fail(&j->row, &env, op);
        if (error != NULL)
            il__mem_job_error(j, c->text != NULL ? c->text->text : "", c->text);
    } else {
        il__job_snooze(&j->row, &env, op);
    }
}

static void
answer_late(struct mem_store *m, il_op *op, const struct mem_job *j)
{
    const il_job_in   *in   = &op->in.job;
    struct il__job_env env  = il__mem_job_env(m, j);
    bool               same = j->result_bytes == in->data_bytes &&
                (in->data_bytes == 0 || memcmp(j->result, in->data, in->data_bytes) == 0);

    il__mem_answer(m, op, j, IL_OK);
    if (op->status == IL_OK)
        il__job_answer_late(op, &j->row, &env, same, j->worker != NULL ? j->worker->text : "");
}

void
il__mem_job_claimed_op(struct mem_store *m, il_op *op)
{
    struct mem_job *j = find_named(m, op);
    struct mem_room room;
    struct claimed  c;

    if (j == NULL) {
        op->status = IL_NOT_FOUND;
        return;
    }
    if (!il__job_held(&j->row, op->fence)) {
        answer_late(m, op, j);
        return;
    }
    size_t n_more = op->in.job.text != NULL ? strlen(op->in.job.text) : 0;
    bool   ok     = claimed_reserve(op, &c) && il__mem_result_room(op, j, 0, n_more, &room);
    op->status    = ok ? IL_OK : IL_NOMEM;
    if (ok) {
        il__mem_job_leave(m, j);
        claimed_change(m, op, j, &c);
        il__mem_job_enter(m, j);
        il__mem_show_job(m, op, j, 0, &room);
        if (op->type == IL_OP_JOB_HEARTBEAT && j->row.cancelled) {
            op->out.flags |= IL_OUT_CANCEL;
            il__op_end(op, IL_OK, j->error);
        }
        if (op->type == IL_OP_JOB_HEARTBEAT)
            il__mem_job_wake(m, j);
        else
            changed(m, j);
    }
    claimed_release(&c);
}

/* ---- cancel, retry, seal --------------------------------------------------------------------- */

/* `reason` may be NULL. */
static void
cancel_one(struct mem_store *m, struct mem_job *j, bool now, struct mem_text *reason)
{
    struct il__job_env env  = il__mem_job_env(m, j);
    const char        *text = reason != NULL ? reason->text : NULL;

    if (j->row.state == IL_JOB_RUNNING)
        il__board_wake(&m->board, IL__BOARD_BREAK); /* notify its worker */
    if (j->row.state == IL_JOB_RUNNING && !now) {   /* it stays where it is */
        const char *error = il__job_cancel(&j->row, &env, now, text);
        il__mem_job_error(j, error, error == text ? reason : NULL);
        il__mem_job_wake(m, j);
        return;
    }
    il__mem_job_leave(m, j);
    const char *error = il__job_cancel(&j->row, &env, now, text);
    il__mem_job_enter(m, j);
    il__mem_job_error(j, error, error == text ? reason : NULL);
}

static void
cancel_parent(struct mem_store *m, struct mem_job *p, bool now, struct mem_text *reason)
{
    struct il__job_env env  = il__mem_job_env(m, p);
    const char        *text = reason != NULL ? reason->text : NULL;
    struct mem_job    *next;

    const char *error = il__job_cancel_parent(&p->row, &env, text);
    il__mem_job_error(p, error, error == text ? reason : NULL);
    for (struct mem_job *c = p->children[CHILD_LIVE].head; c != NULL; c = next) {
        next = c->links[LINK_CHILD].next;
        cancel_one(m, c, now, reason);
        il__mem_job_wake(m, c);
        if (c->group->limited)
            il__mem_queue_wake(m, c->queue);
    }
    end_parent(m, p);
    il__mem_job_wake(m, p);
}

void
il__mem_job_cancel(struct mem_store *m, il_op *op)
{
    const char                *text   = op->in.job.text != NULL ? op->in.job.text : "";
    bool                       now    = (op->flags & IL_CANCEL_NOW) != 0;
    struct mem_job            *j      = find_named(m, op);
    struct mem_text *AUTO_TEXT reason = NULL;
    struct mem_room            room;

    if (j == NULL) {
        op->status = IL_NOT_FOUND;
        return;
    }
    if (text[0] != '\0' && (reason = il__mem_text_new(text)) == NULL) {
        op->status = IL_NOMEM;
        return;
    }
    if (!il__mem_result_room(op, j, 0, strlen(text) + IL__CHILDREN_TEXT_BYTES, &room)) {
        op->status = IL_NOMEM;
        return;
    }
    op->status = IL_OK;
    if (!il__job_ended(j->row.state)) {
        if (j->row.is_parent) {
            cancel_parent(m, j, now, reason);
        } else {
            cancel_one(m, j, now, reason);
            changed(m, j);
        }
    }
    il__mem_show_job(m, op, j, 0, &room);
}

void
il__mem_job_retry(struct mem_store *m, il_op *op)
{
    struct mem_job *j     = find_named(m, op);
    struct mem_job *other = NULL;
    struct mem_room room;
    const char     *detail;

    if (j == NULL) {
        op->status = IL_NOT_FOUND;
        return;
    }
    if (il__job_retry_revives(&j->row) && j->unique_key[0] != '\0')
        other = il__mem_unique_find(m, j->queue, j->unique_key);
    if (other != NULL && other != j && il__job_keeps_key(&other->row, m->wall_ms)) {
        il__mem_answer(m, op, other, IL_DUPLICATE);
        return;
    }
    bool revives = il__job_retry_revives(&j->row);
    if (!il__map_reserve(&m->queues->uniques) || !il__mem_result_room(op, j, 0, 0, &room)) {
        op->status = IL_NOMEM;
        return;
    }
    struct il__job_env env = il__mem_job_env(m, j);
    il__mem_job_leave(m, j);
    il_status st = il__job_retry(&j->row, &env, &detail);
    il__mem_job_enter(m, j);
    if (revives)
        il__mem_unique_take(m, j);
    il__op_end(op, st, detail);
    if (st == IL_OK)
        changed(m, j);
    il__mem_show_job(m, op, j, 0, &room);
}

void
il__mem_job_seal(struct mem_store *m, il_op *op)
{
    struct mem_job *j = find_named(m, op);
    struct mem_room room;
    const char     *detail;

    if (j == NULL) {
        op->status = IL_NOT_FOUND;
        return;
    }
    if (!il__mem_result_room(op, j, 0, IL__CHILDREN_TEXT_BYTES, &room)) {
        op->status = IL_NOMEM;
        return;
    }
    struct il__job_env env = il__mem_job_env(m, j);
    il_status          st  = il__job_seal(&j->row, &env, &detail);
    il__op_end(op, st, detail);
    if (st == IL_OK)
        end_parent(m, j);
    il__mem_show_job(m, op, j, 0, &room);
}
