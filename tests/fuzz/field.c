/*
 * field.c: fields as in a query string: OP NAME=VALUE, line by line. Each is accepted or refused
 * with a reason; accepted ones survive a round trip through JSON.
 */
#include "fuzz/fuzz.h"
#include "wire/wire.h"

static void
go_round(const il_op *op)
{
    const struct wire_object *o    = &il__wire_inputs[op->type];
    json_t                   *json = NULL;
    void                     *mem  = NULL;
    struct il__buf            b;
    il_op                     again;
    il_error                  err;

    if (il__wire_complete(o, op, NULL) != IL_OK)
        return;
    il__buf_init(&b, (size_t)16 << 20);
    il__wire_print_op(&b, op);
    CHECK(!b.failed);
    CHECK(il__wire_load_for(NULL, b.data, b.n_bytes, &json, &err) == IL_OK);
    CHECK(il__wire_parse_op(json, &again, &mem, &err) == IL_OK);
    CHECK(again.flags == op->flags && again.fence == op->fence);
    json_decref(json);
    il__arena_free(&mem);
    il__buf_release(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char       *text = fuzz_text(data, n_bytes);
    void       *mem  = NULL;
    char       *rest = text;
    il_op_type  type = n_bytes > 0 ? (il_op_type)(1 + data[0] % (IL_OP_COUNT - 1)) : IL_OP_LIST;
    const char *line;
    il_op       op;

    il__wire_op_init(&op, type);
    while ((line = strsep(&rest, "\n")) != NULL) {
        char    *value = strchr(line, '=');
        il_error err   = { .message = "" };
        if (value == NULL)
            continue;
        *value++     = '\0';
        il_status st = il__wire_parse_text(&il__wire_inputs[type], line, value, &op, &mem, &err);
        CHECK(st == IL_OK || st == IL_INVAL);
        CHECK((st == IL_OK) == (err.message[0] == '\0'));
    }
    go_round(&op);
    il__arena_free(&mem);
    free(text);
    return 0;
}
