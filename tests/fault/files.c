/*
 * files.c: files that are not what they should be. Each is refused with the right status and a sentence that
 * names it, and is the same afterwards, byte by byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/clock.h"
#include "harness/proc.h"
#include "harness/rng.h"
#include "harness/tmp.h"
#include "harness/unit.h"

#define PAGE_BYTES 4096

static char dir[T_PATH_BYTES];
static char path[T_PATH_BYTES]; /* of the database */
static char url[T_PATH_BYTES];

static void
set_up(void)
{
    t_tmp_make(dir);
    t_path(path, "%s/x.db", dir);
    t_path(url, "sqlite:%s", path);
}

static void
tear_down(void)
{
    t_tmp_remove(dir);
}

static il_status
try_open(int64_t timeout_ms, il **ret, il_error *err)
{
    il_open_opts opts = IL_OPEN_OPTS_INIT;

    opts.timeout_ms = timeout_ms;
    return il_open(url, &opts, ret, err);
}

/* Hold `n` keys in a new store, and move everything into the database file. */
static void
make_store(unsigned n)
{
    il      *h = NULL;
    il_error err;
    sqlite3 *db = NULL;
    char     key[64];

    T_EQ(try_open(0, &h, &err), IL_OK);
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(key, sizeof key, "key:%04u", i);
        il_op op          = { .type = IL_OP_ACQUIRE, .key = key, .holder = "h" };
        op.in.lock.ttl_ms = IL_TTL_MS_MAX;
        T_EQ(il_apply(h, &op, 1, &err), IL_OK);
        T_EQ(op.status, IL_OK);
        il_op_release(&op);
    }
    il_close(h);
    T_EQ(sqlite3_open(path, &db), SQLITE_OK);
    T_EQ(sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL), SQLITE_OK);
    T_EQ(sqlite3_close(db), SQLITE_OK);
}

/* Open, and if that works list: the status of what failed. */
static il_status
try_use(il_error *err)
{
    il       *h  = NULL;
    il_op     op = { 0 };
    il_status st = try_open(1000, &h, err);

    if (st != IL_OK)
        return st;
    st = il_list(h, NULL, NULL, IL_PAGE_ITEMS_MAX, 0, &op, err);
    il_op_release(&op);
    if (st == IL_OK) {
        op = (il_op){ .type = IL_OP_ACQUIRE, .key = "key:0007", .holder = "other" };
        st = il_apply(h, &op, 1, err);
        il_op_release(&op);
    }
    il_close(h);
    return st;
}

/* The file is refused with `expected`, the sentence names it, and the file stays as it is. */
static void
refused(il_status expected)
{
    size_t   n_before, n_after;
    il_error err    = { 0 };
    char    *before = t_file_read(path, &n_before);

    T_EQ(try_use(&err), expected);
    T_EQ(err.status, expected);
    T_HAS(err.message, path);
    T_TRUE(strchr(err.message, '\n') == NULL);
    char *after = t_file_read(path, &n_after);
    T_EQU(n_after, n_before);
    T_TRUE(memcmp(before, after, n_before) == 0);
    free(before);
    free(after);
}

U_TEST(not_a_database)
{
    static const char garbage[] =
        "this is a shopping list, and it is longer than the head of a "
        "database: eggs, milk, bread, butter, and so on until it is enough";
    char         large[3 * PAGE_BYTES];
    struct t_rng rng;

    set_up();
    t_file_write(path, garbage, sizeof garbage);
    refused(IL_CORRUPT);
    t_rng_init(&rng, 1);
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (char)t_rng_below(&rng, 256);
    t_file_write(path, large, sizeof large);
    refused(IL_CORRUPT);
    tear_down();
}

U_TEST(cut_short)
{
    size_t n;

    set_up();
    make_store(200);
    char *whole = t_file_read(path, &n);
    T_LESS(4 * PAGE_BYTES, n);
    static const size_t cuts[] = {
        50, 100, PAGE_BYTES - 1, PAGE_BYTES, 2 * PAGE_BYTES, 3 * PAGE_BYTES + 77
    };
    for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
        t_file_write(path, whole, cuts[i]);
        refused(IL_CORRUPT);
    }
    free(whole);
    tear_down();
}

