/*
 * wire.h: converts ops, leases, runs, jobs and queues to and from JSON. Used by the server, its
 * clients and the commands' `--json`, so that an object looks the same everywhere.
 *
 * A table (struct wire_object) describes each JSON object: parsing, printing, error messages and
 * the schemas of /openapi.json are derived from it. Rules for all: times are RFC 3339 UTC with
 * milliseconds (`…_at`), durations are integers (`…_ms`), fences and tokens are numbers; a missing
 * value is null. Unknown fields, wrong types and numbers out of range are refused, and the message
 * names the field and the reason.
 *
 *   objects.c      tables of what the server returns: leases, runs, jobs, queues, schedules,
 *                  results
 *   inputs.c       tables of the inputs of each op
 *   op.c           whole ops: elements of a batch and their results
 *   error.c        error codes and error answers
 *   why.c          why a key is not free
 *   parse.c        parses JSON into structs by their tables
 *   parse_query.c  the same for the fields of a query string
 *   value.c        single values: checks and stores them
 *   print.c        prints structs as JSON by their tables
 *   schema.c       JSON schemas of the tables
 *   json_parse.c   parses JSON text strictly
 *   lex.c          its tokens
 *   json_print.c   prints JSON values
 */
#ifndef IL_WIRE_WIRE_H
#define IL_WIRE_WIRE_H

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"

enum wire_kind {
    WIRE_TEXT,   /* const char *; min..max bytes; "" is printed as null unless NOT_NULL */
    WIRE_INT32,  /* int32_t, min..max (both 0: all that JSON represents exactly) */
    WIRE_UINT32, /* uint32_t */
    WIRE_INT64,  /* int64_t */
    /* uint64_t below 2^53: fences, tokens, counters. With `bit`: that bit of the uint32_t at
     * offset2 records whether it was given */
    WIRE_UINT64,
    WIRE_BOOL, /* bit `bit` of the uint32_t at offset, as true and false */
    /* int32-sized enum at offset: `min` + index of one of `choices`, by name; values below min are
     * null */
    WIRE_CHOICE,
    WIRE_SET,   /* uint32_t at offset: OR of 1 << such a choice; "a,b" or ["a","b"] */
    WIRE_BYTES, /* const void * at offset, size_t at offset2, at most `max`; see below */
    WIRE_TIME,  /* int64_t ms since 1970; 0 is null. With MINUS: INT64_MAX, never, is null */
    WIRE_WAIT,  /* int64_t ms; -1 (IL_FOREVER) is "forever" */
    /* struct at offset, described by `object`. With `bit`: null unless one of these bits of the
     * uint32_t at offset2 is set */
    WIRE_OBJECT,
    WIRE_OBJECTS, /* array of `object`: pointer at offset, size_t count at offset2 */
    WIRE_TEXTS,   /* array of strings: const char *const * at offset, size_t count at offset2 */
    /* const char *: a text; if it is valid JSON it is printed as that value (unless
     * WIRE_RAW_META) */
    WIRE_META,
    /* size_t at offset2, of bytes at offset (a WIRE_BYTES row before this one); null if none */
    WIRE_SIZE,
    /* int64_t at offset minus int64_t at offset2, null unless both are set; printed only */
    WIRE_ELAPSED,
    /* int64_t: a number with at most `digits` digits after the point, scaled by 10^digits (so are
     * min and max; both 0: all that fit). Printed with all its digits. With MINUS: INT64_MIN, no
     * value, is null. Documents with decimals are loaded with il__wire_load_for() */
    WIRE_DECIMAL,
};

enum wire_field_flags {
    WIRE_REQUIRED = 1 << 0, /* must be given, or have been set before the parse (from the path) */
    WIRE_NOT_NULL = 1 << 1, /* also printed when it is "" or 0 */
    WIRE_MINUS    = 1 << 2, /* a number: -1 is null: unknown, unlimited, forever; 0 is 0 */
    /* omitted when empty ("", 0, false, NULL) */
    WIRE_HIDE  = 1 << 3,
    WIRE_ALIAS = 1 << 4, /* alias of the field before it: accepted, never printed */
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
    /* additional names of choices: the value, or below `min`; may be NULL */
    int (*choose)(const char *text);
    const char *const *others; /* those names; NULL-terminated, NULL = none */
    unsigned           digits; /* of WIRE_DECIMAL, at most IL__DECIMAL_DIGITS_MAX */
};

#define WIRE_FIELDS_MAX 64 /* of one object */

enum wire_object_flags {
    WIRE_ANSWER =
        /* produced by us: a text that is null or missing is "", not NULL (unless NOT_NULL and
         * HIDE); unknown fields, from a newer server, are ignored */
        1 << 0,
};

