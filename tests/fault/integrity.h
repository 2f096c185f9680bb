/*
 * integrity.h: tells whether a database file is intact according to SQLite.
 */
#ifndef T_INTEGRITY_H
#define T_INTEGRITY_H

#include <stdbool.h>

/* PRAGMA integrity_check. Fails no test: also for children. */
bool db_is_whole(const char *path);

#endif
