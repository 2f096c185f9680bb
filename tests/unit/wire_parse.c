/*
 * wire_parse.c: refused input and its messages: invalid JSON; unknown, duplicate or missing fields;
 * wrong types, values too large. A mistake must never be taken for something else.
 */
#include "base/error.h"
#include "core/limits.h"
#include "core/op.h"
#include "harness/unit.h"
#include "wire/wire.h"

static void *arena;

/* ---- text to JSON ---------------------------------------------------------------------------- */

static void
refuses_text(const char *text, size_t n_bytes, const char *expected)
{
    json_t  *json = NULL;
    il_error err;

    T_EQ(il__wire_load_for(NULL, text, n_bytes, &json, &err), IL_INVAL);
    T_STREQ(err.message, expected);
    T_TRUE(json == NULL);
}

#define REFUSES_TEXT(text, expected) refuses_text(text, sizeof(text) - 1, expected)

U_TEST(text_that_is_not_json)
{
    REFUSES_TEXT("", "empty body, expected JSON");
    REFUSES_TEXT(" ", "invalid JSON: line 1, column 1: unexpected token");
    REFUSES_TEXT("{", "invalid JSON: line 1, column 1: string or '}' expected");
    REFUSES_TEXT("{} x", "invalid JSON: line 1, column 4: end of file expected");
    REFUSES_TEXT("{}{}", "invalid JSON: line 1, column 3: end of file expected");
    REFUSES_TEXT("{\"a\":1,}", "invalid JSON: line 1, column 8: string or '}' expected");
    REFUSES_TEXT("[1,]", "invalid JSON: line 1, column 4: unexpected token");
    REFUSES_TEXT("{a:1}", "invalid JSON: line 1, column 2: string or '}' expected");
    REFUSES_TEXT("'a'", "invalid JSON: line 1, column 1: invalid token");
    REFUSES_TEXT("{\"a\":01}", "invalid JSON: line 1, column 6: invalid token");
    REFUSES_TEXT("{\"a\":NaN}", "invalid JSON: line 1, column 8: invalid token");
    REFUSES_TEXT("{\"a\":+1}", "invalid JSON: line 1, column 6: invalid token");
    REFUSES_TEXT("/* no */{}", "invalid JSON: line 1, column 1: invalid token");
    REFUSES_TEXT("\xef\xbb\xbf{}", "invalid JSON: line 1, column 1: invalid token");
}

U_TEST(json_that_is_not_acceptable)
{
    REFUSES_TEXT("{\"a\":1,\"b\":{},\"a\":2}",
                 "invalid JSON: line 1, column 17: duplicate name in an object");
    REFUSES_TEXT("{\"a\":\"\\u0000\"}",
                 "invalid JSON: line 1, column 13: a string must not contain NUL");
    REFUSES_TEXT("{\"\\u0000\":1}",
                 "invalid JSON: line 1, column 9: a string must not contain NUL");
    REFUSES_TEXT("{\"a\":9223372036854775808}", "invalid JSON: line 1, column 24: too big integer");
    REFUSES_TEXT("{\"a\":-9223372036854775809}",
                 "invalid JSON: line 1, column 25: too big negative integer");
    REFUSES_TEXT("{\"a\":1e999}", "invalid JSON: line 1, column 10: real number overflow");
    json_t *json = NULL;
    T_EQ(il__wire_load_for(NULL, "{\"a\":9223372036854775807}", 25, &json, NULL), IL_OK);
    json_decref(json);
}

/* Whatever jansson says of them: bytes that are no text are none. What they are does not matter
 * here, only that nobody takes them. */
U_TEST(text_that_is_not_utf8)
{
    static const char *const bad[] = { "\"\xff\"",
                                       "\"\xc3\"",
                                       "\"\xc0\x80\"",
                                       "\"\xed\xa0\x80\"",
                                       "\"\xf5\x80\x80\x80\"",
                                       "\"\\ud800\"",
                                       "\"\\udc00\"",
                                       "\"\\ud800\\ud800\"",
                                       "\"\\ud800x\"",
                                       "\"a\nb\"",
                                       "\"\x01\"",
                                       "\"\\x41\"" };
    json_t                  *json  = NULL;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        T_EQ(il__wire_load_for(NULL, bad[i], strlen(bad[i]), &json, NULL), IL_INVAL);
    T_EQ(il__wire_load_for(NULL, "\"a\0b\"", 5, &json, NULL), IL_INVAL);
    T_EQ(il__wire_load_for(NULL, "{}\0", 3, &json, NULL), IL_INVAL);
    T_EQ(il__wire_load_for(NULL, "[1\0,2]", 7, &json, NULL), IL_INVAL);
    T_EQ(il__wire_load_for(NULL, "\"\\\0\"", 4, &json, NULL), IL_INVAL);
}

static il_status
load_nested(int depth, char open, char close, il_error *reterr)
{
    AUTO_BUF struct il__buf b    = { 0 };
    json_t                 *json = NULL;

    il__buf_init(&b, 1 << 20);
    for (int i = 0; i < depth; i++) {
        il__buf_addc(&b, open);
        if (open == '{' && i + 1 < depth)
            il__buf_adds(&b, "\"a\":");
    }
    for (int i = 0; i < depth; i++)
        il__buf_addc(&b, close);
    il_status st = il__wire_load_for(NULL, b.data, b.n_bytes, &json, reterr);
    json_decref(json);
    return st;
}

