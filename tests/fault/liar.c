/*
 * liar.c: a client of a server that sends arbitrary responses. No response can crash the process:
 * one that no store could have given becomes IL_STORE.
 *
 * The server is a thread with a Unix socket. It answers every request with the results that the
 * test has prepared, so ops of every type get every status with results that are missing, too
 * small, too large or too many.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "core/op.h"
#include "harness/tmp.h"
#include "harness/unit.h"
#include "wire/wire.h"

#define REQUEST_BYTES_MAX 65536

static char            dir[T_PATH_BYTES];
static char            url[T_PATH_BYTES];
static int             listener;
static pthread_t       server;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char            result[16384]; /* protected by the mutex, like the next one */
static int             http = 200;    /* else result is the whole body */

static void
say(const char *text)
{
    CHECK(pthread_mutex_lock(&mutex) == 0);
    (void)snprintf(result, sizeof result, "%s", text);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
}

/* As many results as there are ops in the request. */
static bool
answer(int fd, const char *body)
{
    static struct il__buf out = { .n_bytes_max = 1U << 20 };
    char                  head[128];

    il__buf_clear(&out);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    int status = http;
    il__buf_adds(&out, status == 200 ? "{\"results\":[" : result);
    for (const char *p = strstr(body, "\"op\":"); status == 200 && p != NULL;
         p             = strstr(p + 1, "\"op\":"))
        il__buf_addf(&out, "%s%s", out.data[out.n_bytes - 1] == '[' ? "" : ",", result);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    if (status == 200)
        il__buf_adds(&out, "]}");
    int n =
        snprintf(head, sizeof head,
                 "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                 status, out.n_bytes);
    return send(fd, head, (size_t)n, MSG_NOSIGNAL) == n &&
           send(fd, out.data, out.n_bytes, MSG_NOSIGNAL) == (ssize_t)out.n_bytes;
}

/* One connection: requests until it is closed. */
static void *
serve_one(void *cookie)
{
    int    fd      = (int)(intptr_t)cookie;
    char  *request = il__alloc(REQUEST_BYTES_MAX);
    size_t n       = 0;

    CHECK(request != NULL);
    for (;;) {
        ssize_t got = recv(fd, request + n, REQUEST_BYTES_MAX - 1 - n, 0);
        if (got <= 0)
            break;
        n += (size_t)got;
        request[n]         = '\0';
        const char *body   = strstr(request, "\r\n\r\n");
        const char *length = strcasestr(request, "Content-Length:");
        if (body == NULL || length == NULL)
            continue;
        body += 4;
        if (strlen(body) < strtoul(length + 15, NULL, 10))
            continue;
        if (!answer(fd, body))
            break;
        n = 0;
    }
    il__free(request);
    (void)close(fd);
    return NULL;
}

static void *
serve(void *cookie UNUSED)
{
    int fd;

    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        pthread_t one;
        CHECK(pthread_create(&one, NULL, serve_one, (void *)(intptr_t)fd) == 0);
        CHECK(pthread_detach(one) == 0);
    }
    return NULL;
}

static void
set_up(void)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };

    t_tmp_make(dir);
    t_path(url, "http+unix:%s/socket", dir);
    T_TRUE(strlen(dir) + sizeof "/socket" <= sizeof at.sun_path);
    (void)stpcpy(stpcpy(at.sun_path, dir), "/socket");
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    T_TRUE(listener >= 0);
    T_EQ(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    T_EQ(listen(listener, 16), 0);
    T_EQ(pthread_create(&server, NULL, serve, NULL), 0);
}

static void
tear_down(void)
{
    T_EQ(shutdown(listener, SHUT_RDWR), 0);
    T_EQ(pthread_join(server, NULL), 0);
    T_EQ(close(listener), 0);
    t_tmp_remove(dir);
}

static il *
open_client(void)
{
    il      *h = NULL;
    il_error err;

    say("{\"status\":\"OK\",\"items\":[]}");
    if (il_open(url, NULL, &h, &err) != IL_OK)
        T_FAIL("%s", err.message);
    return h;
}

