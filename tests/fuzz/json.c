/*
 * json.c: request bodies. Any input is accepted or refused with a reason; accepted input survives
 * printing and parsing. Two parsers, jansson and our own check of JSON nested in answers, agree
 * about what is valid JSON.
 */
#include "core/op.h"
#include "fuzz/fuzz.h"
#include "wire/json.h"
#include "wire/wire.h"

static char *
print_op(const il_op *op)
{
    struct il__buf b;

    il__buf_init(&b, (size_t)16 << 20);
    il__wire_print_op(&b, op);
    char *text = il__buf_take(&b);
    CHECK(text != NULL);
    return text;
}

/* parse(print(op)) prints as op does. */
static void
round_trip(const il_op *op)
{
    char   *text = print_op(op);
    json_t *json = NULL;
    void   *mem  = NULL;
    il_op   again;

    CHECK(il__wire_load_for(NULL, text, strlen(text), &json, NULL) == IL_OK);
    CHECK(il__wire_parse_op(json, &again, &mem, NULL) == IL_OK);
    char *text_again = print_op(&again);
    CHECK(strcmp(text, text_again) == 0);
    il__free(text);
    il__free(text_again);
    il__arena_free(&mem);
    json_decref(json);
}

static void
try_op(const json_t *json)
{
    void    *mem = NULL;
    il_error err = { .message = "" };
    il_op    op;

    il_status st = il__wire_parse_op(json, &op, &mem, &err);
    CHECK(st == IL_OK || st == IL_INVAL);
    CHECK((st == IL_OK) == (err.message[0] == '\0'));
    if (st == IL_OK) {
        round_trip(&op);
        if (!il__op_prepare(&op, "t", 1))
            CHECK(op.out.detail != NULL);
        il_op_release(&op);
    }
    il__arena_free(&mem);
}

/* A server that is not ours may answer anything. */
static void
try_result(const json_t *json)
{
    for (unsigned type = IL_OP_NONE + 1; type < IL_OP_COUNT; type++) {
        il_op    op = { .type = (il_op_type)type };
        il_error err;
        if (il__wire_parse_result(json, &op, &err) == IL_OK) {
            struct il__buf b;
            il__buf_init(&b, (size_t)16 << 20);
            il__wire_print_result(&b, &op, WIRE_RAW);
            CHECK(!b.failed);
            il__buf_release(&b);
        }
        op.is_wide = 1; /* as if it had been prepared: all of out is cleared */
        il_op_release(&op);
    }
}

/* We do not look at numbers of 64 digits and more: what holds one is shown as a string. */
static bool
has_long_number(const char *text)
{
    for (; *text != '\0'; text++) {
        size_t n = strspn(text, "+-.0123456789eE");
        if (n >= 64)
            return true;
        text += n > 0 ? n - 1 : 0;
    }
    return false;
}

static void
compare_readers(const char *text, size_t n_bytes, bool is_json, const il_error *why)
{
    struct il__buf b;
    struct il__buf again;

    il__buf_init(&b, n_bytes + 16);
    il__buf_init(&again, n_bytes + 16);
    bool ours = il__json_add_value(&b, text, n_bytes, false);
    CHECK(!b.failed);
    /* A name twice, and too many values, are more than a question of grammar. */
    if (is_json || (strstr(why->message, "duplicate name") == NULL &&
                    strstr(why->message, "more than") == NULL))
        CHECK(ours == is_json || has_long_number(text));
    if (ours) {
        CHECK(il__json_add_value(&again, b.data, b.n_bytes, false));
        CHECK(again.n_bytes == b.n_bytes && memcmp(again.data, b.data, b.n_bytes) == 0);
    } else {
        CHECK(b.n_bytes == 0);
    }
    il__buf_release(&b);
    il__buf_release(&again);
}

/* What our reader makes of a text is what jansson makes of it. */
static void
compare_values(const char *text, size_t n_bytes, const json_t *ours)
{
    json_t *theirs = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);

    CHECK(theirs != NULL);
    CHECK(json_equal(ours, theirs) != 0);
    json_decref(theirs);
}

/* ---- decimals -------------------------------------------------------------------------------- */

struct priced {
    int64_t     cost;
    const char *meta;
};
static const struct wire_field price_fields[] = {
    { .name = "cost", .kind = WIRE_DECIMAL, .flags = WIRE_NOT_NULL, .digits = 6 },
    { .name = "meta", .kind = WIRE_TEXT, .offset = offsetof(struct priced, meta) },
};
static const struct wire_object prices = { .name     = "Priced",
                                           .fields   = price_fields,
                                           .n_fields = ARRAY_LEN(price_fields) };

/* A decimal is exact, or refused; a text is never a number. */
static void
try_decimal(const char *text, size_t n_bytes, bool is_json)
{
    json_t        *json  = NULL;
    void          *mem   = NULL;
    il_error       err   = { .message = "" };
    struct priced  p     = { 0 };
    struct priced  again = { 0 };
    struct il__buf b;

    il_status st = il__wire_load_for(&prices, text, n_bytes, &json, &err);
    CHECK(st == IL_OK || st == IL_INVAL);
    CHECK(st == IL_INVAL || is_json); /* it takes less, not more */
    if (st != IL_OK)
        return;
    st = il__wire_parse(&prices, NULL, json, &p, &mem, &err);
    CHECK(st == IL_OK || st == IL_INVAL);
    il__buf_init(&b, (size_t)16 << 20);
    if (st == IL_OK) {
        json_decref(json);
        p.meta = NULL; /* it was the document's */
        il__wire_print(&b, &prices, &p, 0);
        CHECK(il__wire_load_for(&prices, b.data, b.n_bytes, &json, &err) == IL_OK);
        CHECK(il__wire_parse(&prices, NULL, json, &again, &mem, &err) == IL_OK);
        CHECK(again.cost == p.cost);
    }
    il__buf_release(&b);
    json_decref(json);
    il__arena_free(&mem);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char     *text = fuzz_text(data, n_bytes);
    json_t   *json = NULL;
    il_error  err  = { .message = "" };
    il_status st   = il__wire_load_for(NULL, text, n_bytes, &json, &err);

    CHECK(st == IL_OK || st == IL_INVAL);
    CHECK((st == IL_OK) == (json != NULL) && (st == IL_OK) == (err.message[0] == '\0'));
    compare_readers(text, n_bytes, st == IL_OK, &err);
    try_decimal(text, n_bytes, st == IL_OK);
    if (st == IL_OK) {
        compare_values(text, n_bytes, json);
        try_op(json);
        try_result(json);
        for (size_t i = 0; i < json_array_size(json); i++)
            try_op(json_array_get(json, i));
    }
    json_decref(json);
    free(text);
    return 0;
}