U_TEST(depth)
{
    il_error err;

    T_EQ(load_nested(WIRE_DEPTH_MAX, '[', ']', &err), IL_OK);
    T_EQ(load_nested(WIRE_DEPTH_MAX, '{', '}', &err), IL_OK);
    T_EQ(load_nested(WIRE_DEPTH_MAX + 1, '[', ']', &err), IL_INVAL);
    T_STREQ(err.message, "JSON nested deeper than 32 levels at byte 32");
    T_EQ(load_nested(WIRE_DEPTH_MAX + 1, '{', '}', &err), IL_INVAL);
    T_EQ(load_nested(100000, '[', ']', &err), IL_INVAL);
    /* Brackets in a string are none. */
    static const char in_string[] = "[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[\"]";
    json_t           *json        = NULL;
    T_EQ(il__wire_load_for(NULL, in_string, sizeof in_string - 1, &json, NULL), IL_OK);
    json_decref(json);
}

U_TEST(number_of_values)
{
    AUTO_BUF struct il__buf b    = { 0 };
    json_t                 *json = NULL;
    il_error                err;

    il__buf_init(&b, 4 * WIRE_VALUES_MAX);
    il__buf_adds(&b, "[1");
    for (int i = 0; i < WIRE_VALUES_MAX - 2; i++)
        il__buf_adds(&b, ",1");
    il__buf_addc(&b, ']');
    T_EQ(il__wire_load_for(NULL, b.data, b.n_bytes, &json, &err), IL_OK);
    json_decref(json);
    b.n_bytes--;
    il__buf_adds(&b, ",1]");
    T_EQ(il__wire_load_for(NULL, b.data, b.n_bytes, &json, &err), IL_INVAL);
    T_HAS(err.message, "(maximum 262144)");
    T_EQ(il__wire_load_answer(b.data, b.n_bytes, &json, &err), IL_OK);
    T_EQU(json_array_size(json), WIRE_VALUES_MAX);
    json_decref(json);
}

/* ---- ops ------------------------------------------------------------------------------------- */

static il_status
parse(const char *text, il_op *op, json_t **ret, il_error *reterr)
{
    il_error err;

    *ret = NULL;
    if (il__wire_load_for(NULL, text, strlen(text), ret, &err) != IL_OK)
        T_FAIL("%s: %s", err.message, text);
    return il__wire_parse_op(*ret, op, &arena, reterr);
}

static void
refuses(const char *text, const char *expected)
{
    json_t  *json;
    il_op    op;
    il_error err;

    T_EQ(parse(text, &op, &json, &err), IL_INVAL);
    T_STREQ(err.message, expected);
    json_decref(json);
    il__arena_free(&arena);
}

U_TEST(what_is_no_op)
{
    refuses("[]", "an op must be a JSON object");
    refuses("{}", "field 'op' is missing or not a string");
    refuses("{\"op\":1}", "field 'op' is missing or not a string");
    refuses("{\"op\":\"none\"}", "field 'op': unknown op 'none'");
    refuses("{\"op\":\"aquire\"}", "field 'op': unknown op 'aquire' (did you mean 'acquire'?)");
    refuses("{\"op\":\"renew\",\"key\":\"k\",\"holder\":\"h\",\"fence\":5,\"tenant\":\"other\"}",
            "unknown field 'tenant'");
}

U_TEST(fields_that_are_not_there)
{
    refuses("{\"op\":\"acquire\",\"holder\":\"h\"}", "field 'key' is missing");
    refuses("{\"op\":\"renew\",\"key\":\"k\",\"fence\":5}", "field 'holder' is missing");
    refuses("{\"op\":\"acquire\",\"key\":null,\"holder\":\"h\"}", "field 'key' is missing");
    refuses("{\"op\":\"renew\",\"key\":\"k\",\"holder\":\"h\"}", "field 'fence' is missing");
    refuses("{\"op\":\"acquire\",\"key\":\"k\",\"holder\":\"h\",\"tll_ms\":5000}",
            "unknown field 'tll_ms' (did you mean 'ttl_ms'?)");
    refuses("{\"op\":\"acquire\",\"key\":\"k\",\"holder\":\"h\",\"quite another thing\":1}",
            "unknown field 'quite another thing'");
    refuses("{\"op\":\"acquire\",\"key\":\"k\",\"holder\":\"h\",\"meta_base64\":\"\"}",
            "unknown field 'meta_base64'");
    refuses("{\"op\":\"release\",\"key\":\"k\",\"holder\":\"h\",\"fence\":5,\"ttl_ms\":5000}",
            "unknown field 'ttl_ms'");
    refuses("{\"op\":\"job_purge\",\"queue\":\"q\"}", "field 'state' is missing");
    refuses("{\"op\":\"cache_fill\",\"key\":\"k\",\"holder\":\"h\",\"token\":1,\"value\":\"\"}",
            "field 'ttl_ms' is missing");
}

