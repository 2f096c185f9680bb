/*
 * packed.c: the requests and replies that are not JSON: acquire, release, finish, and the jobs that
 * a claim returns. Reading and writing JSON was most of their cost, here and in the server.
 * lua/apply.lua describes both formats; a job has the format in which lua/queue_job.lua stores it.
 *
 * Numbers are little-endian; those that the server keeps as doubles are integers below 2^53.
 * Strings end with a NUL.
 */
#include "base/arena.h"
#include "core/job.h"
#include "core/op.h"
#include "store/redis/redis_internal.h"

#define REQUEST_BYTES_MAX ((size_t)1 << 20) /* texts are small */
#define EXACT_END (INT64_C(1) << 53)        /* doubles are exact below it */
#define HEAD_BYTES 21                       /* C flags now wall */
#define STAMP_BYTES 22                      /* what a finish changes: the front of a row */

/* The first byte. */
enum {
#define X(name, letter) PACKED_##name = letter,
#include "store/redis/packed.def"
#undef X
};

/* ---- requests -------------------------------------------------------------------------------- */

static void
put_number(struct il__buf *b, int64_t number)
{
    double        value = (double)number;
    uint64_t      bits;
    unsigned char bytes[8];

    memcpy(&bits, &value, sizeof bits);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(bits >> (8 * i));
    il__buf_add(b, bytes, sizeof bytes);
}

/* With its NUL; NULL means empty. */
static void
put_text(struct il__buf *b, const char *text)
{
    if (text == NULL)
        text = "";
    il__buf_add(b, text, strlen(text) + 1);
}

static bool
is_exact(int64_t number)
{
    return number > -EXACT_END && number < EXACT_END;
}

static bool
pack_acquire(const struct remote_store *s, const il_op *op, struct il__buf *b)
{
    const il_lock_in *in = &op->in.lock;

    if (in->mode != IL_MODE_EXCLUSIVE || in->permits != 0 || in->reason != NULL || s->ranks.n > 0 ||
        op->fence != 0)
        return false;
    if (!is_exact(in->ttl_ms) || !is_exact(in->settle_ms) || !is_exact(in->wait_ms))
        return false;
    il__buf_addc(b, PACKED_ACQUIRE);
    put_number(b, in->ttl_ms);
    put_number(b, in->settle_ms);
    put_number(b, in->wait_ms);
    put_text(b, op->tenant);
    put_text(b, op->key);
    put_text(b, op->holder);
    put_text(b, in->meta);
    put_text(b, in->place);
    return true;
}

static void
pack_release(const il_op *op, struct il__buf *b)
{
    il__buf_addc(b, PACKED_RELEASE);
    put_number(b, (int64_t)op->fence);
    put_text(b, op->tenant);
    put_text(b, op->key);
    put_text(b, op->holder);
}

static void
pack_finish(const il_op *op, struct remote_request *r)
{
    const il_job_in *in = &op->in.job;

    il__buf_addc(&r->json, PACKED_FINISH);
    put_number(&r->json, (int64_t)op->fence);
    put_text(&r->json, op->tenant);
    put_text(&r->json, in->id);
    r->blob = (struct remote_blob){ in->data_bytes > 0 ? in->data : "", in->data_bytes };
}

bool
il__redis_encode(const struct remote_store *s, const il_op *op, struct remote_request *ret)
{
    if (op->flags != 0 || op->tenant == NULL || op->fence >= (uint64_t)EXACT_END)
        return false;
    il__buf_init(&ret->json, REQUEST_BYTES_MAX);
    ret->blob = (struct remote_blob){ 0 };
    switch (op->type) {
    case IL_OP_ACQUIRE:
        return op->key != NULL && op->holder != NULL && pack_acquire(s, op, &ret->json);
    case IL_OP_RELEASE:
        if (op->key == NULL || op->holder == NULL)
            return false;
        pack_release(op, &ret->json);
        return true;
    case IL_OP_JOB_FINISH:
        if (op->in.job.id == NULL)
            return false;
        pack_finish(op, ret);
        return true;
    default:
        return false;
    }
}

bool
il__redis_has_blob(const struct remote_request *r)
{
    return r->json.data[0] != PACKED_ACQUIRE && r->json.data[0] != PACKED_RELEASE;
}

/* ---- a row ----------------------------------------------------------------------------------- */

/* The rest of it; nothing is read beyond the end. */
struct row {
    const char *at;
    size_t      n_left;
    bool        failed;
};

static uint64_t
take_bits(struct row *r, size_t n_bytes)
{
    uint64_t bits = 0;

    if (r->n_left < n_bytes) {
        r->failed = true;
        return 0;
    }
    for (size_t i = 0; i < n_bytes; i++)
        bits |= (uint64_t)(unsigned char)r->at[i] << (8 * i);
    r->at += n_bytes;
    r->n_left -= n_bytes;
    return bits;
}