struct wire_object {
    const char              *name; /* of the schema: "Lease" */
    const struct wire_field *fields;
    size_t                   n_fields;
    const char              *help;
    size_t   bytes; /* of the struct: needed if parsed as an element of WIRE_OBJECTS */
    unsigned flags; /* enum wire_object_flags */
};

/* ---- tables (inputs.c, objects.c) ------------------------------------------------------------ */

/*
 * The fields of each op's inputs, by op type, as POST /api/v1/batch accepts them (besides "op");
 * offsets into il_op. A route takes some of them from its path: it sets those members before the
 * parse; they are then no longer required, and may not be given again (texts, and required fields).
 *
 * The names: key (a lock, run, idempotency or cache key), queue, id (run, job), holder, attempt
 * (idempotency), worker (claim), fence (leases, runs), token (attempts, jobs, builds), ttl_ms,
 * wait_ms, settle_ms, keep_ms, lease_ms, delay_ms, mode, permits, meta, place, reason, …
 */
extern const struct wire_object il__wire_inputs[IL_OP_COUNT];

/*
 * wait_ms: ACQUIRE and RUN_START have their own (in.lock.wait_ms, in.run.wait_ms: how long they
 * stay in the queue). The other ops that can be waited for (ONCE_BEGIN, JOB_CLAIM, JOB_GET,
 * RUN_GET, RUN_LOG, CACHE_GET, CACHE_LOOKUP) have none, since the store does not need it; their
 * `wait_ms` is stored in the op's poll_ms, for the code that holds the request open.
 */
static inline int64_t
il__wire_wait_ms(const il_op *op)
{
    if (op->type == IL_OP_ACQUIRE)
        return op->in.lock.wait_ms;
    if (op->type == IL_OP_RUN_START)
        return op->in.run.wait_ms;
    return op->poll_ms;
}

/* The parts of answers: il_lease_info (of leases and of waiters), il_run_info, … */
extern const struct wire_object il__wire_lease, il__wire_waiter, il__wire_edge, il__wire_event,
    il__wire_run, il__wire_job, il__wire_queue, il__wire_queue_settings, il__wire_cron,
    il__wire_cache_stats, il__wire_sweep;

/* The results (il_op_out) that an op of this type with these il_op.flags can have, as
 * il__wire_print_result() prints them besides "status". */
const struct wire_object *il__wire_result(il_op_type type, uint32_t flags);

/* ---- parsing --------------------------------------------------------------------------------- */

#define WIRE_DEPTH_MAX 32
#define WIRE_VALUES_MAX 262144 /* in one text: each costs a hundred times its two bytes */

/*
 * Parse JSON strictly: one value, UTF-8, no duplicate names in an object, no depth beyond
 * WIRE_DEPTH_MAX, at most WIRE_VALUES_MAX values, no NUL. IL_INVAL says what is wrong and where.
 *
 * The document will be parsed with table `o` (may be NULL). If that has decimals, numbers with '.'
 * or an exponent are kept as they were written: only il__wire_parse() can read them. Such a
 * document has no numbers of more than 63 characters and no names of more than 255 bytes.
 */
il_status il__wire_load_for(const struct wire_object *o, const char *text, size_t n_bytes,
                            json_t **ret, il_error *reterr) MUST_USE;
/* The same for a server's response: the number of values is not limited. */
il_status il__wire_load_answer(const char *text, size_t n_bytes, json_t **ret, il_error *reterr)
    MUST_USE;

/* Zero it, set the type and the defaults other than zero (progress: -1, unchanged). Call before
 * il__wire_parse() into an op. */
void il__wire_op_init(il_op *op, il_op_type type);

/*
 * Parse an object into a struct by its table. A missing field leaves its member unchanged; null
 * resets it: NULL, 0, or -1 with WIRE_MINUS. Strings are borrowed from `json`; allocated values
 * (bytes from base64, text of nested JSON) live in `mem`. Fields in `also` (may be NULL) are
 * skipped: other code reads them. IL_INVAL: "field 'ttl_ms': 12 is below 1000", "unknown field
 * 'tll_ms' (did you mean 'ttl_ms'?)", …
 */
il_status il__wire_parse(const struct wire_object *o, const struct wire_object *also,
                         const json_t *json, void *into, void **mem, il_error *reterr) MUST_USE;

/* The same for text, as in a query string: one field by name. Numbers, true, false (also 1, 0),
 * times, "a,b" for sets, 30s or 30000 for waits. A text given twice is refused. `text` is
 * borrowed. */
il_status il__wire_parse_text(const struct wire_object *o, const char *name, const char *text,
                              void *into, void **mem, il_error *reterr) MUST_USE;
/* Are all required fields set? Call after the last il__wire_parse_text(). */
il_status il__wire_complete(const struct wire_object *o, const void *into, il_error *reterr)
    MUST_USE;

/* Parse an element of a batch: {"op": "acquire", …}. *op is set up completely (including
 * il__wire_op_complete()); tenant stays NULL. */