U_TEST(numbers)
{
    refuses("{\"op\":\"acquire\",\"key\":\"k\",\"holder\":\"h\",\"ttl_ms\":12}",
            "field 'ttl_ms': must be at least 1000, not 12");
    refuses("{\"op\":\"acquire\",\"key\":\"k\",\"holder\":\"h\",\"ttl_ms\":0}",
            "field 'ttl_ms': must be at least 1000, not 0");
    refuses("{\"op\":\"acquire\",\"key\":\"k\",\"holder\":\"h\",\"ttl_ms\":86400001}",
            "field 'ttl_ms': must be at most 86400000, not 86400001");
    refuses("{\"op\":\"acquire\",\"key\":\"k\",\"holder\":\"h\",\"ttl_ms\":1e4}",
            "field 'ttl_ms': must be a whole number, written without '.' and 'e'");
    refuses("{\"op\":\"acquire\",\"key\":\"k\",\"holder\":\"h\",\"ttl_ms\":5000.0}",
            "field 'ttl_ms': must be a whole number, written without '.' and 'e'");
    refuses("{\"op\":\"acquire\",\"key\":\"k\",\"holder\":\"h\",\"ttl_ms\":\"5000\"}",
            "field 'ttl_ms': must be a whole number, not a string");
    refuses("{\"op\":\"acquire\",\"key\":\"k\",\"holder\":\"h\",\"ttl_ms\":true}",
            "field 'ttl_ms': must be a whole number, not true");
    refuses("{\"op\":\"acquire\",\"key\":\"k\",\"holder\":\"h\",\"ttl_ms\":[5000]}",
            "field 'ttl_ms': must be a whole number, not an array");
    refuses("{\"op\":\"acquire\",\"key\":\"k\",\"holder\":\"h\",\"permits\":-1}",
            "field 'permits': must be at least 1, not -1");
    refuses("{\"op\":\"acquire\",\"key\":\"k\",\"holder\":\"h\",\"wait_ms\":-1}",
            "field 'wait_ms': must be at least 0, not -1");
    refuses("{\"op\":\"acquire\",\"key\":\"k\",\"holder\":\"h\",\"wait_ms\":\"5s\"}",
            "field 'wait_ms': must be a whole number of milliseconds or \"forever\"");
    refuses("{\"op\":\"renew\",\"key\":\"k\",\"holder\":\"h\",\"fence\":0}",
            "field 'fence': must be at least 1, not 0");
    refuses("{\"op\":\"renew\",\"key\":\"k\",\"holder\":\"h\",\"fence\":-5}",
            "field 'fence': must be at least 1, not -5");
    refuses("{\"op\":\"renew\",\"key\":\"k\",\"holder\":\"h\",\"fence\":9007199254740992}",
            "field 'fence': must be at most 9007199254740991, not 9007199254740992");
    refuses("{\"op\":\"run_log\",\"id\":\"r\",\"offset\":9007199254740992}",
            "field 'offset': must be at most 9007199254740991, not 9007199254740992");
    refuses("{\"op\":\"cache_get\",\"key\":\"k\",\"chance\":4294967296}",
            "field 'chance': must be at most 4294967295, not 4294967296");
    refuses("{\"op\":\"push\",\"queue\":\"q\",\"priority\":-1001}",
            "field 'priority': must be at least -1000, not -1001");
    refuses(
        "{\"op\":\"once_finish\",\"key\":\"k\",\"attempt\":\"a\",\"token\":1,\"code\":2147483648}",
        "field 'code': must be at most 2147483647, not 2147483648");
}

U_TEST(names_and_texts)
{
    AUTO_BUF struct il__buf b = { 0 };

    refuses("{\"op\":\"acquire\",\"key\":\"\",\"holder\":\"h\"}", "field 'key': must not be empty");
    refuses("{\"op\":\"acquire\",\"key\":7,\"holder\":\"h\"}",
            "field 'key': must be a string, not a number");
    refuses("{\"op\":\"acquire\",\"key\":\"k\",\"holder\":\"h\",\"meta\":{}}",
            "field 'meta': must be a string, not an object");
    refuses("{\"op\":\"acquire\",\"key\":\"k\",\"holder\":\"h\",\"mode\":\"exclusiv\"}",
            "field 'mode': 'exclusiv' is not one of exclusive, shared, permit (did you mean "
            "'exclusive'?)");
    refuses("{\"op\":\"acquire\",\"key\":\"k\",\"holder\":\"h\",\"mode\":1}",
            "field 'mode': must be a string, not a number");
    refuses("{\"op\":\"run_start\",\"key\":\"k\",\"on_conflict\":\"\"}",
            "field 'on_conflict': '' is not one of join, reject, skip, queue, replace-pending, "
            "cancel-running");
    refuses("{\"op\":\"break\",\"key\":\"k\",\"fence\":1,\"reason\":\"r\",\"now\":1}",
            "field 'now': must be true or false, not a number");
    refuses("{\"op\":\"push\",\"queue\":\"q\",\"key\":\"a\",\"unique_key\":\"b\"}",
            "field 'unique_key': given twice, under two names");
    il__buf_init(&b, 4096);
    il__buf_adds(&b, "{\"op\":\"get\",\"key\":\"");
    for (int i = 0; i < IL_KEY_BYTES_MAX + 1; i++)
        il__buf_addc(&b, 'k');
    il__buf_adds(&b, "\"}");
    refuses(il__buf_str(&b), "field 'key': must have at most 512 bytes, not 513");
}

