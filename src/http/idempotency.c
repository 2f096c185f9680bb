/*
 * idempotency.c: Idempotency-Key on creating calls: one effect and one answer per key.
 *
 *   begin    claims the key (ONCE_BEGIN), with the id of the object to create as its meta; unless
 *            the answer exists already, or another attempt is running
 *   the handler runs, with that id
 *   finish   stores its answer (ONCE_FINISH), then sends it
 *
 * These are three commits: an answer must be known before it can be stored, and nothing may be
 * created without a claim. If the server dies between creating and finishing, the claim ends after
 * a minute; the next attempt gets the meta of the first, creates the object with the same id, and
 * the store answers that it exists. So it is created once, whenever the crash happens.
 *
 * Answers that mean that nothing was attempted (400, 401, 403, 429, 5xx) are not kept: the claim is
 * abandoned, and the call may be repeated.
 */
#include <stdio.h>

#include "base/parse.h"
#include "data/data.h"
#include "data/libsodium.h"
#include "http/handler.h"
#include "http/metrics.h"
#include "http/server.h"

#define WAIT_MS 10000 /* wait for the first attempt's answer, unless ?wait is given */
#define CLAIM_MS 60000
#define FINGERPRINT_BYTES 32
#define UUID_BYTES 37

struct http_once {
    il_op         op;
    const char   *key;
    char          attempt[UUID_BYTES];
    char          id[IL_ID_BYTES_MAX + 1]; /* of the object being created */
    unsigned char fingerprint[FINGERPRINT_BYTES];
    uint64_t      token;
    int64_t       wait_ms; /* wait for another attempt's answer; 0 = already waited */
    int           status;  /* of the answer that is being stored */
};

/* ---- the key and the request ----------------------------------------------------------------- */

/* A hash of several texts that keeps them apart. It is keyed with the pepper: someone who can
 * read the store can neither test guesses of a body nor compute an entry's name. */
static void
hash(const struct http_request *r, unsigned char out[FINGERPRINT_BYTES],
     const struct il__buf *parts, size_t n)
{
    static const char            purpose[] = "interlock: Idempotency-Key";
    unsigned char                key[DATA_HASH_BYTES];
    crypto_auth_hmacsha256_state state;

    _Static_assert(crypto_auth_hmacsha256_BYTES == FINGERPRINT_BYTES,
                   "the fingerprint is the hash");
    il__data_key_hash(r->server->data, purpose, sizeof purpose, key);
#ifdef IL_MUTANT_fingerprint_without_pepper
    memset(key, 0, sizeof key);
#endif
    (void)il__sodium->crypto_auth_hmacsha256_init(&state, key, sizeof key); /* cannot fail */
    for (size_t i = 0; i < n; i++) {
        uint64_t n_bytes = parts[i].n_bytes;
        (void)il__sodium->crypto_auth_hmacsha256_update(&state, (const unsigned char *)&n_bytes,
                                                        sizeof n_bytes);
        (void)il__sodium->crypto_auth_hmacsha256_update(
            &state, (const unsigned char *)parts[i].data, n_bytes);
    }
    (void)il__sodium->crypto_auth_hmacsha256_final(&state, out);
}

static struct il__buf
text_part(const char *text)
{
    static char empty[1];

    return (struct il__buf){ .data    = text != NULL ? (char *)(uintptr_t)text : empty,
                             .n_bytes = text != NULL ? strlen(text) : 0 };
}

static bool
is_printable(const char *key)
{
    size_t n_bytes = strlen(key);

    if (n_bytes == 0 || n_bytes > IL_ONCE_KEY_BYTES_MAX)
        return false;
    for (size_t i = 0; i < n_bytes; i++) {
        if (key[i] < ' ' || key[i] > '~')
            return false;
    }
    return true;
}

/*
 * The store key of an answer: NAMES and a hash of the header's value, in the caller's tenant.
 * once_* ops of clients cannot name it (http_once_reserved()), so clients can neither read nor
 * forge the server's answers. Callers with a prefix have separate keys, so that they cannot learn
 * from another caller's key what was created outside their prefix.
 */
#define NAMES "idempotency-key:"

bool
http_once_reserved(const il_op *op)
{
    return op->type >= IL_OP_ONCE_BEGIN && op->type <= IL_OP_ONCE_GET && op->key != NULL &&
           strncmp(op->key, NAMES, strlen(NAMES)) == 0;
}

static const char *
key_for(struct http_request *r)
{
    enum {
        TEXT_BYTES = sizeof NAMES + 2 * FINGERPRINT_BYTES
    };
    unsigned char  digest[FINGERPRINT_BYTES];
    struct il__buf parts[] = { text_part(r->caller->prefix), text_part(r->idempotency_key) };
    char          *text    = http_alloc(r, TEXT_BYTES);

    if (text == NULL)
        return NULL;
    hash(r, digest, parts, ARRAY_LEN(parts));
    memcpy(text, NAMES, sizeof NAMES);
    il__hex_print(digest, sizeof digest, text + sizeof NAMES - 1);
    return text;
}

