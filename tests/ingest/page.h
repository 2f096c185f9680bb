/*
 * page.h: parse a page written in a test, and say what is wrong if it should have worked.
 */
#ifndef T_INGEST_PAGE_H
#define T_INGEST_PAGE_H

#include "apps/ingest/liverc.h"
#include "harness/unit.h"

/* The page of the current test; released by the next one. */
extern struct liverc_page t_page;
extern il_error           t_error;

/* Parse a page of the track canberraoffroad; `id` is that of its URL, NULL = none. Fail the test if
 * it is refused. */
const struct liverc_event      *t_event(const char *html, const char *id);
const struct liverc_entry_list *t_entries(const char *html, const char *id);
const struct liverc_race       *t_race(const char *html, const char *id);

/* Fail the test unless the page is refused with this code and a message that holds `part`. */
void t_refused(enum liverc_kind kind, const char *html, const char *id, enum liverc_code code,
               const char *part);
/* The page has exactly one warning, which holds `part`. */
void t_warned(const char *part);

#endif
