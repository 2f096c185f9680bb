/*
 * wire_error.c: error answers as a client reads them: every code has its status, details reach the
 * error, unknown codes stay visible.
 */
#include "wire/error.h"

#include "harness/unit.h"

/* What a client makes of an answer. */
static il_status
told(long http, const char *body, il_error *err)
{
    struct wire_error e;
    json_t           *json = json_loads(body, JSON_DECODE_ANY, NULL);

    *err = (il_error){ .status = IL_OK };
    il__wire_error_read(http, json, &e);
    il_status st = il__wire_error_set(&e, "p", "", err);
    T_EQ(err->status, st);
    json_decref(json);
    return st;
}

static il_status
told_code(long http, const char *code, il_error *err)
{
    char body[256];

    (void)snprintf(
        body, sizeof body,
        "{\"success\":false,\"error\":{\"code\":\"%s\",\"source\":\"x\",\"message\":\"m\","
        "\"details\":{}}}",
        code);
    return told(http, body, err);
}

/* ---- codes ----------------------------------------------------------------------------------- */

/* The status does not depend on the HTTP status. */
U_TEST(every_status)
{
    for (unsigned i = 0; i < IL_STATUS_COUNT; i++) {
        il_status st = (il_status)i;
        il_error  err;
        if (il_status_exit(st) == 0)
            continue; /* not an error */
        T_EQ(told_code(il_status_http(st), il_status_name(st), &err), st);
        T_EQ(told_code(418, il_status_name(st), &err), st);
        T_STREQ(err.message, "p: m");
        T_STREQ(err.native, "418");
    }
}

static const struct {
    const char *code;
    int         http;
    il_status   status;
} rows[] = {
#define X(code, http, status, text) { #code, http, IL_##status },
#include "apps/runner/errors.def"
#include "wire/errors.def"
#undef X
};

U_TEST(every_code)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        il_status st = IL_OK;
        il_error  err;
        T_TRUE(il_status_exit(rows[i].status) != 0);
        if (!il__wire_code_status(rows[i].code, &st))
            continue; /* of an app: the command line knows it */
        T_EQ(st, rows[i].status);
        T_EQ(told_code(rows[i].http, rows[i].code, &err), rows[i].status);
        T_STREQ(err.message, "p: m");
    }
}

/* A code means one thing, and a status can be told by its code alone. */
U_TEST(no_code_twice)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(rows[i].code, rows[k].code) == 0)
                T_FAIL("%s is there twice", rows[i].code);
        }
        for (unsigned st = 0; st < IL_STATUS_COUNT; st++) {
            if (strcmp(il_status_name((il_status)st), rows[i].code) == 0)
                T_EQ(rows[i].status, (il_status)st);
        }
    }
}

U_TEST(unknown_codes)
{
    static const struct {
        long      http;
        il_status status;
    } classes[] = {
        { 400, IL_INVAL }, { 401, IL_STORE }, { 403, IL_INVAL }, { 404, IL_NOT_FOUND },
        { 409, IL_STATE }, { 418, IL_INVAL }, { 422, IL_INVAL }, { 429, IL_LIMIT },
        { 500, IL_STORE }, { 503, IL_STORE }, { 507, IL_STORE }, { 302, IL_STORE },
    };
    il_error err;

    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        T_EQ(told_code(classes[i].http, "NEW_CODE", &err), classes[i].status);
        T_STREQ(err.message, "p: NEW_CODE: m");
    }
    /* A success is no error, whatever the server says. */
    T_EQ(told_code(409, "OK", &err), IL_STATE);
    T_EQ(told_code(503, "DUPLICATE", &err), IL_STORE);
}

/* ---- details --------------------------------------------------------------------------------- */

U_TEST(details)
{
    il_error err;
    char     body[1024];
    char     long_name[600];

    T_EQ(told(409,
              "{\"error\":{\"code\":\"LOCK_HELD\",\"message\":\"m\",\"details\":{\"holder\":\"h\","
              "\"fence\":17}}}",
              &err),
         IL_HELD);
    T_STREQ(err.holder, "h");
    T_EQU(err.fence, 17);
    T_EQ(told(409,
              "{\"error\":{\"code\":\"UNIQUE_VIOLATION\",\"message\":\"m\",\"details\":"
              "{\"constraint\":\"event_name_key\",\"fence\":-1,\"holder\":7}}}",
              &err),
         IL_UNIQUE);
    T_STREQ(err.constraint, "event_name_key");
    T_STREQ(err.holder, "");
    T_EQU(err.fence, 0);
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    (void)snprintf(body, sizeof body,
                   "{\"error\":{\"code\":\"LOCK_HELD\",\"details\":{\"holder\":\"%s\"}}}",
                   long_name);
    T_EQ(told(409, body, &err), IL_HELD);
    T_STREQ(err.holder, ""); /* no such holder can exist */
    T_STREQ(err.message, "p: no reason given");
}

U_TEST(other_bodies)
{
    static const char *const bodies[] = {
        "null",
        "[]",
        "7",
        "\"x\"",
        "{}",
        "{\"error\":null}",
        "{\"error\":\"x\"}",
        "{\"error\":{\"code\":7,\"message\":[],\"details\":7}}",
    };
    il_error err;

    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        T_EQ(told(502, bodies[i], &err), IL_STORE);
        T_STREQ(err.message, "p: HTTP status 502 without an error code");
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(every_status),  U_ROW(every_code), U_ROW(no_code_twice),
        U_ROW(unknown_codes), U_ROW(details),    U_ROW(other_bodies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
