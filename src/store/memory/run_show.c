/*
 * run_show.c: formats runs for replies, and get and list, in the memory engine. They change
 * nothing: a run whose lease has expired is shown in the state in which it will end.
 */
#include "core/cursor.h"
#include "core/limits.h"
#include "core/op.h"
#include "store/memory/run.h"

static struct il__run_hold
hold_of(const struct mem_run *r)
{
    const struct mem_hold *h = r->hold;

    if (h == NULL)
        return (struct il__run_hold){ .state = IL_LEASE_NONE };
    return (struct il__run_hold){
        .state       = h->state,
        .ttl_ms      = h->ttl_ms,
        .due_ms      = h->due.at,
        .deadline_ms = h->deadline_ms,
        .reason      = h->verdict != NULL ? h->verdict : "",
    };
}

static il_run_state
state_at(const struct mem_store *m, const struct mem_run *r)
{
    struct il__run_hold hold = hold_of(r);

    return il__run_state_at(r->state, r->cancelled, &hold, m->now_ms);
}

/* Its place among the pending runs of its key that have not ended. */
static uint32_t
position_of(const struct mem_store *m, const struct mem_run *run)
{
    uint32_t position = 0;

    for (const struct mem_run *r = run; r != NULL && run->state == IL_RUN_PENDING; r = r->prev)
        position += state_at(m, r) == IL_RUN_PENDING;
    return position;
}

struct mem_run_look
il__mem_run_look(const struct mem_store *m, const struct mem_run *r)
{
    struct mem_run_look l = { .error = r->error, .hold = hold_of(r) };

    l.info = (il_run_info){
        .tenant        = r->tenant,
        .id            = r->id,
        .key           = r->key,
        .holder        = r->holder != NULL ? r->holder : "",
        .trigger       = r->trigger,
        .by            = r->by,
        .meta          = r->meta,
        .stage         = r->stage != NULL ? r->stage : "",
        .state         = r->state,
        .cancelled     = r->cancelled,
        .n_joined      = r->n_joined,
        .progress      = r->progress,
        .position      = position_of(m, r),
        .fence         = r->fence,
        .seq           = r->seq,
        .log_bytes     = r->log.n_bytes,
        .ttl_ms        = r->ttl_ms,
        .created_at_ms = r->created_ms,
        .started_at_ms = r->started_ms,
        .ended_at_ms   = r->ended_ms,
        .updated_at_ms = r->updated_ms,
    };
    return l;
}

il_run_info *
il__mem_run_show_look(const struct mem_store *m, il_op *op, const struct mem_run_look *l)
{
    il_run_info *shown = il__run_show(op, l->info, l->error, &l->hold, m->now_ms, m->wall_ms);

    if (shown == NULL)
        op->status = IL_NOMEM;
    else
        op->out.fence = shown->fence;
    return shown;
}

il_run_info *
il__mem_run_show(const struct mem_store *m, il_op *op, const struct mem_run *r)
{
    struct mem_run_look l = il__mem_run_look(m, r);

    return il__mem_run_show_look(m, op, &l);
}

void
il__mem_run_get(struct mem_store *m, il_op *op, const struct mem_run *r)
{
    if (il__mem_run_show(m, op, r) != NULL)
        op->status = IL_OK;
}

/* The newest run before a seq that a listing may show; NULL: none. Live runs may be shown as they
 * will end. */
static const struct mem_run *
newest_before(const struct mem_store *m, const il_op *op, uint64_t below)
{
    const struct mem_runs *t      = m->runs;
    const struct mem_run  *newest = NULL;
    const char            *key    = op->key != NULL ? op->key : "";

    for (unsigned i = IL_RUN_PENDING; i < IL_RUN_STATE_COUNT; i++) {
        const struct il__tree_node *node;
        if (i <= IL_RUN_RUNNING ? !il__run_may_be_live(op->in.list.states)
                                : !il__run_wanted(op->in.list.states, (il_run_state)i))
            continue;
        node = il__tree_before(op->key != NULL ? &t->of_key[i] : &t->in_state[i], op->tenant, key,
                               below);
        if (node == NULL || strcmp(node->first, op->tenant) != 0 || strcmp(node->second, key) != 0)
            continue;
        const struct mem_run *r = op->key != NULL
                                      ? const_container_of(node, struct mem_run, by_key)
                                      : const_container_of(node, struct mem_run, by_state);
        if (newest == NULL || r->seq > newest->seq)
            newest = r;
    }
    return newest;
}

static bool
is_listed(const struct mem_store *m, const il_op *op, const struct mem_run *r)
{
    const char *prefix = op->key == NULL && op->in.list.prefix != NULL ? op->in.list.prefix : "";

    return strncmp(r->key, prefix, strlen(prefix)) == 0 &&
           il__run_wanted(op->in.list.states, state_at(m, r));
}

static void
go_on_below(il_op *op, const char *id, uint64_t seq)
{
    op->out.next = il__op_cursor(op, id, seq);
    if (op->out.next == NULL)
        op->status = IL_NOMEM;
}

void
il__mem_run_list(struct mem_store *m, il_op *op)
{
    const char           *id;
    uint64_t              below    = UINT64_MAX;
    size_t                n_looked = 0;
    const struct mem_run *last     = NULL;
    const struct mem_run *r;

    if (op->in.list.cursor != NULL)
        CHECK(il__cursor_parse(op->in.list.cursor, &id, &below));
    op->status = IL_OK;
    while (op->out.next == NULL && (r = newest_before(m, op, below)) != NULL) {
        bool listed = is_listed(m, op, r);
        below       = r->seq;
        if (listed && op->out.n_runs == op->in.list.limit) {
            CHECK(last != NULL); /* no limit is 0 */
            go_on_below(op, last->id, last->seq);
            break;
        }
        if (listed && il__mem_run_show(m, op, r) == NULL)
            return;
        last = listed ? r : last;
        /* how far it has read */
        if (++n_looked == (size_t)op->in.list.limit + 1 + IL__LOOK_MAX) {
            go_on_below(op, IL__NO_ID, below);
            break;
        }
    }
    op->out.fence = 0;
}
