/*
 * decode.c: decodes a reply into the status and results of its op. Verbs return rows and facts; the
 * same core functions as on the other engines decide what to show, and how to word it.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "core/cursor.h"
#include "core/limits.h"
#include "core/messages.h"
#include "core/cache.h"
#include "core/history.h"
#include "core/job.h"
#include "core/lease.h"
#include "core/once.h"
#include "core/op.h"
#include "core/run.h"
#include "core/usage.h"
#include "store/remote/remote.h"

/* ---- fields ---------------------------------------------------------------------------------- */

/* No store has larger numbers, and a few of them can be added whatever the server sends. */
#define NUMBER_MAX (INT64_C(1) << 60)

int64_t
il__remote_number_of(const json_t *value)
{
    int64_t number = json_is_true(value);

    if (json_is_integer(value))
        number = (int64_t)json_integer_value(value);
    else if (json_is_string(value))
        number = strtoll(json_string_value(value), NULL, 10);
    else if (json_is_real(value)) /* whole, below 2^53; jansson knows neither infinity nor NaN */
        number = (int64_t)MAX(MIN(json_real_value(value), 0x1p60), -0x1p60);
    return MAX(MIN(number, NUMBER_MAX), -NUMBER_MAX);
}

il_status
il__remote_status(const json_t *head)
{
    int64_t status = il__remote_number(head, "status");

    return status >= 0 && status < IL_STATUS_COUNT ? (il_status)status : IL_STORE;
}

int64_t
il__remote_number(const json_t *object, const char *name)
{
    return il__remote_number_of(json_object_get(object, name));
}

const char *
il__remote_text_or_null(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

const char *
il__remote_text(const json_t *object, const char *name)
{
    const char *text = il__remote_text_or_null(object, name);

    return text != NULL ? text : "";
}

const char *
il__remote_text_at(const json_t *array, size_t i)
{
    const char *text = json_string_value(json_array_get(array, i));

    return text != NULL ? text : "";
}

/* ---- leases and waiters ---------------------------------------------------------------------- */

/* Formatted as on the engines that read rows themselves. */
static bool
show_item(il_op *op, const json_t *item, int64_t now_ms, int64_t wall_ms)
{
    const char    *key     = il__remote_text_or_null(item, "key");
    il_lease_state state   = (il_lease_state)il__remote_number(item, "state");
    bool           waits   = state == IL_LEASE_WAITING;
    uint64_t       number  = (uint64_t)il__remote_number(item, "number");
    int64_t        since   = il__remote_number(item, "since_ms");
    bool           endless = json_object_get(item, "due_ms") == NULL;
    int64_t        ends    = il__remote_number(item, "due_ms");

    if (!il__remote_is_state(il__remote_number(item, "state")))
        return false;
    if (!waits)
        IGNORE(il__lease_view(now_ms, il__remote_number(item, "settle_ms"), &state, &ends));
    il_lease_info info = {
        .tenant         = op->tenant,
        .key            = key != NULL ? key : op->key,
        .holder         = il__remote_text(item, "holder"),
        .meta           = il__remote_text(item, "meta"),
        .place          = il__remote_text(item, "place"),
        .reason         = il__remote_text(item, "reason"),
        .fence          = waits ? 0 : number,
        .ticket         = waits ? number : 0,
        .mode           = (il_mode)il__remote_number(item, "mode"),
        .permits        = (uint32_t)il__remote_number(item, "permits"),
        .state          = state,
        .n_waiters      = (uint32_t)il__remote_number(item, "n_waiters"),
        .ttl_ms         = il__remote_number(item, "ttl_ms"),
        .age_ms         = now_ms - since,
        .remaining_ms   = endless ? IL_FOREVER : ends - now_ms,
        .renewed_ms     = now_ms - il__remote_number(item, "renewed_ms"),
        .acquired_at_ms = wall_ms - (now_ms - since),
        .expires_at_ms  = endless ? INT64_MAX : wall_ms + ends - now_ms,
    };

    if (op->type == IL_OP_GET && !il__op_has_room(op, IL__LEASE_BYTES))
        return true; /* a key with many holders: show as many as fit */
    return info.key != NULL && il__op_add_item(op, &info);
}

static bool
decode_items(il_op *op, const json_t *head)
{
    const json_t *items   = json_object_get(head, "items");
    int64_t       now_ms  = il__remote_number(head, "now_ms");
    int64_t       wall_ms = il__remote_number(head, "wall_ms");

    for (size_t i = 0; i < json_array_size(items); i++) {
        if (!show_item(op, json_array_get(items, i), now_ms, wall_ms))
            return false;
    }
    return true;
}

/* ---- history --------------------------------------------------------------------------------- */

/* [seq, kind, count, fence, since_ms, first_ms, last_ms, holder, meta, other, reason] */
static bool
take_event(const json_t *row, struct il__event *ret)
{
    int64_t kind = il__remote_number_of(json_array_get(row, 1));

    *ret = (struct il__event){
        .seq      = (uint64_t)il__remote_number_of(json_array_get(row, 0)),
        .kind     = (il_event_kind)kind,
        .count    = (uint32_t)il__remote_number_of(json_array_get(row, 2)),
        .fence    = (uint64_t)il__remote_number_of(json_array_get(row, 3)),
        .since_ms = il__remote_number_of(json_array_get(row, 4)),
        .first_ms = il__remote_number_of(json_array_get(row, 5)),
        .last_ms  = il__remote_number_of(json_array_get(row, 6)),
        .holder   = il__remote_text_at(row, 7),
        .meta     = il__remote_text_at(row, 8),
        .other    = il__remote_text_at(row, 9),
        .reason   = il__remote_text_at(row, 10),
    };
    return kind > IL_EVENT_NONE && kind < IL_EVENT_KIND_COUNT;
}

bool
il__remote_history(il_op *op, const json_t *head)
{
    const json_t    *rows = json_object_get(head, "events");
    size_t           n    = json_array_size(rows);
    struct il__event events[IL_EVENTS_MAX];

    if (op->type != IL_OP_HISTORY || op->status != IL_OK)
        return true;
    if (n > IL_EVENTS_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!take_event(json_array_get(rows, i), &events[i]))
            return false;
    }
    return il__history_page(events, n, op, il__remote_number(head, "wall_ms"));
}

