/*
 * wire.h: ops, leases, runs, jobs, queues as JSON, in both directions. The server, its clients and `--json` of the commands all use it, so
 * that the same thing looks the same everywhere.
 *
 * What a JSON object looks like is a table (struct wire_object): parsing, printing, error messages and the schemas of /openapi.json come from
 * it. Rules for all: times are RFC 3339 UTC with milliseconds (`…_at`), durations are integers (`…_ms`), fences and tokens are numbers; "not there" is
 * null. Unknown fields, wrong types, numbers out of range are refused, and the message names the field and the reason.
 */
#ifndef IL_WIRE_WIRE_H
#define IL_WIRE_WIRE_H

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"

enum wire_kind {
    WIRE_TEXT,   /* const char *; min..max bytes; "" is printed as null unless NOT_NULL */
    WIRE_INT32,  /* int32_t, min..max (both 0: all that JSON holds exactly) */
    WIRE_UINT32, /* uint32_t */
    WIRE_INT64,  /* int64_t */
    WIRE_UINT64, /* uint64_t below 2^53: fences, tokens, counters. With `bit`: that bit of the uint32_t at offset2 says whether it was given */
    WIRE_BOOL,   /* bit `bit` of the uint32_t at offset, as true and false */
    WIRE_CHOICE, /* int32-sized enum at offset: `min` + index of one of `choices`, by name; what is below min is null */
    WIRE_SET,    /* uint32_t at offset: 1 << such a choice, or'ed; "a,b" or ["a","b"] */
    WIRE_BYTES,  /* const void * at offset, size_t at offset2, at most `max`; see below */
    WIRE_TIME,   /* int64_t ms since 1970; 0 is null. With MINUS: INT64_MAX, never, is null */
    WIRE_WAIT,   /* int64_t ms; -1 (IL_FOREVER) is "forever" */
    WIRE_OBJECT, /* struct at offset, `object` says of what. With `bit`: null unless one of these bits of the uint32_t at offset2 is set */
    WIRE_OBJECTS, /* array: pointer at offset, size_t number at offset2, of `object` */
    WIRE_META, /* const char *: a text; printed as the JSON value that it is the text of, if it is (unless WIRE_RAW_META) */
    WIRE_SIZE, /* size_t at offset2, of bytes at offset (a WIRE_BYTES row before this one); null if there are none */
    WIRE_ELAPSED, /* int64_t at offset minus int64_t at offset2, null unless both are set; printed only */
};

enum wire_field_flags {
    WIRE_REQUIRED = 1 << 0, /* must be given, or have been set before the parse (from the path) */
    WIRE_NOT_NULL = 1 << 1, /* printed also when it is "" or 0 */
    WIRE_MINUS    = 1 << 2, /* a number: -1 is null: unknown, unlimited, for ever; 0 is 0 */
    WIRE_HIDE = 1 << 3, /* left out when there is nothing ("", 0, false, NULL), instead of printed */
    WIRE_ALIAS =
        1 << 4, /* another name of the field that stands just before it: accepted, never printed, not in the schema */
};

struct wire_object;

struct wire_field {
    const char               *name;
    enum wire_kind            kind;
    unsigned                  flags; /* enum wire_field_flags */
    size_t                    offset, offset2;
    int64_t                   min, max;
    uint32_t                  bit;
    const char *const        *choices; /* NULL-terminated; NULL entries inside are not possible */
    const struct wire_object *object;
    const char               *help; /* for people: /openapi.json */
    int (*choose)(const char *text); /* further names of choices: the value, or below `min`; may be NULL */
};

#define WIRE_FIELDS_MAX 64 /* of one object */

enum wire_object_flags {
    WIRE_ANSWER =
        1 << 0, /* made by us: a text that is null or missing is "", not NULL (unless NOT_NULL and HIDE); unknown fields are passed over: a newer server's */
};

struct wire_object {
    const char              *name; /* of the schema: "Lease" */
    const struct wire_field *fields;
    size_t                   n_fields;
    const char              *help;
    size_t bytes; /* of the struct: needed where it is an element of WIRE_OBJECTS that is parsed */
    unsigned flags; /* enum wire_object_flags */
};

/* ---- tables (inputs.c, items.c) -------------------------------------------------------------------------------------------- */

