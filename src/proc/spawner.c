/*
 * spawner.c: the process that forks the reapers of a server's commands; proc.h explains its
 * purpose.
 *
 * A single poll() loop, like the reaper's: no threads, no signal handlers, every signal blocked. It
 * starts reapers, reaps them and supervises them: a stopped one is continued, an overdue one is
 * killed. Processes left by a dead one are reparented to the spawner, which is a child subreaper,
 * and killed.
 */
#include "proc/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/hide.h"
#include "proc/sys.h"
#include "proc/walk.h"

#define EXIT_USAGE 64
/* from here on all are sockets of children: a new reaper closes them all at once */
#define HIGH_FD 64
#define REQUESTS_AT_ONCE 32
/* how long after its grace a reaper may finish */
#define PATIENCE_NS (INT64_C(1000) * IL__NS_PER_MS)
/* for orphans: a safety net, normally SIGCHLD triggers */
#define LOOK_AGAIN_NS (INT64_C(50) * IL__NS_PER_MS)

struct child {
    uint64_t serial;
    int64_t  grace_ns;
    int64_t  latest_ns; /* its reaper is killed then, unless it has exited; see also due_ns() */
    pid_t    pid;       /* the reaper; 0 = died without a report */
    int      ctl;       /* open until nothing of the child is left */
    uint32_t slot;
};

struct spawner {
    struct proc_page *page;
    struct child     *children;
    size_t            n_children;
    size_t            n_room;
    int               request_fd; /* -1 = the server died */
    int               spare_fd;   /* where the spare reaper waits for a request; -1 = none */
    pid_t             spare_pid;  /* 0 = there is none */
    int               server_fd;
    int               self_fd; /* our own pidfd, for the reapers */
    int               sig_fd;
    int               timer_fd;
    int64_t           look_ns; /* when to check the clock; no later than the first due time */
    int64_t           armed_ns;
    struct rlimit     files;   /* of the server: ours is higher */
    bool              orphans; /* a reaper died, and its processes may still be running */
    bool              gone;    /* the server */
};

/* Close the descriptors inherited from the spawner: end of file on a socket must mean the end of
 * its child. */
static void
forget_spawner(struct spawner *sp)
{
    if (close_range(HIGH_FD, ~0U, 0) != 0) {
        for (size_t i = 0; i < sp->n_children; i++)
            il__proc_fd_close(&sp->children[i].ctl);
        il__proc_fd_close(&sp->spare_fd); /* a spare holding it would never see end of file */
    }
    il__proc_fd_close(&sp->request_fd);
    il__proc_fd_close(&sp->sig_fd);
    il__proc_fd_close(&sp->timer_fd);
}

static struct proc_served
served_of(const struct spawner *sp)
{
    return (struct proc_served){
        .page = sp->page, .server_fd = sp->server_fd, .self_fd = sp->self_fd, .files = sp->files
    };
}

/* ---- the spare reaper ------------------------------------------------------------------------ */

