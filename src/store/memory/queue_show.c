/*
 * queue_show.c: formats jobs for replies; get, list and purge in the memory engine.
 */
#include "base/arena.h"
#include "core/cursor.h"
#include "core/limits.h"
#include "core/op.h"
#include "store/memory/queue_internal.h"

static const char *
text_of(const struct mem_text *t)
{
    return t != NULL ? t->text : "";
}

/* ---- one job --------------------------------------------------------------------------------- */

bool
il__mem_result_room(il_op *op, const struct mem_job *j, unsigned blobs, size_t n_more,
                    struct mem_room *ret)
{
    const char *const texts[] = { j->queue->tenant, j->queue->name,     j->id,
                                  j->parent_id,     j->group->name,     j->unique_key,
                                  j->error,         text_of(j->worker), text_of(j->message) };
    /* An error may be replaced by a sentence of the core, all of which are shorter than this. */
    size_t n_bytes = n_more + 128;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        n_bytes += strlen(texts[i]) + 1;
    n_bytes += (blobs & SHOW_PAYLOAD) != 0 ? j->payload_bytes + 1 : 0;
    n_bytes += (blobs & SHOW_RESULT) != 0 ? j->result_bytes + 1 : 0;
    ret->at = il__op_alloc(op, n_bytes);
    if (ret->at == NULL)
        return false;
    ret->end          = ret->at + n_bytes;
    il_job_info *slot = il__arena_append(&op->mem, &op->out.jobs, &op->out.n_jobs, sizeof *slot);
    ret->i_slot       = op->out.n_jobs - 1;
    if (slot != NULL)
        *slot = (il_job_info){ 0 };
    return slot != NULL;
}

/* Copy bytes and a terminating NUL into the reserved room. */
static const void *
put(struct mem_room *room, const void *data, size_t n_bytes)
{
    CHECK((size_t)(room->end - room->at) > n_bytes);
    char *copy  = il__put(&room->at, data, n_bytes);
    *room->at++ = '\0';
    return copy;
}

static const char *
put_text(struct mem_room *room, const char *text)
{
    return put(room, text, strlen(text));
}

void
il__mem_show_job(struct mem_store *m, il_op *op, const struct mem_job *j, unsigned blobs,
                 struct mem_room *room)
{
    struct il__children children = il__mem_job_children(j);
    il_job_info         info     = {
                    .tenant     = put_text(room, j->queue->tenant),
                    .queue      = put_text(room, j->queue->name),
                    .id         = put_text(room, j->id),
                    .parent     = put_text(room, j->parent_id),
                    .group      = put_text(room, j->group->name),
                    .unique_key = put_text(room, j->unique_key),
                    .worker     = put_text(room, text_of(j->worker)),
                    .error      = put_text(room, j->error),
                    .message    = put_text(room, text_of(j->message)),
    };

    il__job_show(&j->row, &children, m->now_ms, m->wall_ms, &info);
    if ((blobs & SHOW_PAYLOAD) != 0)
        info.payload = put(room, j->payload, j->payload_bytes);
    if ((blobs & (SHOW_PAYLOAD | SHOW_SIZES)) != 0)
        info.payload_bytes = j->payload_bytes;
    if (info.state != IL_JOB_COMPLETED)
        blobs &= ~(unsigned)(SHOW_RESULT | SHOW_SIZES);
    if ((blobs & SHOW_RESULT) != 0)
        info.result = put(room, j->result, j->result_bytes);
    if ((blobs & (SHOW_RESULT | SHOW_SIZES)) != 0)
        info.result_bytes = j->result_bytes;
    if (room->i_slot == 0 && op->type != IL_OP_JOB_LIST) {
        op->out.fence        = info.token;
        op->out.remaining_ms = info.remaining_ms;
    }
    /* The op owns the array; it is const only for readers of the results. */
    memcpy((char *)(uintptr_t)op->out.jobs + room->i_slot * sizeof info, &info, sizeof info);
}

