/*
 * zone.h: time zones, from the files of tzdata (RFC 8536). The C library supports only one zone at
 * a time per process, so the files are parsed here, which any thread may do.
 */
#ifndef IL_BASE_ZONE_H
#define IL_BASE_ZONE_H

#include "base/base.h"

#define IL__ZONE_TRANSITIONS_MAX 2000
#define IL__ZONE_YEAR_END 2100 /* rules are followed up to this year; then the last offset stays */
#define IL__ZONE_FILE_BYTES_MAX (256 << 10)

/* A time zone. transitions[i] applies from at_ms until the next; sorted; transitions[0].at_ms is
 * the earliest known time. */
struct il__zone {
    char   name[64]; /* "UTC" */
    size_t n;
    struct il__zone_transition {
        int64_t at_ms;
        int32_t offset_s; /* local time - UTC */
    } * transitions;
};

/* Look up a zone by name; it is kept for the life of the process. IL_OK, IL_INVAL (no such zone),
 * IL_NOMEM. Thread-safe. */
il_status il__zone_get(const char *name, const struct il__zone **ret, il_error *reterr) MUST_USE;

/* The transitions from 1970 on in a TZif file. `out` has room for IL__ZONE_TRANSITIONS_MAX; returns
 * their number, 0 = not a TZif file. */
size_t il__zone_parse(const unsigned char *data, size_t n_bytes, struct il__zone_transition *out);

/* The index of the transition that applies at a time. */
size_t il__zone_span(const struct il__zone *zone, int64_t ms);

#endif
