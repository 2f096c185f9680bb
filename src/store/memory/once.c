/*
 * once.c: idempotency keys in the memory engine. The rules are in src/core/once.md.
 *
 * Each key has one object. A takeover, or a claim of a key whose entry has expired, replaces the
 * object with a new one, so running out of memory is detected before anything changes.
 */
#include "store/memory/once.h"

#include "base/tree.h"
#include "core/limits.h"
#include "core/once.h"
#include "core/op.h"

struct mem_once {
    /* its names and fingerprint are in tenant[], its response is `response` */
    struct il__once      e;
    uint64_t             hash;
    struct il__heap_node date;    /* at e.purge_ms, in the heap of its state */
    struct il__tree_node by_name; /* in names */
    void                *response;
    const char          *key;
    char                 tenant[]; /* then key, attempt, meta, before, fingerprint */
};

struct mem_onces {
    struct il__map  map;     /* struct mem_once by tenant and key */
    struct il__tree names;   /* the same in their order */
    struct il__heap claims;  /* RUNNING, in lease time */
    struct il__heap answers; /* DONE, on the wall clock */
};

static bool
gone_before(const struct il__heap_node *a, const struct il__heap_node *b)
{
    return const_container_of(a, struct mem_once, date)->e.token <
           const_container_of(b, struct mem_once, date)->e.token;
}

bool
il__mem_once_init(struct mem_store *m)
{
    m->onces = il__calloc(1, sizeof *m->onces);
    if (m->onces == NULL)
        return false;
    m->onces->claims.before = m->onces->answers.before = gone_before;
    return true;
}

static void
once_free(struct mem_once *o)
{
    il__free(o->response);
    il__free(o);
}

void
il__mem_once_release(struct mem_store *m)
{
    struct mem_onces *all = m->onces;

    if (all == NULL)
        return;
    for (size_t i = 0; i < all->map.size; i++) {
        if (all->map.slots[i].item != NULL)
            once_free(all->map.slots[i].item);
    }
    il__map_release(&all->map);
    il__free(all);
}

static struct mem_once *
find(const struct mem_onces *all, uint64_t hash, const il_op *op)
{
    struct mem_once *o;

    for (size_t i = il__map_start(&all->map, hash); (o = il__map_next(&all->map, hash, &i)) != NULL;
         i++) {
        if (strcmp(o->key, op->key) == 0 && strcmp(o->tenant, op->tenant) == 0)
            return o;
    }
    return NULL;
}

static struct il__heap *
heap_of(struct mem_onces *all, const struct mem_once *o)
{
    return o->e.done ? &all->answers : &all->claims;
}

static const char *
put_text(char **end, const char *text)
{
    return il__put(end, text, strlen(text) + 1);
}

/* A claim for the op, not yet in a table; NULL: no memory. `taken` is the dead claim that it takes
 * over, or NULL. */
static struct mem_once *
claim_new(struct mem_store *m, const il_op *op, const struct il__once *taken)
{
    const il_once_in *in      = &op->in.once;
    const char       *meta    = il__once_meta(op, taken);
    const char       *before  = taken != NULL ? taken->meta : "";
    size_t            n_names = (size_t)op->n_bytes.tenant + op->n_bytes.key + op->n_bytes.holder +
                     strlen(meta) + strlen(before) + 5;
    struct mem_once *o = il__alloc(sizeof *o + n_names + in->fingerprint_bytes);

    if (o == NULL)
        return NULL;
    char *end = o->tenant;
    *o        = (struct mem_once){ 0 };
    (void)put_text(&end, op->tenant); /* o->tenant itself */
    o->key = put_text(&end, op->key);
    o->e   = (struct il__once){
          .attempt           = put_text(&end, op->holder),
          .meta              = put_text(&end, meta),
          .before            = put_text(&end, before),
          .fingerprint       = il__put(&end, in->fingerprint, in->fingerprint_bytes),
          .fingerprint_bytes = in->fingerprint_bytes,
          .expires_ms        = m->now_ms + in->lease_ms,
          .keep_ms           = in->keep_ms,
          .purge_ms          = il__once_claim_purge_ms(op, m->now_ms),
          .created_at        = taken != NULL ? taken->created_at : m->wall_ms,
    };
    if (taken == NULL)
        o->e.before = NULL;
    return o;
}

/* Store a claim in place of `old`: a dead one that is taken over, an expired one, or none
 * (NULL). */
static void
claim(struct mem_store *m, il_op *op, uint64_t hash, struct mem_once *old, bool takes)
{
    struct mem_onces *all = m->onces;
    struct mem_once  *o =
        il__map_reserve(&all->map) ? claim_new(m, op, takes && old != NULL ? &old->e : NULL) : NULL;

    if (o == NULL) {
        il__op_reset(op);
        op->status = IL_NOMEM;
        return;
    }
    o->hash    = hash;
    o->e.token = il__fence_next(&m->fence);
    if (old != NULL) {
        il__heap_remove(heap_of(all, old), &old->date);
        il__map_replace(&all->map, hash, old, o);
        il__tree_remove(&all->names, &old->by_name);
        once_free(old);
    } else {
        il__map_add(&all->map, hash, o);
    }
    o->by_name = (struct il__tree_node){ .first = o->tenant, .second = o->key };
    il__tree_add(&all->names, &o->by_name);
    o->date.at = o->e.purge_ms;
    il__heap_add(&all->claims, &o->date);
    op->out.fence = o->e.token;
}

