/*
 * http.c: http steps and probes against a server that hangs, resets, redirects, fails.
 */
#include <jansson.h>
#include <unistd.h>

#include "apps/runner/runner_internal.h"
#include "apps/runner/step_run.h"
#include "harness/clock.h"
#include "harness/proc.h"
#include "harness/tmp.h"
#include "net/net.h"
#include "runner/attempt.h"

static struct t_proc server;
static int           port, secure_port;
static char          dir[T_PATH_BYTES], certificate[T_PATH_BYTES];

/* Of 127.0.0.1, by itself; with its key in the same file. */
static void
make_certificate(void)
{
    struct t_proc openssl;

    t_tmp_make(dir);
    t_path(certificate, "%s/cert.pem", dir);
    const char *argv[] = { "openssl",  "req",           "-x509",   "-newkey",
                           "rsa:2048", "-nodes",        "-days",   "2",
                           "-subj",    "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                           "-keyout",  certificate,     "-out",    certificate,
                           NULL };
    char        key[T_PATH_BYTES];
    t_path(key, "%s/key.pem", dir);
    argv[13] = key;
    t_proc_start(&openssl, argv, NULL);
    T_EQ(t_proc_exit(&openssl, G_LIMIT_MS), 0);
    t_proc_release(&openssl);
    char                   *a = t_file_read(key, NULL), *b = t_file_read(certificate, NULL);
    struct il__buf AUTO_BUF both = { 0 };
    il__buf_init(&both, 1 << 20);
    il__buf_adds(&both, a);
    il__buf_adds(&both, b);
    t_file_write(certificate, both.data, both.n_bytes);
    free(a);
    free(b);
}

static void
start_server(void)
{
    char        path[T_PATH_BYTES], line[T_PROC_LINE_BYTES];
    const char *source = getenv("IL_TEST_SOURCE");

    t_path(path, "%s/tests/runner/server.py", source != NULL ? source : ".");
    make_certificate();
    const char *argv[] = { "python3", path, certificate, NULL };
    t_proc_start(&server, argv, NULL);
    T_LINE(&server, "port ", G_LIMIT_MS, line);
    port = (int)strtol(line + 5, NULL, 10);
    T_LINE(&server, "secure ", G_LIMIT_MS, line);
    secure_port = (int)strtol(line + 7, NULL, 10);
}

static char url_text[T_PATH_BYTES];

static void
request(struct t_attempt *t, const char *method, const char *path)
{
    t_attempt_init(t);
    (void)snprintf(url_text, sizeof url_text, "http://127.0.0.1:%d%s", port, path);
    t->step.type = PIPELINE_HTTP;
    t->step.http = (struct pipeline_http){
        .method = method, .url = { url_text }, .expect_from = 200, .expect_to = 299
    };
}

/* A value of what /echo has seen, "" if it is not there. */
static const char *
echoed(const struct t_attempt *t, const char *name, const char *header, char out[512])
{
    json_t *all = json_loads(T_OUT(t), 0, NULL);
    json_t *at  = json_object_get(all, name);

    if (header != NULL)
        at = json_object_get(at, header);
    (void)snprintf(out, 512, "%s", json_is_string(at) ? json_string_value(at) : "");
    json_decref(all);
    return out;
}

U_TEST(a_request_and_its_answer)
{
    struct t_attempt     t;
    char                 out[512];
    struct pipeline_pair headers[] = { { "X-Day", { "{day}" } }, { "X-Empty", { "" } } };

    request(&t, "POST", "/echo?day={day}");
    t_attempt_value(&t, "day", "a&b \"c\"");
    t.step.http.headers     = headers;
    t.step.http.n_headers   = 2;
    t.step.http.body        = (struct pipeline_text){ "{\"day\": \"{day}\"}" };
    t.step.http.body_escape = PIPELINE_JSON;
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_COMPLETED);
    T_EQ(t.result.exit_code, 200);
    T_STREQ(echoed(&t, "method", NULL, out), "POST");
    T_STREQ(echoed(&t, "path", NULL, out), "/echo?day=a%26b%20%22c%22");
    T_STREQ(echoed(&t, "body", NULL, out), "{\"day\": \"a&b \\\"c\\\"\"}");
    T_STREQ(echoed(&t, "headers", "x-day", out), "a&b \"c\"");
    T_STREQ(echoed(&t, "headers", "idempotency-key", out), "run-1-s");
    T_STREQ(echoed(&t, "headers", "content-type", out), "application/json");
    T_STREQ(echoed(&t, "headers", "expect", out), "");
    T_HAS(t.result.details, "\"status\":200");
    t_attempt_release(&t);
}