/*
 * The fields of each op's inputs, by op type, as POST /api/v1/batch takes them (beside "op"); offsets into il_op. A route takes a part
 * of it from its path: it sets those members before the parse; they are then no longer required, and may not be given again (texts, and whatever is required).
 *
 * The names: key (a lock, run, idempotency or cache key), queue, id (run, job), holder, attempt (idempotency), worker (claim), fence (leases,
 * runs), token (attempts, jobs, builds), ttl_ms, wait_ms, settle_ms, keep_ms, lease_ms, delay_ms, mode, permits, meta, place, reason, …
 */
extern const struct wire_object il__wire_inputs[IL_OP_COUNT];

/*
 * wait_ms. ACQUIRE and RUN_START have one of their own (in.lock.wait_ms, in.run.wait_ms: how long they stay in the queue). The other ops
 * that can be waited for (ONCE_BEGIN, JOB_CLAIM, JOB_GET, RUN_GET, RUN_LOG, CACHE_GET, CACHE_LOOKUP) have none, for the store does not know
 * of it; their `wait_ms` is kept in a reserved word of the il_op, for whoever keeps the request open.
 */
static inline int64_t
il__wire_wait_ms(const il_op *op)
{
    if (op->type == IL_OP_ACQUIRE)
        return op->in.lock.wait_ms;
    if (op->type == IL_OP_RUN_START)
        return op->in.run.wait_ms;
    return (int64_t)op->reserved[5];
}

/* What the answers are made of: il_lease_info (of leases, and of waiters), il_run_info, … */
extern const struct wire_object il__wire_lease, il__wire_waiter, il__wire_run, il__wire_job,
    il__wire_queue, il__wire_queue_settings, il__wire_cron, il__wire_cache_stats, il__wire_sweep;

/* What an op of this type and with these il_op.flags can tell (il_op_out), as il__wire_print_result() prints it beside "status". */
const struct wire_object *il__wire_result(il_op_type type, uint32_t flags);

/* ---- parsing ------------------------------------------------------------------------------------------------------------- */

#define WIRE_DEPTH_MAX 32
#define WIRE_VALUES_MAX 262144 /* in one text: each costs a hundred times its two bytes */

/* Text to JSON, strictly: one value, UTF-8, no name twice in an object, no depth beyond WIRE_DEPTH_MAX, not more than WIRE_VALUES_MAX values, no NUL. IL_INVAL says what and where. */
il_status il__wire_load(const char *text, size_t n_bytes, json_t **ret, il_error *reterr) MUST_USE;
/* The same for what a server says: there may be as many values as it has to tell. */
il_status il__wire_load_answer(const char *text, size_t n_bytes, json_t **ret, il_error *reterr)
    MUST_USE;

/* Zero it, set the type, and the defaults that are not zero (progress: -1, as before). Before il__wire_parse() into an op. */
void il__wire_op_init(il_op *op, il_op_type type);

/*
 * An object into a struct by its table. Fields that are missing leave their member as it is; null is "nothing": NULL, 0, or -1 with WIRE_MINUS. Strings are
 * borrowed from `json`; what must be made (bytes from base64, text of nested JSON) lives in `mem`. Fields that `also` (may be NULL) has are
 * passed over: they are somebody else's. IL_INVAL: "field 'ttl_ms': 12 is below 1000", "unknown field 'tll_ms' (did you mean 'ttl_ms'?)", …
 */
il_status il__wire_parse(const struct wire_object *o, const struct wire_object *also,
                         const json_t *json, void *into, void **mem, il_error *reterr) MUST_USE;

/* The same from a text, as a query string has it: one field by name. Numbers, true, false (also 1, 0), times, "a,b" for sets, 30s or 30000 for waits. A text that
 * was given before is refused. `text` is borrowed. */
il_status il__wire_parse_text(const struct wire_object *o, const char *name, const char *text,
                              void *into, void **mem, il_error *reterr) MUST_USE;
/* Is everything there that is required? After the last il__wire_parse_text(). */
il_status il__wire_complete(const struct wire_object *o, const void *into, il_error *reterr) MUST_USE;

/* An element of a batch: {"op": "acquire", …}. *op is set up completely (as il__wire_op_complete() does it); tenant stays NULL. */
il_status il__wire_parse_op(const json_t *json, il_op *op, void **mem, il_error *reterr) MUST_USE;

/* Names that a caller may leave out, made: new UUIDs for the id of a push, a run, a claim, for the holder of an acquire and of a look-up; the id as holder of a
 * run and as worker of a claim. In `mem`. */
il_status il__wire_op_complete(il_op *op, void **mem, il_error *reterr) MUST_USE;

/* ---- printing ------------------------------------------------------------------------------------------------------------ */