static void
renew(struct mem_store *m, const il_op *op, struct mem_once *o)
{
    o->e.keep_ms    = op->in.once.keep_ms;
    o->e.expires_ms = m->now_ms + op->in.once.lease_ms;
    o->e.purge_ms   = il__once_claim_purge_ms(op, m->now_ms);
    il__heap_move(&m->onces->claims, &o->date, o->e.purge_ms);
}

static void
begin(struct mem_store *m, il_op *op, uint64_t hash, struct mem_once *o)
{
    switch (il__once_begin(op, o != NULL ? &o->e : NULL, m->now_ms, m->wall_ms)) {
    case IL__ONCE_CLAIM:
        claim(m, op, hash, o, false);
        break;
    case IL__ONCE_TAKE:
        claim(m, op, hash, o, true);
        break;
    case IL__ONCE_RENEW:
        renew(m, op, o);
        break;
    case IL__ONCE_ANSWERED:
    default:
        if (op->status != IL_REPLAY)
            break;
        op->out.value       = il__op_blob(op, o->e.response, o->e.response_bytes);
        op->out.value_bytes = o->e.response_bytes;
        if (op->out.value == NULL)
            op->status = IL_NOMEM;
    }
}

static void
wake(struct mem_store *m, const il_op *op)
{
    il__board_wake(&m->board, il__board_slot(op->tenant, op->key, IL__WAKE_ONCE));
}

static void
finish(struct mem_store *m, il_op *op, struct mem_once *o)
{
    const il_once_in *in = &op->in.once;

    if (!il__once_finish(op, o != NULL ? &o->e : NULL, m->now_ms, m->wall_ms))
        return;
    CHECK(o != NULL);
    void *response = il__alloc(in->response_bytes + 1);
    if (response == NULL) {
        il__op_reset(op);
        op->status = IL_NOMEM;
        return;
    }
    if (in->response_bytes > 0)
        memcpy(response, in->response, in->response_bytes);
    il__heap_remove(&m->onces->claims, &o->date);
    o->response         = response;
    o->e.response       = response;
    o->e.response_bytes = in->response_bytes;
    o->e.code           = in->code;
    o->e.done           = true;
    o->e.purge_ms       = m->wall_ms + o->e.keep_ms;
    o->date.at          = o->e.purge_ms;
    il__heap_add(&m->onces->answers, &o->date);
    wake(m, op);
}

static void
once_delete(struct mem_onces *all, struct mem_once *o)
{
    il__heap_remove(heap_of(all, o), &o->date);
    il__tree_remove(&all->names, &o->by_name);
    il__map_remove(&all->map, o->hash, o);
    once_free(o);
}

void
il__mem_once_op(struct mem_store *m, il_op *op)
{
    uint64_t         hash = il__mem_hash_op(m, op);
    struct mem_once *o    = find(m->onces, hash, op);

    switch (op->type) {
    case IL_OP_ONCE_BEGIN:
    case IL_OP_ONCE_GET:
        begin(m, op, hash, o);
        break;
    case IL_OP_ONCE_FINISH:
        finish(m, op, o);
        break;
    default:
        CHECK(op->type == IL_OP_ONCE_ABANDON);
        if (il__once_abandon(op, o != NULL ? &o->e : NULL, m->now_ms, m->wall_ms)) {
            CHECK(o != NULL);
            once_delete(m->onces, o);
            wake(m, op);
        }
    }
}

/* ---- retention ------------------------------------------------------------------------------- */

static void
sweep(struct mem_onces *all, struct il__heap *heap, int64_t now_ms, il_op *op)
{
    for (uint32_t n = 0; il__heap_due(heap, now_ms); n++) {
        if (n == op->in.list.limit) {
            op->out.flags |= IL_OUT_MORE;
            return;
        }
        once_delete(all, container_of(heap->first, struct mem_once, date));
        op->out.sweep.n_purged++;
    }
}

void
il__mem_once_sweep(struct mem_store *m, il_op *op)
{
    sweep(m->onces, &m->onces->claims, m->now_ms, op);
    sweep(m->onces, &m->onces->answers, m->wall_ms, op);
}

bool
il__mem_once_overdue(const struct mem_store *m)
{
    return il__heap_due(&m->onces->claims, m->now_ms) ||
           il__heap_due(&m->onces->answers, m->wall_ms);
}

/* ---- counting -------------------------------------------------------------------------------- */

uint32_t
il__mem_once_usage(const struct mem_store *m, il_op *op, struct il__usage_place *place, uint32_t n)
{
    uint32_t i = 0;

    for (; i < n; i++) {
        const struct il__tree_node *node =
            il__tree_after(&m->onces->names, op->tenant, place->name, 0);
        if (node == NULL || strcmp(node->first, op->tenant) != 0)
            break;
        const struct mem_once *o = const_container_of(node, struct mem_once, by_name);
        op->out.usage.n_rows++;
        op->out.usage.n_bytes += strlen(o->key) + strlen(o->e.meta) + o->e.response_bytes;
        place->name = o->key;
    }
    return i;
}