U_TEST(methods)
{
    static const char *const methods[] = { "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD" };
    char                     out[512];

    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        struct t_attempt t;
        request(&t, methods[i], "/echo");
        T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_COMPLETED);
        if (strcmp(methods[i], "HEAD") != 0)
            T_STREQ(echoed(&t, "method", NULL, out), methods[i]);
        t_attempt_release(&t);
    }
}

U_TEST(a_user_in_the_url_is_not_told)
{
    struct t_attempt t;
    char             out[512];

    request(&t, "GET", "");
    (void)snprintf(url_text, sizeof url_text, "http://me:geheim@127.0.0.1:%d/echo?token=geheim",
                   port);
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_COMPLETED);
    T_HAS(echoed(&t, "headers", "authorization", out), "Basic ");
    T_TRUE(strstr(t.result.details, "geheim") == NULL);
    (void)snprintf(url_text, sizeof url_text,
                   "http://me:geheim@127.0.0.1:%d/status/403?token=geheim", port);
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_FAILED);
    T_TRUE(strstr(t.result.error, "geheim") == NULL);
    T_TRUE(strstr(t.result.details, "geheim") == NULL);
    T_HAS(t.result.error, "GET http://127.0.0.1:");
    T_HAS(t.result.error, "/status/403: HTTP status 403");
    t_attempt_release(&t);
}

U_TEST(statuses)
{
    static const struct {
        int  status;
        bool final;
    } rows[] = { { 400, true },  { 401, true },  { 404, true },  { 409, true }, { 408, false },
                 { 429, false }, { 500, false }, { 503, false }, { 304, true } };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct t_attempt t;
        char             path[64];
        (void)snprintf(path, sizeof path, "/status/%d", rows[i].status);
        request(&t, "GET", path);
        T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_FAILED);
        T_EQ(t.result.exit_code, rows[i].status);
        T_EQ(t.result.final, rows[i].final);
        T_TRUE(!t.result.timed_out);
        t.step.http.expect_from = t.step.http.expect_to = rows[i].status;
        T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_COMPLETED);
        t_attempt_release(&t);
    }
}

U_TEST(a_server_that_fails_once)
{
    struct t_attempt t;

    request(&t, "POST", "/flaky");
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_FAILED);
    T_TRUE(!t.result.final);
    T_HAS(T_OUT(&t), "once more");
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_COMPLETED);
    t_attempt_release(&t);
}

U_TEST(redirects)
{
    static const char *const elsewhere[] = { "/redirect/302/host", "/redirect/307/port",
                                             "/redirect/301/scheme", "/redirect/302/file" };
    struct pipeline_pair     secret      = { "Authorization", { "Bearer geheim" } };
    struct t_attempt         t;
    char                     out[512];

    request(&t, "GET", "/redirect/302/here");
    t.step.http.headers   = &secret;
    t.step.http.n_headers = 1;
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_COMPLETED);
    T_STREQ(echoed(&t, "headers", "authorization", out), "Bearer geheim"); /* the same place */
    T_HAS(t.result.details, "\"redirects\":1");
    t_attempt_release(&t);
    request(&t, "POST", "/redirect/307/here");
    t.step.http.body = (struct pipeline_text){ "x" };
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_COMPLETED);
    T_STREQ(echoed(&t, "method", NULL, out), "POST");
    T_STREQ(echoed(&t, "body", NULL, out), "x");
    t_attempt_release(&t);
    request(&t, "POST", "/redirect/303/here");
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_COMPLETED);
    T_STREQ(echoed(&t, "method", NULL, out), "GET");
    t_attempt_release(&t);
    request(&t, "POST", "/redirect/302/here");
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_FAILED);
    T_TRUE(t.result.final);
    t_attempt_release(&t);
    request(&t, "GET", "/redirect/302/loop");
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_FAILED);
    T_HAS(t.result.error, "more than 5 redirects");
    t_attempt_release(&t);
    for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++) {
        request(&t, "GET", elsewhere[i]);
        t.step.http.headers   = &secret;
        t.step.http.n_headers = 1;
        T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_FAILED);
        T_TRUE(t.result.final);
        T_HAS(t.result.error, "redirect to");
        T_TRUE(strstr(t.result.error, "geheim") == NULL);
        t_attempt_release(&t);
    }
    request(&t, "GET", "/hits");
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_COMPLETED);
    T_TRUE(strstr(T_OUT(&t), "elsewhere") == NULL); /* nobody went there */
    t_attempt_release(&t);
}