static uint32_t
take_32(struct row *r)
{
    return (uint32_t)take_bits(r, 4);
}

static uint32_t
take_8(struct row *r)
{
    return (uint32_t)take_bits(r, 1);
}

/* Of 1 or 2 bytes, in two's complement. */
static int32_t
take_signed(struct row *r, size_t n_bytes)
{
    int32_t bits = (int32_t)take_bits(r, n_bytes);
    int32_t half = 1 << (8 * n_bytes - 1);

    return bits < half ? bits : bits - 2 * half;
}

static int64_t
take_number(struct row *r)
{
    uint64_t bits = take_bits(r, 8);
    double   value;

    memcpy(&value, &bits, sizeof value);
    if (!(value > -(double)EXACT_END && value < (double)EXACT_END)) {
        r->failed = true;
        return 0;
    }
    return (int64_t)value;
}

static const char *
take_text(struct row *r)
{
    const char *text = r->at;
    const char *end  = memchr(text, '\0', r->n_left);

    if (end == NULL) {
        r->failed = true;
        return "";
    }
    r->n_left -= (size_t)(end - text) + 1;
    r->at = end + 1;
    return text;
}

/* Read the fields in the order of CHANGING_FORMAT and FIXED_FORMAT. The rest of the row is its
 * payload and result. */
static bool
take_job(struct row *r, struct il__job *j, il_job_info *info)
{
    j->state      = (il_job_state)take_8(r);
    j->last       = (enum il__job_last)take_8(r);
    j->expires_ms = take_number(r);
    j->updated_ms = take_number(r);
    (void)take_32(r); /* bytes of the result */
    j->attempt      = take_32(r);
    j->progress     = take_signed(r, 1);
    j->token        = (uint64_t)take_number(r);
    j->is_sealed    = take_8(r) != 0;
    j->cancelled    = take_8(r) != 0;
    j->silent       = take_8(r) != 0;
    j->lease_ms     = take_number(r);
    j->run_at_ms    = take_number(r);
    j->started_ms   = take_number(r);
    info->worker    = take_text(r);
    info->error     = take_text(r);
    info->message   = take_text(r);
    j->seq          = (uint64_t)take_number(r);
    j->priority     = take_signed(r, 2);
    j->max_attempts = take_32(r);
    j->is_parent    = take_8(r) != 0;
    j->n_children   = take_32(r);
    (void)take_number(r); /* the parent's seq */
    j->unique_until_ms  = take_number(r);
    j->created_ms       = take_number(r);
    info->payload_bytes = take_32(r);
    (void)take_8(r); /* whether its names need escapes in JSON */
    info->queue      = take_text(r);
    info->parent     = take_text(r);
    info->group      = take_text(r);
    info->unique_key = take_text(r);
    if (j->state == IL_JOB_COMPLETED)
        j->completed_ms = j->updated_ms;
    return !r->failed && !j->is_parent &&
           (j->state == IL_JOB_RUNNING || j->state == IL_JOB_COMPLETED);
}

/* Copy the strings of the row, which belong to the reply, to the op: they are contiguous, from the
 * worker's on. */
static bool
keep_texts(il_op *op, const struct row *r, il_job_info *info)
{
    const char **const texts[] = { &info->error, &info->message,    &info->queue, &info->parent,
                                   &info->group, &info->unique_key, &info->worker };
    const char        *first   = info->worker;
    const char        *copy    = il__op_blob(op, first, (size_t)(r->at - first));

    for (size_t i = 0; copy != NULL && i < ARRAY_LEN(texts); i++)
        *texts[i] = copy + (*texts[i] - first);
    return copy != NULL;
}

/* ---- replies --------------------------------------------------------------------------------- */

/* Add a job to the results. *ret: the rest of its row, its payload first; it is not shown yet.
 * NULL: it makes no sense, or no memory. */
static il_job_info *
add_job(struct remote_store *s, il_op *op, const redisReply *stored, const il_job_info *names,
        int64_t now_ms, struct row *ret)
{
    static const struct il__children none = { 0 };
    struct il__job                   job  = { 0 };
    il_job_info                      info = *names;

    if (stored->type != REDIS_REPLY_STRING || info.id == NULL || info.tenant == NULL)
        return NULL;
    *ret = (struct row){ .at = stored->str, .n_left = stored->len };
    if (!take_job(ret, &job, &info) || !keep_texts(op, ret, &info))
        return NULL;
    il__job_show(&job, &none, now_ms, job.updated_ms, &info);
    il_job_info *slot = il__arena_append(&op->mem, &op->out.jobs, &op->out.n_jobs, sizeof *slot);
    if (slot == NULL)
        return NULL;
    *slot = info;
    if (op->out.n_jobs == 1) {
        op->out.fence        = info.token;
        op->out.remaining_ms = info.remaining_ms;
    }
    /* Wake its waiters in this process; the server has notified the others. */
    il__board_wake(&s->board, il__board_slot(op->tenant, info.id, IL__WAKE_JOB));
    return slot;
}