/*
 * BYTES (payloads, results, values, responses): given as a JSON string they are its UTF-8 text; as any other JSON value, the
 * compact text of that; as "<name>_base64", what that says. They are printed as the JSON value if they are the text of an object or an array
 * (unless WIRE_RAW_BYTES), else as a string if they are UTF-8 without NUL, else as null beside "<name>_base64".
 */
enum wire_print_flags {
    WIRE_RAW_BYTES = 1 << 0, /* bytes as they are, never as JSON */
    WIRE_RAW_META  = 1 << 1, /* the same for WIRE_META */
    WIRE_NUL = 1 << 2, /* a NUL in bytes may stand in a string, as \u0000; not everybody takes it (we do not) */
    WIRE_RAW = WIRE_RAW_BYTES | WIRE_RAW_META, /* for clients that need all of it exactly */
};
void il__wire_print(struct il__buf *b, const struct wire_object *o, const void *from, unsigned flags);
/* The fields alone, each with a comma behind it: for objects that are put together from several. */
void il__wire_print_fields(struct il__buf *b, const struct wire_object *o, const void *from,
                           unsigned flags);

/* A JSON string with quotes, escaped (NULL: null; what is not UTF-8 becomes U+FFFD); a time in quotes, 0 = null. */
void il__wire_print_text(struct il__buf *b, const char *text);
void il__wire_print_time(struct il__buf *b, int64_t wall_ms);

/* {"items":[…],"next":…} */
void il__wire_print_page(struct il__buf *b, const struct wire_object *o, const void *items,
                         size_t item_bytes, size_t n, const char *next, unsigned flags);

/*
 * By hand, for answers that are no table: il__wire_open() prints "{" (or "name":{ ), il__wire_put_*() one member with a comma behind it,
 * il__wire_close() a "}" in place of the last comma. il__wire_name() is "name": for whatever follows. Names are printed as they are.
 */
void il__wire_open(struct il__buf *b, const char *name);
void il__wire_close(struct il__buf *b); /* without a comma behind it: il__buf_addc(b, ',') if more follows */
void il__wire_name(struct il__buf *b, const char *name);
void il__wire_put_text(struct il__buf *b, const char *name, const char *text); /* NULL is null, "" is "" */
void il__wire_put_int(struct il__buf *b, const char *name, int64_t number);
void il__wire_put_bool(struct il__buf *b, const char *name, bool value);
void il__wire_put_null(struct il__buf *b, const char *name);
void il__wire_put_time(struct il__buf *b, const char *name, int64_t wall_ms);
void il__wire_put_bytes(struct il__buf *b, const char *name, const void *data, size_t n_bytes,
                        unsigned flags);
void il__wire_put_object(struct il__buf *b, const char *name, const struct wire_object *o,
                         const void *from, unsigned flags);
void il__wire_put_objects(struct il__buf *b, const char *name, const struct wire_object *o,
                          const void *items, size_t item_bytes, size_t n, unsigned flags);

/*
 * What an op ended with, complete: what an element of "results" of POST /api/v1/batch is. {"status":"OK", …}: the status's wire name; the holder (ACQUIRE, CACHE_LOOKUP); then what
 * this type of op can tell, lossless together with WIRE_RAW; "detail" is a sentence. il__wire_parse_result() is its inverse: it sets op->status and op->out
 * (memory of the op's; op->type and op->flags as they were applied). A status that is none of ours (FORBIDDEN, …) is IL_INVAL, with its "message" (or itself)
 * as the detail. IL_INVAL: not such an object; IL_NOMEM.
 */
void      il__wire_print_result(struct il__buf *b, const il_op *op, unsigned flags);
il_status il__wire_parse_result(const json_t *json, il_op *op, il_error *reterr) MUST_USE;
/* An op's inputs as an element of "ops" (fields that have their default are left out): for clients. */
void il__wire_print_op(struct il__buf *b, const il_op *op);

/* Base64 (RFC 4648, with padding). Decoding is strict: no spaces, no missing padding, no bits beyond the end; `out` has room for n_bytes / 4 * 3. */
void il__wire_base64(struct il__buf *b, const void *data, size_t n_bytes);
bool il__wire_base64_decode(const char *text, size_t n_bytes, unsigned char *out, size_t *ret_bytes);

/* ---- schemas ------------------------------------------------------------------------------------------------------------- */

/* JSON Schema 2020-12 of an object; nested ones as {"$ref": "#/components/schemas/NAME"}. NULL: no memory. */
json_t *il__wire_schema(const struct wire_object *o);

#endif