/* Damage within pages need not be met by the first calls; but it is never called anything else, and nothing
 * is written over it while it is found. */
U_TEST(flipped_bytes)
{
    size_t       n;
    unsigned     n_found = 0;
    struct t_rng rng;

    set_up();
    make_store(200);
    char *whole = t_file_read(path, &n);
    t_rng_init(&rng, t_env_u64("IL_TEST_SEED", 7));
    for (unsigned round = 0; round < 60; round++) {
        char    *copy = malloc(n);
        il_error err  = { 0 };
        CHECK(copy != NULL);
        memcpy(copy, whole, n);
        /* The head of a page, where its structure is; one page, several bytes. */
        size_t at = (size_t)t_rng_below(&rng, (uint32_t)(n / PAGE_BYTES)) * PAGE_BYTES;
        for (unsigned i = 0; i < 6; i++)
            copy[at + t_rng_below(&rng, 24)] = (char)t_rng_below(&rng, 256);
        t_file_write(path, copy, n);
        free(copy);
        il_status st = try_use(&err);
        if (st != IL_OK && st != IL_CORRUPT && st != IL_NEWER && st != IL_STORE)
            T_FAIL("round %u: %s: %s", round, il_status_name(st), err.message);
        n_found += st == IL_CORRUPT;
    }
    print_message("# %u of 60 damaged files were found to be damaged at once\n", n_found);
    T_LESS(10, n_found);
    /* The root of the leases' table, certainly met. */
    memset(whole + 2 * PAGE_BYTES, 0xff, 64);
    memset(whole + PAGE_BYTES, 0xff, 64);
    t_file_write(path, whole, n);
    refused(IL_CORRUPT);
    free(whole);
    tear_down();
}

U_TEST(a_directory)
{
    il      *h = NULL;
    il_error err;

    set_up();
    T_EQ(mkdir(path, 0755), 0);
    T_EQ(try_open(0, &h, &err), IL_STORE);
    T_HAS(err.message, path);
    T_HAS(err.message, "directory");
    T_EQ(rmdir(path), 0); /* nothing was put into it */
    char beside[T_PATH_BYTES];
    t_path(beside, "%s-lock", path);
    T_TRUE(!t_file_exists(beside));
    tear_down();
}

static void
run_sql(const char *sql)
{
    sqlite3 *db   = NULL;
    char    *text = NULL;

    T_EQ(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK)
        T_FAIL("%s: %s", sql, text);
    T_EQ(sqlite3_close(db), SQLITE_OK);
}

U_TEST(a_newer_schema)
{
    set_up();
    make_store(3);
    run_sql("PRAGMA user_version = 99");
    run_sql("PRAGMA wal_checkpoint(TRUNCATE)");
    refused(IL_NEWER);
    tear_down();
}

U_TEST(of_another_program)
{
    set_up();
    run_sql("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO customers "
            "VALUES (1, 'a')");
    refused(IL_STORE);
    run_sql("PRAGMA user_version = 1"); /* as if it were ours */
    refused(IL_STORE);
    run_sql("PRAGMA user_version = 7");
    il_error  err;
    il_status st = try_use(&err);
    T_TRUE(st == IL_STORE || st == IL_NEWER);
    tear_down();
}

/* ---- an older schema -------------------------------------------------------------------------------------- */

/* A store as version 1 of the schema left it: one key that is held. */
static void
make_version_1(void)
{
    char        file[T_PATH_BYTES];
    const char *source = getenv("IL_TEST_SOURCE");
    size_t      n;

    T_TRUE(source != NULL);
    t_path(file, "%s/src/store/sqlite/migrations/0000--0001.sql", source);
    char *sql = t_file_read(file, &n);
    char *end = realloc(sql, n + 1);
    T_TRUE(end != NULL);
    end[n] = '\0';
    run_sql("PRAGMA journal_mode = WAL");
    run_sql(end);
    free(end);
    run_sql("INSERT INTO il_state VALUES (1, 1, 1, 1000, 5, '', 0, 0, 7, 0, 0, 0)");
    run_sql("INSERT INTO il_lease VALUES ('default', 'old', 1000, 'h', 'h', 0, 0, 3, 86400000, 0, "
            "0, 0, "
            "86400000, 'meta', '', '')");
    run_sql("PRAGMA wal_checkpoint(TRUNCATE)");
}