/* If there is none, a start forks. */
static void
make_spare(struct spawner *sp)
{
    int fds[2];

    if (sp->spare_pid != 0 || sp->gone ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
        return;
    sp->spare_fd = fds[0];
    if (il__proc_fd_above(&sp->spare_fd, HIGH_FD))
        sp->spare_pid = fork();
    if (sp->spare_pid == 0 && sp->spare_fd >= 0) {
        struct proc_served v = served_of(sp);
        forget_spawner(sp);
        il__proc_spare_main(&v, fds[1]);
    }
    il__proc_fd_close(&fds[1]);
    if (sp->spare_pid <= 0) {
        sp->spare_pid = 0;
        il__proc_fd_close(&sp->spare_fd);
    }
}

/* Give it the request: it becomes a child's reaper. 0: there is none, or it is dead. */
static pid_t
use_spare(struct spawner *sp, const union proc_packet *p, const int *fds, size_t n_fds)
{
    bool is_inline = p->request.n_bytes <= PROC_INLINE_BYTES_MAX;

    if (sp->spare_pid == 0 ||
        il__proc_send(sp->spare_fd, &p->request, is_inline ? p->bytes + sizeof p->request : NULL,
                      fds, n_fds, MSG_DONTWAIT) != 0)
        return 0;
    pid_t pid     = sp->spare_pid;
    sp->spare_pid = 0;
    il__proc_fd_close(&sp->spare_fd);
    return pid;
}

static void
let_spare_go(struct spawner *sp)
{
    il__proc_fd_close(&sp->spare_fd);
    while (sp->spare_pid != 0 && waitpid(sp->spare_pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    sp->spare_pid = 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* When its reaper is overdue. A reaper that has begun to stop its command before the deadline of
 * the lease may need a little longer to finish. */
static int64_t
due_ns(const struct spawner *sp, const struct child *c)
{
    const struct il__reaper_shared *shared      = &sp->page->slots[c->slot];
    int64_t                         deadline_ns = atomic_load(&shared->deadline_ns);

    if (c->pid == 0)
        return IL__NEVER_NS;
    if (deadline_ns == 0)
        return c->latest_ns;
    if (atomic_load(&shared->end) != IL__END_NONE)
        deadline_ns += PATIENCE_NS;
    return MIN(c->latest_ns, deadline_ns);
}

static void
start_child(struct spawner *sp, union proc_packet *p, const int fds[PROC_REQUEST_FD_END],
            size_t n_fds)
{
    const struct proc_request *q   = &p->request;
    int64_t                    now = il__clock_boot_ns();
    struct child               c   = { .serial    = q->serial,
                                       .grace_ns  = q->grace_ms * IL__NS_PER_MS,
                                       .latest_ns = IL__NEVER_NS,
                                       .slot      = q->slot };

    CHECK(q->slot < PROC_CHILDREN_MAX);
    c.pid = getpid(); /* for due_ns(): there will be one */
    if (now >= due_ns(sp, &c)) {
        /* the server was suspended since the grant */
        il__proc_refuse(fds[PROC_REQUEST_CTL], IL__END_DEADLINE, 0);
        return;
    }
    errno = ENOMEM;
    if (!il__grow(&sp->children, sp->n_children, &sp->n_room, sizeof *sp->children) ||
        (c.ctl = fcntl(fds[PROC_REQUEST_CTL], F_DUPFD_CLOEXEC, HIGH_FD)) < 0) {
        il__proc_refuse(fds[PROC_REQUEST_CTL], IL__END_FAILED, errno);
        return;
    }
    c.pid = use_spare(sp, p, fds, n_fds);
    if (c.pid == 0) {
        c.pid = fork();
        if (c.pid == 0) {
            struct proc_served v = served_of(sp);
            forget_spawner(sp);
            il__proc_served_main(&v, p, fds);
        }
    }
    if (c.pid < 0) {
        il__proc_refuse(c.ctl, IL__END_FAILED, errno);
        il__proc_fd_close(&c.ctl);
        return;
    }
    if (q->timeout_ms > 0)
        c.latest_ns = now + q->timeout_ms * IL__NS_PER_MS + c.grace_ns + PATIENCE_NS;
    sp->look_ns                    = MIN(sp->look_ns, due_ns(sp, &c));
    sp->children[sp->n_children++] = c;
}

/* Its reaper was told to stop. */
static void
expect_end(struct spawner *sp, struct child *c)
{
    int64_t by_ns = il__clock_boot_ns() + c->grace_ns + PATIENCE_NS;

    c->latest_ns = MIN(c->latest_ns, by_ns); /* repeated: the first time counts */
    sp->look_ns  = MIN(sp->look_ns, c->latest_ns);
}

static void
on_stop(struct spawner *sp, uint64_t serial)
{
    for (size_t i = 0; i < sp->n_children; i++) {
        if (sp->children[i].serial == serial)
            expect_end(sp, &sp->children[i]);
    }
}

/* The reapers notice it, too, and stop their commands; we stay until they are done. */
static void
on_server_gone(struct spawner *sp)
{
    il__proc_fd_close(&sp->request_fd);
    if (sp->gone)
        return;
    sp->gone = true;
#ifndef IL_MUTANT_orphans_go_on
    for (size_t i = 0; i < sp->n_children; i++)
        expect_end(sp, &sp->children[i]);
#endif
}

/* False if there is none, now or ever again. */
static bool
take_request(struct spawner *sp)
{
    static union proc_packet p;
    int                      fds[PROC_REQUEST_FD_END];
    size_t                   n_fds;

    int error = il__proc_receive(sp->request_fd, &p, fds, &n_fds, MSG_DONTWAIT);
    if (error != 0) {
        if (error != EAGAIN && error != EINTR)
            on_server_gone(sp);
        return false;
    }
    size_t wanted =
        p.request.n_bytes > PROC_INLINE_BYTES_MAX ? PROC_REQUEST_FD_END : PROC_REQUEST_STRINGS;
    /* Descriptors beyond our limit are dropped: then its socket is closed, which the server
     * notices. */
    if (p.request.type == PROC_REQUEST_START && n_fds == wanted)
        start_child(sp, &p, fds, n_fds);
    if (p.request.type == PROC_REQUEST_STOP)
        on_stop(sp, p.request.serial);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        il__proc_fd_close(&fds[i]);
    atomic_fetch_add(&sp->page->n_taken, 1);
    return true;
}

/* ---- ends ------------------------------------------------------------------------------------ */

static struct child *
child_of(struct spawner *sp, pid_t pid)
{
    for (size_t i = 0; i < sp->n_children; i++) {
        if (sp->children[i].pid == pid)
            return &sp->children[i];
    }
    return NULL;
}

/* Nothing of it is left; closing its socket reports that. */
static void
remove_child(struct spawner *sp, struct child *c)
{
    il__proc_fd_close(&c->ctl);
    *c = sp->children[--sp->n_children];
}

static void
on_ended(struct spawner *sp, pid_t pid, int status)
{
    struct child *c = child_of(sp, pid);

    if (pid == sp->spare_pid) { /* killed; another one will be forked */
        sp->spare_pid = 0;
        il__proc_fd_close(&sp->spare_fd);
    } else if (c != NULL && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        remove_child(sp, c); /* it has reported, after all its descendants ended */
    } else if (c != NULL) {
        c->pid      = 0;
        sp->orphans = true;
    }
}

static void
reap(struct spawner *sp)
{
    int   status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (!WIFSTOPPED(status))
            on_ended(sp, pid, status);
        else if (pid == sp->spare_pid || child_of(sp, pid) != NULL)
            (void)kill(pid, SIGCONT); /* while stopped it could not do its work */
    }
}

struct ending {
    struct spawner *sp;
    int             sig;
    unsigned        n_found;
};

/* Leave reapers and their descendants alone; everything else below us was left by a dead one. */
static bool
end_one(void *cookie, const struct proc_process *p)
{
    struct ending *e = cookie;

    if (p->parent == getpid() && (p->pid == e->sp->spare_pid || child_of(e->sp, p->pid) != NULL))
        return false;
    e->n_found++;
    (void)il__proc_process_kill(p, e->sig); /* a process that may not be signalled is waited for */
    return true;
}

/*
 * Kill the processes that dead reapers have left: freeze first, then kill, as in stop.c. An orphan
 * is our child by the time we can reap its parent; so once a complete walk finds no child except
 * reapers, and no child has ended during the walk (which might have hidden another one), nothing is
 * left.
 */
static void
end_orphans(struct spawner *sp)
{
    static const int signals[] = { SIGSTOP, SIGSTOP, SIGKILL };
    struct pollfd    ended     = { sp->sig_fd, POLLIN, 0 };
    struct ending    e         = { .sp = sp };
    bool             seen      = true;

#ifndef IL_MUTANT_orphans_left
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        e.sig     = signals[i];
        e.n_found = 0;
        seen      = il__proc_walk(end_one, &e);
        if (seen && e.n_found == 0)
            break;
    }
#else
    (void)signals;
    (void)end_one;
#endif
    if (!seen || e.n_found > 0 || poll(&ended, 1, 0) != 0) {
        sp->look_ns = MIN(sp->look_ns, il__clock_boot_ns() + LOOK_AGAIN_NS);
        return;
    }
    sp->orphans = false;
    for (size_t i = sp->n_children; i-- > 0;) {
        if (sp->children[i].pid == 0)
            remove_child(sp, &sp->children[i]);
    }
}

static void
on_signal(struct spawner *sp)
{
    /* One signal may stand for several deaths; waitpid() tells how many. */
    il__proc_signals_drain(sp->sig_fd);
    reap(sp);
}

/* Kill overdue reapers: their descendants are reparented to us. */
static void
on_time(struct spawner *sp)
{
    int64_t now_ns = il__clock_boot_ns();

    sp->look_ns = IL__NEVER_NS;
    for (size_t i = 0; i < sp->n_children; i++) {
        struct child *c = &sp->children[i];
        if (now_ns >= due_ns(sp, c)) {
            (void)kill(c->pid, SIGKILL); /* not reaped: the pid is valid */
            c->latest_ns = now_ns + PATIENCE_NS;
        }
        sp->look_ns = MIN(sp->look_ns, MAX(due_ns(sp, c), now_ns + IL__NS_PER_MS));
    }
}

/* ---- the process ----------------------------------------------------------------------------- */

static void
turn(struct spawner *sp)
{
    struct pollfd fds[] = {
        { sp->request_fd, POLLIN, 0 },
        { sp->server_fd, POLLIN, 0 },
        { sp->sig_fd, POLLIN, 0 },
        { sp->timer_fd, POLLIN, 0 },
    };

    if (sp->armed_ns != sp->look_ns) {
        il__proc_timer_arm(sp->timer_fd, sp->look_ns);
        sp->armed_ns = sp->look_ns;
    }
    if (poll(fds, ARRAY_LEN(fds), -1) < 0)
        return;
    if (fds[3].revents != 0)
        il__proc_timer_drain(sp->timer_fd);
    if (fds[2].revents != 0)
        on_signal(sp);
    if (fds[1].revents != 0) {
        il__proc_fd_close(&sp->server_fd);
        on_server_gone(sp);
    }
    for (int i = 0; fds[0].revents != 0 && i < REQUESTS_AT_ONCE && sp->request_fd >= 0; i++) {
        if (!take_request(sp))
            break;
    }
    if (il__clock_boot_ns() >= sp->look_ns)
        on_time(sp);
    if (sp->orphans)
        end_orphans(sp);
    make_spare(sp); /* last: no one waits for it */
}

/* Are these the descriptors that a server passes? */
static bool
have_fds(struct spawner *sp)
{
    int       type;
    socklen_t n_type = sizeof type;

    if (getsockopt(PROC_FD_REQUEST, SOL_SOCKET, SO_TYPE, &type, &n_type) != 0 ||
        type != SOCK_SEQPACKET)
        return false;
    for (int fd = PROC_FD_REQUEST; fd < PROC_FD_END; fd++) {
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 && fd != PROC_FD_SERVER)
            return false;
    }
    void *page = mmap(NULL, sizeof *sp->page, PROT_READ | PROT_WRITE, MAP_SHARED, PROC_FD_PAGE, 0);
    if (page == MAP_FAILED)
        return false;
    sp->page       = page;
    sp->request_fd = PROC_FD_REQUEST;
    sp->server_fd  = fcntl(PROC_FD_SERVER, F_GETFD) >= 0 ? PROC_FD_SERVER : -1;
    (void)close(PROC_FD_PAGE);
    (void)close_range(PROC_FD_END, ~0U, 0); /* left open by a library of the server */
    return true;
}

/* Each child needs a socket: raise the descriptor limit to the maximum. The commands get the
 * server's limit. */
static void
raise_files(struct spawner *sp)
{
    CHECK(getrlimit(RLIMIT_NOFILE, &sp->files) == 0);
    struct rlimit most = { sp->files.rlim_max, sp->files.rlim_max };
    (void)setrlimit(RLIMIT_NOFILE, &most);
}

static bool
set_up(struct spawner *sp)
{
    sigset_t all;
    sigset_t child;

    CHECK(sigfillset(&all) == 0);
    CHECK(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
    CHECK(sigemptyset(&child) == 0);
    CHECK(sigaddset(&child, SIGCHLD) == 0);
    for (int sig = 1; sig < NSIG; sig++)
        (void)signal(sig, SIG_DFL); /* for the commands; two of them cannot be changed */
    (void)prctl(PR_SET_NAME, PROC_SPAWNER_NAME);
    il__proc_hide_memory(); /* requests may contain secrets; reapers inherit this */
    il__proc_say_never_wait();
    raise_files(sp);
    sp->self_fd  = il__proc_pidfd_open(getpid());
    sp->sig_fd   = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    sp->timer_fd = il__proc_timer_new();
    return sp->sig_fd >= 0 && sp->timer_fd >= 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

int
il__proc_spawner_main(void)
{
    struct spawner sp = { .spare_fd = -1, .look_ns = IL__NEVER_NS, .armed_ns = IL__NEVER_NS };

    if (!have_fds(&sp)) {
        il__proc_say("spawner: internal command, started by `interlock serve`");
        return EXIT_USAGE;
    }
    if (!set_up(&sp)) {
        il__proc_say("cannot start the spawner process: %s", strerror(errno));
        return EXIT_FAILURE;
    }
    make_spare(&sp);
    while (!sp.gone || sp.n_children > 0)
        turn(&sp);
    let_spare_go(&sp);
    il__free(sp.children);
    return 0;
}
