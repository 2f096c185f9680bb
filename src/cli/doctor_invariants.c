/*
 * doctor_invariants.c: finds the invariants that mention a column. Those of the users' files come
 * from the app that reads them (http_app.queries); the others are registered by apps for their own
 * tables.
 */
#include <ctype.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>

#include "apps/app.h"
#include "apps/common/invariant.h"
#include "base/arena.h"
#include "base/error.h"
#include "cli/app_config.h"
#include "cli/doctor.h"

#define NAME_BYTES 256
#define APP_TABLES "interlock_tables" /* where the tables of an app are (apps/common/tables.h) */

struct doctor_invariant {
    struct doctor_invariant *next;
    const char              *name, *sql;
    bool                     of_app;
};

struct adding {
    const struct cli       *cli;
    struct doctor_database *db;
    const char             *url;
    bool                    no_memory;
};

static void
add(struct adding *a, const char *name, const char *sql, bool of_app)
{
    struct doctor_invariant *i = il__arena_alloc(&a->db->mem, sizeof *i);

    if (i == NULL) {
        a->no_memory = true;
        return;
    }
    *i                = (struct doctor_invariant){ .next   = a->db->invariants,
                                                   .name   = il__arena_strdup(&a->db->mem, name),
                                                   .sql    = il__arena_strdup(&a->db->mem, sql),
                                                   .of_app = of_app };
    a->no_memory      = a->no_memory || i->name == NULL || i->sql == NULL;
    a->db->invariants = i;
}

/* ---- which database -------------------------------------------------------------------------- */

/* The same URL, or the same file by another path. */
static bool
is_same(const struct doctor_database *db, const char *url, const char *other)
{
    static const char sqlite[] = "sqlite:";
    struct stat       a, b;

    if (strcmp(url, other) == 0)
        return true;
    return db->path != NULL && strncmp(other, sqlite, sizeof sqlite - 1) == 0 &&
           stat(db->path, &a) == 0 && stat(other + sizeof sqlite - 1, &b) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static bool
is_here(const struct adding *a, const char *connection)
{
    const struct cli_config *config = &a->cli->config;
    bool                     here   = false;

    for (size_t i = 0; i < config->n_connections; i++) {
        char    *url = NULL;
        il_error ignored; /* a connection without a URL is not the one that is open */
        if (strcmp(config->connections[i].name, connection) != 0 ||
            il__cli_connection_url(&config->connections[i], &url, &ignored) != IL_OK)
            continue;
        here = here || is_same(a->db, a->url, url);
        explicit_bzero(url, strlen(url));
        il__free(url);
    }
    return here;
}

static void
add_query(void *cookie, const struct http_query *q)
{
    struct adding *a = cookie;

    if (is_here(a, q->connection))
        add(a, q->name, q->sql, false);
}

static void
add_registered(struct adding *a, const struct http_app *app)
{
    for (size_t i = 0; i < app->n_invariants; i++) {
        const struct app_invariant *own = &app->invariants[i];
        const char                 *sql = a->db->path != NULL ? own->sqlite : own->postgres;
        char                        name[NAME_BYTES];
        if (sql == NULL) /* a function: what it looks at is not known */
            continue;
        (void)snprintf(name, sizeof name, "%s.%s", app->name, own->name);
        add(a, name, sql, true);
    }
}

il_status
il__doctor_invariants(const struct cli *cli, struct doctor_database *db, const char *url,
                      il_error *reterr)
{
    struct cli_app_config c  = { .connections = NULL };
    struct adding         a  = { .cli = cli, .db = db, .url = url };
    il_status             st = IL_OK;

    il__cli_app_settings(&c, &cli->config);
    for (size_t i = 0; i < IL_APP_COUNT && st == IL_OK; i++) {
        add_registered(&a, il__apps[i]);
        if (il__apps[i]->queries != NULL)
            st = il__apps[i]->queries(&c.config, add_query, &a, reterr);
    }
    return st == IL_OK && a.no_memory ? il__error_nomem(reterr) : st;
}

/* ---- mentions -------------------------------------------------------------------------------- */

static bool
is_part(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Is it a word of the statement? */
static bool
mentions(const char *sql, const char *word)
{
    size_t n = strlen(word);

    CHECK(n > 0);
    for (const char *at = sql; (at = strcasestr(at, word)) != NULL; at++) {
        if ((at == sql || !is_part(at[-1])) && !is_part(at[n]))
            return true;
    }
    return false;
}

il_status
il__doctor_mentioned(struct doctor_database *db, const struct doctor_table *t, const char *column,
                     const char **ret, il_error *reterr)
{
    *ret = NULL;
    for (const struct doctor_invariant *i = db->invariants; i != NULL && *ret == NULL;
         i                                = i->next) {
        bool here = mentions(i->sql, t->name) && mentions(i->sql, column);
        if (here && i->of_app) {
            il_status st = il__doctor_is_taken(db, t, APP_TABLES, &here, reterr);
            if (st != IL_OK)
                return st;
        }
        *ret = here ? i->name : NULL;
    }
    return IL_OK;
}