static bool
show(struct mem_store *m, il_op *op, const struct mem_job *j, unsigned blobs)
{
    struct mem_room room;

    if (!il__mem_result_room(op, j, blobs, 0, &room)) {
        op->out.n_jobs = 0;
        op->status     = IL_NOMEM;
        return false;
    }
    il__mem_show_job(m, op, j, blobs, &room);
    return true;
}

void
il__mem_answer(struct mem_store *m, il_op *op, const struct mem_job *j, il_status status)
{
    if (show(m, op, j, 0))
        op->status = status;
}

void
il__mem_job_get(struct mem_store *m, il_op *op)
{
    const struct mem_job *j = il__mem_job_find(m, op->tenant, op->in.job.id);

    op->status = IL_NOT_FOUND;
    if (j != NULL && show(m, op, j, SHOW_PAYLOAD | SHOW_RESULT))
        op->status = IL_OK;
}

/* ---- listing: the newest of each queue, then the newest of these ----------------------------- */

struct found {
    const struct mem_job **jobs;
    size_t                 n, capacity;
    uint64_t               floor; /* 0 = none */
};

static bool
found_add(struct found *f, const struct mem_job *j)
{
    if (!il__grow(&f->jobs, f->n, &f->capacity, sizeof(*f->jobs)))
        return false;
    f->jobs[f->n++] = j;
    return true;
}

static bool
has_state(const struct mem_store *m, const struct mem_job *j, uint32_t states)
{
    return states == 0 || (states >> il__job_view(&j->row, m->wall_ms) & 1) != 0;
}

/* May jobs in this state match the filter? A SCHEDULED one may be READY by now. */
static bool
may_have(uint32_t states, unsigned state)
{
    return states == 0 || (states >> state & 1) != 0 ||
           (state == IL_JOB_SCHEDULED && (states >> IL_JOB_READY & 1) != 0);
}

/* The newest job of a queue before a seq that may match; NULL: none. */
static const struct mem_job *
newest_before(const struct mem_queue *q, uint32_t states, uint64_t before)
{
    const struct mem_job *newest = NULL;

    for (unsigned i = IL_JOB_SCHEDULED; i < IL_JOB_STATE_COUNT; i++) {
        const struct il__tree_node *node =
            may_have(states, i) ? il__tree_before(&q->in_state[i], "", "", before) : NULL;
        const struct mem_job *j =
            node != NULL ? const_container_of(node, struct mem_job, by_seq) : NULL;
        if (j != NULL && (newest == NULL || j->row.seq > newest->row.seq))
            newest = j;
    }
    return newest;
}

/* Add the newest jobs of a queue. Seqs below f->floor were not checked everywhere, and are left out
 * in the end. */
static bool
find_in_queue(const struct mem_store *m, const il_op *op, const struct mem_queue *q,
              uint64_t before, struct found *f)
{
    const il_list_in     *in = &op->in.list;
    size_t                n = 0, n_looked = 0;
    const struct mem_job *j;

    while (n <= in->limit && (j = newest_before(q, in->states, before)) != NULL) {
        before = j->row.seq;
        if (has_state(m, j, in->states)) {
            if (!found_add(f, j))
                return false;
            n++;
        }
        if (++n_looked == (size_t)in->limit + 1 + IL__LOOK_MAX) {
            f->floor = MAX(f->floor, before);
            break;
        }
    }
    return true;
}

static int
newest_first(const void *a, const void *b)
{
    const struct mem_job *x = *(const struct mem_job *const *)a;
    const struct mem_job *y = *(const struct mem_job *const *)b;

    return x->row.seq > y->row.seq ? -1 : x->row.seq < y->row.seq;
}

/* What a listing shows of a job: small fields, and the sizes of the large ones. */
static unsigned
small_blobs(const struct mem_job *j)
{
    return SHOW_SIZES | (j->payload_bytes <= IL_TEXT_BYTES_MAX ? SHOW_PAYLOAD : 0U) |
           (j->result_bytes <= IL_TEXT_BYTES_MAX ? SHOW_RESULT : 0U);
}

