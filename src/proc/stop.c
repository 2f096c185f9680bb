/*
 * stop.c: stops a process tree; the contract is in stop.h, walk.c finds the processes.
 */
#include "proc/stop.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/reaper.h"
#include "proc/sys.h"
#include "proc/walk.h"

/*
 * The death of every descendant causes a SIGCHLD for us sooner or later, since its parents die,
 * too, and a walk follows each. The period is a safety net for processes that a walk has missed.
 */
#define KILL_AGAIN_NS (INT64_C(100) * IL__NS_PER_MS)

struct signalling {
    int      sig;
    pid_t    but_group;   /* has had the signal already; 0 = none */
    int64_t  since_ticks; /* only those started then or later */
    unsigned n_live;
    pid_t    denied;
};

/*
 * Processes below another run's reaper get no TERM from us: that run's wrapper gets it and forwards
 * it, and twice would be once too often (see il__stop_leader_reaped()). KILL goes to all.
 */
static bool
signal_one(void *cookie, const struct proc_process *p)
{
    struct signalling *g       = cookie;
    bool               descend = g->sig != SIGTERM || strcmp(p->name, IL__REAPER_NAME) != 0;

    if (p->state == 'Z' || p->state == 'X')
        return descend;
    g->n_live++;
    if ((g->but_group != 0 && p->group == g->but_group) || p->started_ticks < g->since_ticks)
        return descend;
    if (il__proc_process_kill(p, g->sig) != 0 && errno == EPERM)
        g->denied = p->pid;
    if (g->sig == SIGTERM)
        (void)il__proc_process_kill(p, SIGCONT); /* may be gone by now */
    return descend;
}

static void
signal_all(struct il__stop *s, struct signalling *g)
{
    if (s->group > 0 && g->since_ticks == 0) {
        /*
         * The leader has not been reaped, so the pid is still our group's. A group is signalled
         * atomically, including forks, which no walk can do.
         */
        (void)kill(-s->group, g->sig);
        if (g->sig == SIGTERM)
            (void)kill(-s->group, SIGCONT);
        g->but_group = g->sig == SIGTERM ? s->group : 0;
    }
    /* Missed processes are searched again with KILL: nothing is left when waitpid() says so. */
    (void)il__proc_walk(signal_one, g);
    if (g->denied != 0 && g->sig == SIGKILL && !s->denied) {
        s->denied = true;
        il__proc_say("not permitted to signal process %d; waiting for it to exit", (int)g->denied);
    }
}

void
il__stop_begin(struct il__stop *s, pid_t group, int64_t now_ns, int64_t kill_at_ns)
{
    struct signalling g = { .sig = SIGTERM };

    CHECK(s->began_ns == 0);
    CHECK(now_ns > 0);
    *s = (struct il__stop){ .began_ns = now_ns, .kill_at_ns = kill_at_ns, .group = group };
    signal_all(s, &g);
    s->n_found = g.n_live;
}

/*
 * Signalling twice is fine for KILL, but not for TERM: some programs treat a second one as "hurry
 * up", and a TERM to processes that a trap of the command has just started would spoil its cleanup.
 * So there is one walk for TERM, and one more, only for newly started processes, when the command
 * itself has ended.
 */
void
il__stop_leader_reaped(struct il__stop *s)
{
    s->group = 0;
    if (s->began_ns == 0 || s->killing)
        return;
    struct signalling g = { .sig = SIGTERM, .since_ticks = il__proc_ticks(s->began_ns) };
    signal_all(s, &g);
}

/*
 * If killed from the top, a tree that keeps forking would fall apart while we walk it, and its
 * lower parts would be reparented to us unseen. So it is frozen first: a stopped process neither
 * forks nor dies, a second walk finds what was forked before the freeze, and then everything can be
 * killed. Anything still missed is found after the next SIGCHLD.
 */
static void
kill_all(struct il__stop *s)
{
    static const int signals[] = { SIGSTOP, SIGSTOP, SIGKILL };

    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        struct signalling g = { .sig = signals[i] };
        signal_all(s, &g);
    }
}

void
il__stop_child_reaped(struct il__stop *s)
{
    if (s->killing)
        kill_all(s);
}

void
il__stop_tick(struct il__stop *s, int64_t now_ns, int64_t latest_ns)
{
    if (s->began_ns == 0 || now_ns < il__stop_next_ns(s, latest_ns))
        return;
    s->killing = true;
    kill_all(s);
    s->again_ns = now_ns + KILL_AGAIN_NS;
}

int64_t
il__stop_next_ns(const struct il__stop *s, int64_t latest_ns)
{
    if (s->began_ns == 0)
        return IL__NEVER_NS;
    return s->killing ? s->again_ns : MIN(s->kill_at_ns, latest_ns);
}
