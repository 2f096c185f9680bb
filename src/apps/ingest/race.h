/*
 * race.h: shared by the two halves of the race page: parse_race.c reads the result table,
 * race_laps.c adds driver ids and laps.
 */
#ifndef IL_APPS_INGEST_RACE_H
#define IL_APPS_INGEST_RACE_H

#include "apps/ingest/reader.h"

/* Read the scripts, give each driver an id and each result its laps. Results without a link have an
 * empty driver_id so far. */
il_status il__race_add_laps(struct reader *r, struct liverc_race *race) MUST_USE;
/* Set the digest, over everything that is read. */
void il__race_digest(struct reader *r, struct liverc_race *race);

#endif
