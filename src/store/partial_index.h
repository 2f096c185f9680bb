/*
 * partial_index.h: decides whether a partial index of a user's table of jobs serves a worker, for
 * `interlock doctor`.
 */
#ifndef IL_STORE_PARTIAL_INDEX_H
#define IL_STORE_PARTIAL_INDEX_H

#include "base/base.h"

/* Whether a partial index finds the jobs that a worker looks for. */
enum il__serves {
    IL__SERVES_NOT,
    IL__SERVES_PERHAPS, /* its condition does not mention states that we know */
    IL__SERVES,
};

/* `where` is the condition of an index that begins with `column`, which holds the states of jobs.
 * running: jobs that are being processed are looked for, instead of those that are ready. */
enum il__serves il__partial_index_serves(const char *where, const char *column, bool running);

#endif