U_TEST(a_large_answer)
{
    struct t_attempt t;

    request(&t, "GET", "/large");
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_COMPLETED);
    T_EQ(t.out.n_bytes, 5000004);
    T_STREQ(T_OUT(&t) + 5000000, "end\n");
    t_attempt_release(&t);
}

U_TEST(a_connection_that_breaks)
{
    struct t_attempt t;

    request(&t, "GET", "/reset");
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_FAILED);
    T_TRUE(!t.result.final);
    T_EQ(t.result.exit_code, -1);
    t_attempt_release(&t);
    request(&t, "GET", "");
    (void)snprintf(url_text, sizeof url_text, "http://127.0.0.1:1/");
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_FAILED);
    T_TRUE(!t.result.final);
    T_HAS(t.result.error, "GET http://127.0.0.1:1/: ");
    t_attempt_release(&t);
}

U_TEST(an_answer_that_does_not_come)
{
    static const char *const paths[] = { "/hang", "/half" };

    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct t_attempt t;
        int64_t          begun_ms = t_real_ms();
        request(&t, "GET", paths[i]);
        t.pub.timeout_ms = 300;
        T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_FAILED);
        T_TRUE(t.result.timed_out);
        T_TRUE(!t.result.final);
        T_HAS(t.result.error, "no response within 300 ms");
        T_TRUE(t_real_ms() - begun_ms < 10000);
        t_attempt_release(&t);
    }
}

U_TEST(it_stops_when_it_is_told_to)
{
    static const char *const paths[] = { "/hang", "/half" };

    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct t_attempt t;
        request(&t, "GET", paths[i]);
        t_attempt_start(&t, runner_step_http);
        T_LINE(&server, "hangs", G_LIMIT_MS, NULL);
        int64_t begun_ms = t_real_ms();
        t_attempt_stop(&t);
        t_attempt_end(&t);
        int64_t took_ms = t_real_ms() - begun_ms;
        (void)printf("stopped after %d ms\n", (int)took_ms);
        T_TRUE(took_ms < G_LIMIT_MS / 2); /* and not when the time of the step is over */
        T_EQ(t.result.outcome, RUNNER_STEP_STOPPED);
        t_attempt_release(&t);
    }
    struct t_attempt t; /* before it has begun */
    request(&t, "GET", "/echo");
    t_attempt_stop(&t);
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_STOPPED);
    t_attempt_release(&t);
}

U_TEST(certificates_are_verified)
{
    struct pipeline_pair secret = { "Authorization", { "Bearer geheim" } };
    struct t_attempt     t;
    char                 out[512];

    request(&t, "GET", "");
    t.step.http.headers   = &secret;
    t.step.http.n_headers = 1;
    (void)snprintf(url_text, sizeof url_text, "https://127.0.0.1:%d/echo", secure_port);
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_FAILED);
    T_HAS(t.result.error, "certificate");
    T_EQ(t.result.exit_code, -1);
    (void)setenv("SSL_CERT_FILE", certificate, 1);
    if (t_attempt_run(&t, runner_step_http) != RUNNER_STEP_COMPLETED)
        T_FAIL("%s", t.result.error);
    T_STREQ(echoed(&t, "headers", "authorization", out), "Bearer geheim");
    /* another name */
    (void)snprintf(url_text, sizeof url_text, "https://localhost:%d/echo", secure_port);
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_FAILED);
    (void)unsetenv("SSL_CERT_FILE");
    t_attempt_release(&t);
}

