/*
 * open.h: a connection to a user's database, in one call.
 */
#ifndef T_GUARD_OPEN_H
#define T_GUARD_OPEN_H

#include "guard/guard.h"

static inline il_status
t_guard_open(const char *url, int64_t timeout_ms, struct guard_conn **ret, il_error *reterr)
{
    struct guard_conn *c = NULL;

    il_status st = il__guard_new(url, timeout_ms, &c, reterr);
    if (st == IL_OK)
        st = il__guard_connect(c, reterr);
    if (st == IL_OK)
        *ret = c;
    else
        il__guard_close(c);
    return st;
}

#endif
