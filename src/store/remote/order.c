/*
 * order.c: learned lock order of a remote store. Verbs report what a unit of work holds. The core
 * judges the edges here, and they are kept in the store, where other processes find them. Only
 * reports depend on them, so they need not be part of the op's own commit.
 */
#include "core/order.h"

#include "base/error.h"
#include "core/key.h"
#include "core/limits.h"
#include "core/op.h"
#include "store/remote/remote.h"

/* [[tenant, first, then, first_place, then_place, against], …]. False: no memory. */
static bool
add_rows(const json_t *rows, struct il__order *ret)
{
    for (size_t i = 0; i < MIN(json_array_size(rows), IL__ORDER_EDGES_MAX); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!il__order_add(ret, &(struct il__order_seen){
                                    .tenant      = il__remote_text_at(row, 0),
                                    .first       = il__remote_text_at(row, 1),
                                    .then        = il__remote_text_at(row, 2),
                                    .first_place = il__remote_text_at(row, 3),
                                    .then_place  = il__remote_text_at(row, 4),
                                    .against = il__remote_number_of(json_array_get(row, 5)) != 0,
                                }))
            return false;
    }
    return true;
}

/* The edges of the store; other processes may have learned some since. */
static il_status
load_edges(struct remote_store *s, il_error *reterr)
{
    struct remote_request AUTO_REQUEST r = { 0 };
    struct remote_answer AUTO_ANSWER   a = { 0 };

    il__remote_begin(&r, "x_edges");
    if (!il__remote_end(&r))
        return il__error_set(reterr, IL_NOMEM, "out of memory for the lock order");
    il_status st = il__remote_send_alone(s, &r, true, &a, reterr);
    if (st != IL_OK)
        return st;
    il__order_release(&s->order);
    s->order_n = -1;
    if (!add_rows(json_object_get(a.reply.head, "edges"), &s->order))
        return il__error_set(reterr, IL_NOMEM, "out of memory for the lock order");
    s->order_n = il__remote_number(a.reply.head, "order_n");
    return IL_OK;
}

static il_status
learn(struct remote_store *s, const struct il__order_seen *e, il_error *reterr)
{
    struct remote_request AUTO_REQUEST r = { 0 };
    struct remote_answer AUTO_ANSWER   a = { 0 };

    il__remote_begin(&r, "x_learn");
    il__remote_put_text(&r, "tenant", e->tenant);
    il__remote_put_bytes(&r, "first", e->first, il__key_class_bytes(e->first));
    il__remote_put_bytes(&r, "then", e->then, il__key_class_bytes(e->then));
    il__remote_put_text(&r, "first_place", e->first_place);
    il__remote_put_text(&r, "then_place", e->then_place);
    il__remote_put_number(&r, "against", e->against);
    if (!il__remote_end(&r) || !il__order_add(&s->order, e))
        return il__error_set(reterr, IL_NOMEM, "out of memory for the lock order");
    il_status st = il__remote_send_alone(s, &r, false, &a, reterr);
    if (st != IL_OK)
        return st;
    /* If others have learned something meanwhile, the next check reads everything again. */
    if (il__remote_number(a.reply.head, "order_n") == s->order_n + 1)
        s->order_n++;
    else
        s->order_n = -1;
    return IL_OK;
}

/* The place of the op in the caller's program. */
static const char *
place_of(const il_op *op)
{
    const char *place = op->type == IL_OP_RUN_START ? op->in.run.place : op->in.lock.place;

    return place != NULL ? place : "";
}

static il_status
judge(struct remote_store *s, il_op *op, const struct il__order_hold *hold,
      struct remote_budget *left, il_error *reterr)
{
    struct il__buf AUTO_BUF why   = { .n_bytes_max = 4096 };
    const char             *place = place_of(op);

    unsigned verdict = il__order_judge(&s->order, op->tenant, hold, op->key, place, &why);
    bool     against = (verdict & IL__ORDER_AGAINST) != 0;
    if (against && op->out.detail == NULL) { /* reported once; the acquire continues */
        op->out.flags |= IL_OUT_ORDER_WARNING;
        op->out.detail = il__op_strdup(op, il__buf_str(&why));
    }
    if ((verdict & IL__ORDER_LEARN) == 0 || left->n_learn == 0)
        return IL_OK;
    left->n_learn--;
    return learn(s,
                 &(struct il__order_seen){ .tenant      = op->tenant,
                                           .first       = hold->key,
                                           .then        = op->key,
                                           .first_place = hold->place,
                                           .then_place  = place,
                                           .against     = against },
                 reterr);
}

static il_status
judge_all(struct remote_store *s, il_op *op, const json_t *holds, int64_t order_n,
          struct remote_budget *left, il_error *reterr)
{
    if (s->order_n != order_n) {
        il_status st = load_edges(s, reterr);
        if (st != IL_OK)
            return st;
    }
    for (size_t i = 0; i < MIN(json_array_size(holds), IL__ORDER_HOLDS_MAX); i++) {
        const json_t         *h    = json_array_get(holds, i);
        struct il__order_hold hold = { .key   = il__remote_text_at(h, 0),
                                       .place = il__remote_text_at(h, 1) };
        il_status             st   = judge(s, op, &hold, left, reterr);
        if (st != IL_OK)
            return st;
    }
    return IL_OK;
}

/* Few units of work already hold something when they acquire more, so others wait here while edges
 * are read or learned. */
il_status
il__remote_learn(struct remote_store *s, il_op *op, const struct remote_reply *reply,
                 struct remote_budget *left, il_error *reterr)
{
    const json_t *holds = json_object_get(reply->head, "holds");

    if (json_array_size(holds) == 0)
        return IL_OK;
    il__mutex_lock(&s->order_mutex);
    il_status st = judge_all(s, op, holds, il__remote_number(reply->head, "order_n"), left, reterr);
    il__mutex_unlock(&s->order_mutex);
    return st;
}

void
il__remote_forget_order(struct remote_store *s)
{
    il__mutex_lock(&s->order_mutex);
    s->order_n = -1;
    il__mutex_unlock(&s->order_mutex);
}

bool
il__remote_say_rank(const struct remote_store *s, il_op *op, const json_t *head)
{
    struct il__buf AUTO_BUF why     = { .n_bytes_max = 4096 };
    const json_t           *against = json_object_get(head, "against");

    if (against == NULL)
        return true;
    struct il__order_hold hold = { .key   = il__remote_text_at(against, 0),
                                   .place = il__remote_text_at(against, 1) };
    const char *place          = op->type == IL_OP_RUN_START ? op->in.run.place : op->in.lock.place;
    if (op->key == NULL || il__order_rank_ok(&s->ranks, &hold, op->key, place, &why))
        return false; /* the verb decides differently: they must not disagree */
    il__op_end(op, IL_ORDER, il__buf_str(&why));
    return true;
}

bool
il__remote_order_list(const struct remote_store *s, il_op *op, const json_t *head)
{
    struct il__order order = { 0 };

    if (op->type != IL_OP_ORDER_LIST || op->status != IL_OK)
        return true;
    bool ok = add_rows(json_object_get(head, "edges"), &order);
    if (ok)
        il__order_list(&order, &s->ranks, op);
    il__order_release(&order);
    return ok;
}