U_TEST(times_and_sets)
{
    refuses("{\"op\":\"push\",\"queue\":\"q\",\"run_at\":\"tomorrow\"}",
            "field 'run_at': 'tomorrow' is not a time such as 2026-11-15T03:37:00.250Z");
    refuses(
        "{\"op\":\"push\",\"queue\":\"q\",\"run_at\":\"2026-02-30T00:00:00Z\"}",
        "field 'run_at': '2026-02-30T00:00:00Z' is not a time such as 2026-11-15T03:37:00.250Z");
    refuses("{\"op\":\"push\",\"queue\":\"q\",\"run_at\":\"2026-11-15T03:37:00\"}",
            "field 'run_at': '2026-11-15T03:37:00' is not a time such as 2026-11-15T03:37:00.250Z");
    refuses("{\"op\":\"push\",\"queue\":\"q\",\"run_at\":1763177820250}",
            "field 'run_at': must be a string, not a number");
    refuses("{\"op\":\"push\",\"queue\":\"q\",\"run_at\":\"1970-01-01T00:00:00Z\"}",
            "field 'run_at': '1970-01-01T00:00:00Z' must be after 1970-01-01");
    refuses("{\"op\":\"job_list\",\"queue\":\"q\",\"state\":\"READY,GONE\"}",
            "field 'state': 'GONE' is not one of SCHEDULED, READY, RUNNING, COMPLETED, FAILED, "
            "CANCELLED");
    refuses("{\"op\":\"job_list\",\"queue\":\"q\",\"state\":[\"READY\",1]}",
            "field 'state': must be an array of names, not a number");
    refuses("{\"op\":\"job_list\",\"queue\":\"q\",\"state\":5}",
            "field 'state': must be an array of names, not a number");
    refuses(
        "{\"op\":\"job_list\",\"queue\":\"q\",\"state\":\"\"}",
        "field 'state': '' is not one of SCHEDULED, READY, RUNNING, COMPLETED, FAILED, CANCELLED");
}

U_TEST(bytes)
{
    AUTO_BUF struct il__buf b = { 0 };

    refuses("{\"op\":\"push\",\"queue\":\"q\",\"payload\":\"a\",\"payload_base64\":\"YQ==\"}",
            "field 'payload': given twice, under two names");
    refuses("{\"op\":\"push\",\"queue\":\"q\",\"payload_base64\":\"YQ=\"}",
            "field 'payload': not valid base64");
    refuses("{\"op\":\"push\",\"queue\":\"q\",\"payload_base64\":{}}",
            "field 'payload': must be a string (in base64), not an object");
    refuses("{\"op\":\"once_begin\",\"key\":\"k\",\"attempt\":\"a\",\"fingerprint\":"
            "\"12345678901234567890123456789012345678901234567890123456789012345\"}",
            "field 'fingerprint': must have at most 64 bytes, not 65");
    il__buf_init(&b, (size_t)2 * IL_BLOB_BYTES_MAX);
    il__buf_adds(&b, "{\"op\":\"push\",\"queue\":\"q\",\"payload\":\"");
    for (int i = 0; i < IL_BLOB_BYTES_MAX + 1; i++)
        il__buf_addc(&b, 'x');
    il__buf_adds(&b, "\"}");
    refuses(il__buf_str(&b), "field 'payload': must have at most 1048576 bytes, not 1048577");
    il__buf_clear(&b);
    il__buf_adds(&b, "{\"op\":\"push\",\"queue\":\"q\",\"payload\":[\"");
    for (int i = 0; i < IL_BLOB_BYTES_MAX; i++)
        il__buf_addc(&b, 'x');
    il__buf_adds(&b, "\"]}");
    refuses(il__buf_str(&b), "field 'payload': longer than 1048576 bytes as text");
}

/* ---- what is taken --------------------------------------------------------------------------- */

static json_t *
takes(const char *text, il_op *op)
{
    json_t  *json;
    il_error err;

    if (parse(text, op, &json, &err) != IL_OK)
        T_FAIL("%s: %s", err.message, text);
    return json;
}

U_TEST(an_acquire)
{
    il_op   op;
    json_t *json = takes("{\"op\":\"acquire\",\"key\":\"event:1\",\"holder\":\"me\",\"ttl_ms\":"
                         "30000,\"wait_ms\":\"forever\","
                         "\"mode\":\"permit\",\"permits\":3,\"meta\":\"{}\",\"place\":null}",
                         &op);

    T_EQ(op.type, IL_OP_ACQUIRE);
    T_STREQ(op.key, "event:1");
    T_STREQ(op.holder, "me");
    T_EQ(op.in.lock.ttl_ms, 30000);
    T_EQ(op.in.lock.wait_ms, IL_FOREVER);
    T_EQ(il__wire_wait_ms(&op), IL_FOREVER);
    T_EQ(op.in.lock.mode, IL_MODE_PERMIT);
    T_EQU(op.in.lock.permits, 3);
    T_STREQ(op.in.lock.meta, "{}");
    T_TRUE(op.in.lock.place == NULL);
    T_TRUE(il__op_prepare(&op, "t", 1));
    json_decref(json);
}

