/*
 * zone.h: time zones, from the files of tzdata (RFC 8536). The C library knows only one zone at a time, process-wide, so the files are read here: any thread may do it, and nothing is executed for it.
 */
#ifndef IL_APPS_RUNNER_ZONE_H
#define IL_APPS_RUNNER_ZONE_H

#include "apps/runner/pipeline.h"

#define ZONE_TRANSITIONS_MAX 2000
#define ZONE_YEAR_END 2100 /* rules are followed up to this year; after it, the last offset stays */
#define ZONE_FILE_BYTES_MAX (256 << 10)

/* Transitions from 1970 on of a TZif file's bytes. `out` has room for ZONE_TRANSITIONS_MAX; returns how many there are, 0 = this is not such a file. */
size_t il__zone_parse(const unsigned char *data, size_t n_bytes, struct pipeline_transition *out);

/* The first tick of `c` after after_ms in a zone; IL__NEVER if there is none. */
int64_t il__zone_next(const struct pipeline_zone *zone, const struct il__cron *c, int64_t after_ms);

#endif
