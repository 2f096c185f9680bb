/*
 * whole.h: is a database file intact according to SQLite?
 */
#ifndef T_WHOLE_H
#define T_WHOLE_H

#include <stdbool.h>

/* PRAGMA integrity_check. Fails no test: also for children. */
bool db_is_whole(const char *path);

#endif
