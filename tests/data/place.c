/*
 * place.c: data stores for tests; see place.h.
 */
#include "data/place.h"

#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "harness/postgres.h"

void
t_place_make(struct t_place *p)
{
    static unsigned n;
    const char     *kind = getenv("IL_TEST_DATA");

    *p = (struct t_place){ .shared = true };
    t_tmp_make(p->dir);
    if (kind == NULL || strcmp(kind, "sqlite") == 0) {
        t_path(p->path, "%s/x.db", p->dir);
        t_path(p->url, "sqlite:%s", p->path);
    } else if (strcmp(kind, "memory") == 0) {
        t_path(p->url, "memory:");
        p->shared = false;
    } else {
        bool pooled = strcmp(kind, "postgres-bouncer") == 0;
        if (!pooled && strcmp(kind, "postgres") != 0)
            T_FAIL("there is no place '%s'", kind);
        (void)snprintf(p->schema, sizeof p->schema, "il_data_%d_%u_admin", (int)getpid(), n);
        t_path(p->server, "%s", t_postgres_url());
        t_path(p->url, "%s&schema=il_data_%d_%u", pooled ? t_bouncer_url() : p->server,
               (int)getpid(), n++);
    }
}

void
t_place_release(struct t_place *p)
{
    char sql[128], out[T_PG_TEXT_BYTES];

    if (p->schema[0] != '\0') {
        (void)snprintf(sql, sizeof sql, "DROP SCHEMA IF EXISTS %s CASCADE", p->schema);
        (void)t_postgres_ask(p->server, sql, out);
    }
    t_tmp_remove(p->dir);
}

struct il__data *
t_data_open(const struct t_place *p, const char *pepper_file)
{
    struct il__data_open o = { .store_url = p->url, .pepper_file = pepper_file };
    struct il__data     *d = NULL;
    il_error             err;

    if (il__data_open(&o, &d, &err) != IL_OK)
        T_FAIL("%s: %s", p->url, err.message);
    return d;
}

il_status
t_data_try(const struct il__data_open *o, il_error *err)
{
    struct il__data *d  = NULL;
    il_status        st = il__data_open(o, &d, err);

    il__data_close(d);
    return st;
}

static int
take_first(void *cookie, int n, char **values, char **names UNUSED)
{
    if (n > 0 && ((char *)cookie)[0] == '\0')
        (void)snprintf(cookie, 4096, "%s", values[0] != NULL ? values[0] : "");
    return 0;
}

const char *
t_place_ask(const struct t_place *p, const char *sqlite, const char *postgres, char out[4096])
{
    char sql[4096];

    out[0] = '\0';
    if (p->path[0] == '\0') {
        /* Statements are written for a schema `$`. */
        size_t n = 0;
        for (const char *at = postgres; *at != '\0'; at++)
            n += (size_t)(*at == '$' ? snprintf(sql + n, sizeof sql - n, "%s", p->schema)
                                     : snprintf(sql + n, sizeof sql - n, "%c", *at));
        return t_postgres_ask(p->server, sql, out);
    }
    sqlite3 *db = NULL;
    T_EQ(sqlite3_open_v2(p->path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    T_EQ(sqlite3_exec(db, "PRAGMA wal_autocheckpoint = 0", NULL, NULL, NULL), SQLITE_OK);
    T_EQ(sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL), SQLITE_OK);
    T_EQ(sqlite3_exec(db, sqlite, take_first, out, NULL), SQLITE_OK);
    T_EQ(sqlite3_close(db), SQLITE_OK);
    return out;
}

void
t_key_make(struct il__data *d, const char *tenant, enum il__data_role role, char id[DATA_ID_BYTES],
           char secret[DATA_KEY_BYTES_MAX])
{
    struct il__data_key key = { .tenant = tenant, .role = role };
    il_error            err;

    if (il__data_key_create(d, &key, true, id, secret, &err) != IL_OK)
        T_FAIL("%s", err.message);
}

void
t_key_take(void *cookie, const struct il__data_key *key)
{
    struct t_key *k = cookie;
    unsigned      n = k->n;

    *k = (struct t_key){ .n             = n + 1,
                         .role          = key->role,
                         .created_at_ms = key->created_at_ms,
                         .expires_at_ms = key->expires_at_ms,
                         .used_at_ms    = key->used_at_ms,
                         .revoked_at_ms = key->revoked_at_ms };
    (void)snprintf(k->id, sizeof k->id, "%s", key->id);
    (void)snprintf(k->tenant, sizeof k->tenant, "%s", key->tenant);
    (void)snprintf(k->name, sizeof k->name, "%s", key->name);
    (void)snprintf(k->permissions, sizeof k->permissions, "%s", key->permissions);
    (void)snprintf(k->prefix, sizeof k->prefix, "%s", key->prefix);
}

il_status
t_key_find(struct il__data *d, const char *secret, struct t_key *ret)
{
    unsigned char hash[DATA_HASH_BYTES];
    il_error      err = { .message = "" };

    *ret = (struct t_key){ .n = 0 };
    il__data_key_hash(d, secret, strlen(secret), hash);
    il_status st = il__data_key_find(d, hash, t_key_take, ret, &err);
    if (st != IL_OK && st != IL_NOT_FOUND)
        T_FAIL("%s", err.message);
    T_EQ(ret->n, st == IL_OK);
    return st;
}
