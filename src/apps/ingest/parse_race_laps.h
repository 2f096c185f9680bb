/*
 * parse_race_laps.h: driver ids and laps of a race page, for parse_race.c, which reads its result
 * table.
 */
#ifndef IL_APPS_INGEST_PARSE_RACE_LAPS_H
#define IL_APPS_INGEST_PARSE_RACE_LAPS_H

#include "apps/ingest/page_reader.h"

/* Read the scripts, give each driver an id and each result its laps. Results without a link have an
 * empty driver_id so far. */
il_status il__race_add_laps(struct reader *r, struct liverc_race *race) MUST_USE;
/* Set the digest, over everything that is read. */
void il__race_digest(struct reader *r, struct liverc_race *race);

#endif
