/*
 * wire.c: the tables of src/wire: every field survives printing and parsing; the format of values;
 * schemas.
 */
#include "wire/wire.h"

#include "base/parse.h"
#include "core/op.h"
#include "harness/rng.h"
#include "harness/unit.h"
#include "wire/why.h"

static const struct wire_object *const answers[] = {
    &il__wire_lease, &il__wire_waiter,      &il__wire_edge,
    &il__wire_event, &il__wire_run,         &il__wire_job,
    &il__wire_queue, &il__wire_cron,        &il__wire_queue_settings,
    &il__wire_sweep, &il__wire_cache_stats, &il__wire_why,
};

/* ---- every field of every table goes round --------------------------------------------------- */

static void *arena;

static char *
text_of(uint64_t salt)
{
    static const char *const forms[] = { "plain", "q\"uo\\te", "tab\tline\n",
                                         "\xc3\xbc-\xf0\x9f\x94\x92", "{}" };
    char                     text[64];

    /* The last one is JSON: a text all the same, unless somebody wants to see it as such. */
    if (salt % ARRAY_LEN(forms) == 4)
        return il__arena_strdup(&arena, forms[4]);
    (void)snprintf(text, sizeof text, "%s-%u", forms[salt % ARRAY_LEN(forms)], (unsigned)salt);
    return il__arena_strdup(&arena, text);
}

static void
put(void *into, size_t offset, const void *value, size_t n_bytes)
{
    memcpy((char *)into + offset, value, n_bytes);
}

static int64_t
number_of(const struct wire_field *f, uint64_t salt)
{
    int64_t min = f->min;
    int64_t max = f->max;

    if (min == 0 && max == 0)
        max = f->kind == WIRE_INT32 || f->kind == WIRE_UINT32 ? INT32_MAX : (INT64_C(1) << 53) - 1;
    if ((f->flags & WIRE_MINUS) != 0 && salt % 3 == 0)
        return -1;
    if (salt % 7 == 0)
        return max;
    int64_t number = min + (int64_t)(salt * 7919 % (uint64_t)(max - min + 1));
    return number != 0 ? number : 1;
}

static void
fill_bytes(const struct wire_field *f, void *into, uint64_t salt)
{
    static const char *const forms[] = { "text", "",   "{\"a\": [1, 2]}", "bin\xff\xfe",
                                         "nul",  "42", "\"quoted\"" };
    const char              *data    = forms[salt % ARRAY_LEN(forms)];
    size_t n_bytes = strlen(data) + (strcmp(data, "nul") == 0 ? 1 : 0); /* with its NUL */

    put(into, f->offset, &data, sizeof data);
    put(into, f->offset2, &n_bytes, sizeof n_bytes);
}

static void fill(const struct wire_object *o, void *into, uint64_t salt);

static void
fill_objects(const struct wire_field *f, void *into, uint64_t salt)
{
    size_t n     = salt % 3;
    char  *items = il__arena_alloc(&arena, (n + 1) * f->object->bytes);

    memset(items, 0, (n + 1) * f->object->bytes);
    for (size_t i = 0; i < n; i++)
        fill(f->object, items + i * f->object->bytes, salt * 31 + i);
    put(into, f->offset, &items, sizeof items);
    put(into, f->offset2, &n, sizeof n);
}

static size_t
count_choices(const struct wire_field *f)
{
    size_t n = 0;

    while (f->choices[n] != NULL)
        n++;
    return n;
}

static void
or_into(void *into, size_t offset, uint32_t bits)
{
    uint32_t word;

    memcpy(&word, (char *)into + offset, sizeof word);
    word |= bits;
    put(into, offset, &word, sizeof word);
}

