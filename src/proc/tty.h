/*
 * tty.h: the terminal's foreground, lent to the command and taken back.
 *
 * The command runs in a process group of its own, so on a terminal it would be a background group:
 * reading would stop it, and Ctrl-C would not reach it. Therefore it gets the foreground,
 *   - at its start, when stdin is the terminal, we are in the foreground and stdout is no pipe;
 *   - else when it asks, by being stopped with SIGTTIN or SIGTTOU. With stdout a pipe, the next
 * program of the pipeline (`interlock run K -- cmd | less`) needs the foreground and would be
 * stopped. While the command does not have it, Ctrl-C reaches the wrapper, which passes it on;
 * while it has it, the wrapper's group is in the background and gets nothing: no signal arrives
 * twice.
 */
#ifndef IL_PROC_TTY_H
#define IL_PROC_TTY_H

#include <sys/types.h>
#include <termios.h>

#include "base/base.h"

struct il__run_tty {
    int            fd;    /* the controlling terminal, -1 = none */
    pid_t          home;  /* the wrapper's process group */
    bool           eager; /* to be lent at the start */
    bool           lent;
    bool           have_modes;
    struct termios modes; /* as they were */
};

/* Look at the terminal. Called by the wrapper, before the reaper is forked and has a copy. */
void il__run_tty_open(struct il__run_tty *t);

/* Is our group in the foreground, and is the terminal to be lent at the start? */
bool il__run_tty_lend_at_start(const struct il__run_tty *t);

/*
 * Make `group` the foreground. false: the terminal is somebody else's now, or there is none. The
 * caller has SIGTTOU blocked; otherwise this would stop a background process.
 */
bool il__run_tty_lend(struct il__run_tty *t, pid_t group);

/*
 * Take the foreground back if it was lent; `reset`: the command had no chance to reset its modes.
 */
void il__run_tty_take_back(struct il__run_tty *t, bool reset);

#endif
