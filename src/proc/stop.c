/*
 * stop.c: ending a process tree; the contract is in stop.h, finding the processes is in walk.c.
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
 * The death of every process below us makes a SIGCHLD for us sooner or later, since its parents die
 * too, and a look follows each. The period is the safety net for what a look has missed.
 */
#define KILL_AGAIN_NS (INT64_C(100) * IL__NS_PER_MS)

struct signalling {
    int      sig;
    pid_t    but_group;   /* has had the signal already; 0 = none */
    int64_t  since_ticks; /* only those that started then or later */
    unsigned n_live;
    pid_t    denied;
};

/*
 * Below another run's reaper nobody gets a TERM from us: that run's wrapper gets it and passes it
 * on, and twice is once too often (see il__stop_leader_reaped()). KILL goes to all.
 */
static bool
signal_one(void *cookie, const struct il__run_process *p)
{
    struct signalling *g       = cookie;
    bool               descend = g->sig != SIGTERM || strcmp(p->name, IL__REAPER_NAME) != 0;

    if (p->state == 'Z' || p->state == 'X')
        return descend;
    g->n_live++;
    if ((g->but_group != 0 && p->group == g->but_group) || p->started_ticks < g->since_ticks)
        return descend;
    if (il__run_process_kill(p, g->sig) != 0 && errno == EPERM)
        g->denied = p->pid;
    if (g->sig == SIGTERM)
        (void)il__run_process_kill(p, SIGCONT); /* may be gone by now */
    return descend;
}

static void
signal_all(struct il__stop *s, struct signalling *g)
{
    if (s->group > 0 && g->since_ticks == 0) {
        /*
         * The leader has not been reaped, so the number is still our group's. A group is signalled
         * at one moment, forks included, which no walk can do.
         */
        (void)kill(-s->group, g->sig);
        if (g->sig == SIGTERM)
            (void)kill(-s->group, SIGCONT);
        g->but_group = g->sig == SIGTERM ? s->group : 0;
    }
    /* Whom it has missed is looked for again with KILL: nothing is left when waitpid() says so. */
    (void)il__run_walk(signal_one, g);
    if (g->denied != 0 && g->sig == SIGKILL && !s->denied) {
        s->denied = true;
        il__run_say("process %d may not be signalled by this user; waiting for it to end",
                    (int)g->denied);
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
 * Signalling twice is tolerable for KILL, not for TERM, which some programs take as "hurry up", and
 * a TERM at what a trap of the command has just started would spoil its cleaning up. So there is
 * one look for TERM, and one more, for the newborn only, when the command itself has ended.
 */
void
il__stop_leader_reaped(struct il__stop *s)
{
    s->group = 0;
    if (s->began_ns == 0 || s->killing)
        return;
    struct signalling g = { .sig = SIGTERM, .since_ticks = il__run_ticks(s->began_ns) };
    signal_all(s, &g);
}

/*
 * Killed from the top, a tree that keeps forking would fall apart while we walk it, its lower parts
 * moving up to us unseen. So it is frozen first: what is stopped neither forks nor dies, the second
 * look finds what the first ones had forked before, and then all of it is there to be killed. What
 * even that misses is found after the next SIGCHLD.
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
