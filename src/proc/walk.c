/*
 * walk.c: finds the descendants of this process in /proc; the contract is in walk.h.
 *
 * /proc/PID/task/TID/children lists the children of one thread; on kernels without it, each walk
 * scans all processes and their parents once instead.
 */
#include "proc/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"
#include "proc/sys.h"

#define DEPTH_MAX 256 /* one descriptor each; deeper ones move up when their parents die */
#define LIST_BYTES_MAX (1 << 20)

struct pair {
    pid_t pid;
    pid_t parent;
};

struct walk {
    proc_visit_fn *visit;
    void          *cookie;
    bool           by_scan; /* no `children` files here: use `pairs` */
    struct pair   *pairs;
    size_t         n_pairs;
    bool           missed; /* something that may exist could not be read */
};

/* Was it for lack of descriptors or memory? Else nothing is missed: the process has exited. */
static bool
note_error(struct walk *w, int error)
{
    bool missed = error == EMFILE || error == ENFILE || error == ENOMEM;

    w->missed |= missed;
    return missed;
}

/* Read a whole /proc file. false if it does not exist (any more) or cannot be read. */
static bool
slurp(struct walk *w, const char *path, struct il__buf *text)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    char        chunk[1024];

    if (fd < 0) {
        (void)note_error(w, errno);
        return false;
    }
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            (void)note_error(w, errno);
        w->missed |= text->failed;
        if (n <= 0)
            return n == 0;
        il__buf_add(text, chunk, (size_t)n);
    }
}

/* Fill *p, but not its pidfd, from /proc/PID/stat. */
static bool
look_up(struct walk *w, pid_t pid, struct proc_process *p)
{
    AUTO_BUF struct il__buf text;
    char                    path[64];
    int                     parent;
    int                     group;
    unsigned long long      started;

    il__buf_init(&text, 4096);
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (!slurp(w, path, &text))
        return false;
    /*
     * The name, in parentheses, may contain anything, even parentheses: search for its end from the
     * back.
     */
    const char *rest = strrchr(il__buf_str(&text), ')');
    if (rest == NULL ||
        sscanf(rest,
               ") %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
               "%*d %llu",
               &p->state, &parent, &group, &started) != 4)
        return false;
    const char *name = strchr(il__buf_str(&text), '(');
    (void)snprintf(p->name, sizeof p->name, "%.*s", (int)(rest - name - 1), name + 1);
    p->pid           = pid;
    p->parent        = parent;
    p->group         = group;
    p->started_ticks = (int64_t)started;
    return true;
}

static DIR *
open_folder(struct walk *w, const char *path)
{
    DIR *dir = opendir(path);

    if (dir == NULL)
        (void)note_error(w, errno);
    return dir;
}

/* The next entry; NULL: no more, or no such folder. */
static const struct dirent *
next_entry(struct walk *w, DIR *dir)
{
    if (dir == NULL)
        return NULL;
    errno                  = 0;
    const struct dirent *e = readdir(dir);
    if (e == NULL)
        (void)note_error(w, errno);
    return e;
}

/* The pid or tid of a /proc folder entry; 0 for other entries. */
static pid_t
entry_pid(const struct dirent *entry)
{
    uint64_t pid;

    return il__parse_u64(entry->d_name, INT32_MAX, &pid) ? (pid_t)pid : 0;
}

static void
closedirp(DIR **dir)
{
    if (*dir != NULL)
        (void)closedir(*dir); /* was only read from */
}

static void
scan(struct walk *w)
{
    AUTO(closedirp) DIR *dir      = open_folder(w, "/proc");
    size_t               capacity = 0;

    w->by_scan = true;
    for (const struct dirent *e; (e = next_entry(w, dir)) != NULL;) {
        struct proc_process p;
        pid_t               pid = entry_pid(e);
        if (pid == 0 || !look_up(w, pid, &p))
            continue;
        if (!il__grow(&w->pairs, w->n_pairs, &capacity, sizeof *w->pairs)) {
            w->missed = true;
            return; /* a partial result is better than none; more walks follow */
        }
        w->pairs[w->n_pairs++] = (struct pair){ pid, p.parent };
    }
}

static void walk_below(struct walk *w, const struct proc_process *parent, int depth);

/*
 * Visit `pid`, reported as a child of `parent`, and its descendants. The pidfd is opened first, and
 * the parent is read afterwards. If the pidfd still refers to a live process when it is used, then
 * the pid has meant that process all the time, including when its parent was read; and if the
 * parent, pinned in the same way one level up, still exists then, its pid has not been reused
 * either. A child whose parent has died meanwhile was reparented to us and is found by the next
 * walk.
 */
static void
walk_child(struct walk *w, const struct proc_process *parent, pid_t pid, int depth)
{
    struct proc_process p;
    AUTO_FD int         pidfd = il__proc_pidfd_open(pid);

    if (pidfd < 0 && (errno == ESRCH || note_error(w, errno)))
        return;
    if (!look_up(w, pid, &p) || p.parent != parent->pid)
        return;
    if (parent->pidfd >= 0 && il__proc_pidfd_kill(parent->pidfd, 0) != 0 && errno == ESRCH)
        return;
    p.pidfd = pidfd;
    if (w->visit(w->cookie, &p) && depth < DEPTH_MAX)
        walk_below(w, &p, depth + 1);
}

/* The children of one thread. false if this kernel does not list them, or the thread has exited. */
static bool
walk_thread(struct walk *w, const struct proc_process *parent, pid_t tid, int depth)
{
    AUTO_BUF struct il__buf list;
    char                    path[64];

    il__buf_init(&list, LIST_BYTES_MAX);
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent->pid, (int)tid);
    if (!slurp(w, path, &list))
        return false;
    for (char *p = list.data; p != NULL && *p != '\0';) {
        long pid = strtol(p, &p, 10);
        if (pid <= 0 || pid > INT32_MAX)
            break;
        walk_child(w, parent, (pid_t)pid, depth);
        p += strspn(p, " ");
    }
    return true;
}

static void
walk_below(struct walk *w, const struct proc_process *parent, int depth)
{
    char path[64];

    if (w->by_scan) {
        for (size_t i = 0; i < w->n_pairs; i++) {
            if (w->pairs[i].parent == parent->pid)
                walk_child(w, parent, w->pairs[i].pid, depth);
        }
        return;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)parent->pid);
    AUTO(closedirp) DIR *dir = open_folder(w, path);
    for (const struct dirent *e; (e = next_entry(w, dir)) != NULL;) {
        pid_t tid = entry_pid(e);
        if (tid != 0)
            (void)walk_thread(w, parent, tid, depth); /* an exited thread has no children */
    }
}

bool
il__proc_walk(proc_visit_fn *visit, void *cookie)
{
    struct walk         w    = { .visit = visit, .cookie = cookie };
    struct proc_process self = { .pid = getpid(), .pidfd = -1 };

    if (access("/proc/thread-self/children", R_OK) != 0)
        scan(&w);
    walk_below(&w, &self, 0);
    il__free(w.pairs);
    return !w.missed;
}

int
il__proc_process_kill(const struct proc_process *p, int sig)
{
    return p->pidfd >= 0 ? il__proc_pidfd_kill(p->pidfd, sig) : kill(p->pid, sig);
}

int64_t
il__proc_ticks(int64_t boot_ns)
{
    int64_t hz = sysconf(_SC_CLK_TCK);

    CHECK(hz > 0);
    return boot_ns / (INT64_C(1000000000) / hz);
}