/* ---- what it says ---------------------------------------------------------------------------- */

#define MANY "9007199254740991"

/* Beside a status. Names that an op does not know are passed over, so each of them is for all. */
static const char *const lies[] = {
    "",
    ",\"fence\":0,\"token\":0,\"ticket\":0,\"position\":0,\"remaining_ms\":0,\"items\":[],"
    "\"value\":\"\"",
    ",\"fence\":" MANY ",\"token\":" MANY ",\"ticket\":" MANY ",\"position\":4294967295"
    ",\"remaining_ms\":" MANY ",\"age_ms\":" MANY ",\"code\":2147483647,\"offset\":" MANY
    ",\"items\":[{},{}],\"leases\":[{}],\"more\":true,\"renewed\":true",
    ",\"fence\":1,\"token\":1,\"ticket\":1,\"position\":1,\"remaining_ms\":-" MANY
    ",\"age_ms\":-" MANY
    ",\"items\":[{}],\"meta\":null,\"next\":\"x\",\"cancel\":true,\"skipped\":true",
    ",\"fence\":7,\"token\":7,\"ticket\":7,\"position\":7,\"remaining_ms\":30000,\"items\":[{"
    "\"id\":\"j\","
    "\"key\":\"k\",\"holder\":\"h\",\"tenant\":\"default\",\"state\":\"RUNNING\",\"fence\":7,"
    "\"token\":7,"
    "\"attempt\":1,\"remaining_ms\":" MANY
    ",\"progress\":-5,\"ttl_ms\":-1}],\"value\":\"v\",\"meta\":\"\"",
    ",\"fence\":7,\"token\":7,\"remaining_ms\":30000,\"items\":[{\"id\":\"x\",\"key\":\"x\","
    "\"state\":\"held\","
    "\"mode\":\"permit\",\"age_ms\":-" MANY ",\"remaining_ms\":" MANY
    "}],\"response\":\"r\",\"text\":\"t\"",
    ",\"remaining_ms\":\"soon\"",
    ",\"items\":[7]",
    ",\"cache\":{\"entries\":1,\"fresh\":5,\"stale\":9},\"sweep\":{\"purged\":4294967295}",
};

static void
tell(il_status st, const char *lie)
{
    char text[4096];

    (void)snprintf(text, sizeof text, "{\"status\":\"%s\"%s}", il_status_name(st), lie);
    say(text);
}

/* An op of this type with everything that it needs. The texts are those of what is returned. */
static json_t *
make_op(il_op_type type, il_op *op, void **mem)
{
    const struct wire_object *o    = &il__wire_inputs[type];
    json_t                   *json = json_object();
    il_error                  err;

    CHECK(json_object_set_new(json, "op", json_string(il_op_name(type))) == 0);
    for (size_t i = 0; i < o->n_fields; i++) {
        const struct wire_field *f = &o->fields[i];
        if ((f->flags & WIRE_REQUIRED) == 0)
            continue;
        bool    is_text = f->kind == WIRE_TEXT || f->kind == WIRE_BYTES || f->kind == WIRE_META;
        json_t *required =
            is_text ? json_string(strcmp(f->name, "schedule") == 0 ? "* * * * *" : "x")
            : f->kind == WIRE_CHOICE || f->kind == WIRE_SET ? json_string(f->choices[0])
            : f->kind == WIRE_BOOL                          ? json_true()
                                                            : json_integer(MAX(f->min, 7));
        CHECK(json_object_set_new(json, f->name, required) == 0);
    }
    if (il__wire_parse_op(json, op, mem, &err) != IL_OK)
        T_FAIL("%s: %s", il_op_name(type), err.message);
    return json;
}

