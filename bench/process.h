/*
 * process.h: other people's programs: found, started, talked to, and ended, however the benchmark ends.
 */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <sys/types.h>

#include "bench.h"

struct process {
    pid_t pid; /* 0 = none */
    int   in;  /* what is written here it reads; -1 = it has nothing to read */
    int   out; /* what it prints; -1 = that goes to a file */
};

struct process_how {
    const char *dir;          /* its working folder; NULL = ours */
    const char *log;          /* the file for what it prints; NULL = it is talked to: in, out */
    bool        errors_too;   /* its errors go there as well, and not to where ours go */
    bool        unprivileged; /* as another user if we are root: PostgreSQL insists */
    int         end_signal;   /* what ends it at once; 0 = SIGKILL */
};

/* Where a program is: in the PATH, or where Debian keeps those of PostgreSQL. False: it is not installed. */
bool program_find(const char *name, char out[BENCH_PATH_BYTES]);

/* Start argv[0], a path, as a child that ends when this process does. */
struct process process_start(const char *const argv[], const struct process_how *how);
/* Has it ended by itself? */
bool process_ended(struct process *p);
/* End it with its end_signal, and wait for that. */
void process_stop(struct process *p);
/* Start, wait for its end, and collect what it prints, errors too: the last bytes, if there are too many. False: it failed. */
bool process_run(const char *const argv[], const struct process_how *how, char *out, size_t out_bytes);
/* Send and read a line. Die if it does not listen or speak. */
void process_send_line(struct process *p, const char *line);
void process_read_line(struct process *p, char *out, size_t out_bytes);

/* For temp_remove(): end all that are left. From any thread. */
void processes_end(void);

/* The last bytes of a text file, without the line's end; "" if there is none. */
const char *file_tail(const char *path, char *out, size_t out_bytes);
/* The user that `unprivileged` means if we are root; false: we are not, or there is none. */
bool process_user(uid_t *uid, gid_t *gid);

#endif
