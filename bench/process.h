/*
 * process.h: external programs: finds them, starts them, talks to them, and stops them however the
 * benchmark exits.
 */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <sys/types.h>

#include "bench.h"

struct process {
    pid_t pid; /* 0 = none */
    int   in;  /* its stdin, for us to write; -1 = none */
    int   out; /* its output; -1 = goes to a file */
};

struct process_how {
    const char *dir;          /* its working folder; NULL = ours */
    const char *log;          /* the file for its output; NULL = pipes: in, out */
    bool        errors_too;   /* its stderr goes there as well, instead of to ours */
    bool        unprivileged; /* as another user if we are root: PostgreSQL requires it */
    int         end_signal;   /* stops it at once; 0 = SIGKILL */
};

/* Find a program: in the PATH, or where Debian keeps those of PostgreSQL. False: not installed. */
bool program_find(const char *name, char out[BENCH_PATH_BYTES]);

/* Start argv[0], a path, as a child that dies with this process. */
struct process process_start(const char *const argv[], const struct process_how *how);
/* Has it exited by itself? */
bool process_ended(struct process *p);
/* Stop it with its end_signal, and wait for it. */
void process_stop(struct process *p);
/* Start it, wait for its exit, and collect its output including errors: the last bytes, if too
 * long. False: it failed. */
bool process_run(const char *const argv[], const struct process_how *how, char *out,
                 size_t out_bytes);
/* Send and read a line. Die if it does not read or answer. */
void process_send_line(struct process *p, const char *line);
void process_read_line(struct process *p, char *out, size_t out_bytes);

/* For temp_remove(): stop all that are left. Any thread. */
void processes_end(void);

/* The last bytes of a text file, without the newline; "" if missing. */
const char *file_tail(const char *path, char *out, size_t out_bytes);
/* The user for `unprivileged` if we are root; false: we are not root, or there is no such user. */
bool process_user(uid_t *uid, gid_t *gid);

#endif
