/*
 * campus_tx.c: what the operations share; see campus_tx.h.
 */
#include "apps/campus/campus_tx.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"

#include "apps/campus/campus_entity_sql.inc"

#define UNKNOWN_TRIES 3

/* ---- codes ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int         http;
    il_status   status;
    const char *text;
} codes[CAMPUS_CODE_COUNT] = {
    { "OK", 200, IL_OK, "done" },
#define X(code, http, status, text) { #code, http, IL_##status, text },
#include "apps/campus/errors.def"
#undef X
};

const char *const campus_race_names[] = { "double_participation", "double_badge", "double_grant",
                                          NULL };

const char *
campus_code_name(enum campus_code code)
{
    CHECK(code < CAMPUS_CODE_COUNT);
    return codes[code].name;
}

int
campus_code_http(enum campus_code code)
{
    CHECK(code < CAMPUS_CODE_COUNT);
    return codes[code].http;
}

const char *
campus_code_text(enum campus_code code)
{
    CHECK(code < CAMPUS_CODE_COUNT);
    return codes[code].text;
}

il_status
campus_refuse(struct campus_call *c, enum campus_code code, il_error *reterr, const char *fmt, ...)
{
    char    text[512];
    va_list args;

    CHECK(code > CAMPUS_OK && code < CAMPUS_CODE_COUNT);
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    c->code = code;
    return il__error_set(reterr, codes[code].status, "%s", text);
}

il_status
campus_no_memory(il_error *reterr)
{
    return il__error_set(reterr, IL_NOMEM, "campus: out of memory");
}

/* ---- transactions ---------------------------------------------------------------------------- */

int64_t
campus_deadline(int64_t in_ms)
{
    return in_ms > 0 ? il__clock_boot_ns() / IL__NS_PER_MS + in_ms : 0;
}

int64_t
campus_left_ms(const struct campus_call *c, int64_t otherwise)
{
    return c->deadline_ms > 0 ? MAX(c->deadline_ms - il__clock_boot_ns() / IL__NS_PER_MS, 1)
                              : otherwise;
}

/* An attempt of a transaction. */
struct attempt {
    struct campus_op *op;
    il_guard_fn      *fn;
    unsigned          n_races[CAMPUS_RACE_COUNT]; /* of the call, before the first attempt */
};

static il_status
run_attempt(void *cookie, il_guard_tx *tx, il_error *reterr)
{
    struct attempt *a = cookie;

    a->op->c->code = CAMPUS_OK; /* what an attempt before has left was rolled back with it */
    memcpy(a->op->c->n_races, a->n_races, sizeof a->n_races);
    return a->fn(a->op, tx, reterr);
}

static il_status
transact(struct campus_op *op, const char *pipeline, const char *caller, uint32_t flags,
         const il_guard_fence *fence, il_guard_fn *fn, il_error *reterr)
{
    il_guard_tx_opts o = IL_GUARD_TX_OPTS_INIT;
    struct attempt   a = { .op = op, .fn = fn };

    memcpy(a.n_races, op->c->n_races, sizeof a.n_races);
#ifdef IL_MUTANT_campus_no_fence
    fence = NULL;
#endif
    o.pipeline   = pipeline;
    o.caller     = caller;
    o.fences     = fence;
    o.n_fences   = fence != NULL ? 1 : 0;
    o.flags      = flags;
    o.tries_max  = IL_GUARD_TRIES_MAX;
    o.timeout_ms = campus_left_ms(op->c, 0);
    return il_guard_transact(op->c->db, &o, run_attempt, &a, NULL, reterr);
}

il_status
campus_transact(struct campus_op *op, const char *pipeline, const char *caller,
                const il_guard_fence *fence, il_guard_fn *fn, il_error *reterr)
{
    il_status st = IL_UNKNOWN;

    /* A commit whose outcome is unknown is repeated: the call finds its own effect. */
    for (int i = 0; i < UNKNOWN_TRIES && st == IL_UNKNOWN; i++)
        st = transact(op, pipeline, caller, 0, fence, fn, reterr);
    if (op->c->step != NULL)
        op->c->step(op->c->cookie);
    return st;
}

