/*
 * tty.c: the terminal's foreground; tty.h explains why and when.
 */
#include "proc/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

void
il__proc_tty_open(struct proc_tty *t)
{
    struct stat st;

    *t = (struct proc_tty){ .fd   = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY),
                            .home = getpgrp() };
    if (t->fd < 0)
        return;
    bool to_pipe = fstat(STDOUT_FILENO, &st) == 0 && S_ISFIFO(st.st_mode);
    t->eager     = isatty(STDIN_FILENO) && !to_pipe;
    if (tcgetpgrp(t->fd) == t->home)
        t->have_modes = tcgetattr(t->fd, &t->modes) == 0;
}

bool
il__proc_tty_lend_at_start(const struct proc_tty *t)
{
    return t->fd >= 0 && t->eager && tcgetpgrp(t->fd) == t->home;
}

bool
il__proc_tty_lend(struct proc_tty *t, pid_t group)
{
    CHECK(group > 0);
    if (t->fd < 0)
        return false;
    pid_t current = tcgetpgrp(t->fd);
    if (current != group && current != t->home && !t->lent)
        return false; /* the wrapper is a background job: the shell's foreground is not ours to give
                       */
    if (tcsetpgrp(t->fd, group) != 0)
        return false;
    t->lent = true;
    return true;
}

/* Does the group have any process? One that may not be signalled (sudo) counts, too. */
static bool
group_lives(pid_t group)
{
    return kill(-group, 0) == 0 || errno == EPERM;
}

void
il__proc_tty_take_back(struct proc_tty *t, bool reset)
{
    if (t->fd < 0 || !t->lent)
        return;
    t->lent = false;
    /*
     * No process of the command is alive. So a live foreground group is another one: the shell has
     * taken the terminal, or given it to another job. And if the wrapper's group is gone, no one
     * waits for the terminal; the shell has handled that, and the modes.
     */
    pid_t now = tcgetpgrp(t->fd);
    if ((now > 0 && now != t->home && group_lives(now)) || !group_lives(t->home))
        return;
    /* Both fail if the terminal or the wrapper's group is gone: then it does not matter. */
    (void)tcsetpgrp(t->fd, t->home);
    if (reset && t->have_modes)
        (void)tcsetattr(t->fd, TCSANOW, &t->modes);
}