static void
take_fingerprint(struct http_request *r, struct http_once *once)
{
    struct il__buf parts[] = {
        text_part(r->method),
        text_part(r->path),
        { .data = (char *)(uintptr_t)(r->text != NULL ? r->text : ""), .n_bytes = r->n_bytes },
    };

#ifdef IL_MUTANT_fingerprint_ignored
    parts[2].n_bytes = 0;
#endif
    hash(r, once->fingerprint, parts, ARRAY_LEN(parts));
}

/* ---- ids ------------------------------------------------------------------------------------- */

/* The n-th id after a UUID: its last, random part plus n. */
static void
id_after(const char *uuid, size_t n, char out[UUID_BYTES])
{
    const char *node = uuid + 24;
    uint64_t    last = strtoull(node, NULL, 16);

    (void)snprintf(out, UUID_BYTES, "%.24s%012llx", uuid,
                   (unsigned long long)((last + n) & UINT64_C(0xFFFFFFFFFFFF)));
}

const char *
http_new_id(struct http_request *r, size_t n)
{
    char *id = http_calloc(r, UUID_BYTES);

    if (id == NULL)
        return NULL;
    if (r->once != NULL && strlen(r->once->id) == UUID_BYTES - 1) {
        id_after(r->once->id, n, id);
        return id;
    }
    if (il_uuid(id) == IL_OK)
        return id;
    http_fail(r, 503, il_status_name(IL_STORE), "request", NULL, "cannot read random bytes");
    return NULL;
}

/* ---- begin ----------------------------------------------------------------------------------- */

/* Only final statuses are ever stored; libmicrohttpd treats 1xx differently. */
static void
replay(struct http_request *r, const il_op *op)
{
    if (op->out.code < 200 || op->out.code > 599) {
        http_fail(r, 500, "INTERNAL", "idempotency", NULL,
                  "the stored response is corrupt: its status is %d", (int)op->out.code);
        return;
    }
    http_count(r->server, HTTP_COUNT_replayed, 1);
    http_header(r, "Idempotent-Replayed", "true");
    il__buf_add(&r->out, op->out.value, op->out.value_bytes);
    http_answer(r, op->out.code);
}

/* {"id": …, "retry_after_ms": …} */
static void
fail_with_id(struct http_request *r, int status, const char *code, const char *id, int64_t retry_ms,
             const char *text)
{
    AUTO_BUF struct il__buf details = { 0 };

    il__buf_init(&details, 1024);
    il__wire_open(&details, NULL);
    il__wire_put_text(&details, "id", id != NULL && id[0] != '\0' ? id : NULL);
    if (retry_ms > 0) {
        il__wire_put_int(&details, "retry_after_ms", retry_ms);
        http_retry_after(r, retry_ms);
    }
    il__wire_close(&details);
    http_fail(r, status, code, "idempotency", il__buf_str(&details), "%s", text);
}

/* The key was used for another request: the id that request created is in its answer, if it has
 * one already, else in its meta. */
static void
found_existing(struct http_request *r)
{
    static const char *const ids[]  = { "id", "pipeline_logging_id" };
    const il_op             *op     = r->ops;
    json_t                  *answer = NULL;
    const char              *id     = op->out.meta;

    if (op->status == IL_REPLAY)
        answer = json_loadb(op->out.value, op->out.value_bytes, 0, NULL);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        if (json_is_string(json_object_get(answer, ids[i])))
            id = json_string_value(json_object_get(answer, ids[i]));
    }
    fail_with_id(r, 422, "IDEMPOTENCY_MISMATCH", id, 0,
                 "this Idempotency-Key was used for a different request");
    json_decref(answer);
}

static void
mismatch(struct http_request *r, struct http_once *once)
{
    il_op_release(&once->op);
    once->op = (il_op){ .type = IL_OP_ONCE_GET, .key = once->key };
    http_do_own(r, &once->op, 0, found_existing);
}

static void
granted(struct http_request *r, struct http_once *once)
{
    const il_op_out *out = &once->op.out;

    once->token = out->fence;
    if ((out->flags & IL_OUT_TAKEOVER) != 0 && out->meta != NULL && out->meta[0] != '\0')
        (void)snprintf(once->id, sizeof once->id, "%s", out->meta);
    il_op_release(&once->op);
    r->ops     = NULL;
    r->n_ops   = 0;
    r->once    = once;
    r->wait_ms = 0;
    http_handle(r);
}

static void begun(struct http_request *r);

/* Only a request that meets another attempt takes one of the tenant's long-poll places. */
static void
wait_for_first(struct http_request *r, struct http_once *once)
{
    int64_t wait_ms = once->wait_ms;

    il_op_release(&once->op);
    once->wait_ms = 0;
    r->state      = once;
    http_do_own(r, &once->op, wait_ms, begun);
}