static void
fill_field(const struct wire_field *f, void *into, uint64_t salt)
{
    char    *text;
    int64_t  wide;
    int32_t  narrow;
    uint32_t set;

    switch (f->kind) {
    case WIRE_TEXT:
    case WIRE_META:
        text = text_of(salt);
        put(into, f->offset, &text, sizeof text);
        break;
    case WIRE_INT32:
    case WIRE_UINT32:
        narrow = (int32_t)number_of(f, salt);
        put(into, f->offset, &narrow, sizeof narrow);
        break;
    case WIRE_INT64:
    case WIRE_UINT64:
        wide = number_of(f, salt);
        put(into, f->offset, &wide, sizeof wide);
        if (f->bit != 0)
            or_into(into, f->offset2, f->bit);
        break;
    case WIRE_BOOL:
        or_into(into, f->offset, salt % 2 != 0 ? f->bit : 0);
        break;
    case WIRE_CHOICE:
        narrow = (int32_t)(f->min + (int64_t)(salt % count_choices(f)));
        put(into, f->offset, &narrow, sizeof narrow);
        break;
    case WIRE_SET:
        set = (1 + (uint32_t)salt % ((1U << count_choices(f)) - 1)) << f->min;
        put(into, f->offset, &set, sizeof set);
        break;
    case WIRE_BYTES:
        fill_bytes(f, into, salt);
        break;
    case WIRE_TIME:
        wide = (f->flags & WIRE_MINUS) != 0 && salt % 2 != 0
                   ? INT64_MAX
                   : INT64_C(1763177820250) + (int64_t)salt * 86400001;
        put(into, f->offset, &wide, sizeof wide);
        break;
    case WIRE_WAIT:
        wide = salt % 2 != 0 ? IL_FOREVER : 5000 + (int64_t)salt;
        put(into, f->offset, &wide, sizeof wide);
        break;
    case WIRE_OBJECT:
        if (f->bit != 0)
            or_into(into, f->offset2, salt % 2 != 0 ? f->bit : 0);
        if (f->bit == 0 || salt % 2 != 0)
            fill(f->object, (char *)into + f->offset, salt * 17);
        break;
    case WIRE_OBJECTS:
        fill_objects(f, into, salt);
        break;
    case WIRE_SIZE: /* set with its bytes */
    case WIRE_ELAPSED:
    default:
        break;
    }
}

static void
fill(const struct wire_object *o, void *into, uint64_t salt)
{
    for (size_t i = 0; i < o->n_fields; i++) {
        if ((o->fields[i].flags & WIRE_ALIAS) == 0)
            fill_field(&o->fields[i], into, salt * 13 + i);
    }
}

static void same(const struct wire_object *o, const void *a, const void *b);

static const void *
at(const void *from, size_t offset)
{
    return (const char *)from + offset;
}

static const char *
text_at(const void *from, size_t offset)
{
    const char *text;

    memcpy(&text, at(from, offset), sizeof text);
    return text;
}

static size_t
size_at(const void *from, size_t offset)
{
    size_t size;

    memcpy(&size, at(from, offset), sizeof size);
    return size;
}

static void
same_field(const struct wire_object *o, const struct wire_field *f, const void *a, const void *b)
{
    size_t n = f->kind == WIRE_BYTES || f->kind == WIRE_OBJECTS || f->kind == WIRE_SIZE
                   ? size_at(a, f->offset2)
                   : 0;

    switch (f->kind) {
    case WIRE_TEXT:
    case WIRE_META:
        T_STREQ(text_at(a, f->offset), text_at(b, f->offset));
        break;
    case WIRE_BYTES:
        T_EQU(size_at(b, f->offset2), n);
        T_TRUE((text_at(a, f->offset) == NULL) == (text_at(b, f->offset) == NULL));
        T_TRUE(n == 0 || memcmp(text_at(a, f->offset), text_at(b, f->offset), n) == 0);
        break;
    case WIRE_SIZE:
        T_EQU(size_at(b, f->offset2), n);
        break;
    case WIRE_OBJECT:
        same(f->object, at(a, f->offset), at(b, f->offset));
        break;
    case WIRE_OBJECTS:
        T_EQU(size_at(b, f->offset2), n);
        for (size_t i = 0; i < n; i++)
            same(f->object, text_at(a, f->offset) + i * f->object->bytes,
                 text_at(b, f->offset) + i * f->object->bytes);
        break;
    case WIRE_ELAPSED:
        break;
    case WIRE_INT32:
    case WIRE_UINT32:
    case WIRE_BOOL:
    case WIRE_CHOICE:
    case WIRE_SET:
        if (memcmp(at(a, f->offset), at(b, f->offset), 4) != 0)
            T_FAIL("%s.%s differs", o->name, f->name);
        break;
    case WIRE_INT64:
    case WIRE_UINT64:
    case WIRE_TIME:
    case WIRE_WAIT:
    default:
        if (memcmp(at(a, f->offset), at(b, f->offset), 8) != 0)
            T_FAIL("%s.%s differs", o->name, f->name);
    }
}