/* ---- words ----------------------------------------------------------------------------------- */

/* What is said regardless of the rest of the op. */
static const struct {
    const char *name;
    const char *words;
} says[] = {
    { "other_mode", IL__SAY_OTHER_MODE },
    { "waits_in_other_mode", IL__SAY_WAITS_IN_OTHER_MODE },
    { "other_permits", IL__SAY_OTHER_PERMITS },
    { "other_fence", IL__SAY_OTHER_FENCE },
    { "unconfirmed", IL__SAY_UNCONFIRMED },
    { "committing", IL__SAY_COMMITTING },
    { "has_otherwise", IL__SAY_HAS_OTHERWISE },
    { "waits_otherwise", IL__SAY_WAITS_OTHERWISE },
    { "older_pending", IL__SAY_OLDER_PENDING },
    { "other_request", IL__SAY_OTHER_REQUEST },
    { "not_the_claim", IL__SAY_NOT_THE_CLAIM },
    { "other_answer", IL__SAY_OTHER_ANSWER },
    { "other_value", IL__SAY_OTHER_VALUE },
    { "not_the_build", IL__SAY_NOT_THE_BUILD },
    { "no_parent", IL__SAY_NO_PARENT },
    { "not_a_parent", IL__SAY_NOT_A_PARENT },
    { "parent_ended", IL__SAY_PARENT_ENDED },
    { "parent_sealed", IL__SAY_PARENT_SEALED },
    { "parent_full", IL__SAY_PARENT_FULL },
    { "other_job", IL__SAY_OTHER_JOB },
    { "other_result", IL__SAY_OTHER_RESULT },
    { "no_retry_running", IL__SAY_NO_RETRY_RUNNING },
    { "no_retry_completed", IL__SAY_NO_RETRY_COMPLETED },
    { "no_retry_parent", IL__SAY_NO_RETRY_PARENT },
};

/* Messages that need data from the reply. False: unknown name, or its data is missing. */
static bool
say_of_run(il_op *op, const json_t *head, const char *name)
{
    if (strcmp(name, "run_limit") == 0) {
        il__run_answer_limit(op, (uint32_t)il__remote_number(head, "n"));
        return true;
    }
    if (strcmp(name, "run_live_limit") == 0) {
        il__run_answer_live_limit(op);
        return true;
    }
    if (strcmp(name, "run_day_limit") == 0) {
        il__run_answer_day_limit(op);
        return true;
    }
    bool minute = strcmp(name, "run_minute_limit") == 0;
    if (minute || strcmp(name, "run_hour_limit") == 0) {
        il__run_answer_rate(op, minute ? IL__RATE_MINUTE : IL__RATE_HOUR,
                            il__remote_number(head, "remaining_ms"));
        return true;
    }
    if (op->out.n_runs == 0)
        return false;
    if (strcmp(name, "run_refuse") == 0)
        il__run_refuse(op, op->status);
    else if (strcmp(name, "run_other_key") == 0)
        il__run_answer_other_key(op);
    else if (strcmp(name, "run_gap") == 0)
        il__run_answer_gap(op);
    else if (strcmp(name, "run_not_current") == 0)
        il__run_answer_not_current(op, il__remote_number(head, "finished") != 0);
    else
        return false;
    return true;
}