U_TEST(what_is_no_request)
{
    struct pipeline_pair header = { "X-Day", { "{day}" } };
    struct t_attempt     t;

    request(&t, "GET", "/echo");
    t_attempt_value(&t, "day", "a\r\nX-Other: b");
    t.step.http.headers   = &header;
    t.step.http.n_headers = 1;
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_FAILED); /* a header that would be two */
    T_TRUE(t.result.final);
    T_HAS(t.result.error, "X-Day");
    T_TRUE(strstr(t.result.error, "X-Other") == NULL);
    header.name = "X Day:";
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_FAILED);
    T_TRUE(t.result.final);
    t_attempt_release(&t);
    static const char *const urls[] = { "file:///etc/passwd", "ftp://h/x", "nonsense", "http://",
                                        "gopher://h:1/x" };
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        request(&t, "GET", "");
        (void)snprintf(url_text, sizeof url_text, "%s", urls[i]);
        T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_FAILED);
        if (!t.result.final && strcmp(urls[i], "nonsense") != 0)
            T_FAIL("%s: %s", urls[i], t.result.error);
        T_EQ(t.out.n_bytes, 0);
        t_attempt_release(&t);
    }
    /* A parameter, or two together, that would climb out of its folder; not so in the query. */
    static const char *const climbing[] = { "..", ".", "../jobs", "a/../b", "..\\x", "..;a" };
    static const char *const paths[]    = { "/jobs/{day}/x", "/jobs/{day}" };
    for (size_t i = 0; i < ARRAY_LEN(climbing) * ARRAY_LEN(paths); i++) {
        request(&t, "GET", paths[i % ARRAY_LEN(paths)]);
        t_attempt_value(&t, "day", climbing[i / ARRAY_LEN(paths)]);
        T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_FAILED);
        T_TRUE(t.result.final);
        T_HAS(t.result.error, "segment");
        T_EQ(t.out.n_bytes, 0);
        t_attempt_release(&t);
    }
    request(&t, "GET", "/%2e{day}/x");
    t_attempt_value(&t, "day", ".");
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_FAILED);
    T_HAS(t.result.error, "segment");
    t_attempt_release(&t);
    request(&t, "GET", "/echo?day={day}");
    t_attempt_value(&t, "day", "..");
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_COMPLETED);
    t_attempt_release(&t);
    request(&t, "GET", "/echo?day={day}");
    T_EQ(t_attempt_run(&t, runner_step_http), RUNNER_STEP_FAILED); /* a parameter without a value */
    T_HAS(t.result.error, "day");
    t_attempt_release(&t);
}

/* ---- what only others than steps ask of a request -------------------------------------------- */

static struct net_conn *conn;

static bool
collect(void *cookie, const void *data, size_t n_bytes)
{
    il__buf_add(cookie, data, n_bytes);
    return true;
}

/* GET, over the connection that is there; `r` has what else is asked. */
static il_status
get(const char *path, struct net_request r, struct net_answer *answer, struct il__buf *body,
    il_error *reterr)
{
    char url[T_PATH_BYTES];

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d%s", port, path);
    il__buf_clear(body);
    r.method     = "GET";
    r.url        = url;
    r.connect_ms = r.total_ms = G_LIMIT_MS;
    r.take                    = collect;
    r.cookie                  = body;
    return il__net_send(conn, &r, answer, reterr);
}

U_TEST(requests_of_net)
{
    static const struct net_options options;
    struct net_request              plain = { 0 }, short_head = { .head_bytes_max = 2000 },
                       short_body = { .body_bytes_max = 100000 }, idle = { .idle_ms = 2000 };
    struct net_headers      headers = { 0 };
    struct net_answer       answer;
    struct il__buf AUTO_BUF body = { 0 };
    il_error                err;

    il__buf_init(&body, 16 << 20);
    T_EQ(il__net_open(&options, &conn, &err), IL_OK);
    /* Conditional: the second time nothing has changed. */
    T_EQ(get("/etag", plain, &answer, &body, &err), IL_OK);
    T_EQ(answer.status, 200);
    T_STREQ(answer.etag, "\"v1\"");
    T_STREQ(answer.modified, "Sun, 06 Nov 1994 08:49:37 GMT");
    T_STREQ(il__buf_str(&body), "the page\n");
    T_EQ(il__net_headers_unless(&headers, answer.etag, answer.modified, &err), IL_OK);
    struct net_request again = { .headers = &headers, .redirects_max = 5 };
    T_EQ(get("/etag", again, &answer, &body, &err), IL_OK);
    T_EQ(answer.status, 304);
    T_STREQ(answer.etag, "\"v1\"");
    T_EQ(body.n_bytes, 0);
    il__net_headers_release(&headers);
    /* Without redirects_max a redirect is the answer, and its body is dropped. */
    T_EQ(get("/redirect/302/here", plain, &answer, &body, &err), IL_OK);
    T_EQ(answer.status, 302);
    T_EQ(body.n_bytes, 0);
    /* Limits. The connection is good for the next request. */
    T_EQ(get("/head", plain, &answer, &body, &err), IL_OK);
    T_EQ(get("/head", short_head, &answer, &body, &err), IL_LIMIT);
    T_EQ(answer.status, 0);
    T_EQ(get("/large", short_body, &answer, &body, &err), IL_LIMIT);
    T_TRUE(body.n_bytes <= 100000);
    /* Half an answer comes, and then nothing, long before the whole time is over. */
    T_EQ(get("/half", idle, &answer, &body, &err), IL_TIMEOUT);
    T_HAS(err.message, "no progress for 2000 ms");
    T_STREQ(il__buf_str(&body), "the first half\n");
    T_LINE(&server, "hangs", G_LIMIT_MS, NULL);
    T_EQ(get("/status/200", plain, &answer, &body, &err), IL_OK);
    il__net_close(conn);
}

