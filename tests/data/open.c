/*
 * open.c: which data store is used, what opening creates and what it refuses; several processes
 * that open it or create keys at once.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/place.h"
#include "harness/proc.h"

#define N_PROCESSES 6
#define N_EACH 10
#define LIMIT_MS 60000

#define P_TEST(name)                            \
    static void name(struct t_place *);         \
    static void name##_run(void **state UNUSED) \
    {                                           \
        struct t_place p_;                      \
        t_place_make(&p_);                      \
        name(&p_);                              \
        t_place_release(&p_);                   \
    }                                           \
    static void name(struct t_place *p)

/* ---- what it makes --------------------------------------------------------------------------- */

P_TEST(nothing_is_made_when_it_must_exist)
{
    struct il__data_open o = { .store_url = p->url, .existing = true };
    il_error             err;
    il_status            st = t_data_try(&o, &err);

    T_TRUE(st == IL_NOT_FOUND || st == IL_STORE);
    T_TRUE(p->path[0] == '\0' || !t_file_exists(p->path));
    if (!p->shared)
        return;
    il__data_close(t_data_open(p, NULL));
    T_EQ(t_data_try(&o, &err), IL_OK);
}

P_TEST(what_was_made_is_found_again)
{
    char             id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];
    struct t_key     k;
    struct il__data *d = t_data_open(p, NULL);
    il_error         err;

    T_EQ(il__data_ping(d, &err), IL_OK);
    t_key_make(d, "t", DATA_ROLE_ADMIN, id, secret);
    il__data_close(d);
    d = t_data_open(p, NULL);
    T_EQ(t_key_find(d, secret, &k), p->shared ? IL_OK : IL_NOT_FOUND);
    il__data_close(d);
}

P_TEST(a_store_that_is_there_already)
{
    il       *h = NULL;
    il_error  err;
    il_op     op = { 0 };
    il_lease *l  = NULL;

    if (!p->shared)
        return;
    T_EQ(il_open(p->url, NULL, &h, &err), IL_OK);
    struct il__data *d = t_data_open(p, NULL);
    char             id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];
    t_key_make(d, "t", DATA_ROLE_ADMIN, id, secret);
    T_EQ(il_acquire(h, "k", NULL, &l, &err), IL_OK);
    T_EQ(il_get(h, "k", &op, &err), IL_OK);
    il_op_release(&op);
    T_EQ(il_lease_release(l, &err), IL_OK);
    il_lease_free(l);
    il__data_close(d);
    il_close(h);
    /* And the other way round: a store where data was first. */
    struct t_place other;
    t_place_make(&other);
    d = t_data_open(&other, NULL);
    T_EQ(il_open(other.url, NULL, &h, &err), IL_OK);
    il_close(h);
    il__data_close(d);
    t_place_release(&other);
}

P_TEST(a_newer_one_is_refused)
{
    struct il__data_open o = { .store_url = p->url };
    char                 out[4096];
    il_error             err;

    if (!p->shared)
        return;
    il__data_close(t_data_open(p, NULL));
    (void)t_place_ask(p, "UPDATE il_data_meta SET version = 99",
                      "UPDATE $.data_meta SET version = 99", out);
    T_EQ(t_data_try(&o, &err), IL_OK); /* it says that older code may use it */
    (void)t_place_ask(p, "UPDATE il_data_meta SET min_version = 99",
                      "UPDATE $.data_meta SET min_version = 99", out);
    T_EQ(t_data_try(&o, &err), IL_NEWER);
    T_HAS(err.message, "newer");
    /* What we know is not made anew over it. */
    (void)t_place_ask(p, "SELECT version FROM il_data_meta",
                      "SELECT version::text FROM $.data_meta", out);
    T_STREQ(out, "99");
}

/* It leads to no step. */
P_TEST(a_negative_version_is_refused)
{
    struct il__data_open o = { .store_url = p->url };
    char                 out[4096];
    il_error             err;

    if (!p->shared)
        return;
    il__data_close(t_data_open(p, NULL));
    (void)t_place_ask(p, "UPDATE il_data_meta SET version = -1000000",
                      "UPDATE $.data_meta SET version = -1000000", out);
    T_EQ(t_data_try(&o, &err), IL_CORRUPT);
    T_HAS(err.message, "-1000000");
}

/* ---- which it is ----------------------------------------------------------------------------- */

static il_status
try_urls(const char *store, const char *data, il_error *err)
{
    return t_data_try(&(struct il__data_open){ .store_url = store, .data_url = data }, err);
}