il_status il__wire_parse_op(const json_t *json, il_op *op, void **mem, il_error *reterr) MUST_USE;

/* Generate names that the caller omitted: new UUIDs for the id of a push, a run or a claim, and for
 * the holder of an acquire or a lookup; the id as holder of a run and as worker of a claim. In
 * `mem`. */
il_status il__wire_op_complete(il_op *op, void **mem, il_error *reterr) MUST_USE;

/* ---- printing -------------------------------------------------------------------------------- */

/*
 * BYTES (payloads, results, values, responses): given as a JSON string they are its UTF-8 text;
 * given as any other JSON value, its compact text; given as "<name>_base64", the decoded bytes.
 * They are printed as a JSON value if they are the text of an object or an array (unless
 * WIRE_RAW_BYTES), else as a string if they are UTF-8 without NUL, else as null plus
 * "<name>_base64".
 */
enum wire_print_flags {
    WIRE_RAW_BYTES = 1 << 0, /* bytes as they are, never as JSON */
    WIRE_RAW_META  = 1 << 1, /* the same for WIRE_META */
    /* print a NUL in bytes as \u0000 in a string; not every reader accepts it (we do not) */
    WIRE_NUL = 1 << 2,
    WIRE_RAW = WIRE_RAW_BYTES | WIRE_RAW_META, /* for clients that need all of it exactly */
};
void il__wire_print(struct il__buf *b, const struct wire_object *o, const void *from,
                    unsigned flags);
/* Only the fields, each with a trailing comma: for objects composed of several tables. */
void il__wire_print_fields(struct il__buf *b, const struct wire_object *o, const void *from,
                           unsigned flags);

/* A quoted, escaped JSON string (NULL: null; invalid UTF-8 becomes U+FFFD); a quoted time, 0 =
 * null. */
void il__wire_print_text(struct il__buf *b, const char *text);
void il__wire_print_time(struct il__buf *b, int64_t wall_ms);
/* The text as a JSON value if it is one, else as a string. */
void il__wire_print_json(struct il__buf *b, const char *text, size_t n_bytes);

/* {"items":[…],"next":…} */
void il__wire_print_page(struct il__buf *b, const struct wire_object *o, const void *items,
                         size_t item_bytes, size_t n, const char *next);

/*
 * By hand, for answers without a table: il__wire_open() prints "{" (or "name":{ ), il__wire_put_*()
 * one member with a trailing comma, il__wire_close() replaces the last comma with "}".
 * il__wire_name() prints "name": for any value that follows. Names are not escaped.
 */
void il__wire_open(struct il__buf *b, const char *name);
/* no trailing comma: il__buf_addc(b, ',') if more follows */
void il__wire_close(struct il__buf *b);
void il__wire_name(struct il__buf *b, const char *name);
/* NULL is null, "" is "" */
void il__wire_put_text(struct il__buf *b, const char *name, const char *text);
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
 * The complete result of an op: an element of "results" of POST /api/v1/batch. {"status":"OK", …}:
 * the status's wire name; the holder (ACQUIRE, CACHE_LOOKUP); then the results of this type of op,
 * lossless with WIRE_RAW; "detail" is a sentence. il__wire_parse_result() is its inverse: it sets
 * op->status and op->out (memory of the op; op->type and op->flags as applied). A refusal by the
 * server (FORBIDDEN, QUOTA_EXCEEDED, …) becomes the status of its code in errors.def, with its
 * "message" as the detail; an unknown code becomes IL_INVAL, with "CODE: message" as the detail.
 * IL_INVAL: not such an object; IL_NOMEM.
 */
void      il__wire_print_result(struct il__buf *b, const il_op *op, unsigned flags);
il_status il__wire_parse_result(const json_t *json, il_op *op, il_error *reterr) MUST_USE;
/* An op's inputs as an element of "ops" (fields with their default are omitted): for clients. */
void il__wire_print_op(struct il__buf *b, const il_op *op);

/* Base64 (RFC 4648, with padding). Decoding is strict: no spaces, no missing padding, no bits
 * beyond the end; `out` has room for n_bytes / 4 * 3. */
void il__wire_base64(struct il__buf *b, const void *data, size_t n_bytes);
bool il__wire_base64_decode(const char *text, size_t n_bytes, unsigned char *out,
                            size_t *ret_bytes);

/* ---- schemas --------------------------------------------------------------------------------- */

/* JSON Schema 2020-12 of an object; nested ones as {"$ref": "#/components/schemas/NAME"}. NULL: out
 * of memory. */
enum wire_use {
    WIRE_IN_JSON,  /* as an answer, or as a body, where null means an omitted field */
    WIRE_IN_QUERY, /* as parameters of a URL */
};
json_t *il__wire_schema(const struct wire_object *o, enum wire_use use);

#endif