static void
same(const struct wire_object *o, const void *a, const void *b)
{
    for (size_t i = 0; i < o->n_fields; i++)
        same_field(o, &o->fields[i], a, b);
}

static json_t *
load(const struct il__buf *b)
{
    json_t  *json = NULL;
    il_error err;

    T_TRUE(!b->failed);
    if (il__wire_load_for(NULL, b->data, b->n_bytes, &json, &err) != IL_OK)
        T_FAIL("%s: %s", err.message, b->data);
    return json;
}

U_TEST(answers_go_round)
{
    AUTO_BUF struct il__buf b = { 0 };
    il_error                err;

    il__buf_init(&b, 1 << 24);
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        for (uint64_t salt = 0; salt < 60; salt++) {
            const struct wire_object *o      = answers[i];
            char                     *before = il__calloc(1, o->bytes);
            char                     *after  = il__calloc(1, o->bytes);
            fill(o, before, salt);
            il__buf_clear(&b);
            il__wire_print(&b, o, before, WIRE_RAW);
            json_t *json = load(&b);
            if (il__wire_parse(o, NULL, json, after, &arena, &err) != IL_OK)
                T_FAIL("%s: %s: %s", o->name, err.message, b.data);
            same(o, before, after);
            json_decref(json);
            il__free(before);
            il__free(after);
        }
    }
    il__arena_free(&arena);
}

U_TEST(inputs_go_round)
{
    AUTO_BUF struct il__buf b = { 0 };
    il_error                err;

    il__buf_init(&b, 1 << 24);
    for (unsigned type = IL_OP_NONE + 1; type < IL_OP_COUNT; type++) {
        const struct wire_object *o = &il__wire_inputs[type];
        T_TRUE(o->fields != NULL && o->name != NULL && o->help != NULL);
        for (uint64_t salt = 0; salt < 60; salt++) {
            il_op before;
            il_op after;
            il__wire_op_init(&before, (il_op_type)type);
            fill(o, &before, salt);
            il__buf_clear(&b);
            il__wire_print_op(&b, &before);
            json_t *json = load(&b);
            if (il__wire_parse_op(json, &after, &arena, &err) != IL_OK)
                T_FAIL("%s: %s: %s", il_op_name((il_op_type)type), err.message, b.data);
            T_EQ(after.type, type);
            T_TRUE(after.tenant == NULL);
            T_EQU(after.flags, before.flags);
            same(o, &before, &after);
            T_TRUE(memcmp(&before.reserved, &after.reserved, sizeof before.reserved) == 0);
            json_decref(json);
        }
    }
    il__arena_free(&arena);
}

U_TEST(results_go_round)
{
    AUTO_BUF struct il__buf b = { 0 };
    il_error                err;

    il__buf_init(&b, 1 << 24);
    for (unsigned type = IL_OP_NONE + 1; type < IL_OP_COUNT; type++) {
        for (uint64_t salt = 0; salt < 40; salt++) {
            il_op                     before = { .type = (il_op_type)type };
            il_op                     after  = before;
            const struct wire_object *o      = il__wire_result(before.type, 0);
            fill(o, &before.out, salt);
            before.status = (il_status)(salt % IL_STATUS_COUNT);
            il__buf_clear(&b);
            il__wire_print_result(&b, &before, WIRE_RAW);
            json_t *json = load(&b);
            if (il__wire_parse_result(json, &after, &err) != IL_OK)
                T_FAIL("%s: %s: %s", il_op_name(before.type), err.message, b.data);
            json_decref(json); /* what was parsed is the op's own */
            T_EQ(after.status, before.status);
            same(o, &before.out, &after.out);
            il_op_release(&after);
        }
    }
    il__arena_free(&arena);
}

