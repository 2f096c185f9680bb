/*
 * zone.h: time zones, from the files of tzdata (RFC 8536). The C library supports only one zone at
 * a time per process, so the files are parsed here, which any thread may do.
 */
#ifndef IL_APPS_COMMON_ZONE_H
#define IL_APPS_COMMON_ZONE_H

#include "base/base.h"
#include "core/cron.h"

#define ZONE_TRANSITIONS_MAX 2000
#define ZONE_YEAR_END 2100 /* rules are followed up to this year; then the last offset stays */
#define ZONE_FILE_BYTES_MAX (256 << 10)

/* A time zone. transitions[i] applies from at_ms until the next; sorted; transitions[0].at_ms is
 * the earliest known time. */
struct zone {
    char   name[64]; /* "UTC" */
    size_t n;
    struct zone_transition {
        int64_t at_ms;
        int32_t offset_s; /* local time - UTC */
    } * transitions;
};

/* Look up a zone by name; it is kept for the life of the process. IL_OK, IL_INVAL (no such zone),
 * IL_NOMEM. Thread-safe. */
il_status il__zone_get(const char *name, const struct zone **ret, il_error *reterr) MUST_USE;

/* The transitions from 1970 on in a TZif file. `out` has room for ZONE_TRANSITIONS_MAX; returns
 * their number, 0 = not a TZif file. */
size_t il__zone_parse(const unsigned char *data, size_t n_bytes, struct zone_transition *out);

/* The first tick of `c` after after_ms in a zone; IL__NEVER if none. */
int64_t il__zone_next(const struct zone *zone, const struct il__cron *c, int64_t after_ms);

#endif
