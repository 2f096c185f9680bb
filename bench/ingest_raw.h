/*
 * ingest_raw.h: the baseline of ingestions: the rows of an event, inserted by hand into tables with
 * the same constraints and indexes, one commit per race. It compares nothing, replaces nothing and
 * shows no fence.
 */
#ifndef BENCH_INGEST_RAW_H
#define BENCH_INGEST_RAW_H

#include "servers.h"

/* What is written before a race (the track and the event), then what a race has. */
enum raw_table {
    RAW_TRACKS,
    RAW_EVENTS,
    RAW_RACES, /* the first of a race */
    RAW_DRIVERS,
    RAW_RACE_DRIVERS,
    RAW_RACE_RESULTS,
    RAW_LAPS,
    RAW_TABLE_COUNT
};

/* Rows of one table. The first value of a row is the tenant. */
struct raw_value {
    char   *text; /* NULL is NULL */
    int64_t number;
    bool    is_number; /* text is the same in digits */
};
struct raw_rows {
    struct raw_value *values;
    unsigned          n_columns;
    size_t            n_rows, n_room;
};
struct raw_race {
    struct raw_rows of[RAW_TABLE_COUNT];
};
struct raw_event {
    struct raw_race  head; /* tracks and events */
    struct raw_race *races;
    size_t           n_races;
    size_t           n_laps;
};

/* Read the one event in the SQLite tables at `path`. */
void raw_event_read(struct raw_event *e, const char *path);
void raw_event_release(struct raw_event *e);

/* Writers on tables that exist. A race, or the head of an event, is one transaction. */
struct raw_sqlite;
struct raw_sqlite *raw_sqlite_open(const char *path);
void               raw_sqlite_close(struct raw_sqlite *w);
void               raw_sqlite_write(void *w, const struct raw_race *race, const char *tenant);

struct raw_postgres;
struct raw_postgres *raw_postgres_open(struct bench *b, const char *database);
void                 raw_postgres_close(struct raw_postgres *w);
void                 raw_postgres_write(void *w, const struct raw_race *race, const char *tenant);
/* Drop the tables. */
void raw_postgres_drop(struct bench *b, const char *database);

#endif