il_status
campus_transact_read_only(struct campus_op *op, const char *pipeline, const il_guard_fence *fence,
                          il_guard_fn *fn, il_error *reterr)
{
    return transact(op, pipeline, "look", IL_GUARD_READ_ONLY, fence, fn, reterr);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool
copy_cell(void **mem, const il_guard_value *from, il_guard_value *to)
{
    *to = *from;
    if (from->type != IL_GUARD_TEXT && from->type != IL_GUARD_JSON)
        return true;
    to->data = il__arena_strdup(mem, from->data);
    return to->data != NULL;
}

static int
take_row(void *cookie, const il_guard_row *row)
{
    struct campus_rows *r = cookie;

    il_guard_value *cells = il__arena_append(r->mem, &r->cells, &r->n, row->n * sizeof *cells);
    r->failed             = r->failed || cells == NULL;
    r->n_columns          = row->n;
    for (size_t i = 0; i < row->n && !r->failed; i++)
        r->failed = !copy_cell(r->mem, &row->values[i], &cells[i]);
    return !r->failed;
}

il_status
campus_read(struct campus_call *c, il_guard_tx *tx, const struct app_statement *s,
            const il_guard_value *values, size_t n_values, struct campus_rows *ret,
            il_error *reterr)
{
    *ret         = (struct campus_rows){ .mem = &c->mem };
    il_status st = il__tables_run(tx, s, values, n_values, take_row, ret, NULL, reterr);

    return st == IL_OK && ret->failed ? campus_no_memory(reterr) : st;
}

static const il_guard_value *
cell(const struct campus_rows *r, size_t row, size_t column)
{
    CHECK(row < r->n);
    CHECK(column < r->n_columns);
    return &r->cells[row * r->n_columns + column];
}

int64_t
campus_int(const struct campus_rows *r, size_t row, size_t column)
{
    const il_guard_value *v = cell(r, row, column);

    return v->type == IL_GUARD_INT ? v->integer : 0;
}

double
campus_number(const struct campus_rows *r, size_t row, size_t column)
{
    const il_guard_value *v = cell(r, row, column);

    return v->type == IL_GUARD_DOUBLE ? v->number : (double)campus_int(r, row, column);
}

const char *
campus_text(const struct campus_rows *r, size_t row, size_t column)
{
    const il_guard_value *v = cell(r, row, column);

    return v->type == IL_GUARD_TEXT || v->type == IL_GUARD_JSON ? v->data : NULL;
}

const char **
campus_ids(struct campus_call *c, const struct campus_rows *r)
{
    const char **ids = il__arena_alloc(&c->mem, (r->n + 1) * sizeof *ids);

    for (size_t i = 0; ids != NULL && i < r->n; i++)
        ids[i] = campus_text(r, i, 0);
    return ids;
}

il_status
campus_run(il_guard_tx *tx, const struct app_statement *s, const il_guard_value *values,
           size_t n_values, int64_t *ret_n, il_error *reterr)
{
    return il__tables_run(tx, s, values, n_values, NULL, NULL, ret_n, reterr);
}

/* What users call a row of this class. */
static const char *
noun_of(const char *entity)
{
    static const char *const nouns[][2] = {
        { "Semester", "tournament" }, { "SemesterEnrollment", "enrollment" },
        { "UserLicense", "license" }, { "User", "user" },
        { "Session", "session" },     { "Booking", "booking" }
    };

    for (size_t i = 0; i < ARRAY_LEN(nouns); i++) {
        if (strcmp(nouns[i][0], entity) == 0)
            return nouns[i][1];
    }
    return entity;
}

static il_status
refuse_missing(struct campus_call *c, const il_guard_target *row, enum campus_code missing,
               il_error *reterr)
{
    return campus_refuse(c, missing, reterr, "%s %s not found", noun_of(row->entity),
                         (const char *)row->key[1].value.data);
}

il_status
campus_lock(struct campus_call *c, il_guard_tx *tx, const il_guard_target *row,
            enum campus_code missing, il_error *reterr)
{
    il_status st = il_guard_lock(tx, row, NULL, reterr);

    return st == IL_NOT_FOUND ? refuse_missing(c, row, missing, reterr) : st;
}

il_status
campus_lock_read(struct campus_call *c, il_guard_tx *tx, const il_guard_target *row,
                 enum campus_code missing, const struct app_statement *s,
                 const il_guard_value *values, size_t n_values, struct campus_rows *ret,
                 il_error *reterr)
{
    *ret         = (struct campus_rows){ .mem = &c->mem };
    il_status st = il__tables_lock_read(tx, row, s, values, n_values, take_row, ret, reterr);

    if (st == IL_NOT_FOUND)
        return refuse_missing(c, row, missing, reterr);
    return st == IL_OK && ret->failed ? campus_no_memory(reterr) : st;
}

il_status
campus_lock_all(struct campus_call *c, il_guard_tx *tx, const char *entity, const char *table,
                const char *const *ids, size_t n, const char *place, il_error *reterr)
{
    const il_guard_column tenant = { "tenant", il_guard_text(c->tenant) };
    const il_guard_target rows   = { entity, table, &tenant, 1, place };
    il_guard_value        some[IL_GUARD_VALUES_MAX - 1]; /* the tenant is a value, too */
    il_status             st = IL_OK;

    for (size_t at = 0; at < n && st == IL_OK; at += ARRAY_LEN(some)) {
        size_t n_some = MIN(n - at, ARRAY_LEN(some));
        for (size_t i = 0; i < n_some; i++)
            some[i] = il_guard_text(ids[at + i]);
        st = il_guard_lock_many(tx, &rows, "id", some, n_some, NULL, reterr);
    }
    return st;
}

const char *
campus_key(struct campus_call *c, const char *prefix, const char *a, const char *b)
{
    size_t n   = strlen(prefix) + strlen(a) + (b != NULL ? strlen(b) + 1 : 0) + 2;
    char  *key = il__arena_alloc(&c->mem, n);

    if (key != NULL)
        (void)snprintf(key, n, "%s_%s%s%s", prefix, a, b != NULL ? "_" : "", b != NULL ? b : "");
    return key;
}

/* ---- events ---------------------------------------------------------------------------------- */

il_status
campus_event(struct campus_call *c, il_guard_tx *tx, const char *id, const char *level,
             const char *type, il_error *reterr, const char *fmt, ...)
{
    static const struct app_statement add = APP_STATEMENT(event_add);
    char                              text[512];
    va_list                           args;

    if (id == NULL)
        return campus_no_memory(reterr);
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return campus_run(tx, &add,
                      APP_VALUES(il_guard_text(c->tenant), il_guard_text(id), il_guard_text(level),
                                 il_guard_text(type), il_guard_text(text), il_guard_int(c->now_ms)),
                      NULL, reterr);
}

il_status
campus_event_exists(struct campus_call *c, il_guard_tx *tx, const char *id, bool *ret,
                    il_error *reterr)
{
    static const struct app_statement there = APP_STATEMENT(event_there);
    struct campus_rows                r;

    il_status st = campus_read(c, tx, &there, CAMPUS_OF(c, id), &r, reterr);

    if (st == IL_OK)
        *ret = r.n > 0;
    return st;
}

il_status
campus_count_race(struct campus_call *c, il_guard_tx *tx, enum campus_race race, const char *what,
                  il_error *reterr)
{
    char id[37];

    c->n_races[race]++;
    il_status st = il_uuid(id);
    if (st != IL_OK)
        return il__error_set(reterr, st, "cannot read random bytes");
    return campus_event(c, tx, id, "WARNING", "INTEGRITY_ROLLBACK", reterr, "%s: %s",
                        campus_race_names[race], what);
}
