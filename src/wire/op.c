/*
 * op.c: whole ops as JSON: elements of a batch and their results, in both directions.
 */
#include <stdio.h>

#include "base/error.h"
#include "base/suggest.h"
#include "core/op.h"
#include "wire/error.h"
#include "wire/field.h"
#include "wire/parse.h"

#define CODED_BYTES 256 /* of "CODE: message" */

void
il__wire_op_init(il_op *op, il_op_type type)
{
    *op = (il_op){ .type = type };
    if (type == IL_OP_RUN_STAGE)
        op->in.run.progress = -1;
    if (type == IL_OP_JOB_HEARTBEAT)
        op->in.job.progress = -1;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static const struct wire_field  op_field  = { .name = "op", .kind = WIRE_TEXT };
static const struct wire_object op_object = { .name = "Op", .fields = &op_field, .n_fields = 1 };

static const char *
next_op(const void *cookie UNUSED, size_t i)
{
    return i + 1 < IL_OP_COUNT ? il_op_name((il_op_type)(i + 1)) : NULL;
}

static il_status
find_type(const json_t *json, il_op_type *ret, il_error *reterr)
{
    const char *name = json_string_value(json_object_get(json, "op"));

    if (!json_is_object(json))
        return il__error_set(reterr, IL_INVAL, "an op must be a JSON object");
    if (name == NULL)
        return il__error_set(reterr, IL_INVAL, "field 'op' is missing or not a string");
    for (unsigned i = IL_OP_NONE + 1; i < IL_OP_COUNT; i++) {
        if (strcmp(il_op_name((il_op_type)i), name) == 0) {
            *ret = (il_op_type)i;
            return IL_OK;
        }
    }
    const char *meant = il__suggest(name, next_op, NULL);
    return il__error_set(reterr, IL_INVAL, "field 'op': unknown op '%.40s'%s%s%s", name,
                         meant != NULL ? " (did you mean '" : "", meant != NULL ? meant : "",
                         meant != NULL ? "'?)" : "");
}

il_status
il__wire_parse_op(const json_t *json, il_op *op, void **mem, il_error *reterr)
{
    il_op_type type = IL_OP_NONE;
    il_status  st   = find_type(json, &type, reterr);

    if (st != IL_OK)
        return st;
    il__wire_op_init(op, type);
    st = il__wire_parse(&il__wire_inputs[type], &op_object, json, op, mem, reterr);
    return st == IL_OK ? il__wire_op_complete(op, mem, reterr) : st;
}

/* Set *id to a new UUID, unless it is set. */
static il_status
make_id(const char **id, void **mem, il_error *reterr)
{
    char uuid[37];

    if (*id != NULL)
        return IL_OK;
    if (il_uuid(uuid) != IL_OK)
        return il__error_set(reterr, IL_STORE, "cannot read random bytes for an id");
    *id = il__arena_strdup(mem, uuid);
    return *id != NULL ? IL_OK : il__error_nomem(reterr);
}

il_status
il__wire_op_complete(il_op *op, void **mem, il_error *reterr)
{
    il_status st = IL_OK;

    switch (op->type) {
    case IL_OP_ACQUIRE:
    case IL_OP_CACHE_LOOKUP:
        return make_id(&op->holder, mem, reterr);
    case IL_OP_RUN_START:
        st = make_id(&op->in.run.id, mem, reterr);
        if (op->holder == NULL && (op->flags & IL_RUN_SLOT) == 0)
            op->holder = op->in.run.id;
        return st;
    case IL_OP_RUN_STAGE:
    case IL_OP_RUN_FINISH:
        if (op->holder == NULL)
            op->holder = op->in.run.id;
        return IL_OK;
    case IL_OP_JOB_PUSH:
        return make_id(&op->in.job.id, mem, reterr);
    case IL_OP_JOB_CLAIM:
        st = make_id(&op->in.job.id, mem, reterr);
        if (op->holder == NULL)
            op->holder = op->in.job.id;
        return st;
    default:
        return IL_OK;
    }
}

/* Does a member still have its value from il__wire_op_init()? */
static bool
is_default(const struct wire_field *f, const il_op *op, const il_op *fresh)
{
    switch (f->kind) {
    case WIRE_TEXT:
    case WIRE_META:
    case WIRE_BYTES:
    case WIRE_BOOL:
        return !il__wire_is_set(f, op);
    case WIRE_UINT64:
        if (f->bit != 0)
            return !il__wire_is_set(f, op);
        return il__wire_number(f, op) == il__wire_number(f, fresh);
    default:
        return il__wire_number(f, op) == il__wire_number(f, fresh);
    }
}

void
il__wire_print_op(struct il__buf *b, const il_op *op)
{
    const struct wire_object *o = &il__wire_inputs[op->type];
    il_op                     fresh;

    CHECK((unsigned)op->type < IL_OP_COUNT);
    il__wire_op_init(&fresh, op->type);
    il__wire_open(b, NULL);
    il__wire_put_text(b, "op", il_op_name(op->type));
    for (size_t i = 0; i < o->n_fields; i++) {
        struct wire_field f = o->fields[i];
        f.flags |= WIRE_NOT_NULL;
        if ((f.flags & WIRE_ALIAS) == 0 && !is_default(&f, op, &fresh))
            il__wire_print_field(b, &f, op, WIRE_RAW);
    }
    il__wire_close(b);
}

/* ---- results --------------------------------------------------------------------------------- */

void
il__wire_print_result(struct il__buf *b, const il_op *op, unsigned flags)
{
    il__wire_open(b, NULL);
    il__wire_put_text(b, "status", il_status_name(op->status));
    /* It may have been generated for the caller, which needs it to renew. */
    if ((op->type == IL_OP_ACQUIRE || op->type == IL_OP_CACHE_LOOKUP) && op->holder != NULL)
        il__wire_put_text(b, "holder", op->holder);
    il__wire_print_fields(b, il__wire_result(op->type, op->flags), &op->out, flags);
    il__wire_close(b);
}

/* A status of the library, or the code of a refusal by the server, which comes with a message. */
static il_status
take_status(const json_t *json, il_op *op, il_error *reterr)
{
    const char *name = json_string_value(json_object_get(json, "status"));
    const char *said = json_string_value(json_object_get(json, "message"));
    il_status   st   = IL_INVAL; /* of an unknown code: the server refused this op */

    if (name == NULL)
        return il__error_set(reterr, IL_INVAL, "the result of an op has no status");
    bool known = il__wire_code_status(name, &st);
    op->status = st;
    if (known && strcmp(il_status_name(st), name) == 0)
        return IL_OK;
    char unknown[CODED_BYTES];
    (void)snprintf(unknown, sizeof unknown, "%.40s: %.200s", name, said != NULL ? said : "refused");
    op->out.detail = il__op_strdup(op, !known ? unknown : said != NULL ? said : name);
    return op->out.detail != NULL ? IL_OK : il__error_nomem(reterr);
}

il_status
il__wire_parse_result(const json_t *json, il_op *op, il_error *reterr)
{
    struct wire_parser p = { .mem = &op->mem, .copy = true, .reterr = reterr };

    if (!json_is_object(json))
        return il__error_set(reterr, IL_INVAL, "the result of an op is not a JSON object");
    il__op_reset(op);
    op->out = (il_op_out){ 0 };
    il_status st =
        il__wire_parse_into(&p, il__wire_result(op->type, op->flags), NULL, json, &op->out);
    if (st == IL_OK)
        st = take_status(json, op, reterr);
    return st;
}
