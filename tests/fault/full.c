/*
 * full.c: a full disk. Writes are refused as FULL and nothing acknowledged is lost; reads continue;
 * with free space again everything works, on the same handle. The disk is a tmpfs in a mount
 * namespace (as root, or in a user namespace where that is allowed).
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/proc.h"
#include "harness/tmp.h"
#include "harness/unit.h"

#define SKIPPED 77
#define N_MAX 20000

static char dir[T_PATH_BYTES];

/* In a new user namespace: this user and group are root's there. */
static bool
become_root(uid_t uid, gid_t gid)
{
    char map[64];

    t_file_write("/proc/self/setgroups", "deny", 4);
    (void)snprintf(map, sizeof map, "0 %u 1", (unsigned)uid);
    t_file_write("/proc/self/uid_map", map, strlen(map));
    (void)snprintf(map, sizeof map, "0 %u 1", (unsigned)gid);
    t_file_write("/proc/self/gid_map", map, strlen(map));
    return true;
}

/* A small disk at `dir`, seen by this process only. */
static bool
mount_disk(void)
{
    uid_t uid  = geteuid();
    gid_t gid  = getegid();
    bool  root = uid == 0;

    return unshare(CLONE_NEWNS | (root ? 0 : CLONE_NEWUSER)) == 0 &&
           (root || become_root(uid, gid)) &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("interlock-test", dir, "tmpfs", 0, "size=1536k,mode=0700") == 0;
}

/* Write at most n blocks, as long as there is space. */
static void
fill(const char *path, unsigned n)
{
    static char block[4096];
    int         fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    T_TRUE(fd >= 0);
    memset(block, 'x', sizeof block);
    while (n > 0 && write(fd, block, sizeof block) > 0)
        n--;
    T_TRUE(n == 0 || errno == ENOSPC);
    T_EQ(close(fd), 0);
}

static il_status
acquire(il *h, unsigned i, uint64_t *ret_fence, il_error *err)
{
    char  key[32];
    il_op op = { .type = IL_OP_ACQUIRE, .key = key, .holder = "h" };

    (void)snprintf(key, sizeof key, "key:%u", i);
    il_status st = il_apply(h, &op, 1, err);
    if (st == IL_OK)
        st = op.status;
    *ret_fence = op.out.fence;
    il_op_release(&op);
    return st;
}

static void
still_there(il *h, const uint64_t *fences, unsigned n)
{
    char     key[32];
    il_error err;

    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(key, sizeof key, "key:%u", i);
        if (il_check_fence(h, key, fences[i], &err) != IL_OK)
            T_FAIL("%s: %s", key, err.message);
    }
}

/* The binary says it in one line and with status 69. */
static void
run_says_so(const char *url)
{
    const char *const argv[] = {
        getenv("INTERLOCK_BIN"), "run", "--store", url, "k", "--", "touch", "ran", NULL
    };
    struct t_proc p;

    if (argv[0] == NULL)
        return;
    t_proc_start(&p, argv, NULL);
    T_EQ(t_proc_exit(&p, 20000), 69);
    T_HAS(p.text, "interlock: ");
    T_HAS(p.text, "x.db");
    T_TRUE(strchr(p.text, '\n') == p.text + strlen(p.text) - 1);
    t_proc_release(&p);
}

static void
fill_up_and_recover(const char *url, const char *ballast, unsigned n_blocks)
{
    static uint64_t fences[N_MAX];
    il             *h   = NULL;
    il_error        err = { 0 };
    uint64_t        fence;
    unsigned        n = 0;
    il_status       st;

    T_EQ(il_open(url, NULL, &h, &err), IL_OK);
    T_EQ(acquire(h, n, &fences[n], &err), IL_OK);
    n++;
    fill(ballast, n_blocks);
    while ((st = acquire(h, n, &fences[n], &err)) == IL_OK && n < N_MAX - 1)
        n++;
    if (st != IL_FULL)
        T_FAIL("after %u: %s: %s", n, il_status_name(st), err.message);
    T_HAS(err.message, "x.db");
    for (unsigned i = 0; i < 3; i++)
        T_EQ(acquire(h, n + 1 + i, &fence, &err), IL_FULL);
    still_there(h, fences, n);
    run_says_so(url);
    T_EQ(unlink(ballast), 0);
    T_EQ(acquire(h, n, &fences[n], &err), IL_OK); /* the same one, repeated */
    still_there(h, fences, n + 1);
    il_close(h);
    T_EQ(il_open(url, NULL, &h, &err), IL_OK);
    still_there(h, fences, n + 1);
    il_close(h);
    (void)printf("full after %u\n", n);
}