/* Each member of il_op.in, and what names it, is in a table: whoever adds one is told here. */
U_TEST(every_table_is_sound)
{
    for (unsigned type = IL_OP_NONE + 1; type < IL_OP_COUNT; type++) {
        const struct wire_object *o = &il__wire_inputs[type];
        T_TRUE(o->n_fields > 0 && o->n_fields <= WIRE_FIELDS_MAX);
        for (size_t i = 0; i < o->n_fields; i++) {
            const struct wire_field *f = &o->fields[i];
            T_TRUE(f->help != NULL && f->help[0] != '\0');
            T_TRUE(f->offset < sizeof(il_op) && f->offset2 < sizeof(il_op));
            T_TRUE(i > 0 || (f->flags & WIRE_ALIAS) == 0);
            for (size_t k = 0; k < i; k++)
                T_TRUE(strcmp(f->name, o->fields[k].name) != 0);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        for (size_t k = 0; k < answers[i]->n_fields; k++)
            T_TRUE(answers[i]->fields[k].help != NULL && (answers[i]->flags & WIRE_ANSWER) != 0);
    }
}

/* The names of the library and those of the tables are the same, in the same order. */
static const struct wire_field *
field_of(const struct wire_object *o, const char *name)
{
    for (size_t i = 0; i < o->n_fields; i++) {
        if (strcmp(o->fields[i].name, name) == 0)
            return &o->fields[i];
    }
    T_FAIL("%s has no %s", o->name, name);
}

U_TEST(choices_are_those_of_the_library)
{
    const struct wire_field *mode     = field_of(&il__wire_lease, "mode");
    const struct wire_field *lease    = field_of(&il__wire_lease, "state");
    const struct wire_field *run      = field_of(&il__wire_run, "state");
    const struct wire_field *job      = field_of(&il__wire_job, "state");
    const struct wire_field *policy   = field_of(&il__wire_inputs[IL_OP_RUN_START], "on_conflict");
    const struct wire_field *missed   = field_of(&il__wire_cron, "missed");
    const struct wire_field *strategy = field_of(&il__wire_queue_settings, "strategy");

    T_EQU(count_choices(mode), IL_MODE_COUNT);
    T_EQU(count_choices(lease), IL_LEASE_STATE_COUNT - 1);
    T_EQU(count_choices(run), IL_RUN_STATE_COUNT - 1);
    T_EQU(count_choices(job), IL_JOB_STATE_COUNT - 1);
    T_EQU(count_choices(policy), IL_POLICY_COUNT);
    T_EQU(count_choices(missed), IL_MISSED_COUNT);
    T_EQU(count_choices(strategy), IL_STRATEGY_COUNT);
    for (int i = 0; i < IL_MODE_COUNT; i++)
        T_STREQ(mode->choices[i], il_mode_name((il_mode)i));
    for (int i = 1; i < IL_LEASE_STATE_COUNT; i++)
        T_STREQ(lease->choices[i - 1], il_lease_state_name((il_lease_state)i));
    for (int i = 1; i < IL_RUN_STATE_COUNT; i++)
        T_STREQ(run->choices[i - 1], il_run_state_name((il_run_state)i));
    for (int i = 1; i < IL_JOB_STATE_COUNT; i++)
        T_STREQ(job->choices[i - 1], il_job_state_name((il_job_state)i));
    for (int i = 0; i < IL_POLICY_COUNT; i++)
        T_STREQ(policy->choices[i], il_policy_name((il_policy)i));
    for (int i = 0; i < IL_MISSED_COUNT; i++)
        T_STREQ(missed->choices[i], il_missed_name((il_missed)i));
    for (int i = 0; i < IL_STRATEGY_COUNT; i++)
        T_STREQ(strategy->choices[i], il_strategy_name((il_strategy)i));
}

/* ---- how values look ------------------------------------------------------------------------- */

#define BYTES_OF(text) text, sizeof(text) - 1

struct bytes_row {
    const char *data;
    size_t      n_bytes;
    unsigned    flags;
    const char *expected;
};

U_TEST(bytes_look_like_what_they_are)
{
    static const struct bytes_row rows[] = {
        { NULL, 0, 0, "\"v\":null," },
        { BYTES_OF(""), 0, "\"v\":\"\"," },
        { BYTES_OF("text"), 0, "\"v\":\"text\"," },
        { BYTES_OF(" { \"a\" : [ 1 , 2.50e3 , null ] } "), 0, "\"v\":{\"a\":[1,2.50e3,null]}," },
        { BYTES_OF("[]"), 0, "\"v\":[]," },
        { BYTES_OF("[]"), WIRE_RAW, "\"v\":\"[]\"," },
        { BYTES_OF("42"), 0, "\"v\":\"42\"," }, /* only objects and arrays are shown as JSON */
        { BYTES_OF("[1]x"), 0, "\"v\":\"[1]x\"," },
        { BYTES_OF("[01]"), 0, "\"v\":\"[01]\"," },
        { BYTES_OF("[1.]"), 0, "\"v\":\"[1.]\"," },
        { BYTES_OF("[1e400]"), 0, "\"v\":\"[1e400]\"," }, /* nobody could load it */
        { BYTES_OF("[9223372036854775808]"), 0, "\"v\":\"[9223372036854775808]\"," },
        { BYTES_OF("[9223372036854775807]"), 0, "\"v\":[9223372036854775807]," },
        { BYTES_OF("[\"\\ud800\"]"), 0, "\"v\":\"[\\\"\\\\ud800\\\"]\"," }, /* half a pair */
        { BYTES_OF("[\"\\ud83d\\ude00\"]"), 0, "\"v\":[\"\\ud83d\\ude00\"]," },
        { BYTES_OF("[\"\\u0000\"]"), 0, "\"v\":\"[\\\"\\\\u0000\\\"]\"," },
        { BYTES_OF("[\"a\nb\"]"), 0, "\"v\":\"[\\\"a\\nb\\\"]\"," },
        { BYTES_OF("\xff"), 0, "\"v\":null,\"v_base64\":\"/w==\"," },
        { BYTES_OF("a\0b"), 0, "\"v\":null,\"v_base64\":\"YQBi\"," },
        { BYTES_OF("a\0b"), WIRE_NUL, "\"v\":\"a\\u0000b\"," },
        { BYTES_OF("[\"\xff\"]"), 0, "\"v\":null,\"v_base64\":\"WyL/Il0=\"," },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_BUF struct il__buf b = { 0 };
        il__buf_init(&b, 4096);
        il__wire_put_bytes(&b, "v", rows[i].data, rows[i].n_bytes, rows[i].flags);
        T_STREQ(il__buf_str(&b), rows[i].expected);
    }
}

U_TEST(depth_inside_of_bytes)
{
    for (int depth = WIRE_DEPTH_MAX; depth <= WIRE_DEPTH_MAX + 1; depth++) {
        AUTO_BUF struct il__buf text = { 0 };
        AUTO_BUF struct il__buf b    = { 0 };
        il__buf_init(&text, 4096);
        il__buf_init(&b, 4096);
        for (int i = 0; i < depth; i++)
            il__buf_addc(&text, '[');
        for (int i = 0; i < depth; i++)
            il__buf_addc(&text, ']');
        il__wire_put_bytes(&b, "v", text.data, text.n_bytes, 0);
        T_EQ(b.data[4], depth == WIRE_DEPTH_MAX ? '[' : '"');
    }
}

U_TEST(texts_are_escaped)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, 4096);
    il__wire_print_text(&b, "a\"\\\n\r\t\x01\x1f\x7f\xc3\xa4\xe2\x82\xac\xff\xc3(");
    T_STREQ(il__buf_str(&b),
            "\"a\\\"\\\\\\n\\r\\t\\u0001\\u001f\x7f\xc3\xa4\xe2\x82\xac\\ufffd\\ufffd(\"");
    il__buf_clear(&b);
    il__wire_print_text(&b, NULL);
    T_STREQ(il__buf_str(&b), "null");
    il__buf_clear(&b);
    il__wire_print_time(&b, 1763177820250);
    T_STREQ(il__buf_str(&b), "\"2025-11-15T03:37:00.250Z\"");
    il__buf_clear(&b);
    il__wire_print_time(&b, 0);
    T_STREQ(il__buf_str(&b), "null");
}

