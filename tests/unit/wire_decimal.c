/*
 * wire_decimal.c: decimal numbers: exact from JSON to a scaled integer and back, or refused with
 * the reason.
 */
#include "base/decimal.h"
#include "harness/rng.h"
#include "harness/unit.h"
#include "wire/json.h"
#include "wire/wire.h"

struct price {
    int64_t     cost, limited, optional, whole;
    const char *name, *meta;
};

static const struct wire_field fields[] = {
    { .name   = "cost",
      .kind   = WIRE_DECIMAL,
      .flags  = WIRE_NOT_NULL,
      .offset = offsetof(struct price, cost),
      .digits = 6 },
    { .name   = "limited",
      .kind   = WIRE_DECIMAL,
      .flags  = WIRE_HIDE,
      .offset = offsetof(struct price, limited),
      .min    = -150,
      .max    = 1000,
      .digits = 2 },
    { .name   = "optional",
      .kind   = WIRE_DECIMAL,
      .flags  = WIRE_MINUS,
      .offset = offsetof(struct price, optional),
      .digits = 1 },
    { .name   = "whole",
      .kind   = WIRE_INT64,
      .flags  = WIRE_HIDE,
      .offset = offsetof(struct price, whole) },
    { .name   = "name",
      .kind   = WIRE_TEXT,
      .flags  = WIRE_HIDE,
      .offset = offsetof(struct price, name) },
    { .name   = "meta",
      .kind   = WIRE_META,
      .flags  = WIRE_HIDE,
      .offset = offsetof(struct price, meta) },
};
static const struct wire_object table = { .name     = "Price",
                                          .fields   = fields,
                                          .n_fields = ARRAY_LEN(fields),
                                          .bytes    = sizeof(struct price) };

/* ---- text ------------------------------------------------------------------------------------ */

static const struct {
    const char      *text;
    unsigned         digits;
    enum il__decimal result;
    int64_t          scaled;
    const char      *printed;
} rows[] = {
    { "0", 6, IL__DECIMAL_OK, 0, "0.000000" },
    { "-0", 6, IL__DECIMAL_OK, 0, "0.000000" },
    { "-0.0", 6, IL__DECIMAL_OK, 0, "0.000000" },
    { "0e99999999999999999999", 6, IL__DECIMAL_OK, 0, "0.000000" },
    { "12.345678", 6, IL__DECIMAL_OK, 12345678, "12.345678" },
    { "-0.5", 6, IL__DECIMAL_OK, -500000, "-0.500000" },
    { "0.1", 6, IL__DECIMAL_OK, 100000, "0.100000" },
    { "0.1", 1, IL__DECIMAL_OK, 1, "0.1" },
    { "7", 0, IL__DECIMAL_OK, 7, "7" },
    { "-7.000", 0, IL__DECIMAL_OK, -7, "-7" },
    { "12.3456780000000000000000", 6, IL__DECIMAL_OK, 12345678, "12.345678" },
    { "0.000001", 6, IL__DECIMAL_OK, 1, "0.000001" },
    { "1e-06", 6, IL__DECIMAL_OK, 1, "0.000001" },
    { "1E-6", 6, IL__DECIMAL_OK, 1, "0.000001" },
    { "1.25e+2", 6, IL__DECIMAL_OK, 125000000, "125.000000" },
    { "12500e-2", 0, IL__DECIMAL_OK, 125, "125" },
    { "0.00125e3", 2, IL__DECIMAL_OK, 125, "1.25" },
    { "1e12", 6, IL__DECIMAL_OK, INT64_C(1000000000000000000), "1000000000000.000000" },
    { "9223372036854.775807", 6, IL__DECIMAL_OK, INT64_MAX, "9223372036854.775807" },
    { "-9223372036854.775807", 6, IL__DECIMAL_OK, -INT64_MAX, "-9223372036854.775807" },
    { "9.223372036854775807", 18, IL__DECIMAL_OK, INT64_MAX, "9.223372036854775807" },
    { "9223372036854775807", 0, IL__DECIMAL_OK, INT64_MAX, "9223372036854775807" },
    { "9223372036854.775808", 6, IL__DECIMAL_RANGE, 0, NULL },
    { "-9223372036854.775808", 6, IL__DECIMAL_RANGE, 0, NULL },
    { "10000000000000", 6, IL__DECIMAL_RANGE, 0, NULL },
    { "1e13", 6, IL__DECIMAL_RANGE, 0, NULL },
    { "1e308", 6, IL__DECIMAL_RANGE, 0, NULL },
    { "1e99999999999999999999", 6, IL__DECIMAL_RANGE, 0, NULL },
    { "18446744073709551617", 0, IL__DECIMAL_RANGE, 0, NULL },
    { "0.0000001", 6, IL__DECIMAL_DIGITS, 0, NULL },
    { "12.3456781", 6, IL__DECIMAL_DIGITS, 0, NULL },
    { "0.10000000000000001", 6, IL__DECIMAL_DIGITS, 0, NULL },
    { "1e-7", 6, IL__DECIMAL_DIGITS, 0, NULL },
    { "1e-99999999999999999999", 6, IL__DECIMAL_DIGITS, 0, NULL },
    { "0.5", 0, IL__DECIMAL_DIGITS, 0, NULL },
    { "", 6, IL__DECIMAL_INVALID, 0, NULL },
    { "-", 6, IL__DECIMAL_INVALID, 0, NULL },
    { "+1", 6, IL__DECIMAL_INVALID, 0, NULL },
    { ".5", 6, IL__DECIMAL_INVALID, 0, NULL },
    { "5.", 6, IL__DECIMAL_INVALID, 0, NULL },
    { "01", 6, IL__DECIMAL_INVALID, 0, NULL },
    { "1e", 6, IL__DECIMAL_INVALID, 0, NULL },
    { "1e+", 6, IL__DECIMAL_INVALID, 0, NULL },
    { "1 ", 6, IL__DECIMAL_INVALID, 0, NULL },
    { "1,5", 6, IL__DECIMAL_INVALID, 0, NULL },
    { "0x1p3", 6, IL__DECIMAL_INVALID, 0, NULL },
    { "nan", 6, IL__DECIMAL_INVALID, 0, NULL },
    { "inf", 6, IL__DECIMAL_INVALID, 0, NULL },
};

