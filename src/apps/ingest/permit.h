/*
 * permit.h: the permits of a host: how many requests may run at once, over all processes on the
 * store.
 */
#ifndef IL_APPS_INGEST_PERMIT_H
#define IL_APPS_INGEST_PERMIT_H

#include "base/base.h"

#define PERMIT_TTL_MS 60000

struct permit {
    il      *h;
    char     key[IL_KEY_BYTES_MAX + 1];
    char     holder[37];
    uint64_t fence;
};

/*
 * Wait for a permit of `key`, one of n; while other processes use the key with another n, one of
 * that many. It is not renewed: release it within PERMIT_TTL_MS. `stop` is asked several times a
 * second.
 *
 * IL_OK, IL_CANCELLED (stop), IL_STORE and kin.
 */
il_status il__permit_take(struct permit *p, il *h, const char *key, uint32_t n,
                          bool (*stop)(void *cookie), void *cookie, il_error *reterr) MUST_USE;
/* If the store cannot be reached, it expires. */
void il__permit_release(struct permit *p);

#endif
