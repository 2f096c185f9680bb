/*
 * encode.c: encodes an op as a request: one JSON object, plus its blob. README.md lists the fields.
 */
#include <inttypes.h>

#include "base/parse.h"
#include "core/cache.h"
#include "core/cursor.h"
#include "core/op.h"
#include "core/usage.h"
#include "store/remote/remote.h"

#define REQUEST_BYTES_MAX ((size_t)1 << 26) /* of one request's JSON; texts are small */

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Strings are known to be UTF-8; names have no control characters, but free text may. */
static void
put_string(struct il__buf *b, const char *text, size_t n)
{
    size_t plain = 0; /* start of what can be copied unchanged */

    il__buf_addc(b, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char ch = (unsigned char)text[i];
        if (ch >= 0x20 && ch != '"' && ch != '\\')
            continue;
        il__buf_add(b, text + plain, i - plain);
        plain = i + 1;
        if (ch >= 0x20)
            il__buf_addf(b, "\\%c", ch);
        else
            il__buf_addf(b, "\\u%04x", ch);
    }
    il__buf_add(b, text + plain, n - plain);
    il__buf_addc(b, '"');
}

static void
put_name(struct remote_request *r, const char *name)
{
    il__buf_adds(&r->json, ",\"");
    il__buf_adds(&r->json, name);
    il__buf_adds(&r->json, "\":");
}

void
il__remote_begin(struct remote_request *r, const char *verb)
{
    il__buf_init(&r->json, REQUEST_BYTES_MAX);
    r->blob = (struct remote_blob){ 0 };
    il__buf_adds(&r->json, "{\"op\":\"");
    il__buf_adds(&r->json, verb);
    il__buf_addc(&r->json, '"');
}

void
il__remote_put_bytes(struct remote_request *r, const char *name, const char *text, size_t n)
{
    put_name(r, name);
    put_string(&r->json, text, n);
}

void
il__remote_put_text(struct remote_request *r, const char *name, const char *text)
{
    if (text != NULL)
        il__remote_put_bytes(r, name, text, strlen(text));
}

void
il__remote_put_texts(struct remote_request *r, const char *name, const char *const *texts, size_t n)
{
    put_name(r, name);
    for (size_t i = 0; i < n; i++) {
        il__buf_addc(&r->json, i == 0 ? '[' : ',');
        put_string(&r->json, texts[i], strlen(texts[i]));
    }
    il__buf_adds(&r->json, n == 0 ? "[]" : "]");
}

void
il__remote_put_number(struct remote_request *r, const char *name, int64_t number)
{
    char  digits[24];
    char *at = digits + sizeof digits;

    /* Formatted by hand: this is the hot path, and printf is slow. */
    uint64_t rest = number < 0 ? (uint64_t)0 - (uint64_t)number : (uint64_t)number;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0)
        *--at = '-';
    put_name(r, name);
    il__buf_add(&r->json, at, (size_t)(digits + sizeof digits - at));
}

/* Left out when it is 0. */
static void
put(struct remote_request *r, const char *name, int64_t number)
{
    if (number != 0)
        il__remote_put_number(r, name, number);
}

bool
il__remote_end(struct remote_request *r)
{
    il__buf_addc(&r->json, '}');
    return !r->json.failed;
}

void
il__remote_request_release(struct remote_request *r)
{
    il__buf_release(&r->json);
}

static void
put_blob(struct remote_request *r, const void *data, size_t n_bytes)
{
    r->blob = (struct remote_blob){ n_bytes > 0 ? data : "", n_bytes };
}

/* ---- the inputs of the families -------------------------------------------------------------- */

static void
put_ranks(const struct remote_store *s, struct remote_request *r)
{
    if (s->ranks.n == 0)
        return;
    put_name(r, "ranks");
    for (size_t i = 0; i < s->ranks.n; i++) {
        il__buf_addc(&r->json, i == 0 ? '[' : ',');
        put_string(&r->json, s->ranks.classes[i], strlen(s->ranks.classes[i]));
    }
    il__buf_addc(&r->json, ']');
}

static void
put_lock(const struct remote_store *s, const il_op *op, struct remote_request *r)
{
    const il_lock_in *in = &op->in.lock;

    if (op->type == IL_OP_GET || op->type == IL_OP_CHECK_FENCE || op->type == IL_OP_RELEASE)
        return;
    put(r, "ttl_ms", in->ttl_ms);
    put(r, "wait_ms", in->wait_ms);
    put(r, "settle_ms", in->settle_ms);
    put(r, "mode", (int64_t)in->mode);
    put(r, "permits", in->permits);
    il__remote_put_text(r, "meta", in->meta);
    il__remote_put_text(r, "place", in->place);
    il__remote_put_text(r, "reason", in->reason);
    if (op->type == IL_OP_ACQUIRE)
        put_ranks(s, r);
}