U_TEST(every_op)
{
    void    *mem       = NULL;
    unsigned n_refused = 0, n_taken = 0;

    set_up();
    il *h = open_client();
    for (unsigned type = 1; type < IL_OP_COUNT; type++) {
        il_op   op;
        json_t *json = make_op((il_op_type)type, &op, &mem);
        for (unsigned st = 0; st < IL_STATUS_COUNT; st++) {
            for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
                il_error err;
                tell((il_status)st, lies[i]);
                il_status got = il_apply(h, &op, 1, &err);
                n_taken += got == IL_OK;
                n_refused += got == IL_STORE;
                if (got != IL_OK && got != IL_STORE)
                    T_FAIL("%s: %s: %s", il_op_name(op.type), il_status_name(got), err.message);
                il_op_release(&op);
            }
        }
        json_decref(json);
    }
    T_TRUE(n_taken > 0);
    T_TRUE(n_refused > 1000);
    il__arena_free(&mem);
    il_close(h);
    tear_down();
}

U_TEST(a_grant_without_a_fence)
{
    il_op    op = { .type = IL_OP_ACQUIRE, .key = "k", .holder = "h" };
    il_error err;

    set_up();
    il *h = open_client();
    tell(IL_OK, "");
    T_EQ(il_apply(h, &op, 1, &err), IL_STORE);
    T_HAS(err.message, "unexpected response to 'acquire'");
    T_EQ(op.out.fence, 0);
    il_op_release(&op);
    il_close(h);
    tear_down();
}

/* A batch that is refused as a whole. */
static il_status
refuse(il *h, int status, const char *code, il_error *reterr)
{
    il_op op = { .type = IL_OP_ACQUIRE, .key = "k", .holder = "h" };
    char  body[512];

    (void)snprintf(
        body, sizeof body,
        "{\"success\":false,\"error\":{\"code\":\"%s\",\"message\":\"m\",\"details\":{}}}", code);
    say(body);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    http = status;
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    il_status st = il_apply(h, &op, 1, reterr);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    http = 200;
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    T_EQU(op.out.fence, 0);
    il_op_release(&op);
    return st;
}

/* The statuses with which a call can fail come back; those of ops cannot be those of a call. */
U_TEST(every_error)
{
    const unsigned of_calls = 1U << IL_INVAL | 1U << IL_NOMEM | 1U << IL_STORE | 1U << IL_FULL |
                              1U << IL_CORRUPT | 1U << IL_NEWER | 1U << IL_LIMIT;
    il_error err;

    set_up();
    il *h = open_client();
    for (unsigned i = 0; i < IL_STATUS_COUNT; i++) {
        il_status st      = (il_status)i;
        bool      of_call = i < 32 && (of_calls >> i & 1) != 0;
        T_EQ(refuse(h, 503, il_status_name(st), &err), of_call ? st : IL_STORE);
        T_HAS(err.message, ": m");
        T_STREQ(err.native, "503");
    }
    T_EQ(refuse(h, 401, "UNAUTHORIZED", &err), IL_STORE);
    T_HAS(err.message, "$INTERLOCK_API_KEY");
    T_EQ(refuse(h, 404, "NOT_FOUND", &err), IL_INVAL);
    T_HAS(err.message, "check the server URL");
    T_EQ(refuse(h, 429, "RATE_LIMITED", &err), IL_LIMIT);
    T_EQ(refuse(h, 413, "BODY_TOO_LARGE", &err), IL_INVAL);
    T_EQ(refuse(h, 503, "SHUTTING_DOWN", &err), IL_STORE);
    T_EQ(refuse(h, 409, "NEW_CODE", &err), IL_STORE);
    T_HAS(err.message, "NEW_CODE: m");
    T_EQ(refuse(h, 400, "NEW_CODE", &err), IL_INVAL);
    T_HAS(err.message, "NEW_CODE: m");
    il_close(h);
    tear_down();
}