static void
show_page(struct mem_store *m, il_op *op, const struct found *f)
{
    size_t limit = op->in.list.limit;

    op->status = IL_OK;
    for (size_t i = 0; i < MIN(f->n, limit); i++) {
        if (!show(m, op, f->jobs[i], small_blobs(f->jobs[i])))
            return;
    }
    if (f->n > limit) {
        const struct mem_job *last = f->jobs[limit - 1];
        op->out.next               = il__op_cursor(op, last->id, last->row.seq);
    } else if (f->floor > 0) {
        op->out.next = il__op_cursor(op, IL__NO_ID, f->floor);
    }
    if ((f->n > limit || f->floor > 0) && op->out.next == NULL)
        op->status = IL_NOMEM;
}

void
il__mem_job_list(struct mem_store *m, il_op *op)
{
    struct found f      = { 0 };
    uint64_t     before = UINT64_MAX;
    const char  *id;
    bool         ok = true;

    if (op->in.list.cursor != NULL)
        CHECK(il__cursor_parse(op->in.list.cursor, &id, &before));
    if (op->key != NULL) {
        const struct mem_queue *q = il__mem_queue_find(m, op->tenant, op->key);
        ok                        = q == NULL || find_in_queue(m, op, q, before, &f);
    } else {
        for (const struct il__tree_node *node = il__tree_first(&m->queues->by_name, op->tenant, "");
             node != NULL && strcmp(node->first, op->tenant) == 0 && ok;
             node = il__tree_after(&m->queues->by_name, node->first, node->second, 0))
            ok = find_in_queue(m, op, const_container_of(node, struct mem_queue, by_name), before,
                               &f);
    }
    if (f.n > 0)
        qsort(f.jobs, f.n, sizeof *f.jobs, newest_first);
    while (f.n > 0 && f.jobs[f.n - 1]->row.seq < f.floor)
        f.n--;
    if (ok)
        show_page(m, op, &f);
    else
        op->status = IL_NOMEM;
    il__free(f.jobs);
}

/* ---- purge ----------------------------------------------------------------------------------- */

static bool
may_be_purged(const struct mem_store *m, const il_op *op, const struct mem_job *j)
{
    return has_state(m, j, op->in.list.states) &&
           m->wall_ms - j->row.updated_ms >= op->in.list.older_ms &&
           (j->parent == NULL || il__job_ended(j->parent->row.state));
}

/* The oldest job of a queue after a seq that may match; NULL: none. */
static struct mem_job *
oldest_after(const struct mem_queue *q, uint32_t states, uint64_t after)
{
    struct mem_job *oldest = NULL;

    for (unsigned i = IL_JOB_SCHEDULED; i < IL_JOB_STATE_COUNT; i++) {
        struct il__tree_node *node =
            may_have(states, i) ? il__tree_after(&q->in_state[i], "", "", after) : NULL;
        struct mem_job *j = node != NULL ? container_of(node, struct mem_job, by_seq) : NULL;
        if (j != NULL && (oldest == NULL || j->row.seq < oldest->row.seq))
            oldest = j;
    }
    return oldest;
}

void
il__mem_job_purge(struct mem_store *m, il_op *op)
{
    struct mem_queue *q    = il__mem_queue_made(m, op);
    struct mem_job   *next = q != NULL ? oldest_after(q, op->in.list.states, 0) : NULL;

    op->status = IL_OK;
    for (struct mem_job *j = next; j != NULL; j = next) {
        next = oldest_after(q, op->in.list.states, j->row.seq);
        if (!may_be_purged(m, op, j))
            continue;
        if (op->out.sweep.n_purged == op->in.list.limit) {
            op->out.flags |= IL_OUT_MORE;
            break;
        }
        il__mem_job_wake(m, j);
        il__mem_job_delete(m, j);
        op->out.sweep.n_purged++;
    }
}
