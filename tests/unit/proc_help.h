/*
 * proc_help.h: a command under a spawner, its output, and how it ended; for the tests proc*.c.
 */
#ifndef T_PROC_HELP_H
#define T_PROC_HELP_H

#include <sys/types.h>
#include <sys/wait.h>

#include "harness/unit.h"
#include "proc/proc.h"

#define LIMIT_MS 20000
#define OUT_BYTES 65536

/* A child, with what it has written so far. */
struct command {
    struct proc_child  child;
    struct proc_report report;
    char               out[OUT_BYTES];
    char               err[OUT_BYTES];
    size_t             n_out;
    size_t             n_err;
    size_t             n_taken; /* of `out`, by c_number() */
    bool               out_open;
    bool               err_open;
};

/* What the spec is unless the test says otherwise: PATH, the folder /, a grace of 100 ms. */
struct proc_spec c_spec(char *const *argv);
/* `sh -c script` with these. */
void c_start_sh(struct proc_spawner *s, struct command *c, const char *script,
                const struct proc_spec *spec);
void c_start(struct proc_spawner *s, struct command *c, const struct proc_spec *spec);

/* Wait for a line with a number on its stdout. */
pid_t c_number(struct command *c);
/* Wait until it has reported and both pipes are at their end; fails the test at the limit. */
void c_end(struct command *c);
/* The same, and it must have ended by itself with this exit status; then finish it. */
void c_exits(struct command *c, int status);

struct proc_spawner *c_open(void);

/* The children of a process, as /proc says: how many; the first `n_max` are in `ret`. */
size_t c_children(pid_t pid, pid_t *ret, size_t n_max);
pid_t  c_parent(pid_t pid);
/* The one child of this process, which is the spawner. */
pid_t  c_spawner(void);
size_t c_fds(pid_t pid);
/* Wait until a process has so many children, and not more than so many descriptors; false at the
 * limit. */
bool c_settles(pid_t pid, size_t n_children, size_t n_fds);

/* Argument `spawner`: be one. For main() to return, -1 = it is not asked for. */
int c_main(int argc, char **argv);

#endif