/* An op that is refused by itself. */
U_TEST(every_refusal)
{
    static const struct {
        const char *code;
        il_status   status;
        const char *detail;
    } rows[] = {
        { "FORBIDDEN", IL_INVAL, "m" },      { "KEY_RESERVED", IL_INVAL, "m" },
        { "QUOTA_EXCEEDED", IL_LIMIT, "m" }, { "STORAGE_QUOTA_EXCEEDED", IL_LIMIT, "m" },
        { "JOB_STALE", IL_STALE, "m" },      { "NEW_CODE", IL_INVAL, "NEW_CODE: m" },
    };

    set_up();
    il *h = open_client();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        il_op op = { .type = IL_OP_CHECK_FENCE, .key = "k", .fence = 7 };
        char  text[128];
        (void)snprintf(text, sizeof text, "{\"status\":\"%s\",\"message\":\"m\"}", rows[i].code);
        say(text);
        T_EQ(il_apply(h, &op, 1, NULL), IL_OK);
        T_EQ(op.status, rows[i].status);
        T_STREQ(op.out.detail, rows[i].detail);
        il_op_release(&op);
    }
    il_close(h);
    tear_down();
}

/* Servers do not take rates of starts: a start with one would not be limited. */
U_TEST(no_rates)
{
    il_op start  = { .type = IL_OP_RUN_START, .key = "k", .holder = "h", .in.run.id = "a" };
    il_op ops[2] = { start, start };

    ops[0].in.run.minute_max = 1;
    ops[1].in.run.hour_max   = 1;
    set_up();
    il *h = open_client();
    T_EQ(il_apply(h, ops, ARRAY_LEN(ops), NULL), IL_OK);
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        T_EQ(ops[i].status, IL_INVAL);
        T_HAS(ops[i].out.detail, "are not supported through a server");
        il_op_release(&ops[i]);
    }
    il_close(h);
    tear_down();
}

/* The calls that keep what they get, with threads that renew it; and what they do with it then. */
static void
use_all(il *h)
{
    il_error        err;
    il_acquire_opts acquire = IL_ACQUIRE_OPTS_INIT;
    il_cache_opts   cache   = IL_CACHE_OPTS_INIT;
    il_lease       *lease   = NULL;
    il_run         *run     = NULL;
    il_once        *once    = NULL;
    il_build       *build   = NULL;
    il_job         *job     = NULL;
    size_t          n       = 0;
    char            id[IL_ID_BYTES_MAX + 1];

    cache.wait_ms = acquire.wait_ms = 1;
    if (il_acquire(h, "k", &acquire, &lease, &err) == IL_OK)
        IGNORE(il_lease_release(lease, &err));
    il_lease_free(lease);
    if (il_run_start(h, "k", NULL, &run, NULL, &err) == IL_OK)
        IGNORE(il_run_finish(run, IL_RUN_COMPLETED, NULL, &err));
    il_run_free(run);
    if (il_once_begin(h, "k", NULL, &once, NULL, &err) == IL_OK)
        IGNORE(il_once_finish(once, 0, "x", 1, &err));
    il_once_free(once);
    if (il_cache_lookup(h, "k", &cache, &build, NULL, &err) == IL_LEAD)
        IGNORE(il_build_fill(build, "x", 1, 1000, 0, 0, 0, &err));
    il_build_free(build);
    if (il_claim(h, "q", NULL, &job, &n, &err) == IL_OK)
        IGNORE(il_job_finish(job, "x", 1, &err));
    il_job_free(job);
    IGNORE(il_push(h, "q", "x", 1, NULL, id, &err));
}

U_TEST(every_call)
{
    set_up();
    il *h = open_client();
    for (unsigned st = 0; st < IL_STATUS_COUNT; st++) {
        for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
            tell((il_status)st, lies[i]);
            use_all(h);
        }
    }
    il_close(h);
    tear_down();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(every_op),    U_ROW(a_grant_without_a_fence),
        U_ROW(every_error), U_ROW(every_refusal),
        U_ROW(no_rates),    U_ROW(every_call),
    };

    return cmocka_run_group_tests_name("liar", tests, NULL, NULL);
}
