/*
 * files.c: invalid and damaged files. Each is refused with the right status and a message that
 * names it, and is unchanged afterwards, byte for byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
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

/* The page where a table's B-tree begins, wherever this SQLite has put it. */
static size_t
root_page(const char *table)
{
    sqlite3      *db  = NULL;
    sqlite3_stmt *row = NULL;

    T_EQ(sqlite3_open(path, &db), SQLITE_OK);
    const char *sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    T_EQ(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    T_EQ(sqlite3_bind_text(row, 1, table, -1, SQLITE_STATIC), SQLITE_OK);
    T_EQ(sqlite3_step(row), SQLITE_ROW);
    size_t page = (size_t)sqlite3_column_int64(row, 0);
    T_EQ(sqlite3_finalize(row), SQLITE_OK);
    T_EQ(sqlite3_close(db), SQLITE_OK);
    T_LESS(1, page);
    return page;
}

/* Write the file with six bytes changed in the head of a page, where its structure is; `kind` also
 * changes the first byte to one that no page of a B-tree has: every read of the page notices it. */
static void
write_damaged(const char *whole, size_t n, size_t page, bool kind, struct t_rng *rng)
{
    char  beside[T_PATH_BYTES];
    char *copy = malloc(n);
    char *head = copy + (page - 1) * PAGE_BYTES;

    CHECK(copy != NULL && page * PAGE_BYTES <= n);
    memcpy(copy, whole, n);
    for (unsigned i = 0; i < 6; i++)
        head[t_rng_below(rng, 24)] = (char)t_rng_below(rng, 256);
    if (kind)
        head[0] = (char)0xff;
    t_file_write(path, copy, n);
    free(copy);
    /* A WAL that an earlier round left would be read instead of the damaged page. */
    t_path(beside, "%s-wal", path);
    T_TRUE(unlink(beside) == 0 || errno == ENOENT);
    t_path(beside, "%s-shm", path);
    T_TRUE(unlink(beside) == 0 || errno == ENOENT);
}

/* Damaged pages are called corrupt or, when nothing reads them, go unnoticed; and nothing is
 * written over damage that is found. */
U_TEST(flipped_bytes)
{
    /* Opening reads the first, listing the second. */
    static const char *const read_always[] = { "il_state", "il_lease" };
    size_t                   roots[ARRAY_LEN(read_always)];
    size_t                   n;
    struct t_rng             rng;

    set_up();
    make_store(200);
    for (size_t i = 0; i < ARRAY_LEN(roots); i++)
        roots[i] = root_page(read_always[i]);
    char *whole = t_file_read(path, &n);
    t_rng_init(&rng, t_env_u64("IL_TEST_SEED", 7));
    for (unsigned round = 0; round < 60; round++) {
        il_error err = { 0 };
        write_damaged(whole, n, 1 + t_rng_below(&rng, (uint32_t)(n / PAGE_BYTES)), false, &rng);
        il_status st = try_use(&err);
        if (st != IL_OK && st != IL_CORRUPT && st != IL_NEWER && st != IL_STORE)
            T_FAIL("round %u: %s: %s", round, il_status_name(st), err.message);
    }
    for (unsigned round = 0; round < 30; round++) {
        write_damaged(whole, n, roots[round % ARRAY_LEN(roots)], true, &rng);
        refused(IL_CORRUPT);
    }
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
    T_HAS(err.message, "is a folder");
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

U_TEST(a_negative_schema)
{
    set_up();
    make_store(3);
    run_sql("PRAGMA user_version = -3");
    run_sql("PRAGMA wal_checkpoint(TRUNCATE)");
    refused(IL_CORRUPT);
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

/* ---- what may not be read or written --------------------------------------------------------- */

/* In a process of its own: without privileges. Its exit status is that of the il_status. */
static int
use_as_nobody(void *arg UNUSED)
{
    il_error err = { 0 };

    if (geteuid() == 0 &&
        (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0))
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

/* ---- files that go away, or are not ours ----------------------------------------------------- */

static const char *const parts[] = { "", "-lock", "-wal", "-shm" };

static il_status
acquire(il *h, const char *key, il_error *err)
{
    il_op op = { .type = IL_OP_ACQUIRE, .key = key, .holder = "h" };

    il_status st = il_apply(h, &op, 1, err);
    il_op_release(&op);
    return st == IL_OK ? op.status : st;
}

static il_status
get(il *h, const char *key, il_error *err)
{
    il_op op = { 0 };

    il_status st = il_get(h, key, &op, err);
    il_op_release(&op);
    return st;
}

static void
copy_file(const char *from, const char *to)
{
    size_t n;
    char  *data = t_file_read(from, &n);

    t_file_write(to, data, n);
    free(data);
}

/* One file of an open store is deleted, or replaced by a copy of itself. */
static void
goes_away(const char *part, bool is_replaced, bool has_read)
{
    il      *h = NULL;
    il_error err;
    char     name[T_PATH_BYTES], aside[T_PATH_BYTES];

    set_up();
    t_path(name, "%s%s", path, part);
    t_path(aside, "%s/aside", dir);
    T_EQ(try_open(0, &h, &err), IL_OK);
    T_EQ(acquire(h, "k", &err), IL_OK);
    if (has_read)
        T_EQ(get(h, "k", &err), IL_OK);
    T_EQ(rename(name, aside), 0);
    if (is_replaced)
        copy_file(aside, name);
    if (part[0] == '\0')
        T_EQ(get(h, "k", &err), IL_STORE);
    T_EQ(acquire(h, "k2", &err), IL_STORE);
    T_HAS(err.message, path);
    T_HAS(err.message, "deleted or replaced");
    T_EQ(t_file_exists(name), is_replaced); /* nothing was created again */
    /* What was granted meanwhile by somebody who found no store is not known here: no way back. */
    T_EQ(rename(aside, name), 0);
    T_EQ(acquire(h, "k2", &err), IL_STORE);
    T_EQ(get(h, "k", &err), IL_STORE);
    il_close(h);
    T_EQ(try_open(0, &h, &err), IL_OK);
    T_EQ(acquire(h, "k2", &err), IL_OK);
    il_close(h);
    tear_down();
}

U_TEST(deleted_while_open)
{
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        goes_away(parts[i], false, false);
        goes_away(parts[i], true, true);
    }
}

U_TEST(a_transaction_of_a_deleted_store)
{
    il      *h = NULL;
    il_error err;
    sqlite3 *db = NULL;
    il_tx   *tx = NULL;

    set_up();
    T_EQ(try_open(0, &h, &err), IL_OK);
    T_EQ(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, NULL),
         SQLITE_OK);
    T_EQ(il_tx_begin(h, db, &tx, &err), IL_OK);
    il_tx_rollback(tx);
    char name[T_PATH_BYTES];
    t_path(name, "%s-lock", path);
    T_EQ(unlink(name), 0);
    T_EQ(il_tx_begin(h, db, &tx, &err), IL_STORE);
    T_TRUE(!t_file_exists(name));
    T_EQ(sqlite3_close(db), SQLITE_OK);
    il_close(h);
    tear_down();
}

/* A path that is a symbolic link: the files beside the database are those of the database. */
U_TEST(through_a_link)
{
    il      *h = NULL, *other = NULL;
    il_error err;
    char     link[T_PATH_BYTES], name[T_PATH_BYTES], link_url[T_PATH_BYTES];

    set_up();
    make_store(0);
    t_path(link, "%s/link.db", dir);
    T_EQ(symlink("x.db", link), 0);
    t_path(link_url, "sqlite:%s", link);
    T_EQ(il_open(link_url, NULL, &h, &err), IL_OK);
    t_path(name, "%s-lock", link);
    T_TRUE(!t_file_exists(name)); /* both lock the same file */
    T_EQ(acquire(h, "k", &err), IL_OK);
    T_EQ(try_open(0, &other, &err), IL_OK);
    T_EQ(acquire(other, "k2", &err), IL_OK);
    /* The link leads elsewhere: whoever opens it now is in another store. */
    T_EQ(unlink(link), 0);
    t_path(name, "%s/y.db", dir);
    copy_file(path, name);
    T_EQ(symlink("y.db", link), 0);
    T_EQ(acquire(h, "k3", &err), IL_STORE);
    T_EQ(acquire(other, "k3", &err), IL_OK);
    il_close(h);
    il_close(other);
    tear_down();
}

/* Somebody else has put something where a file of the store is to be. */
static void
is_refused(const char *suffix, const char *why)
{
    il      *h = NULL;
    il_error err;
    char     name[T_PATH_BYTES];

    t_path(name, "%s%s", path, suffix);
    T_EQ(try_open(0, &h, &err), IL_STORE);
    T_HAS(err.message, name);
    T_HAS(err.message, why);
    T_EQ(unlink(name), 0);
    T_EQ(try_open(0, &h, &err), IL_OK);
    T_EQ(acquire(h, "k", &err), IL_OK);
    il_close(h);
}

U_TEST(a_trap_beside_the_database)
{
    static const char *const suffixes[] = { "-lock", "-wake" };
    char                     name[T_PATH_BYTES], victim[T_PATH_BYTES];

    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        set_up();
        make_store(1);
        t_path(name, "%s%s", path, suffixes[i]);
        t_path(victim, "%s/victim", dir);
        t_file_write(victim, "precious", 8);
        T_EQ(unlink(name), 0);
        T_EQ(symlink(victim, name), 0);
        is_refused(suffixes[i], "symbolic link");
        T_EQ(unlink(name), 0);
        T_EQ(link(victim, name), 0);
        is_refused(suffixes[i], "hard link");
        size_t n;
        char  *data = t_file_read(victim, &n);
        T_EQ(n, 8);
        free(data);
        T_EQ(unlink(name), 0);
        T_EQ(mkfifo(name, 0600), 0);
        is_refused(suffixes[i], "not a regular file");
        if (geteuid() == 0) { /* only root can give a file away */
            T_EQ(chown(name, 65534, 65534), 0);
            is_refused(suffixes[i], "owned by user 65534");
            /* A store that is somebody else's as a whole is theirs to use, and root's. */
            T_EQ(chown(path, 65534, 65534), 0);
            T_EQ(chown(name, 65534, 65534), 0);
            il      *h = NULL;
            il_error err;
            T_EQ(try_open(0, &h, &err), IL_OK);
            il_close(h);
        }
        tear_down();
    }
}

static void
give_up(il_lease *lease)
{
    T_EQ(il_lease_release(lease, NULL), IL_OK);
    il_lease_free(lease);
}

/* Wait for a key in a process of its own, once somebody has it. */
static int
wait_for_k(void *arg UNUSED)
{
    il             *h = NULL;
    il_lease       *lease;
    il_error        err;
    il_acquire_opts o = IL_ACQUIRE_OPTS_INIT;

    o.wait_ms = 60000;
    if (try_open(0, &h, &err) != IL_OK)
        return 1;
    while (get(h, "k", &err) == IL_NOT_HELD)
        (void)sched_yield();
    il_status st = il_acquire(h, "k", &o, &lease, &err);
    if (st == IL_OK)
        give_up(lease);
    il_close(h);
    return (int)st;
}

static uint64_t
n_waiting(il *h)
{
    il_op    op = { 0 };
    il_error err;

    T_EQ(il_get(h, "k", &op, &err), IL_OK);
    uint64_t n = op.out.n_items > 0 ? op.out.items[0].n_waiters : 0;
    il_op_release(&op);
    return n;
}

/* The wake file is cut while one process waits and another one works: nobody dies, and it is
 * mended. */
U_TEST(a_wake_file_that_shrinks)
{
    struct t_proc p;
    il           *h     = NULL;
    il_lease     *lease = NULL;
    il_error      err;
    struct stat   st;
    char          name[T_PATH_BYTES];

    set_up();
    make_store(0);
    t_path(name, "%s-wake", path);
    T_EQ(stat(name, &st), 0);
    off_t whole = st.st_size;
    t_proc_fork(&p, wait_for_k, NULL);
    T_EQ(try_open(0, &h, &err), IL_OK);
    T_EQ(il_acquire(h, "k", NULL, &lease, &err), IL_OK);
    for (int64_t until = t_real_ms() + 20000; n_waiting(h) == 0;)
        T_LESS(t_real_ms(), until);
    T_EQ(truncate(name, 0), 0);
    for (unsigned i = 0; i < 3; i++) /* one is cut off, the next one mends it */
        T_EQ(acquire(h, "k2", &err), IL_OK);
    T_EQ(stat(name, &st), 0);
    T_EQ(st.st_size, whole);
    T_EQ(truncate(name, 0), 0);
    give_up(lease);
    T_EQ(t_proc_exit(&p, 60000), IL_OK);
    t_proc_release(&p);
    /* Deleted: others would create a new one. The next sweep notices, and the next commit does
     * that. */
    T_EQ(unlink(name), 0);
    T_EQ(il_acquire(h, "k", NULL, &lease, &err), IL_OK); /* so that there are sweeps */
    for (int64_t until = t_real_ms() + 20000; !t_file_exists(name);) {
        T_LESS(t_real_ms(), until);
        T_EQ(acquire(h, "k3", &err), IL_OK);
    }
    give_up(lease);
    il_close(h);
    tear_down();
}

/* ---- a lock that is not given up ------------------------------------------------------------- */

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
    (void)snprintf(who, sizeof who, "locked by pid %d (stopped)", (int)p.pid);
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
        U_ROW(not_a_database),
        U_ROW(cut_short),
        U_ROW(flipped_bytes),
        U_ROW(a_directory),
        U_ROW(a_newer_schema),
        U_ROW(a_negative_schema),
        U_ROW(of_another_program),
        U_ROW(no_permission),
        U_ROW(modes_of_new_files),
        U_ROW(deleted_while_open),
        U_ROW(a_transaction_of_a_deleted_store),
        U_ROW(through_a_link),
        U_ROW(a_trap_beside_the_database),
        U_ROW(a_wake_file_that_shrinks),
        U_ROW(a_stopped_process_has_the_lock),
    };

    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