U_TEST(what_is_left_out_is_made)
{
    il_op   op;
    json_t *json = takes("{\"op\":\"push\",\"queue\":\"q\",\"unique_key\":\"u\"}", &op);

    T_EQU(strlen(op.in.job.id), 36);
    T_STREQ(op.in.job.unique_key, "u");
    T_TRUE(op.in.job.data == NULL);
    json_decref(json);
    json = takes("{\"op\":\"claim\",\"queue\":\"q\",\"wait_ms\":5000}", &op);
    T_EQU(strlen(op.in.job.id), 36);
    T_STREQ(op.holder, op.in.job.id);
    T_EQ(il__wire_wait_ms(&op), 5000);
    T_TRUE(il__op_prepare(&op, "t", 1));
    T_EQ(il__wire_wait_ms(&op), 5000);
    json_decref(json);
    json = takes("{\"op\":\"claim\",\"queue\":\"q\",\"worker\":\"w\",\"claim_id\":\"c\"}", &op);
    T_STREQ(op.in.job.id, "c");
    T_STREQ(op.holder, "w");
    json_decref(json);
    json = takes("{\"op\":\"run_start\",\"key\":\"k\",\"id\":\"r\"}", &op);
    T_STREQ(op.holder, "r");
    json_decref(json);
    json = takes("{\"op\":\"run_finish\",\"id\":\"r\",\"fence\":5,\"state\":\"FAILED\"}", &op);
    T_STREQ(op.holder, "r");
    json_decref(json);
    json = takes("{\"op\":\"acquire\",\"key\":\"k\"}", &op);
    T_EQU(strlen(op.holder), 36);
    json_decref(json);
    json = takes("{\"op\":\"cache_lookup\",\"key\":\"k\"}", &op);
    T_EQU(strlen(op.holder), 36);
    json_decref(json);
    json = takes("{\"op\":\"run_start\",\"key\":\"k\",\"slot\":true}", &op);
    T_TRUE(op.holder == NULL && op.in.run.id != NULL);
    json_decref(json);
    json = takes("{\"op\":\"heartbeat\",\"id\":\"j\",\"token\":5}", &op);
    T_EQ(op.in.job.progress, -1); /* as before */
    json_decref(json);
    json = takes("{\"op\":\"run_stage\",\"id\":\"r\",\"holder\":\"h\",\"fence\":5,\"log\":\"x\"}",
                 &op);
    T_EQ(op.in.run.progress, -1);
    T_EQU(op.flags, 0);
    json_decref(json);
    json = takes("{\"op\":\"run_stage\",\"id\":\"r\",\"holder\":\"h\",\"fence\":5,\"log\":\"x\","
                 "\"offset\":0}",
                 &op);
    T_EQU(op.flags, IL_LOG_AT);
    json_decref(json);
    il__arena_free(&arena);
}

struct payload_row {
    const char *json, *text;
};