static void
put_refused(const il_op *op, struct remote_request *r)
{
    const il_refused_in *in = &op->in.refused;

    il__remote_put_text(r, "meta", in->meta);
    il__remote_put_text(r, "other", in->other);
    il__remote_put_text(r, "reason", in->reason);
    put(r, "span_ms", in->span_ms);
    put(r, "held_ms", in->held_ms);
    put(r, "count", in->count);
}

static void
put_list(const il_op *op, struct remote_request *r)
{
    const il_list_in *in = &op->in.list;
    const char       *after_key;
    uint64_t          after_number;

    il__remote_put_text(r, "prefix", in->prefix);
    put(r, "limit", in->limit);
    put(r, "states", in->states);
    put(r, "older_ms", in->older_ms);
    if (in->cursor != NULL) {
        CHECK(il__cursor_parse(in->cursor, &after_key, &after_number));
        il__remote_put_text(r, "after_key", after_key);
        il__remote_put_number(r, "after_number", (int64_t)after_number);
    }
}

static void
put_run(const struct remote_store *s, const il_op *op, struct remote_request *r)
{
    const il_run_in *in = &op->in.run;

    il__remote_put_text(r, "id", in->id);
    put(r, "policy", (int64_t)in->policy);
    put(r, "queue_max", in->queue_max);
    put(r, "ttl_ms", in->ttl_ms);
    put(r, "wait_ms", in->wait_ms);
    put(r, "settle_ms", in->settle_ms);
    put(r, "keep_ms", in->keep_ms);
    il__remote_put_text(r, "trigger", in->trigger);
    il__remote_put_text(r, "by", in->by);
    il__remote_put_text(r, "meta", in->meta);
    il__remote_put_text(r, "place", in->place);
    il__remote_put_text(r, "stage", in->stage);
    il__remote_put_number(r, "progress", in->progress);
    put(r, "state", (int64_t)in->state);
    il__remote_put_text(r, "error", in->error);
    put(r, "offset", (int64_t)in->offset);
    put(r, "live_max", in->live_max);
    put(r, "day_max", in->day_max);
    put(r, "minute_max", in->minute_max);
    put(r, "hour_max", in->hour_max);
    if (op->type == IL_OP_RUN_STAGE || op->type == IL_OP_RUN_FINISH)
        put_blob(r, in->log, in->log_bytes);
    if (op->type == IL_OP_RUN_START)
        put_ranks(s, r);
}

static void
put_hex(struct remote_request *r, const char *name, const unsigned char *data, size_t n)
{
    put_name(r, name);
    il__buf_addc(&r->json, '"');
    char *at = il__buf_room(&r->json, 2 * n);
    if (at != NULL) {
        il__hex_print(data, n, at);
        r->json.n_bytes += 2 * n;
    }
    il__buf_addc(&r->json, '"');
}

static void
put_once(const il_op *op, struct remote_request *r)
{
    const il_once_in *in = &op->in.once;

    put_hex(r, "fingerprint", in->fingerprint, in->fingerprint_bytes);
    put(r, "lease_ms", in->lease_ms);
    put(r, "keep_ms", in->keep_ms);
    il__remote_put_text(r, "meta", in->meta);
    put(r, "code", in->code);
    if (op->type == IL_OP_ONCE_FINISH)
        put_blob(r, in->response, in->response_bytes);
}

static void
put_job(const il_op *op, struct remote_request *r)
{
    const il_job_in *in = &op->in.job;

    il__remote_put_text(r, "id", in->id);
    il__remote_put_text(r, "group", in->group);
    il__remote_put_text(r, "unique_key", in->unique_key);
    put(r, "unique_for_ms", in->unique_for_ms);
    il__remote_put_text(r, "parent", in->parent);
    put(r, "n_children", in->n_children);
    put(r, "priority", in->priority);
    put(r, "delay_ms", in->delay_ms);
    put(r, "run_at_ms", in->run_at_ms);
    put(r, "max_attempts", in->max_attempts);
    put(r, "limit", in->limit);
    put(r, "lease_ms", in->lease_ms);
    if (op->type == IL_OP_JOB_CLAIM)
        put(r, "bytes", (int64_t)il__op_bytes_left(op));
    if (op->type == IL_OP_JOB_HEARTBEAT)
        il__remote_put_number(r, "progress", in->progress);
    il__remote_put_text(r, "text", in->text);
    if (op->type == IL_OP_JOB_PUSH || op->type == IL_OP_JOB_FINISH)
        put_blob(r, in->data, in->data_bytes);
}