/* The schema of the store at `path`, as text. */
static char *
schema_of(void)
{
    sqlite3      *db  = NULL;
    sqlite3_stmt *row = NULL;
    char         *all = sqlite3_mprintf("");

    T_EQ(sqlite3_open(path, &db), SQLITE_OK);
    T_EQ(sqlite3_prepare_v2(db, "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name", -1,
                            &row, NULL),
         SQLITE_OK);
    while (sqlite3_step(row) == SQLITE_ROW)
        all = sqlite3_mprintf("%z%s %s %s\n", all, sqlite3_column_text(row, 0),
                              sqlite3_column_text(row, 1), sqlite3_column_text(row, 2));
    T_EQ(sqlite3_finalize(row), SQLITE_OK);
    T_EQ(sqlite3_close(db), SQLITE_OK);
    return all;
}

/* Everything an older store knew is there, everything new works, and its schema is that of a new one. */
U_TEST(an_older_schema)
{
    il      *h   = NULL;
    il_error err = { 0 };
    il_op    ops[3];

    set_up();
    make_version_1();
    if (try_open(0, &h, &err) != IL_OK)
        T_FAIL("il_open: %s", err.message);
    ops[0]           = (il_op){ .type = IL_OP_GET, .key = "old" };
    ops[1]           = (il_op){ .type = IL_OP_RUN_START, .key = "old", .holder = "h2" };
    ops[1].in.run.id = "r1";
    ops[2]           = (il_op){ .type = IL_OP_RUN_START, .key = "new", .holder = "h2" };
    ops[2].in.run.id = "r2";
    T_EQ(il_apply(h, ops, 3, &err), IL_OK);
    T_EQ(ops[0].status, IL_OK);
    T_EQU(ops[0].out.fence, 1000);
    T_EQ(ops[1].status, IL_HELD);
    T_STREQ(ops[1].out.items[0].meta, "meta");
    T_EQ(ops[2].status, IL_OK);
    T_LESS(1000, ops[2].out.fence);
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        il_op_release(&ops[i]);
    ops[0] = (il_op){ .type = IL_OP_RELEASE, .key = "old", .holder = "h", .fence = 1000 };
    T_EQ(il_apply(h, ops, 1, &err), IL_OK);
    T_EQ(ops[0].status, IL_OK);
    il_op_release(&ops[0]);
    il_close(h);
    char *upgraded = schema_of();
    tear_down();

    set_up();
    make_store(1);
    char *fresh = schema_of();
    T_STREQ(upgraded, fresh);
    sqlite3_free(upgraded);
    sqlite3_free(fresh);
    tear_down();
}

/* ---- what may not be read or written --------------------------------------------------------------- */

/* In a process of its own: without privileges. Its exit status is that of the il_status. */
static int
use_as_nobody(void *arg UNUSED)
{
    il_error err = { 0 };

    if (geteuid() == 0 && (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0))
        return 100;
    il_status st = try_use(&err);
    (void)printf("said %s: %s\n", il_status_name(st), err.message);
    return (int)st;
}