U_TEST(payloads)
{
    static const struct payload_row rows[] = {
        { "\"text\"", "text" },
        { "\"\"", "" },
        { "{\"b\": 1, \"a\": [true, null, -5]}", "{\"b\":1,\"a\":[true,null,-5]}" },
        { "[1.10, 0.1, 1e3, 1E-7, 123456789012345680000.0]",
          "[1.1,0.1,1000.0,1e-07,1.2345678901234568e+20]" },
        { "[\"\\u00e4\\/\\\"\\n\"]", "[\"\xc3\xa4/\\\"\\n\"]" },
        { "42", "42" },
        { "false", "false" },
        { "[9007199254740993]", "[9007199254740993]" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[256];
        (void)snprintf(text, sizeof text, "{\"op\":\"push\",\"queue\":\"q\",\"payload\":%s}",
                       rows[i].json);
        il_op   op;
        json_t *json = takes(text, &op);
        T_STREQ(op.in.job.data, rows[i].text);
        T_EQU(op.in.job.data_bytes, strlen(rows[i].text));
        json_decref(json);
    }
    il_op   op;
    json_t *json = takes(
        "{\"op\":\"push\",\"queue\":\"q\",\"payload\":null,\"payload_base64\":\"AP8A\"}", &op);
    T_EQU(op.in.job.data_bytes, 3);
    T_TRUE(memcmp(op.in.job.data, "\0\xff\0", 3) == 0);
    json_decref(json);
    json = takes("{\"op\":\"push\",\"queue\":\"q\",\"payload_base64\":\"AP8A\",\"payload\":null}",
                 &op);
    T_EQU(op.in.job.data_bytes, 3);
    json_decref(json);
    il__arena_free(&arena);
}

/* What a listing of queues shows as settings can be given back. */
U_TEST(settings)
{
    il_op   op;
    json_t *json = takes("{\"op\":\"queue_set\",\"queue\":\"q\",\"strategy\":\"optimistic\","
                         "\"max_attempts\":7,\"rate_n\":null,"
                         "\"group_limit\":null,\"keep_ms\":86400000,\"keep_failed_ms\":null}",
                         &op);

    T_EQ(op.in.queue.strategy, 1 + IL_STRATEGY_OPTIMISTIC);
    T_EQ(op.in.queue.max_attempts, 7);
    T_EQ(op.in.queue.rate_n, IL_FOREVER);
    T_EQ(op.in.queue.rate_ms, 0); /* as it is */
    T_EQ(op.in.queue.group_limit, IL_FOREVER);
    T_EQ(op.in.queue.keep_ms, 86400000);
    T_EQ(op.in.queue.keep_failed_ms, IL_FOREVER);
    T_TRUE(il__op_prepare(&op, "t", 1));
    json_decref(json);
    json = takes("{\"op\":\"job_list\",\"queue\":\"q\",\"state\":[\"READY\",\"PROCESSING\"]}", &op);
    T_EQU(op.in.list.states, 1 << IL_JOB_READY | 1 << IL_JOB_RUNNING);
    json_decref(json);
    json = takes("{\"op\":\"run_list\",\"state\":\"COMPLETE,RUNNING\"}", &op);
    T_EQU(op.in.list.states, 1 << IL_RUN_COMPLETED | 1 << IL_RUN_RUNNING);
    json_decref(json);
}

/* ---- a part from the path -------------------------------------------------------------------- */

static il_status
parse_rest(const char *text, il_op *op, il_error *reterr)
{
    json_t *json = NULL;

    T_EQ(il__wire_load_for(NULL, text, strlen(text), &json, NULL), IL_OK);
    il_status st = il__wire_parse(&il__wire_inputs[op->type], NULL, json, op, &arena, reterr);
    json_decref(json);
    return st;
}

U_TEST(what_is_in_the_path_is_not_in_the_body)
{
    il_op    op;
    il_error err;

    il__wire_op_init(&op, IL_OP_JOB_CLAIM);
    T_EQ(parse_rest("{}", &op, &err), IL_INVAL);
    T_STREQ(err.message, "field 'queue' is missing");
    op.key = "q";
    T_EQ(parse_rest("{\"limit\":5}", &op, &err), IL_OK);
    T_EQU(op.in.job.limit, 5);
    T_EQ(parse_rest("{\"queue\":\"other\"}", &op, &err), IL_INVAL);
    T_STREQ(err.message, "field 'queue': given more than once");
    T_STREQ(op.key, "q");
    T_EQ(parse_rest("[]", &op, &err), IL_INVAL);
    T_STREQ(err.message, "must be a JSON object, not an array");
    T_EQ(parse_rest("{\"op\":\"claim\"}", &op, &err), IL_INVAL);
    T_STREQ(err.message, "unknown field 'op'");
    T_EQ(il__wire_parse(&il__wire_inputs[IL_OP_LIST], NULL, NULL, &op, &arena, &err), IL_INVAL);
    T_STREQ(err.message, "must be a JSON object, not nothing");
}

/* ---- a query string -------------------------------------------------------------------------- */

struct text_row {
    il_op_type  type;
    const char *name, *text, *expected;
};

U_TEST(texts_that_are_refused)
{
    static const struct text_row rows[] = {
        { IL_OP_LIST, "limit", "", "field 'limit': '' is not a whole number" },
        { IL_OP_LIST, "limit", "x", "field 'limit': 'x' is not a whole number" },
        { IL_OP_LIST, "limit", "5 ", "field 'limit': '5 ' is not a whole number" },
        { IL_OP_LIST, "limit", "+5", "field 'limit': '+5' is not a whole number" },
        { IL_OP_LIST, "limit", "1e2", "field 'limit': '1e2' is not a whole number" },
        { IL_OP_LIST, "limit", "99999999999999999999",
          "field 'limit': '99999999999999999999' is not a whole number" },
        { IL_OP_LIST, "limit", "0", "field 'limit': must be at least 1, not 0" },
        { IL_OP_LIST, "limit", "-5", "field 'limit': must be at least 1, not -5" },
        { IL_OP_LIST, "limit", "1001", "field 'limit': must be at most 1000, not 1001" },
        { IL_OP_LIST, "waiters", "yes", "field 'waiters': 'yes' is neither true nor false" },
        { IL_OP_LIST, "limti", "5", "unknown field 'limti' (did you mean 'limit'?)" },
        { IL_OP_LIST, "prefix", "\xff", "field 'prefix': not valid UTF-8" },
        { IL_OP_RUN_LIST, "state", "DONE",
          "field 'state': 'DONE' is not one of PENDING, RUNNING, COMPLETED, FAILED, CANCELLED, "
          "TIMEOUT, INTERRUPTED" },
        { IL_OP_RUN_GET, "wait_ms", "soon",
          "field 'wait_ms': 'soon' is not a duration (try 250ms, 30s, 5m, forever)" },
        { IL_OP_JOB_PUSH, "payload_base64", "YQ==", "unknown field 'payload_base64'" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        il_op    op;
        il_error err;
        il__wire_op_init(&op, rows[i].type);
        T_EQ(il__wire_parse_text(&il__wire_inputs[op.type], rows[i].name, rows[i].text, &op, &arena,
                                 &err),
             IL_INVAL);
        T_STREQ(err.message, rows[i].expected);
    }
}

U_TEST(texts_that_are_taken)
{
    const struct wire_object *list = &il__wire_inputs[IL_OP_LIST];
    const struct wire_object *runs = &il__wire_inputs[IL_OP_RUN_GET];
    il_op                     op;
    il_error                  err;

    il__wire_op_init(&op, IL_OP_LIST);
    T_EQ(il__wire_parse_text(list, "limit", "1000", &op, &arena, &err), IL_OK);
    T_EQ(il__wire_parse_text(list, "waiters", "1", &op, &arena, &err), IL_OK);
    T_EQ(il__wire_parse_text(list, "prefix", "", &op, &arena, &err), IL_OK);
    T_EQU(op.in.list.limit, 1000);
    T_EQU(op.flags, IL_LIST_WAITERS);
    T_STREQ(op.in.list.prefix, "");
    T_EQ(il__wire_parse_text(list, "prefix", "again", &op, &arena, &err), IL_INVAL);
    T_STREQ(err.message, "field 'prefix': given more than once");
    T_EQ(il__wire_complete(list, &op, &err), IL_OK);

    il__wire_op_init(&op, IL_OP_RUN_GET);
    T_EQ(il__wire_complete(runs, &op, &err), IL_INVAL);
    T_STREQ(err.message, "field 'id' is missing");
    op.in.run.id = "r";
    T_EQ(il__wire_complete(runs, &op, &err), IL_OK);
    T_EQ(il__wire_parse_text(runs, "wait_ms", "30s", &op, &arena, &err), IL_OK);
    T_EQ(il__wire_wait_ms(&op), 30000);
    T_EQ(il__wire_parse_text(runs, "wait_ms", "250", &op, &arena, &err), IL_OK);
    T_EQ(il__wire_wait_ms(&op), 250);
    T_EQ(il__wire_parse_text(runs, "wait_ms", "forever", &op, &arena, &err), IL_OK);
    T_EQ(il__wire_wait_ms(&op), IL_FOREVER);
    T_EQ(il__wire_parse_text(runs, "id", "other", &op, &arena, &err), IL_INVAL);
}

/* ---- results --------------------------------------------------------------------------------- */

static il_status
parse_result(const char *text, il_op *op, il_error *reterr)
{
    json_t *json = NULL;

    T_EQ(il__wire_load_for(NULL, text, strlen(text), &json, NULL), IL_OK);
    il_status st = il__wire_parse_result(json, op, reterr);
    json_decref(json);
    return st;
}

U_TEST(results_of_other_servers)
{
    il_op    op = { .type = IL_OP_ACQUIRE };
    il_error err;

    T_EQ(parse_result("{\"status\":\"FORBIDDEN\",\"message\":\"not yours\"}", &op, &err), IL_OK);
    T_EQ(op.status, IL_INVAL);
    T_STREQ(op.out.detail, "not yours");
    T_EQ(parse_result("{\"status\":\"FORBIDDEN\"}", &op, &err), IL_OK);
    T_STREQ(op.out.detail, "FORBIDDEN");
    T_EQ(parse_result("{\"status\":\"STORAGE_QUOTA_EXCEEDED\",\"message\":\"full\"}", &op, &err),
         IL_OK);
    T_EQ(op.status, IL_LIMIT);
    T_STREQ(op.out.detail, "full");
    T_EQ(parse_result("{\"status\":\"QUOTA_EXCEEDED\"}", &op, &err), IL_OK);
    T_EQ(op.status, IL_LIMIT);
    /* A newer one may tell more. */
    T_EQ(parse_result("{\"status\":\"OK\",\"fence\":5,\"of_later\":{\"x\":[]}}", &op, &err), IL_OK);
    T_EQU(op.out.fence, 5);
    T_TRUE(op.out.detail == NULL);
    /* An older one less: no text is NULL for that. */
    T_EQ(parse_result("{\"status\":\"LOCK_HELD\",\"items\":[{\"holder\":\"h\"}]}", &op, &err),
         IL_OK);
    T_EQ(op.status, IL_HELD);
    T_STREQ(op.out.items[0].key, "");
    T_STREQ(op.out.items[0].reason, "");
    T_STREQ(op.out.items[0].holder, "h");
    T_EQ(parse_result("{}", &op, &err), IL_INVAL);
    T_STREQ(err.message, "the result of an op has no status");
    T_EQ(parse_result("[]", &op, &err), IL_INVAL);
    T_EQ(parse_result("{\"status\":\"OK\",\"fence\":\"5\"}", &op, &err), IL_INVAL);
    T_EQ(parse_result("{\"status\":\"OK\",\"items\":{}}", &op, &err), IL_INVAL);
    T_EQ(parse_result("{\"status\":\"OK\",\"items\":[1]}", &op, &err), IL_INVAL);
    il_op_release(&op);
}

/* ---- no memory ------------------------------------------------------------------------------- */

static long n_left; /* allocations that succeed */

static void *
scarce_alloc(void *cookie UNUSED, size_t n_bytes)
{
    return n_left-- > 0 ? malloc(n_bytes) : NULL;
}

static void *
scarce_realloc(void *cookie UNUSED, void *p, size_t n_bytes)
{
    return n_left-- > 0 ? realloc(p, n_bytes) : NULL;
}

static void
scarce_free(void *cookie UNUSED, void *p)
{
    free(p);
}

static void *
scarce_malloc(size_t n_bytes)
{
    return scarce_alloc(NULL, n_bytes);
}

static void
be_scarce(bool on)
{
    static const il_allocator scarce = { scarce_alloc, scarce_realloc, scarce_free, NULL };

    n_left = 0;
    il_set_allocator(on ? &scarce : NULL);
    json_set_alloc_funcs(on ? scarce_malloc : malloc, free);
}

static const char large[]  = "{\"op\":\"push\",\"queue\":\"q\",\"payload\":{\"a\":[1,2.5,\"x\"]}}";
static const char other[]  = "{\"op\":\"cache_fill\",\"key\":\"k\",\"holder\":\"h\",\"token\":1,"
                             "\"ttl_ms\":1,\"value_base64\":\"AAAA\"}";
static const char result[] = "{\"status\":\"OK\",\"items\":[{\"id\":\"j\",\"payload_base64\":"
                             "\"AAAA\"},{\"id\":\"k\"}],\"detail\":\"d\"}";

static il_status
all_of_it(const char *text, bool is_result)
{
    json_t   *json = NULL;
    void     *mem  = NULL;
    il_op     op   = { .type = IL_OP_JOB_CLAIM };
    il_status st   = il__wire_load_for(NULL, text, strlen(text), &json, NULL);

    if (st == IL_OK)
        st = is_result ? il__wire_parse_result(json, &op, NULL)
                       : il__wire_parse_op(json, &op, &mem, NULL);
    op.is_wide = 1; /* as if it had been prepared */
    il_op_release(&op);
    il__arena_free(&mem);
    json_decref(json);
    return st;
}

U_TEST(whichever_allocation_fails)
{
    static const struct {
        const char *text;
        bool        is_result;
    } rows[] = { { large, false }, { other, false }, { result, true } };

    be_scarce(true);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (long n = 0;; n++) {
            n_left       = n;
            il_status st = all_of_it(rows[i].text, rows[i].is_result);
            if (st == IL_OK) {
                T_TRUE(n > 5);
                break;
            }
            if (st != IL_NOMEM)
                T_FAIL("row %zu, allocation %ld: %s", i, n, il_status_name(st));
        }
    }
    for (long n = 0;; n++) {
        n_left    = n;
        json_t *s = il__wire_schema(&il__wire_inputs[IL_OP_JOB_PUSH], WIRE_IN_JSON);
        json_decref(s);
        if (s != NULL)
            break;
    }
    be_scarce(false);
}

/* ---- lists of strings ------------------------------------------------------------------------ */

struct words {
    const char *const *words;
    size_t             n;
};
static const struct wire_field  words_fields[] = { { .name    = "words",
                                                     .kind    = WIRE_TEXTS,
                                                     .offset  = offsetof(struct words, words),
                                                     .offset2 = offsetof(struct words, n),
                                                     .max     = 2 } };
static const struct wire_object words_table    = { .name     = "Words",
                                                   .fields   = words_fields,
                                                   .n_fields = 1,
                                                   .bytes    = sizeof(struct words) };

/* expected: as it is printed again, or the error. */
static void
words(const char *text, il_status status, const char *expected)
{
    AUTO_BUF struct il__buf b    = { 0 };
    struct words            w    = { 0 };
    json_t                 *json = NULL;
    il_error                err;

    T_EQ(il__wire_load_for(NULL, text, strlen(text), &json, &err), IL_OK);
    T_EQ(il__wire_parse(&words_table, NULL, json, &w, &arena, &err), status);
    il__buf_init(&b, 4096);
    il__wire_print(&b, &words_table, &w, 0);
    T_STREQ(status == IL_OK ? il__buf_str(&b) : err.message, expected);
    json_decref(json);
}

U_TEST(lists_of_strings)
{
    words("{}", IL_OK, "{\"words\":[]}");
    words("{\"words\":null}", IL_OK, "{\"words\":[]}");
    words("{\"words\":[]}", IL_OK, "{\"words\":[]}");
    words("{\"words\":[\"a\",\"\\\"é\"]}", IL_OK, "{\"words\":[\"a\",\"\\\"é\"]}");
    words("{\"words\":\"a,b\"}", IL_INVAL,
          "field 'words': must be an array of strings, not a string");
    words("{\"words\":[\"a\",7]}", IL_INVAL, "field 'words': must be a string, not a number");
    words("{\"words\":[\"a\",\"b\",\"c\"]}", IL_INVAL,
          "field 'words': must have at most 2 elements, not 3");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(text_that_is_not_json),
        U_ROW(json_that_is_not_acceptable),
        U_ROW(text_that_is_not_utf8),
        U_ROW(depth),
        U_ROW(number_of_values),
        U_ROW(what_is_no_op),
        U_ROW(fields_that_are_not_there),
        U_ROW(numbers),
        U_ROW(names_and_texts),
        U_ROW(times_and_sets),
        U_ROW(bytes),
        U_ROW(lists_of_strings),
        U_ROW(an_acquire),
        U_ROW(what_is_left_out_is_made),
        U_ROW(payloads),
        U_ROW(settings),
        U_ROW(what_is_in_the_path_is_not_in_the_body),
        U_ROW(texts_that_are_refused),
        U_ROW(texts_that_are_taken),
        U_ROW(results_of_other_servers),
        U_ROW(whichever_allocation_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