static void
put_queue_opts(const il_queue_opts *in, struct remote_request *r)
{
    put(r, "strategy", in->strategy);
    put(r, "max_attempts", in->max_attempts);
    put(r, "lease_ms", in->lease_ms);
    put(r, "backoff_ms", in->backoff_ms);
    put(r, "backoff_max_ms", in->backoff_max_ms);
    put(r, "group_limit", in->group_limit);
    put(r, "rate_n", in->rate_n);
    put(r, "rate_ms", in->rate_ms);
    put(r, "keep_ms", in->keep_ms);
    put(r, "keep_failed_ms", in->keep_failed_ms);
    put(r, "processing_timeout_ms", in->processing_timeout_ms);
    put(r, "executing_timeout_ms", in->executing_timeout_ms);
}

static void
put_cron(const il_op *op, struct remote_request *r)
{
    const il_cron_in *in = &op->in.cron;

    il__remote_put_text(r, "name", in->name);
    il__remote_put_text(r, "schedule", in->schedule);
    put(r, "missed", (int64_t)in->missed);
    put(r, "priority", in->priority);
    put(r, "max_attempts", in->max_attempts);
    if (op->type == IL_OP_CRON_SET)
        put_blob(r, in->data, in->data_bytes);
}

static void
put_cache(const il_op *op, struct remote_request *r)
{
    const il_cache_in *in = &op->in.cache;

    put(r, "ttl_ms", in->ttl_ms);
    put(r, "grace_ms", in->grace_ms);
    put(r, "lease_ms", in->lease_ms);
    put(r, "early", il__cache_early_q16(in->chance));
    put(r, "code", in->code);
    if (op->type == IL_OP_CACHE_FILL)
        put_blob(r, in->value, in->value_bytes);
}

static void
put_usage(const il_op *op, struct remote_request *r)
{
    struct il__usage_place place = il__usage_place(op);

    put(r, "limit", op->in.list.limit);
    put(r, "kind", (int64_t)place.kind);
    il__remote_put_text(r, "after_key", place.name);
    put(r, "after_number", (int64_t)place.number);
}

/* ---- the op ---------------------------------------------------------------------------------- */

static void
put_inputs(const struct remote_store *s, const il_op *op, struct remote_request *r)
{
    switch (op->type) {
    case IL_OP_LIST:
    case IL_OP_SWEEP:
    case IL_OP_RUN_LIST:
    case IL_OP_JOB_LIST:
    case IL_OP_JOB_PURGE:
    case IL_OP_QUEUE_LIST:
    case IL_OP_CRON_LIST:
    case IL_OP_CACHE_STATS:
        put_list(op, r);
        return;
    case IL_OP_USAGE:
        put_usage(op, r);
        return;
    case IL_OP_ORDER_LIST:
    case IL_OP_HISTORY:
        return; /* the page is made here, from all edges of the tenant, all events of the key */
    case IL_OP_REFUSED:
        put_refused(op, r);
        return;
    case IL_OP_QUEUE_SET:
        put_queue_opts(&op->in.queue, r);
        return;
    case IL_OP_CRON_SET:
    case IL_OP_CRON_REMOVE:
        put_cron(op, r);
        return;
    default:
        break;
    }
    switch (il__op_family(op->type)) {
    case IL__FAMILY_RUN:
        put_run(s, op, r);
        break;
    case IL__FAMILY_ONCE:
        put_once(op, r);
        break;
    case IL__FAMILY_QUEUE:
        put_job(op, r);
        break;
    case IL__FAMILY_CACHE:
        put_cache(op, r);
        break;
    case IL__FAMILY_LOCK:
    default:
        put_lock(s, op, r);
    }
}

bool
il__remote_encode(const struct remote_store *s, const il_op *op, struct remote_request *ret)
{
    il__remote_begin(ret, il_op_name(op->type));
    il__remote_put_text(ret, "tenant", op->tenant);
    il__remote_put_text(ret, "key", op->key);
    il__remote_put_text(ret, "holder", op->holder);
    put(ret, "fence", (int64_t)op->fence);
    put(ret, "flags", op->flags);
    put_inputs(s, op, ret);
    return il__remote_end(ret);
}