static bool
say(il_op *op, const json_t *head)
{
    const char *name = il__remote_text_or_null(head, "say");

    if (name == NULL)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(says); i++) {
        if (strcmp(says[i].name, name) == 0) {
            il__op_end(op, op->status, says[i].words);
            return true;
        }
    }
    if (strcmp(name, "lost") == 0) {
        struct il__ended ended = {
            .how      = (uint64_t)il__remote_number(head, "ended_how") & 7,
            .ended_ms = -il__remote_number(head, "ended_ago_ms"),
        };
        il__answer_lost(op, &ended, 0);
        return true;
    }
    if (strcmp(name, "closing") == 0) {
        il__answer_closing(op, il__remote_text(head, "reason"));
        return true;
    }
    if (strcmp(name, "run_stop") == 0) {
        op->out.flags |= IL_OUT_CANCEL;
        return true;
    }
    if (strcmp(name, "late") == 0)
        return true; /* the job says it: decode_job.c */
    return say_of_run(op, head, name);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Where a page of a USAGE ended. */
static bool
decode_place(il_op *op, const json_t *head, const char *name, int64_t number)
{
    int64_t kind = il__remote_number(head, "kind");

    if (kind < 0 || kind >= IL__USAGE_KINDS || number < 0 || (uint64_t)number >= 8 * IL__FENCE_END)
        return false;
    return il__usage_next(op, &(struct il__usage_place){ .kind   = (enum il__usage_kind)kind,
                                                         .name   = name,
                                                         .number = (uint64_t)number });
}

static bool
decode_texts(il_op *op, const json_t *head)
{
    const char   *meta   = il__remote_text_or_null(head, "meta");
    const char   *detail = il__remote_text_or_null(head, "detail");
    const json_t *next   = json_object_get(head, "next");

    if (meta != NULL && (op->out.meta = il__op_strdup(op, meta)) == NULL)
        return false;
    if (detail != NULL && (op->out.detail = il__op_strdup(op, detail)) == NULL)
        return false;
    if (json_array_size(next) == 2) {
        const char *name   = json_string_value(json_array_get(next, 0));
        int64_t     number = il__remote_number_of(json_array_get(next, 1));
        if (name == NULL)
            return false;
        if (op->type == IL_OP_USAGE)
            return decode_place(op, head, name, number);
        op->out.next = il__op_cursor(op, name, (uint64_t)number);
        return op->out.next != NULL;
    }
    return true;
}

static bool
decode_value(il_op *op, const struct remote_blob *value)
{
    if (value->data == NULL)
        return true;
    op->out.value       = il__op_blob(op, value->data, value->n_bytes);
    op->out.value_bytes = value->n_bytes;
    return op->out.value != NULL;
}

static void
decode_counts(il_op *op, const json_t *head)
{
    const json_t *sweep = json_object_get(head, "sweep");
    const json_t *cache = json_object_get(head, "cache");
    const json_t *usage = json_object_get(head, "usage");

    op->out.sweep.n_purged =
        (uint32_t)il__remote_number(sweep, "n_purged"); /* of a purge; sweeps add up */
    op->out.usage = (il_usage_info){
        .n_rows  = (uint64_t)il__remote_number(usage, "n_rows"),
        .n_bytes = (uint64_t)il__remote_number(usage, "n_bytes"),
    };
    op->out.cache = (il_cache_info){
        .n_entries  = (uint64_t)il__remote_number(cache, "n_entries"),
        .n_bytes    = (uint64_t)il__remote_number(cache, "n_bytes"),
        .n_fresh    = (uint64_t)il__remote_number(cache, "n_fresh"),
        .n_stale    = (uint64_t)il__remote_number(cache, "n_stale"),
        .n_negative = (uint64_t)il__remote_number(cache, "n_negative"),
        .n_building = (uint64_t)il__remote_number(cache, "n_building"),
    };
}

static bool
decode_parts(il_op *op, const struct remote_reply *reply)
{
    switch (op->type) {
    case IL_OP_CRON_SET:
    case IL_OP_CRON_LIST:
        return il__remote_decode_crons(op, reply);
    default:
        return il__remote_decode_jobs(op, reply);
    }
}

bool
il__remote_decode(il_op *op, const struct remote_reply *reply)
{
    const json_t *head   = reply->head;
    int64_t       status = il__remote_number(head, "status");

    if (!json_is_object(head) || status < 0 || status >= IL_STATUS_COUNT)
        return false;
    op->status           = (il_status)status;
    op->out.flags        = (uint32_t)il__remote_number(head, "flags");
    op->out.position     = (uint32_t)il__remote_number(head, "position");
    op->out.fence        = (uint64_t)il__remote_number(head, "fence");
    op->out.ticket       = (uint64_t)il__remote_number(head, "ticket");
    op->out.remaining_ms = il__remote_number(head, "remaining_ms");
    op->out.offset       = (uint64_t)il__remote_number(head, "offset");
    op->out.code         = (int32_t)il__remote_number(head, "code");
    op->out.age_ms       = il__remote_number(head, "age_ms");
    decode_counts(op, head);
    return decode_texts(op, head) && decode_value(op, &reply->value) && decode_items(op, head) &&
           il__remote_decode_runs(op, head) && il__remote_decode_queues(op, head) &&
           decode_parts(op, reply) && say(op, head);
}