P_TEST(urls)
{
    char     url[T_PATH_BYTES], file[T_PATH_BYTES], folder[T_PATH_BYTES];
    il_error err;

    T_EQ(try_urls("memory:", p->url, &err), IL_OK);
    T_EQ(try_urls("memory:NAME", NULL, &err), IL_OK);
    T_EQ(try_urls("redis://127.0.0.1:1", p->url, &err), IL_OK);
    T_EQ(try_urls("http://127.0.0.1:1", NULL, &err), IL_INVAL);
    T_EQ(try_urls("nonsense", NULL, &err), IL_INVAL);
    T_EQ(try_urls("memory:", "redis://user:geheim@127.0.0.1:1", &err), IL_INVAL);
    T_HAS(err.message, "sqlite:PATH");
    T_TRUE(strstr(err.message, "geheim") == NULL);
    T_EQ(try_urls("memory:", "sqlite:", &err), IL_INVAL);
    t_path(url, "sqlite:%s/nowhere/x.db", p->dir);
    T_EQ(try_urls("memory:", url, &err), IL_STORE);
    T_HAS(err.message, "No such file");
    t_path(url, "sqlite:%s", p->dir);
    T_EQ(try_urls("memory:", url, &err), IL_STORE);
    t_path(url, "sqlite:%s/x.db?mode=ro", p->dir);
    T_EQ(try_urls("memory:", url, &err), IL_INVAL);
    T_EQ(try_urls("memory:", "postgres://user:geheim@127.0.0.1:1/db", &err), IL_STORE);
    T_TRUE(strstr(err.message, "geheim") == NULL);
    T_EQ(try_urls("memory:", "postgres://user:geheim@127.0.0.1:1/db?schema=A;B", &err), IL_INVAL);
    T_TRUE(strstr(err.message, "geheim") == NULL);
    /* Redis keeps no tables: they are in the state folder, which is made. */
    t_path(folder, "%s/state/below", p->dir);
    T_EQ(setenv("XDG_STATE_HOME", folder, 1), 0);
    t_path(file, "%s/interlock/data.db", folder);
    T_EQ(t_data_try(&(struct il__data_open){ .store_url = "redis://127.0.0.1:1", .existing = true },
                    &err),
         IL_STORE);
    T_TRUE(!t_file_exists(folder));
    T_EQ(try_urls("redis://127.0.0.1:1", NULL, &err), IL_OK);
    T_TRUE(t_file_exists(file));
    T_EQ(unsetenv("XDG_STATE_HOME"), 0);
}

P_TEST(where_it_is)
{
    struct il__data *d = t_data_open(p, NULL);

    T_HAS(il__data_where(d), p->path[0] != '\0'     ? p->path
                             : p->schema[0] != '\0' ? p->schema
                                                    : "memory:");
    il__data_close(d);
}

/* ---- the pepper ------------------------------------------------------------------------------ */

P_TEST(another_pepper_is_noticed)
{
    char             id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];
    char             a[T_PATH_BYTES], b[T_PATH_BYTES];
    struct t_key     k;
    struct il__data *d;
    il_error         err;

    t_path(a, "%s/a", p->dir);
    t_path(b, "%s/b", p->dir);
    t_file_write(a, "0123456789abcdef\n", 17);
    t_file_write(b, "0123456789abcdeg", 16);
    T_EQ(chmod(a, 0600), 0);
    T_EQ(chmod(b, 0400), 0);
    if (!p->shared) {
        il__data_close(t_data_open(p, a));
        return;
    }
    il__data_close(t_data_open(p, NULL));
    il__data_close(t_data_open(p, b)); /* no key was made yet: then any will do */
    d = t_data_open(p, a);
    t_key_make(d, "t", DATA_ROLE_READ, id, secret);
    il__data_close(d);
    struct il__data_open o = { .store_url = p->url, .pepper_file = b };
    T_EQ(t_data_try(&o, &err), IL_INVAL);
    T_HAS(err.message, "pepper");
    o.pepper_file = NULL;
    T_EQ(t_data_try(&o, &err), IL_INVAL);
    /* The newline at the end does not belong to it. */
    t_file_write(a, "0123456789abcdef", 16);
    d = t_data_open(p, a);
    T_EQ(t_key_find(d, secret, &k), IL_OK);
    il__data_close(d);
}