/* ---- probes ---------------------------------------------------------------------------------- */

static struct proc_spawner *spawner;

struct proc_spawner *
runner_spawner(struct runner *r UNUSED)
{
    return spawner;
}

static atomic_bool   stopping;
static struct runner nobody; /* the functions that take it are those below */

bool
runner_is_stopping(struct runner *r UNUSED)
{
    return atomic_load(&stopping);
}

const char *
runner_work_dir(struct runner *r UNUSED)
{
    return "/tmp";
}

char **
runner_probe_env(struct runner *r UNUSED, const struct pipeline *p UNUSED,
                 const struct pipeline_values *v, il_error *reterr UNUSED)
{
    char **env = il__calloc(3, sizeof *env);
    char   param[256];

    (void)snprintf(param, sizeof param, "INTERLOCK_PARAM_day=%s",
                   v->n > 0 ? v->items[0].value : "");
    env[0] = il__strdup("PATH=/usr/bin:/bin");
    env[1] = il__strdup(param);
    return env;
}

static il_status
probe(struct pipeline *p, char out[512], il_error *err)
{
    struct pipeline_values v  = { .n = 1, .items = { { "day", "mon day" } } };
    char                  *id = NULL;

    p->id                   = "p";
    p->preflight_timeout_ms = p->preflight_timeout_ms > 0 ? p->preflight_timeout_ms : 20000;
    *err                    = (il_error){ .message = "" };
    il_status st            = runner_preflight(&nobody, p, &v, &id, err);
    T_EQ(id != NULL, st == IL_HELD);
    (void)snprintf(out, 512, "%s", id != NULL ? id : "");
    il__free(id);
    return st;
}

static il_status
probe_script(const char *script, int64_t timeout_ms, char out[512], il_error *err)
{
    struct pipeline p = { .preflight            = PIPELINE_PROBE_COMMAND,
                          .preflight_timeout_ms = timeout_ms,
                          .probe_command        = { .script = script } };

    return probe(&p, out, err);
}

U_TEST(a_probe_that_is_a_command)
{
    char     out[512];
    il_error err;

    T_EQ(probe_script("echo job-7; echo more", 0, out, &err), IL_HELD);
    T_STREQ(out, "job-7");
    T_EQ(probe_script("echo \"  $INTERLOCK_PARAM_day  \"", 0, out, &err), IL_HELD);
    T_STREQ(out, "mon day");
    T_EQ(probe_script("exit 0", 0, out, &err), IL_HELD);
    T_HAS(out, "no id");
    T_EQ(probe_script("echo not running; exit 1", 0, out, &err), IL_OK);
    T_EQ(probe_script("echo 'no such host' >&2; exit 2", 0, out, &err), IL_STORE);
    T_HAS(err.message, "status 2: no such host");
    T_EQ(probe_script("kill -9 $$", 0, out, &err), IL_STORE);
    T_HAS(err.message, "signal 9");
    T_EQ(probe_script("sleep 600", 300, out, &err), IL_STORE);
    T_HAS(err.message, "timed out");
    /* bounded */
    T_EQ(probe_script("head -c 1000000 /dev/zero | tr '\\0' x", 0, out, &err), IL_HELD);
    T_EQ(strlen(out), 256);
    struct pipeline_text argv[] = { { "/no/such/program" } };
    struct pipeline      p      = { .preflight     = PIPELINE_PROBE_COMMAND,
                                    .probe_command = { .argv = argv, .n_argv = 1 } };
    T_EQ(probe(&p, out, &err), IL_STORE);
    T_HAS(err.message, "/no/such/program");
    struct pipeline_text echo[] = { { "echo" }, { "{day}" }, { "" } };
    p.probe_command             = (struct pipeline_command){ .argv = echo, .n_argv = 3 };
    T_EQ(probe(&p, out, &err), IL_HELD);
    T_STREQ(out, "mon day");
    struct pipeline none = { .preflight = PIPELINE_NO_PROBE };
    T_EQ(probe(&none, out, &err), IL_OK);
}

