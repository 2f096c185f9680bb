/*
 * meta.h: the meta text of a lease describes its holder as JSON: pid, host, user, command, cwd,
 * spool.
 *
 * Everyone who can read the store can see it, so it contains nothing from the environment.
 */
#ifndef IL_CLI_WRAP_META_H
#define IL_CLI_WRAP_META_H

#include <sys/types.h>

#include "base/base.h"

#define IL__META_COMMAND_BYTES_MAX 1000

/* Describe this process. `spool` may be NULL. "" if out of memory: meta is optional. */
void wrap_meta(char *const *argv, const char *spool, char out[IL_META_BYTES_MAX + 1]);

/* Describe another process, for which `keeper` holds the lease, and find that again: the keeper on
 * this host of process `pid`; 0: the lease is not of one. */
void  wrap_meta_kept(pid_t pid, pid_t keeper, char out[IL_META_BYTES_MAX + 1]);
pid_t wrap_meta_keeper(const char *meta, pid_t pid);

/* The same for those who only want to know which program it was: no process id, so that all of its
 * attempts look alike. */
void wrap_meta_caller(char *const *argv, char out[IL_META_BYTES_MAX + 1]);

/* The same for a command of ours that breaks a lease. */
void wrap_meta_breaker(char out[IL_META_BYTES_MAX + 1]);

/* Make text storable: control characters and invalid UTF-8 become '?', and it is cut to at most
 * n_bytes_max bytes, not within a character. */
void wrap_make_fit(char *text, size_t n_bytes_max);

/* The name of this user, or the number. */
void wrap_user(char *text, size_t n_bytes);

struct wrap_meta_spool {
    bool same_host; /* as far as the meta says */
    char host[256];
    char spool[IL_META_BYTES_MAX]; /* "" = none */
};

#define IL__META_SHOWN_BYTES_MAX 60

/* Whose lease it is, for one line of text. */
struct wrap_meta_who {
    int64_t pid; /* 0 = not in the meta */
    char    host[IL__META_SHOWN_BYTES_MAX + 4];
    char    command[IL__META_SHOWN_BYTES_MAX + 4]; /* a long one ends with "..." */
};

void wrap_meta_who(const char *meta, struct wrap_meta_who *ret);

/* Parse the meta of another holder's lease. Anything missing or not JSON is "". */
void wrap_meta_read(const char *meta, struct wrap_meta_spool *ret);

#endif