static il_status
apply(il *h, il_op *op, il_error *err)
{
    il_status st = il_apply(h, op, 1, err);

    return st == IL_OK ? op->status : st;
}

/* Jobs that have ended are purged on a disk without space, until none is left. */
static void
purge_makes_space(const char *url, const char *ballast)
{
    static char payload[2000];
    char        id[32];
    il         *h   = NULL;
    il_error    err = { 0 };
    il_status   st;
    unsigned    n_purged = 0;

    T_EQ(il_open(url, NULL, &h, &err), IL_OK);
    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(id, sizeof id, "job-%u", i);
        il_op push             = { .type = IL_OP_JOB_PUSH, .key = "q", .in.job.id = id };
        push.in.job.data       = payload;
        push.in.job.data_bytes = sizeof payload;
        il_op cancel           = { .type = IL_OP_JOB_CANCEL, .in.job.id = id };
        T_EQ(apply(h, &push, &err), IL_OK);
        T_EQ(apply(h, &cancel, &err), IL_OK);
        il_op_release(&push);
        il_op_release(&cancel);
    }
    fill(ballast, UINT32_MAX);
    for (unsigned i = 0; i < 500; i++) { /* what is left in the WAL's last block, and more */
        uint64_t fence;
        st = acquire(h, i, &fence, &err);
        if (st == IL_FULL)
            break;
        T_EQ(st, IL_OK);
    }
    T_EQ(st, IL_FULL);
    for (unsigned i = 0; i < 100 && n_purged < 100; i++) {
        il_op purge = { .type    = IL_OP_JOB_PURGE,
                        .key     = "q",
                        .in.list = { .limit = 1000, .states = 1U << IL_JOB_CANCELLED } };
        st          = apply(h, &purge, &err);
        if (st != IL_OK)
            T_FAIL("a purge after %u: %s: %s", n_purged, il_status_name(st), err.message);
        n_purged += purge.out.sweep.n_purged;
        il_op_release(&purge);
    }
    T_EQ(n_purged, 100);
    il_close(h);
    T_EQ(unlink(ballast), 0);
    (void)printf("purged %u\n", n_purged);
}

static int
in_namespace(void *arg UNUSED)
{
    char     url[T_PATH_BYTES];
    char     ballast[T_PATH_BYTES];
    il      *h   = NULL;
    il_error err = { 0 };

    if (!mount_disk()) {
        (void)printf("no disk: %s\n", strerror(errno));
        return SKIPPED;
    }
    T_EQ(chdir(dir), 0);
    t_path(url, "sqlite:%s/x.db", dir);
    t_path(ballast, "%s/ballast", dir);
    /* First no store at all: none can be made, and with space again it can. */
    fill(ballast, UINT32_MAX);
    il_status st = il_open(url, NULL, &h, &err);
    if (st != IL_FULL)
        T_FAIL("il_open on a full disk: %s: %s", il_status_name(st), err.message);
    run_says_so(url);
    T_TRUE(!t_file_exists("ran"));
    T_EQ(unlink(ballast), 0);
    fill_up_and_recover(url, ballast, UINT32_MAX); /* no space from the first byte on */
    t_path(url, "sqlite:%s/2-x.db", dir);
    fill_up_and_recover(url, ballast, 32); /* and one that runs out in the middle of a commit */
    T_EQ(mkdir("larger", 0700), 0);
    T_EQ(mount("interlock-test", "larger", "tmpfs", 0, "size=24m,mode=0700"), 0);
    t_path(url, "sqlite:%s/larger/x.db", dir);
    t_path(ballast, "%s/larger/ballast", dir);
    purge_makes_space(url, ballast);
    (void)printf("all well\n");
    return 0;
}

int
main(void)
{
    struct t_proc p;

    t_tmp_make(dir);
    t_proc_fork(&p, in_namespace, NULL);
    int status = t_proc_exit(&p, 60000);
    (void)printf("%s", p.text);
    if (status == 0 && strstr(p.text, "all well") == NULL)
        status = 1;
    t_proc_release(&p);
    t_tmp_remove(dir);
    return status;
}