U_TEST(objects_by_hand)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, 4096);
    il__wire_open(&b, NULL);
    il__wire_close(&b);
    T_STREQ(il__buf_str(&b), "{}");
    il__buf_clear(&b);
    il__wire_open(&b, NULL);
    il__wire_put_int(&b, "min", INT64_MIN);
    il__wire_put_int(&b, "zero", 0);
    il__wire_open(&b, "in");
    il__wire_put_bool(&b, "yes", true);
    il__wire_put_null(&b, "none");
    il__wire_close(&b);
    il__buf_addc(&b, ',');
    il__wire_put_objects(&b, "empty", &il__wire_sweep, NULL, sizeof(il_sweep_out), 0, 0);
    il__wire_close(&b);
    T_STREQ(il__buf_str(&b), "{\"min\":-9223372036854775808,\"zero\":0,\"in\":{\"yes\":true,"
                             "\"none\":null},\"empty\":[]}");
    il__buf_clear(&b);
    il__wire_print_page(&b, &il__wire_sweep, NULL, sizeof(il_sweep_out), 0, NULL);
    T_STREQ(il__buf_str(&b), "{\"items\":[],\"next\":null}");
}

/* A buffer that is full stays as it is, and says so. */
U_TEST(a_full_buffer)
{
    il_lease_info info = {
        .tenant = "t", .key = "k", .holder = "h", .meta = "{}", .place = "", .reason = ""
    };

    AUTO_BUF struct il__buf whole = { 0 };

    il__buf_init(&whole, 4096);
    il__wire_print(&whole, &il__wire_lease, &info, 0);
    for (size_t n = 1; n < whole.n_bytes; n++) {
        AUTO_BUF struct il__buf b = { 0 };
        il__buf_init(&b, n);
        il__wire_print(&b, &il__wire_lease, &info, 0);
        T_TRUE(b.failed && b.n_bytes <= n);
    }
}