static void
nobody_gets(mode_t mode, mode_t dir_mode, il_status expected)
{
    struct t_proc p;
    char          line[T_PROC_LINE_BYTES];
    size_t        n_before, n_after;
    char         *before = t_file_read(path, &n_before);

    T_EQ(chmod(path, mode), 0);
    T_EQ(chmod(dir, dir_mode), 0);
    t_proc_fork(&p, use_as_nobody, NULL);
    T_LINE(&p, "said ", 20000, line);
    int status = t_proc_exit(&p, 20000);
    t_proc_release(&p);
    T_EQ(chmod(dir, 0700), 0);
    T_EQ(chmod(path, 0600), 0);
    if (status != (int)expected)
        T_FAIL("mode %o in a folder of mode %o: %s", mode, dir_mode, line);
    T_HAS(line, path);
    char *after = t_file_read(path, &n_after);
    T_TRUE(n_after == n_before && memcmp(before, after, n_before) == 0);
    free(before);
    free(after);
}

U_TEST(no_permission)
{
    set_up();
    make_store(3);
    nobody_gets(0444, 0755, IL_STORE); /* may be read, not written */
    nobody_gets(0000, 0755, IL_STORE);
    nobody_gets(0600, 0000, IL_STORE); /* not even the folder */
    tear_down();
}

U_TEST(modes_of_new_files)
{
    static const char *const suffixes[] = { "", "-lock", "-wake" };
    struct stat              st;
    char                     name[T_PATH_BYTES];

    set_up();
    mode_t before = umask(0);
    make_store(1);
    (void)umask(before);
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        t_path(name, "%s%s", path, suffixes[i]);
        T_EQ(stat(name, &st), 0);
        T_EQ(st.st_mode & 07777, 0600);
    }
    tear_down();
}

/* ---- a lock that is not given up --------------------------------------------------------------------- */

/* Take the lock file and stop: the worst neighbour there is. */
static int
hold_lock(void *arg UNUSED)
{
    char name[T_PATH_BYTES];

    t_path(name, "%s-lock", path);
    int fd = open(name, O_RDWR | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX) != 0)
        return 1;
    (void)printf("locked\n");
    (void)fflush(stdout);
    for (;;)
        (void)pause();
}

U_TEST(a_stopped_process_has_the_lock)
{
    struct t_proc p;
    il           *h = NULL;
    il_error      err;
    il_op         op = { .type = IL_OP_ACQUIRE, .key = "k", .holder = "h" };

    set_up();
    make_store(3);
    t_proc_fork(&p, hold_lock, NULL);
    T_LINE(&p, "locked", 10000, NULL);
    t_proc_signal(&p, SIGSTOP);
    T_TRUE(t_pid_in_state(p.pid, 'T', 10000));

    int64_t began = t_real_ms();
    T_EQ(try_open(300, &h, &err), IL_OK); /* looking is not held up */
    T_EQ(il_apply(h, &op, 1, &err), IL_STORE);
    int64_t took = t_real_ms() - began;
    T_HAS(err.message, path);
    char who[64]; /* whom to look at */
    (void)snprintf(who, sizeof who, "pid %d, which is stopped, has kept it locked", (int)p.pid);
    T_HAS(err.message, who);
    il_op_release(&op);
    if (took < 300 || took > 5000)
        T_FAIL("a timeout of 300 ms took %d ms", (int)took);
    il_op get = { 0 };
    T_EQ(il_get(h, "key:0001", &get, &err), IL_OK); /* readers need no lock */
    il_op_release(&get);
    began           = t_real_ms();
    il_lease *lease = NULL;
    T_EQ(il_acquire(h, "k", NULL, &lease, &err), IL_STORE);
    T_LESS(t_real_ms() - began, 5000);

    t_proc_signal(&p, SIGKILL); /* and with the process the lock goes */
    T_EQ(t_proc_exit(&p, 10000), 128 + SIGKILL);
    op.holder = "h2";
    T_EQ(il_apply(h, &op, 1, &err), IL_OK);
    T_EQ(op.status, IL_OK);
    il_op_release(&op);
    il_close(h);
    t_proc_release(&p);
    tear_down();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(not_a_database),     U_ROW(cut_short),
        U_ROW(flipped_bytes),      U_ROW(a_directory),
        U_ROW(a_newer_schema),     U_ROW(an_older_schema),
        U_ROW(of_another_program), U_ROW(no_permission),
        U_ROW(modes_of_new_files), U_ROW(a_stopped_process_has_the_lock),
    };

    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
