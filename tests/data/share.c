/*
 * share.c: a data store in the file of a SQLite store that other processes use at the same time: no
 * interference, no damage, no secrets in the files, and failed writes report why.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/place.h"
#include "harness/clock.h"
#include "harness/proc.h"
#include "harness/unit.h"

#define N_WORKERS 3
#define N_KEYS 60
#define LIMIT_MS 60000
#define SKIPPED 77

/* ---- under load ------------------------------------------------------------------------------ */

/* Push and finish jobs, take and give back a lock, until told to stop; what was done is counted by
 * the store itself. */
static int
work(void *arg)
{
    il          *h    = NULL;
    il_open_opts opts = IL_OPEN_OPTS_INIT;
    il_error     err;
    char         word[8], id[37];
    unsigned     n = 0;

    opts.timeout_ms = 30000;
    if (il_open(arg, &opts, &h, &err) != IL_OK) {
        (void)printf("failed: %s\n", err.message);
        return 1;
    }
    (void)printf("ready\n");
    (void)fflush(stdout);
    (void)fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    while (read(STDIN_FILENO, word, sizeof word) <= 0) {
        il_op push = { .type   = IL_OP_JOB_PUSH,
                       .key    = "q",
                       .in.job = { .id = id, .data = "x", .data_bytes = 1 } };
        CHECK(il_uuid(id) == IL_OK);
        if (il_apply(h, &push, 1, &err) != IL_OK || push.status != IL_OK) {
            (void)printf("failed: %s\n", err.message);
            return 1;
        }
        il_op_release(&push);
        n++;
    }
    (void)printf("pushed %u\n", n);
    il_close(h);
    return 0;
}

static void
make_keys_and_actions(struct il__data *d)
{
    char         id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];
    struct t_key k;
    il_error     err;

    for (unsigned i = 0; i < N_KEYS; i++) {
        t_key_make(d, "t", DATA_ROLE_WRITE, id, secret);
        T_EQ(t_key_find(d, secret, &k), IL_OK);
        T_EQ(il__data_key_used(d, id, 1800000000000 + (int64_t)i * 60000, &err), IL_OK);
        T_EQ(il__data_audit_add(d, &(struct il__data_action){ .action = "key.create", .what = id },
                                1, &err),
             IL_OK);
        if (i % 2 == 0)
            T_EQ(il__data_key_revoke(d, "t", id, true, &err), IL_OK);
    }
}

static void
is_whole(const struct t_place *p, unsigned n_jobs)
{
    char out[4096], expected[32];

    T_STREQ(t_place_ask(p, "PRAGMA integrity_check", NULL, out), "ok");
    (void)snprintf(expected, sizeof expected, "%u", n_jobs);
    T_STREQ(t_place_ask(p, "SELECT count(*) FROM il_job", NULL, out), expected);
    (void)snprintf(expected, sizeof expected, "%d", N_KEYS);
    T_STREQ(t_place_ask(p, "SELECT count(*) FROM il_api_key", NULL, out), expected);
    T_STREQ(t_place_ask(p, "SELECT count(*) FROM il_audit", NULL, out), expected);
    T_STREQ(t_place_ask(p, "PRAGMA journal_mode", NULL, out), "wal");
}

U_TEST(a_store_at_work)
{
    static struct t_proc procs[N_WORKERS];
    struct t_place       p;
    char                 line[T_PROC_LINE_BYTES];
    unsigned             n_jobs = 0, n;

    t_place_make(&p);
    for (unsigned i = 0; i < N_WORKERS; i++)
        t_proc_fork(&procs[i], work, p.url);
    for (unsigned i = 0; i < N_WORKERS; i++)
        T_LINE(&procs[i], "ready", LIMIT_MS, NULL);
    /* In this process the store is open, too, as a server has it. */
    il      *h = NULL;
    il_error err;
    T_EQ(il_open(p.url, NULL, &h, &err), IL_OK);
    struct il__data *d = t_data_open(&p, NULL);
    make_keys_and_actions(d);
    for (unsigned i = 0; i < N_WORKERS; i++) {
        t_proc_say(&procs[i], "stop");
        if (t_proc_exit(&procs[i], LIMIT_MS) != 0)
            T_FAIL("%s", procs[i].text);
        T_LINE(&procs[i], "pushed ", LIMIT_MS, line);
        T_EQ(sscanf(line, "pushed %u", &n), 1);
        T_TRUE(n > 0);
        n_jobs += n;
        t_proc_release(&procs[i]);
    }
    il__data_close(d);
    il_close(h);
    is_whole(&p, n_jobs);
    t_place_release(&p);
}