U_TEST(a_lease_as_everybody_knows_it)
{
    AUTO_BUF struct il__buf b    = { 0 };
    il_lease_info           info = { .tenant         = "default",
                                     .key            = "event:1",
                                     .holder         = "me",
                                     .meta           = "{\"pid\": 7}",
                                     .place          = "",
                                     .reason         = "",
                                     .fence          = 1763177820250001,
                                     .state          = IL_LEASE_HELD,
                                     .ttl_ms         = 30000,
                                     .remaining_ms   = 29990,
                                     .acquired_at_ms = 1763177820250,
                                     .expires_at_ms  = 1763177850250 };

    il__buf_init(&b, 4096);
    il__wire_print(&b, &il__wire_lease, &info, 0);
    T_STREQ(
        il__buf_str(&b),
        "{\"key\":\"event:1\",\"tenant\":\"default\",\"holder\":\"me\",\"fence\":1763177820250001,"
        "\"mode\":\"exclusive\",\"acquired_at\":\"2025-11-15T03:37:00.250Z\","
        "\"expires_at\":\"2025-11-15T03:37:30.250Z\",\"age_ms\":0,\"ttl_ms\":30000,\"waiters\":0,"
        "\"meta\":{\"pid\":7},\"state\":\"held\",\"permits\":0,\"place\":\"\",\"reason\":null,"
        "\"renewed_ms\":0,\"remaining_ms\":29990}");
    il__buf_clear(&b);
    il__wire_print(&b, &il__wire_lease, &info, WIRE_RAW);
    T_HAS(il__buf_str(&b), "\"meta\":\"{\\\"pid\\\": 7}\"");
}

/* ---- base64 ---------------------------------------------------------------------------------- */

