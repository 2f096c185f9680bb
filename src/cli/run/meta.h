/*
 * meta.h: what a lease tells about its holder, as JSON: pid, host, user, command, cwd, spool.
 *
 * Shown to everybody who may read the store, so nothing of the environment is in it.
 */
#ifndef IL_CLI_RUN_META_H
#define IL_CLI_RUN_META_H

#include "base/base.h"

#define IL__META_COMMAND_BYTES_MAX 1000

/* Describe this process. `spool` may be NULL. "" when there is no memory: meta is a courtesy. */
void il__run_meta(char *const *argv, const char *spool, char out[IL_META_BYTES_MAX + 1]);

/*
 * Make text fit to be stored: control characters and what is not UTF-8 become '?', and it ends after at
 * most n_bytes_max bytes, not within a character.
 */
void il__run_make_fit(char *text, size_t n_bytes_max);

/* The name of this user, or the number. */
void il__run_user(char *text, size_t n_bytes);

struct il__run_meta_spool {
    bool same_host; /* as far as the meta says */
    char host[256];
    char spool[IL_META_BYTES_MAX]; /* "" = it has none */
};

#define IL__META_SHOWN_BYTES_MAX 60

/* Who a lease belongs to, for one line of text. */
struct il__run_meta_who {
    int64_t pid; /* 0 = the meta does not say */
    char    host[IL__META_SHOWN_BYTES_MAX + 4];
    char    command[IL__META_SHOWN_BYTES_MAX + 4]; /* a long one ends with "..." */
};

void il__run_meta_who(const char *meta, struct il__run_meta_who *ret);

/* Read the meta of somebody else's lease. What is not there or not JSON is "". */
void il__run_meta_read(const char *meta, struct il__run_meta_spool *ret);

#endif