/* ---- a process that dies in the middle ------------------------------------------------------- */

static int
make_keys_for_ever(void *arg)
{
    struct il__data_open o   = { .store_url = arg };
    struct il__data     *d   = NULL;
    struct il__data_key  key = { .tenant = "t", .role = DATA_ROLE_WRITE };
    char                 id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];
    il_error             err;

    if (il__data_open(&o, &d, &err) != IL_OK)
        return 1;
    for (;;) {
        if (il__data_key_create(d, &key, true, id, secret, &err) != IL_OK)
            return 1;
        (void)printf("key %s\n", secret);
        (void)fflush(stdout);
    }
}

U_TEST(killed_in_the_middle)
{
    static struct t_proc proc;
    struct t_place       p;
    char                 line[T_PROC_LINE_BYTES], out[4096];
    struct t_key         k;

    t_place_make(&p);
    for (unsigned round = 0; round < 5; round++) {
        t_proc_fork(&proc, make_keys_for_ever, p.url);
        for (unsigned i = 0; i <= round; i++)
            T_LINE(&proc, "key ", LIMIT_MS, line);
        t_proc_signal(&proc, SIGKILL);
        T_TRUE(t_proc_end(&proc, LIMIT_MS));
        struct il__data *d = t_data_open(&p, NULL);
        /* Every key that was shown is there. */
        do
            T_EQ(t_key_find(d, line + 4, &k), IL_OK);
        while (t_proc_line(&proc, "key ", 0, line));
        il__data_close(d);
        t_proc_release(&proc);
    }
    T_STREQ(t_place_ask(&p, "PRAGMA integrity_check", NULL, out), "ok");
    t_place_release(&p);
}

/* ---- the files ------------------------------------------------------------------------------- */

static bool
holds(const char *path, const char *text)
{
    size_t n;

    if (!t_file_exists(path))
        return false;
    char *data = t_file_read(path, &n);
    bool  is   = memmem(data, n, text, strlen(text)) != NULL;
    free(data);
    return is;
}

U_TEST(no_secret_is_in_the_files)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-lock", "-wake" };
    struct t_place           p;
    char        id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX], path[T_PATH_BYTES], out[4096];
    struct stat st;
    bool        id_seen = false;

    t_place_make(&p);
    mode_t           mask = umask(0);
    struct il__data *d    = t_data_open(&p, NULL);
    t_key_make(d, "t", DATA_ROLE_ADMIN, id, secret);
    for (unsigned closed = 0; closed < 2; closed++) {
        for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
            t_path(path, "%s%s", p.path, suffixes[i]);
            T_TRUE(!holds(path, secret));
            T_TRUE(!holds(path, secret + strlen("sk_t_")));
            id_seen = id_seen || holds(path, id); /* else we have looked in vain */
            if (t_file_exists(path)) {
                T_EQ(stat(path, &st), 0);
                T_EQ(st.st_mode & 0777, 0600);
            }
        }
        if (closed == 0)
            il__data_close(d);
    }
    (void)umask(mask);
    T_TRUE(id_seen);
    T_STREQ(t_place_ask(&p, "SELECT count(*) FROM il_api_key", NULL, out), "1");
    t_place_release(&p);
}

U_TEST(a_file_that_cannot_be_written)
{
    struct t_place p;
    il_error       err;
    char           file[T_PATH_BYTES], url[T_PATH_BYTES];

    t_place_make(&p);
    il__data_close(t_data_open(&p, NULL));
    if (geteuid() != 0) { /* root may write anything */
        T_EQ(chmod(p.path, 0400), 0);
        T_EQ(t_data_try(&(struct il__data_open){ .store_url = p.url }, &err), IL_STORE);
        T_HAS(err.message, p.path);
        T_HAS(err.message, "Permission denied");
    }
    t_path(file, "%s/other", p.dir);
    t_path(url, "sqlite:%s", file);
    t_file_write(file,
                 "this is no database, but it is long enough to be taken for one at first sight; "
                 "so long that it has 100 bytes",
                 105);
    T_EQ(t_data_try(&(struct il__data_open){ .store_url = url }, &err), IL_CORRUPT);
    T_HAS(err.message, file);
    t_place_release(&p);
}