/* What fails before the request is sent names the URL, too, without its query and password. */
U_TEST(the_url_of_a_request_that_is_not_sent)
{
    struct t_attempt     t;
    struct pipeline_pair header = { "X-A", { "a\nb" } };

    request(&t, "GET", "/ok?token=secret");
    t.step.http.headers   = &header;
    t.step.http.n_headers = 1;
    struct fetch        f = { .http = &t.step.http, .values = &(struct pipeline_values){ .n = 0 } };
    struct fetch_answer answer;
    runner_fetch(&f, &answer);
    T_HAS(answer.url, "http://127.0.0.1:");
    T_HAS(answer.url, "/ok");
    T_TRUE(strstr(answer.url, "secret") == NULL);
}

static il_status
probe_path(const char *path, char out[512], il_error *err)
{
    char            url[512];
    struct pipeline p = {
        .preflight            = PIPELINE_PROBE_HTTP,
        .preflight_timeout_ms = 500,
        .probe_http = { .method = "GET", .url = { url }, .expect_from = 200, .expect_to = 299 }
    };

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d%s", port, path);
    return probe(&p, out, err);
}

U_TEST(a_probe_that_is_a_request)
{
    char     out[512];
    il_error err;

    T_EQ(probe_path("/probe/yes", out, &err), IL_HELD);
    T_STREQ(out, "job-17");
    T_EQ(probe_path("/probe/number", out, &err), IL_HELD);
    T_STREQ(out, "17");
    T_EQ(probe_path("/probe/no", out, &err), IL_OK);
    T_EQ(probe_path("/probe/unknown", out, &err), IL_OK); /* 404 */
    T_EQ(probe_path("/probe/nonsense", out, &err), IL_STORE);
    T_HAS(err.message, "running");
    T_EQ(probe_path("/status/500", out, &err), IL_STORE);
    T_HAS(err.message, "HTTP status 500");
    T_EQ(probe_path("/status/204", out, &err), IL_STORE);
    T_EQ(probe_path("/reset", out, &err), IL_STORE);
    T_EQ(probe_path("/hang", out, &err), IL_STORE);
}

/* A runner that stops does not wait for probes. */
static void *
probe_main(void *arg)
{
    char     out[512];
    il_error err;

    if (arg != NULL)
        *(il_status *)arg = probe_script("echo begins >&2; exec sleep 600", 600000, out, &err);
    return NULL;
}

U_TEST(a_probe_ends_with_its_runner)
{
    char      out[512];
    il_error  err;
    il_status st = IL_OK;
    pthread_t thread;

    T_EQ(pthread_create(&thread, NULL, probe_main, &st), 0);
    atomic_store(&stopping, true);
    T_EQ(pthread_join(thread, NULL), 0); /* the time of the test is the limit */
    T_EQ(st, IL_CANCELLED);
    T_EQ(probe_path("/hang", out, &err), IL_CANCELLED);
    atomic_store(&stopping, false);
}

int
main(int argc, char **argv)
{
    il_error err;

    if (argc == 2 && strcmp(argv[1], "spawner") == 0)
        return il__proc_spawner_main();
    const struct CMUnitTest tests[] = {
        U_ROW(a_request_and_its_answer),
        U_ROW(methods),
        U_ROW(a_user_in_the_url_is_not_told),
        U_ROW(statuses),
        U_ROW(a_server_that_fails_once),
        U_ROW(redirects),
        U_ROW(requests_of_net),
        U_ROW(a_large_answer),
        U_ROW(a_connection_that_breaks),
        U_ROW(an_answer_that_does_not_come),
        U_ROW(it_stops_when_it_is_told_to),
        U_ROW(certificates_are_verified),
        U_ROW(what_is_no_request),
        U_ROW(the_url_of_a_request_that_is_not_sent),
        U_ROW(a_probe_that_is_a_command),
        U_ROW(a_probe_that_is_a_request),
        U_ROW(a_probe_ends_with_its_runner),
    };

    (void)setenv("no_proxy", "*", 1);
    start_server();
    if (il__proc_spawner_open(&spawner, &err) != IL_OK)
        T_FAIL("%s", err.message);
    int n_bad = cmocka_run_group_tests(tests, NULL, NULL);
    il__proc_spawner_close(spawner);
    t_proc_release(&server);
    t_tmp_remove(dir);
    return n_bad;
}