U_TEST(texts)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char    text[IL__DECIMAL_TEXT_BYTES];
        int64_t scaled = 42;
        if (il__decimal_parse(rows[i].text, rows[i].digits, &scaled) != rows[i].result)
            T_FAIL("'%s' with %u digits", rows[i].text, rows[i].digits);
        T_EQ(scaled, rows[i].result == IL__DECIMAL_OK ? rows[i].scaled : 42);
        if (rows[i].result == IL__DECIMAL_OK)
            T_STREQ(il__decimal_text(scaled, rows[i].digits, text), rows[i].printed);
    }
}

/* Every number is printed as a text that gives the same number. */
U_TEST(round_trips)
{
    struct t_rng r;

    t_rng_init(&r, 1);
    for (unsigned i = 0; i < 20000; i++) {
        unsigned digits = t_rng_below(&r, IL__DECIMAL_DIGITS_MAX + 1);
        uint64_t bits   = (uint64_t)t_rng_below(&r, UINT32_MAX) << 32 | t_rng_below(&r, UINT32_MAX);
        int64_t  number = (int64_t)(bits >> (1 + t_rng_below(&r, 62)));
        int64_t  again  = 0;
        char     text[IL__DECIMAL_TEXT_BYTES];
        number = t_rng_one_in(&r, 2) ? -number : number;
        (void)il__decimal_text(number, digits, text);
        if (il__decimal_parse(text, digits, &again) != IL__DECIMAL_OK || again != number)
            T_FAIL("%lld with %u digits: %s", (long long)number, digits, text);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void *arena;

static il_status
parse(const char *text, struct price *into, json_t **ret, il_error *reterr)
{
    *into        = (struct price){ .optional = INT64_MIN };
    il_status st = il__wire_load_for(&table, text, strlen(text), ret, reterr);

    return st == IL_OK ? il__wire_parse(&table, NULL, *ret, into, &arena, reterr) : st;
}

static void
prints(const char *text, const char *expected)
{
    AUTO_BUF struct il__buf b    = { 0 };
    json_t                 *json = NULL;
    struct price            p;
    il_error                err;

    if (parse(text, &p, &json, &err) != IL_OK)
        T_FAIL("%s: %s", text, err.message);
    il__buf_init(&b, 4096);
    il__wire_print(&b, &table, &p, 0);
    T_STREQ(il__buf_str(&b), expected);
    json_decref(json);
    il__arena_clear(&arena);
}

U_TEST(from_json_and_back)
{
    prints("{}", "{\"cost\":0.000000,\"optional\":null}");
    prints("{\"cost\":12.345678}", "{\"cost\":12.345678,\"optional\":null}");
    prints("{\"cost\":-0.5,\"optional\":0}", "{\"cost\":-0.500000,\"optional\":0.0}");
    prints("{\"cost\":9223372036854.775807,\"optional\":-0.1}",
           "{\"cost\":9223372036854.775807,\"optional\":-0.1}");
    prints("{\"cost\":1e-06,\"optional\":null}", "{\"cost\":0.000001,\"optional\":null}");
    prints("{\"cost\":3,\"limited\":-1.5}",
           "{\"cost\":3.000000,\"limited\":-1.50,\"optional\":null}");
    /* 2^53 + 1 millionths: not a double. */
    prints("{\"cost\":9007199254.740993}", "{\"cost\":9007199254.740993,\"optional\":null}");
    /* Other numbers of such a document are what they were. */
    prints("{\"whole\":7,\"meta\":\"1.50\"}",
           "{\"cost\":0.000000,\"optional\":null,\"whole\":7,\"meta\":1.50}");
}

static void
refuses(const char *text, const char *expected)
{
    json_t      *json = NULL;
    struct price p;
    il_error     err;

    T_EQ(parse(text, &p, &json, &err), IL_INVAL);
    T_STREQ(err.message, expected);
    json_decref(json);
    il__arena_clear(&arena);
}

U_TEST(refused)
{
    refuses("{\"cost\":0.1234567}",
            "field 'cost': 0.1234567 has more than 6 digits after the point");
    refuses("{\"cost\":1e-7}", "field 'cost': 1e-7 has more than 6 digits after the point");
    refuses("{\"cost\":1e13}", "field 'cost': must be at most 9223372036854.775807, not 1e13");
    refuses("{\"cost\":-1e13}", "field 'cost': must be at least -9223372036854.775807, not -1e13");
    refuses("{\"cost\":9223372036854775807}",
            "field 'cost': must be at most 9223372036854.775807, not 9223372036854775807");
    refuses("{\"limited\":10.01}", "field 'limited': must be at most 10.00, not 10.01");
    refuses("{\"limited\":-1.51}", "field 'limited': must be at least -1.50, not -1.51");
    refuses("{\"limited\":-1e300}", "field 'limited': must be at least -1.50, not -1e300");
    refuses("{\"cost\":\"1.5\"}", "field 'cost': must be a number, not a string");
    refuses("{\"cost\":\"\"}", "field 'cost': must be a number, not a string");
    refuses("{\"cost\":true}", "field 'cost': must be a number, not true");
    refuses("{\"cost\":[1.5]}", "field 'cost': must be a number, not an array");
    refuses("{\"cost\":1e999}", "invalid JSON: line 1, column 13: real number overflow");
    /* Where no decimal belongs, a number that is kept as it was written is still a number. */
    refuses("{\"whole\":1.5}",
            "field 'whole': must be a whole number, written without '.' and 'e'");
    refuses("{\"name\":1.5}", "field 'name': must be a string, not a number");
    refuses("{\"cost\":0."
            "0000000000000000000000000000000000000000000000000000000000000000}",
            "JSON name longer than 255 bytes, or number longer than 63 characters");
}

U_TEST(as_text)
{
    struct price p = { 0 };
    il_error     err;

    T_EQ(il__wire_parse_text(&table, "cost", "-12.5", &p, &arena, &err), IL_OK);
    T_EQ(p.cost, -12500000);
    T_EQ(il__wire_parse_text(&table, "limited", "abc", &p, &arena, &err), IL_INVAL);
    T_STREQ(err.message, "field 'limited': 'abc' is not a number");
    T_EQ(il__wire_parse_text(&table, "limited", "0.001", &p, &arena, &err), IL_INVAL);
    T_STREQ(err.message, "field 'limited': 0.001 has more than 2 digits after the point");
}

/* Nested JSON keeps the numbers as they were written. */
U_TEST(nested)
{
    static const char       text[] = "{\"cost\":1.5,\"meta\":[1.10,2e3,{\"a\":-0.0}]}";
    AUTO_BUF struct il__buf b      = { 0 };
    json_t                 *json   = NULL;

    T_EQ(il__wire_load_for(&table, text, sizeof text - 1, &json, NULL), IL_OK);
    CHECK(json != NULL);
    il__buf_init(&b, 4096);
    il__json_add_loaded(&b, json);
    T_STREQ(il__buf_str(&b), text);
    json_decref(json);
}

U_TEST(schema)
{
    json_t *s = il__wire_schema(&table, WIRE_IN_JSON);

    T_TRUE(s != NULL);
    const json_t *limited = json_object_get(json_object_get(s, "properties"), "limited");
    char         *text    = json_dumps(limited, JSON_COMPACT | JSON_REAL_PRECISION(15));
    T_TRUE(text != NULL);
    T_STREQ(
        text,
        "{\"type\":[\"number\",\"null\"],\"multipleOf\":0.01,\"minimum\":-1.5,\"maximum\":10.0}");
    free(text);
    json_decref(s);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(texts),   U_ROW(round_trips), U_ROW(from_json_and_back),
        U_ROW(refused), U_ROW(as_text),     U_ROW(nested),
        U_ROW(schema),
    };

    int status = cmocka_run_group_tests(tests, NULL, NULL);
    il__arena_free(&arena);
    return status;
}