/* ---- a store that is locked, a disk that is full --------------------------------------------- */

static int
keep_locked(void *arg)
{
    char path[T_PATH_BYTES], word[8];

    t_path(path, "%s-lock", (const char *)arg);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX) != 0)
        return 1;
    (void)printf("locked\n");
    (void)fflush(stdout);
    return fgets(word, sizeof word, stdin) == NULL;
}

U_TEST(a_writer_that_is_stopped)
{
    static struct t_proc proc;
    struct t_place       p;
    struct il__data     *d = NULL;
    char                 id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];
    struct t_key         k;
    il_error             err;

    t_place_make(&p);
    il__data_close(t_data_open(&p, NULL));
    t_proc_fork(&proc, keep_locked, p.path);
    T_LINE(&proc, "locked", LIMIT_MS, NULL);
    /* Opening and looking take no lock; writing gives up in time, and says so. */
    T_EQ(il__data_open(&(struct il__data_open){ .store_url = p.url, .timeout_ms = 300 }, &d, &err),
         IL_OK);
    T_EQ(t_key_find(d, "sk_t_x", &k), IL_NOT_FOUND);
    struct il__data_key key     = { .tenant = "t", .role = DATA_ROLE_READ };
    int64_t             from_ms = t_real_ms();
    T_EQ(il__data_key_create(d, &key, true, id, secret, &err), IL_STORE);
    T_HAS(err.message, "locked");
    T_TRUE(t_real_ms() - from_ms < 5000);
    t_proc_say(&proc, "enough");
    T_EQ(t_proc_exit(&proc, LIMIT_MS), 0);
    t_proc_release(&proc);
    T_EQ(il__data_key_create(d, &key, true, id, secret, &err), IL_OK);
    il__data_close(d);
    t_place_release(&p);
}

/* On a disk of its own, in a mount namespace. */
static int
fill_the_disk(void *arg)
{
    const struct t_place  *p      = arg;
    struct il__data_action action = { .action = "x" };
    char text[DATA_ACTION_TEXT_BYTES_MAX + 1], id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];
    struct t_key k;
    il_error     err;
    il_status    st = IL_OK;

    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("interlock-test", p->dir, "tmpfs", 0, "size=2048k,mode=0700") != 0)
        return SKIPPED;
    struct il__data *d = t_data_open(p, NULL);
    t_key_make(d, "t", DATA_ROLE_READ, id, secret);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    action.reason         = text;
    for (unsigned i = 0; st == IL_OK && i < 10000; i++)
        st = il__data_audit_add(d, &action, 1, &err);
    T_EQ(st, IL_FULL);
    T_HAS(err.message, "disk full");
    T_EQ(t_key_find(d, secret, &k), IL_OK); /* reading goes on */
    T_EQ(mount("interlock-test", p->dir, "tmpfs", MS_REMOUNT, "size=4096k"), 0);
    T_EQ(il__data_audit_add(d, &action, 1, &err), IL_OK);
    il__data_close(d);
    char out[4096];
    T_STREQ(t_place_ask(p, "PRAGMA integrity_check", NULL, out), "ok");
    T_EQ(mount("interlock-test", p->dir, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL), 0);
    T_EQ(t_data_try(&(struct il__data_open){ .store_url = p->url }, &err), IL_STORE);
    T_HAS(err.message, p->path);
    T_HAS(err.message, "Read-only file system");
    return 0;
}

U_TEST(a_disk_that_is_full)
{
    static struct t_proc proc;
    struct t_place       p;

    t_place_make(&p);
    t_proc_fork(&proc, fill_the_disk, &p);
    int status = t_proc_exit(&proc, LIMIT_MS);
    if (status == SKIPPED)
        print_message("# not here: no disk of our own can be mounted\n");
    else if (status != 0)
        T_FAIL("%s", proc.text);
    t_proc_release(&proc);
    t_place_release(&p);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(a_store_at_work),           U_ROW(killed_in_the_middle),
        U_ROW(no_secret_is_in_the_files), U_ROW(a_file_that_cannot_be_written),
        U_ROW(a_writer_that_is_stopped),  U_ROW(a_disk_that_is_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
