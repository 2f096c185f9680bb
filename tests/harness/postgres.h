/*
 * postgres.h: a PostgreSQL server as a child, and direct queries to it.
 *
 * IL_TEST_POSTGRES, a URL without schema, names a running server (its user must be allowed to
 * create schemas); without it each test program that needs one starts its own, which is not
 * crash-safe and exits with the program.
 */
#ifndef T_POSTGRES_H
#define T_POSTGRES_H

#include "harness/proc.h"
#include "harness/tmp.h"

#define T_PG_TEXT_BYTES 4096

struct t_postgres {
    struct t_proc proc;
    char          dir[T_PATH_BYTES]; /* with the file `log` */
    char          url[T_PATH_BYTES]; /* through the unix socket */
    int           port;              /* on 127.0.0.1; 0 = none */
};

/* Make a cluster: on a real disk and with fsync when it is to survive a crash, and with a free port
 * if it is to have one. */
void t_postgres_init(struct t_postgres *p, bool on_disk, bool has_port);
/* Start it with more settings (name=value, NULL-terminated, or NULL) and wait until it answers.
 * Again after a kill. */
void t_postgres_start(struct t_postgres *p, const char *const settings[]);
/* As `pg_ctl stop -m immediate`: like a crash of all its processes at once. */
void t_postgres_kill(struct t_postgres *p);
void t_postgres_release(struct t_postgres *p);

/* PgBouncer as a child, in transaction mode, in front of the server at a URL with host=FOLDER. */
struct t_bouncer {
    struct t_proc proc;
    char          dir[T_PATH_BYTES];
    char          url[T_PATH_BYTES];
};

void t_bouncer_start(struct t_bouncer *b, const char *server_url);
void t_bouncer_release(struct t_bouncer *b);
/* One in front of t_postgres_url(), for this process; started when it is first asked for. */
const char *t_bouncer_url(void);

/* Say something to the server at `url`: the first column of the first row as text, "" if there is
 * none. Returns `out`. */
const char *t_postgres_ask(const char *url, const char *sql, char out[T_PG_TEXT_BYTES]);

/* A URL as the value of an option of another one. */
const char *t_percent(const char *url, char out[T_PATH_BYTES]);

/* From now on, connections that are closed are kept for those who open the same again (see
 * postgres_reuse.c). Before the first connection; once is enough. */
void t_postgres_reuse(void);

/* The server of this test program. */
const char *t_postgres_url(void);

#endif