P_TEST(a_pepper_that_will_not_do)
{
    char                 file[T_PATH_BYTES];
    static char          big[5000];
    struct il__data_open o = { .store_url = p->url, .pepper_file = file };
    il_error             err;

    t_path(file, "%s/pepper", p->dir);
    T_EQ(t_data_try(&o, &err), IL_INVAL);
    T_HAS(err.message, "No such file");
    t_file_write(file, "0123456789abcdef", 16);
    T_EQ(chmod(file, 0640), 0);
    T_EQ(t_data_try(&o, &err), IL_INVAL);
    T_HAS(err.message, "chmod 600");
    T_TRUE(strstr(err.message, "0123456789") == NULL);
    T_EQ(chmod(file, 0604), 0);
    T_EQ(t_data_try(&o, &err), IL_INVAL);
    T_EQ(chmod(file, 0600), 0);
    T_EQ(t_data_try(&o, &err), IL_OK);
    t_file_write(file, "0123456789abcde\n", 16);
    T_EQ(t_data_try(&o, &err), IL_INVAL);
    T_HAS(err.message, "16 bytes");
    t_file_write(file, "", 0);
    T_EQ(t_data_try(&o, &err), IL_INVAL);
    memset(big, 'x', sizeof big);
    t_file_write(file, big, sizeof big);
    T_EQ(t_data_try(&o, &err), IL_INVAL);
    o.pepper_file = p->dir;
    T_EQ(t_data_try(&o, &err), IL_INVAL);
}

P_TEST(a_damaged_secret)
{
    struct il__data_open o = { .store_url = p->url };
    char                 out[4096];
    il_error             err;

    if (!p->shared)
        return;
    il__data_close(t_data_open(p, NULL));
    (void)t_place_ask(p, "UPDATE il_secret SET value = 'zz' WHERE name = 'pepper'",
                      "UPDATE $.secret SET value = 'zz' WHERE name = 'pepper'", out);
    T_EQ(t_data_try(&o, &err), IL_CORRUPT);
    (void)t_place_ask(p, "UPDATE il_secret SET value = printf('%.64c', 'z') WHERE name = 'pepper'",
                      "UPDATE $.secret SET value = repeat('z', 64) WHERE name = 'pepper'", out);
    T_EQ(t_data_try(&o, &err), IL_CORRUPT);
}

/* ---- several processes ----------------------------------------------------------------------- */

/* Print each key, so that the parent can look for it. */
static int
make_keys(void *arg)
{
    struct il__data_open o   = { .store_url = arg, .timeout_ms = 30000 };
    struct il__data     *d   = NULL;
    struct il__data_key  key = { .tenant = "t", .role = DATA_ROLE_WRITE };
    char                 id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX], word[8];
    il_error             err;

    (void)printf("ready\n");
    (void)fflush(stdout);
    if (fgets(word, sizeof word, stdin) == NULL || il__data_open(&o, &d, &err) != IL_OK) {
        (void)printf("failed: %s\n", err.message);
        return 1;
    }
    for (unsigned i = 0; i < N_EACH; i++) {
        if (il__data_key_create(d, &key, true, id, secret, &err) != IL_OK) {
            (void)printf("failed: %s\n", err.message);
            return 1;
        }
        (void)printf("key %s\n", secret);
    }
    il__data_close(d);
    return 0;
}

P_TEST(processes_that_open_a_fresh_one_at_once)
{
    static struct t_proc procs[N_PROCESSES];
    char                 line[T_PROC_LINE_BYTES];
    struct t_key         k;
    uint64_t             n = 0;
    il_error             err;

    if (!p->shared)
        return;
    for (unsigned i = 0; i < N_PROCESSES; i++)
        t_proc_fork(&procs[i], make_keys, p->url);
    for (unsigned i = 0; i < N_PROCESSES; i++)
        T_LINE(&procs[i], "ready", LIMIT_MS, NULL);
    for (unsigned i = 0; i < N_PROCESSES; i++)
        t_proc_say(&procs[i], "go");
    for (unsigned i = 0; i < N_PROCESSES; i++) {
        if (t_proc_exit(&procs[i], LIMIT_MS) != 0)
            T_FAIL("%s", procs[i].text);
    }
    /* All have used the same pepper: each key is found by us. */
    struct il__data *d = t_data_open(p, NULL);
    for (unsigned i = 0; i < N_PROCESSES; i++) {
        for (unsigned j = 0; j < N_EACH; j++) {
            T_LINE(&procs[i], "key ", LIMIT_MS, line);
            T_EQ(t_key_find(d, line + 4, &k), IL_OK);
        }
        t_proc_release(&procs[i]);
    }
    T_EQ(il__data_key_count(d, &n, &err), IL_OK);
    T_EQU(n, N_PROCESSES * N_EACH);
    il__data_close(d);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        D_ROW(nothing_is_made_when_it_must_exist),
        D_ROW(what_was_made_is_found_again),
        D_ROW(a_store_that_is_there_already),
        D_ROW(a_newer_one_is_refused),
        D_ROW(a_negative_version_is_refused),
        D_ROW(urls),
        D_ROW(where_it_is),
        D_ROW(another_pepper_is_noticed),
        D_ROW(a_pepper_that_will_not_do),
        D_ROW(a_damaged_secret),
        D_ROW(processes_that_open_a_fresh_one_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