static bool
decode_finish(struct remote_store *s, il_op *op, const redisReply *r)
{
    const il_job_info names = { .tenant = il__op_strdup(op, op->tenant),
                                .id     = il__op_strdup(op, op->in.job.id) };
    struct row        rest;

    il_job_info *job = add_job(s, op, r, &names, 0, &rest);
    if (job == NULL)
        return false;
    job->payload_bytes = 0; /* neither payload nor result is shown */
    return job->state == IL_JOB_COMPLETED;
}

/* The payload is in the row or, if large, in the next element. */
static bool
keep_payload(il_op *op, il_job_info *job, const struct row *rest, const redisReply *r, size_t *i)
{
    const char *data = rest->at;

    if (job->payload_bytes > rest->n_left) {
        if (*i == r->elements || r->element[*i]->type != REDIS_REPLY_STRING ||
            r->element[*i]->len != job->payload_bytes)
            return false;
        data = r->element[(*i)++]->str;
    }
    job->payload = il__op_blob(op, data, job->payload_bytes);
    return job->payload != NULL;
}

static bool
decode_claim(struct remote_store *s, il_op *op, const redisReply *r)
{
    struct row  head  = { .at = r->element[0]->str + 1, .n_left = r->element[0]->len - 1 };
    il_job_info names = { .tenant = il__op_strdup(op, op->tenant) };
    struct row  rest;

    op->out.flags  = take_32(&head);
    int64_t now_ms = take_number(&head);
    for (size_t i = 1; i < r->elements;) {
        if (i + 1 == r->elements || r->element[i]->type != REDIS_REPLY_STRING)
            return false;
        names.id         = il__op_strdup(op, r->element[i]->str);
        il_job_info *job = add_job(s, op, r->element[i + 1], &names, now_ms, &rest);
        i += 2;
        if (job == NULL || job->state != IL_JOB_RUNNING || !keep_payload(op, job, &rest, r, &i))
            return false;
    }
    return !head.failed && op->out.n_jobs > 0;
}

/* Of an acquire the fence: the TTL has begun. Of a release nothing: no other lease of this key is
 * known. */
static bool
decode_integer(il_op *op, const redisReply *r)
{
    if (op->type == IL_OP_ACQUIRE && r->integer > 0) {
        op->out.fence        = (uint64_t)r->integer;
        op->out.remaining_ms = op->in.lock.ttl_ms;
        return true;
    }
    return op->type == IL_OP_RELEASE && r->integer == 0;
}

bool
il__redis_decode(struct remote_store *s, il_op *op, const void *packed)
{
    const redisReply *r = packed;

    op->status = IL_OK;
    if (r->type == REDIS_REPLY_INTEGER)
        return decode_integer(op, r);
    if (r->type == REDIS_REPLY_STRING)
        return op->type == IL_OP_JOB_FINISH && decode_finish(s, op, r);
    return op->type == IL_OP_JOB_CLAIM && decode_claim(s, op, r);
}

/* As described in lua/apply.lua: an integer, a string, or an array that begins with the head of a
 * claim. */
bool
il__redis_is_packed(const redisReply *r)
{
    if (r->type == REDIS_REPLY_INTEGER || r->type == REDIS_REPLY_STRING)
        return true;
    return r->type == REDIS_REPLY_ARRAY && r->elements > 0 &&
           r->element[0]->type == REDIS_REPLY_STRING && r->element[0]->len >= HEAD_BYTES &&
           r->element[0]->str[0] == PACKED_CLAIMED;
}

void
il__redis_complete(redisReply *r, const redisReply **first)
{
    if (r->type != REDIS_REPLY_STRING || r->len < STAMP_BYTES)
        return;
    if (r->str[0] == IL_JOB_COMPLETED)
        *first = r;
    else if (*first != NULL)
        memcpy(r->str, (*first)->str, STAMP_BYTES);
}

bool
il__redis_take_packed(struct remote_call *call, size_t i, const redisReply *r)
{
    if (r->type == REDIS_REPLY_ARRAY && r->element[0]->len > HEAD_BYTES &&
        !il__remote_take_wakes(call, r->element[0]->str + HEAD_BYTES,
                               r->element[0]->len - HEAD_BYTES))
        return false;
    return il__remote_take_packed(call, i, r);
}