U_TEST(base64_goes_round)
{
    struct t_rng r;

    t_rng_init(&r, 11);
    for (size_t n = 0; n < 300; n++) {
        AUTO_BUF struct il__buf b = { 0 };
        unsigned char           data[300];
        unsigned char           back[304];
        size_t                  n_back = 0;
        for (size_t i = 0; i < n; i++)
            data[i] = (unsigned char)t_rng_next(&r);
        il__buf_init(&b, 1024);
        il__wire_base64(&b, data, n);
        T_TRUE(il__wire_base64_decode(il__buf_str(&b), b.n_bytes, back, &n_back));
        T_EQU(n_back, n);
        T_TRUE(memcmp(back, data, n) == 0);
    }
}

U_TEST(base64_is_strict)
{
    static const char *const bad[] = { "A",     "AA",    "AAA",  "A===", "====", "AA=A", "=AAA",
                                       "AAAA=", "AA AA", "AAA-", "AB==", "AAB=", "AA=\n" };
    unsigned char            out[8];
    size_t                   n;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        T_TRUE(!il__wire_base64_decode(bad[i], strlen(bad[i]), out, &n));
    T_TRUE(il__wire_base64_decode("", 0, out, &n) && n == 0);
    T_TRUE(il__wire_base64_decode("AA==", 4, out, &n) && n == 1);
}

/* ---- schemas --------------------------------------------------------------------------------- */

static void
check_schema(const struct wire_object *o)
{
    json_t *s          = il__wire_schema(o, WIRE_IN_JSON);
    json_t *properties = json_object_get(s, "properties");

    T_STREQ(json_string_value(json_object_get(s, "type")), "object");
    for (size_t i = 0; i < o->n_fields; i++) {
        const json_t *p = json_object_get(properties, o->fields[i].name);
        T_TRUE(json_is_object(p));
        T_STREQ(json_string_value(json_object_get(p, "description")), o->fields[i].help);
    }
    json_decref(s);
}

U_TEST(schemas)
{
    for (unsigned type = IL_OP_NONE + 1; type < IL_OP_COUNT; type++) {
        check_schema(&il__wire_inputs[type]);
        check_schema(il__wire_result((il_op_type)type, 0));
    }
    for (size_t i = 0; i < ARRAY_LEN(answers); i++)
        check_schema(answers[i]);
    json_t *s = il__wire_schema(&il__wire_inputs[IL_OP_RENEW], WIRE_IN_JSON);
    char   *t = json_dumps(s, JSON_COMPACT | JSON_SORT_KEYS);
    T_HAS(t, "\"required\":[\"key\",\"holder\",\"fence\"]");
    T_HAS(t, "\"additionalProperties\":false");
    T_HAS(t, "\"ttl_ms\":{\"description\":\"new TTL; default as "
             "granted\",\"maximum\":86400000,\"minimum\":1000,"
             "\"type\":[\"integer\",\"null\"]}");
    free(t);
    json_decref(s);
}

U_TEST(times_go_round)
{
    struct t_rng r;

    t_rng_init(&r, 5);
    for (unsigned i = 0; i < 20000; i++) {
        char    text[IL__TIME_TEXT_BYTES];
        int64_t back;
        int64_t wall_ms = (int64_t)(t_rng_next(&r) % UINT64_C(253402300800000));
        T_TRUE(il__time_parse(il__time_text(wall_ms, text), &back));
        T_EQ(back, wall_ms);
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(every_table_is_sound),
        U_ROW(choices_are_those_of_the_library),
        U_ROW(answers_go_round),
        U_ROW(inputs_go_round),
        U_ROW(results_go_round),
        U_ROW(bytes_look_like_what_they_are),
        U_ROW(depth_inside_of_bytes),
        U_ROW(texts_are_escaped),
        U_ROW(objects_by_hand),
        U_ROW(a_full_buffer),
        U_ROW(a_lease_as_everybody_knows_it),
        U_ROW(base64_goes_round),
        U_ROW(base64_is_strict),
        U_ROW(schemas),
        U_ROW(times_go_round),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
