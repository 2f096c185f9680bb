/*
 * tty.h: lends the terminal's foreground to the command and takes it back.
 *
 * The command runs in its own process group, which on a terminal would be a background group:
 * reading would stop it, and Ctrl-C would not reach it. So it gets the foreground:
 *   - at its start, if stdin is the terminal, we are in the foreground and stdout is not a pipe;
 *   - else on demand, when it is stopped by SIGTTIN or SIGTTOU. If stdout is a pipe, the next
 *     program of the pipeline (`interlock run K -- cmd | less`) needs the foreground and would
 *     otherwise be stopped.
 * Without the foreground, Ctrl-C reaches the wrapper, which forwards it; with it, the wrapper's
 * group is in the background and gets nothing. So no signal arrives twice.
 */
#ifndef IL_PROC_TTY_H
#define IL_PROC_TTY_H

#include <sys/types.h>
#include <termios.h>

#include "base/base.h"

struct proc_tty {
    int            fd;    /* the controlling terminal, -1 = none */
    pid_t          home;  /* the wrapper's process group */
    bool           eager; /* lend it at the start */
    bool           lent;
    bool           have_modes;
    struct termios modes; /* as they were */
};

/* Inspect the terminal. Called by the wrapper before it forks the reaper, which inherits a copy. */
void il__proc_tty_open(struct proc_tty *t);

/* Is our group in the foreground, and should the terminal be lent at the start? */
bool il__proc_tty_lend_at_start(const struct proc_tty *t);

/*
 * Make `group` the foreground. false: the terminal belongs to another group now, or there is none.
 * The caller must block SIGTTOU; otherwise this would stop a background process.
 */
bool il__proc_tty_lend(struct proc_tty *t, pid_t group);

/*
 * Take the foreground back if it was lent; `reset`: the command had no chance to reset its modes.
 */
void il__proc_tty_take_back(struct proc_tty *t, bool reset);

#endif
