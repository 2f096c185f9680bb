/*
 * data.h: ingest generated pages (src/apps/ingest/site) into the tables of a rig, and look at what
 * is in them.
 */
#ifndef T_INGEST_DATA_H
#define T_INGEST_DATA_H

#include "apps/ingest/persist.h"
#include "apps/ingest/site/site.h"
#include "tables/rig.h"

#define T_TENANT "acme"
#define T_SLUG "hilltoprc"
#define T_EVENT "100000"

/* The pages of one event, parsed. */
struct t_event_pages {
    struct liverc_page              event_page, list_page;
    const struct liverc_event      *event;
    const struct liverc_entry_list *entries;
    struct liverc_page             *race_pages;
    const struct liverc_race      **races; /* in the order of event->races */
};
void t_pages_make(struct t_event_pages *p, const struct site_options *o, const char *slug,
                  const char *event_id);
void t_pages_release(struct t_event_pages *p);

/* Options of a small site: few entries, races and laps. */
struct site_options t_small_site(void);
/* How the tests write: tenant acme, without fences. */
struct ingest_write t_write_opts(struct ingest_totals *totals);

/* Ingest everything, as a run does. The id of the event is left in `event_id`. */
il_status t_ingest(il_guard *g, const struct ingest_write *w, const struct t_event_pages *p,
                   const char *slug, char event_id[INGEST_EVENT_ID_BYTES_MAX + 1], il_error *err);
/* The same, which must work. */
void t_ingest_must(il_guard *g, const struct ingest_write *w, const struct t_event_pages *p,
                   const char *slug, char event_id[INGEST_EVENT_ID_BYTES_MAX + 1]);
/* Make a new site's event, ingest it, release the pages. */
void t_ingest_site(il_guard *g, const struct site_options *o, struct ingest_totals *totals,
                   char event_id[INGEST_EVENT_ID_BYTES_MAX + 1]);

/* All that the tables say, by natural keys; all ids. The caller frees. */
char *t_dump(il_guard *g);
char *t_dump_ids(il_guard *g);
/* Fail with the first line that differs. */
void t_same_lines(const char *what, const char *actual, const char *expected);
/* Rows of tracks, events, event_entries, races, drivers, race_drivers, race_results and laps. */
const char *t_counts(il_guard *g, char out[4096]);

/* One statement, the same for both engines, which must work: the first value as text. */
const char *t_sql(il_guard *g, const char *sql, char out[4096]);

#endif