static void
begun(struct http_request *r)
{
    struct http_once *once = r->state;

    r->state = NULL;
    switch (once->op.status) {
    case IL_OK:
        granted(r, once);
        return;
    case IL_REPLAY:
        replay(r, &once->op);
        return;
    case IL_MISMATCH:
        mismatch(r, once);
        return;
    case IL_BUSY:
        if (once->wait_ms > 0) {
            wait_for_first(r, once);
            return;
        }
        fail_with_id(r, 409, il_status_name(IL_BUSY), once->op.out.meta, 1000,
                     il_status_text(IL_BUSY));
        return;
    default:
        http_fail_op(r, &once->op, NULL);
        return;
    }
}

void
http_once_begin(struct http_request *r)
{
    if (!is_printable(r->idempotency_key)) {
        http_fail(r, 400, il_status_name(IL_INVAL), "idempotency", NULL,
                  "Idempotency-Key must be 1 to %d printable ASCII characters",
                  IL_ONCE_KEY_BYTES_MAX);
        return;
    }
    struct http_once *once  = http_calloc(r, sizeof *once);
    const char       *named = json_string_value(json_object_get(r->body, "id"));
    if (once == NULL)
        return;
    once->key     = key_for(r);
    once->wait_ms = r->wait_ms > 0 ? r->wait_ms : WAIT_MS;
    if (once->key == NULL || il_uuid(once->attempt) != IL_OK) {
        http_fail_nomem(r);
        return;
    }
    (void)snprintf(once->id, sizeof once->id, "%s", named != NULL ? named : once->attempt);
    take_fingerprint(r, once);
    once->op = (il_op){
        .type    = IL_OP_ONCE_BEGIN,
        .key     = once->key,
        .holder  = once->attempt,
        .in.once = { .fingerprint       = once->fingerprint,
                     .fingerprint_bytes = sizeof once->fingerprint,
                     .lease_ms          = CLAIM_MS + r->wait_ms,
                     .meta              = once->id },
    };
    r->state = once;
    http_do_own(r, &once->op, 0, begun);
}

/* ---- finish ---------------------------------------------------------------------------------- */

static bool
is_kept(int status)
{
    return status < 500 && status != 400 && status != 401 && status != 403 && status != 429 &&
           status != 499;
}

/* The answer as it is stored: without its secret, which is shown only once. NULL: out of memory. */
static char *
without_secret(struct http_request *r)
{
    json_t *answer = json_loadb(il__buf_str(&r->out), r->out.n_bytes, 0, NULL);
    char   *text   = NULL;
    char   *copy   = NULL;

    if (json_object_get(answer, "key") != NULL &&
        json_object_set_new(answer, "key", json_null()) == 0)
        text = json_dumps(answer, JSON_COMPACT);
    if (text != NULL)
        copy = il__arena_strdup(&r->mem, text);
    free(text);
    json_decref(answer);
    return copy;
}

/* The outcome does not matter: if the claim had expired, the attempt that took it over creates
 * the same object and gives the same answer. */
static void
stored(struct http_request *r)
{
    struct http_once *once = r->state;

    http_answer(r, once->status);
}

bool
http_once_answer(struct http_request *r, int status)
{
    struct http_once *once = r->once;
    const char       *text = il__buf_str(&r->out);
    size_t            n    = r->out.n_bytes;

    CHECK(once != NULL);
    r->once = NULL;
    if (r->out.failed)
        return false;
    if (n > IL_BLOB_BYTES_MAX)
        text = "{\"message\":\"the response was too large to be stored\"}";
    else if (status < 300 && (r->route->flags & HTTP_SECRET) != 0)
        text = without_secret(r);
    if (text == NULL)
        text = "{}";
    if (text != il__buf_str(&r->out))
        n = strlen(text);
    if (r->ops != NULL && r->ops != &r->op) {
        for (size_t i = 0; i < r->n_ops; i++)
            il_op_release(&r->ops[i]);
    }
    once->status = status;
    once->op     = (il_op){ .type   = is_kept(status) ? IL_OP_ONCE_FINISH : IL_OP_ONCE_ABANDON,
                            .key    = once->key,
                            .holder = once->attempt,
                            .fence  = once->token };
    if (is_kept(status)) {
        once->op.in.once.response       = text;
        once->op.in.once.response_bytes = n;
        once->op.in.once.code           = status;
    }
    r->state = once;
    http_do_own(r, &once->op, 0, stored);
    return true;
}

/* ---- POST /idempotency/get ------------------------------------------------------------------- */

static void
shown(struct http_request *r)
{
    const il_op *op = r->ops;

    if (op->status != IL_REPLAY && op->status != IL_BUSY) {
        http_fail_op(r, op, NULL);
        return;
    }
    struct http_once_shown once = {
        .key            = op->key,
        .status         = il_status_name(op->status),
        .meta           = op->out.meta,
        .response       = op->out.value,
        .response_bytes = op->out.value_bytes,
        .code           = op->out.code,
        .age_ms         = op->out.age_ms,
        .remaining_ms   = op->out.remaining_ms,
    };
    http_say(r, 200, &http_out_once, &once);
}

void
http_once_get(struct http_request *r)
{
    http_do(r, shown);
}
