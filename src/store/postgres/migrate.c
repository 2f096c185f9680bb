/*
 * migrate.c: creates a store in a database, or upgrades an older one.
 *
 * A migration is one transaction under an advisory lock that only migrations take. Two concurrent
 * migrations are safe: the second one checks the version again once it has the lock. Opening a
 * store installs whatever is missing, and functions whose text has changed. It never alters
 * existing tables; only `interlock migrate` does, at the request of their owner. Functions of a
 * newer version are left alone; otherwise, during a rolling upgrade, the old and the new binaries
 * would keep replacing each other's.
 */
#include <inttypes.h>

#include "base/error.h"
#include "base/hash.h"
#include "store/postgres/postgres_internal.h"

#include "postgres_functions.inc"

#define MIGRATE_MS 60000
#define MIGRATE_WAIT_MS 30000 /* wait for another migration, or for users of the tables */

/* ---- inspecting the schema ------------------------------------------------------------------- */

#define FUNCTIONS_BYTES 64

struct state {
    int  version; /* 0: there is none */
    int  min_version;
    bool test_clock;
    char functions[FUNCTIONS_BYTES]; /* VERSION HASH */
};

/* The functions of this binary. */
static const char *
our_functions(char out[FUNCTIONS_BYTES])
{
    (void)snprintf(out, FUNCTIONS_BYTES, "%s %016" PRIx64, IL_VERSION,
                   il__hash_stable(sql_functions, sizeof sql_functions - 1, 0));
    return out;
}

/* 1.20.3 as a number; the rest is ignored. */
static uint64_t
version_number(const char *text)
{
    uint64_t n = 0;

    for (int i = 0; i < 3; i++) {
        uint64_t part = 0;
        for (; *text >= '0' && *text <= '9'; text++)
            part = part * 10 + (uint64_t)(*text - '0');
        n = n * 100000 + part % 100000;
        text += *text == '.';
    }
    return n;
}

/* Tables of our version, and functions with a different text that is not of a newer version. */
static bool
functions_are_old(const struct state *st)
{
    char ours[FUNCTIONS_BYTES];

    return st->version == il__pg_schema.version &&
           strcmp(st->functions, our_functions(ours)) != 0 &&
           version_number(st->functions) <= version_number(IL_VERSION);
}

/* One row without NULLs (a NULL has no bytes), except perhaps the functions. */
static bool
is_state(const PGresult *r)
{
    return il__pq->PQntuples(r) == 1 && il__pq->PQnfields(r) == 4 &&
           il__pq->PQgetlength(r, 0, 0) == sizeof(int32_t) &&
           il__pq->PQgetlength(r, 0, 1) == sizeof(int32_t) && il__pq->PQgetlength(r, 0, 2) == 1;
}

static bool
load_state(struct pg_store *s, struct state *ret, int64_t until_ns)
{
    struct pg_conn *c = &s->writers[0];
    PGresult       *r = il__pg_query(c, &(struct pg_query){ .sql = s->sql[PG_state] }, until_ns);

    *ret = (struct state){ 0 };
    if (r == NULL)
        /* undefined_table, invalid_schema_name */
        return c->outcome == PG_UNDONE &&
               (strcmp(c->sqlstate, "42P01") == 0 || strcmp(c->sqlstate, "3F000") == 0);
    bool ok = is_state(r);
    if (ok) {
        ret->version     = il__pg_int4(r, 0, 0);
        ret->min_version = il__pg_int4(r, 0, 1);
        ret->test_clock  = il__pg_bool(r, 0, 2);
        ok               = ret->version > 0 && ret->min_version > 0; /* upgrade() goes on from it */
        (void)snprintf(ret->functions, sizeof ret->functions, "%.*s", il__pq->PQgetlength(r, 0, 3),
                       il__pq->PQgetvalue(r, 0, 3));
    }
    il__pq->PQclear(r);
    return ok || il__pg_misunderstood(c, "unexpected contents of table 'state'");
}

/* ---- changing it ----------------------------------------------------------------------------- */

static bool
run(struct pg_store *s, const struct pg_query *q, int64_t until_ns)
{
    PGresult *r = il__pg_query(&s->writers[0], q, until_ns);

    il__pq->PQclear(r);
    return r != NULL;
}

/* In the transaction. *ret_there: a store exists; otherwise only a schema does, which may belong to
 * someone else. *ret_app: it has the tables of an app. */
static bool
look(struct pg_store *s, bool *ret_there, bool *ret_utf8, bool *ret_app, int64_t until_ns)
{
    PGresult *r = il__pg_query(&s->writers[0], &(struct pg_query){ .sql = s->sql[PG_migrate_look] },
                               until_ns);

    if (r == NULL)
        return false;
    bool schema = il__pg_bool(r, 0, 0);
    *ret_there  = il__pg_bool(r, 0, 1);
    *ret_utf8 =
        il__pq->PQgetlength(r, 0, 2) == 4 && memcmp(il__pq->PQgetvalue(r, 0, 2), "UTF8", 4) == 0;
    *ret_app = il__pg_bool(r, 0, 3);
    il__pq->PQclear(r);
    return schema || il__pg_exec(&s->writers[0], s->sql[PG_migrate_schema], until_ns);
}

/* In the transaction: from `st` to ours. */
static bool
upgrade(struct pg_store *s, const struct state *st, int64_t until_ns)
{
    char            functions[FUNCTIONS_BYTES], version[12], min_version[12];
    struct pg_conn *c = &s->writers[0];

    (void)snprintf(version, sizeof version, "%d", il__pg_schema.version);
    (void)snprintf(min_version, sizeof min_version, "%d", il__pg_schema.min_version);
    if (!il__pg_exec(c, s->sql[PG_migrate_path], until_ns))
        return false;
    for (int v = st->version; v < il__pg_schema.version; v++) {
        if (!il__pg_exec(c, il__pg_schema.steps[v], until_ns))
            return false;
    }
    struct pg_query birth = { .sql      = s->sql[PG_migrate_state],
                              .n_params = 3,
                              .types    = { PG_INT4, PG_INT4, PG_BOOL },
                              .values   = { version, min_version,
                                          s->remote.test_clock ? "t" : "f" } };
    struct pg_query done  = { .sql      = s->sql[PG_migrate_done],
                              .n_params = 3,
                              .types    = { PG_INT4, PG_INT4, PG_TEXT },
                              .values   = { version, min_version, our_functions(functions) } };
    return il__pg_exec(c, sql_functions, until_ns) &&
           (st->version > 0 || run(s, &birth, until_ns)) && run(s, &done, until_ns);
}

static il_status
undo(struct pg_store *s, il_status st, int64_t until_ns)
{
    if (s->writers[0].pq != NULL)
        /* otherwise it ends with the connection */
        IGNORE(!il__pg_exec(&s->writers[0], s->sql[PG_rollback], until_ns));
    il__pg_conn_close(&s->writers[0]); /* no setting of the transaction must remain */
    return st;
}

static il_status
refuse(struct pg_store *s, const struct state *was, il_error *reterr)
{
    il_error  err = { .status = IL_OK };
    il_status st  = il__pg_error(&s->writers[0], &err);

    if (strcmp(s->writers[0].sqlstate, "42501") == 0) /* insufficient_privilege */
        st = il__error_set(&err, IL_STORE,
                           "%s: schema '%s' must be %s; run `interlock migrate` as a user with "
                           "that privilege (%.100s)",
                           s->url.shown, s->url.schema,
                           was->version == 0 ? "installed" : "upgraded", s->writers[0].why);
    if (reterr != NULL)
        *reterr = err;
    return st;
}

/* Begin a transaction and wait for the migration lock. */
static bool
begin(struct pg_store *s, int64_t wait_ms, int64_t until_ns)
{
    char            text[24];
    struct pg_query wait = {
        .sql = s->sql[PG_migrate_wait], .n_params = 1, .types = { PG_TEXT }, .values = { text }
    };

    (void)snprintf(text, sizeof text, "%" PRId64, wait_ms);
    return il__pg_exec(&s->writers[0], s->sql[PG_migrate_begin], until_ns) &&
           run(s, &wait, until_ns) &&
           il__pg_exec(&s->writers[0], s->sql[PG_migrate_lock], until_ns);
}

/* It could not begin, usually because another migration is running. */
static il_status
refuse_second(struct pg_store *s, il_error *reterr)
{
    const struct pg_conn *c  = &s->writers[0];
    il_status             st = il__pg_error(c, reterr);

    if (strcmp(c->sqlstate, "55P03") != 0) /* lock_not_available */
        return st;
    st = il__error_set(reterr, IL_STORE,
                       "%s: another process is migrating schema '%s'; try again later",
                       s->url.shown, s->url.schema);
    if (reterr != NULL)
        (void)snprintf(reterr->native, sizeof reterr->native, "%s", c->sqlstate);
    return st;
}

/* Install what is missing, and upgrade everything older than ours if `tables`, otherwise only the
 * functions. */
static il_status
migrate(struct pg_store *s, bool tables, il_error *reterr)
{
    int64_t      wait_ms  = MIN(MAX(s->timeout_ms, tables ? MIGRATE_WAIT_MS : 1), INT32_MAX);
    int64_t      until_ns = il__pg_in_ms(MIGRATE_MS + wait_ms);
    struct state was      = { 0 };
    bool         there    = false;
    bool         utf8     = false;
    bool         app      = false;

    if (!begin(s, wait_ms, until_ns))
        return undo(s, refuse_second(s, reterr), until_ns);
    if (!look(s, &there, &utf8, &app, until_ns))
        return undo(s, refuse(s, &was, reterr), until_ns);
    if (app)
        return undo(
            s,
            il__error_set(
                reterr, IL_INVAL,
                "%s: schema %s contains the tables of an app; choose another schema (?schema=)",
                s->url.shown, s->url.schema),
            until_ns);
    /*
     * Race-free: the schema exists now, whoever created it. If it and everything in it belongs to
     * us or a superuser, and no one else may create in it, that stays so.
     */
    il_status st = il__pg_owners_check(&s->writers[0], s->url.schema, true, until_ns, reterr);
    if (st != IL_OK)
        return undo(s, st, until_ns);
    if (there && !load_state(s, &was, until_ns))
        return undo(s, refuse(s, &was, reterr), until_ns);
    if (!utf8)
        return undo(
            s,
            il__error_set(reterr, IL_STORE, "%s: the database encoding must be UTF8", s->url.shown),
            until_ns);
    bool old =
        was.version < il__pg_schema.version ? was.version == 0 || tables : functions_are_old(&was);
    if (!old)
        return undo(s, IL_OK, until_ns); /* another process was faster */
    if (!upgrade(s, &was, until_ns) || !il__pg_exec(&s->writers[0], s->sql[PG_commit], until_ns))
        return undo(s, refuse(s, &was, reterr), until_ns);
    return IL_OK;
}

static il_status
refuse_newer(const struct pg_store *s, const struct state *st, il_error *reterr)
{
    return il__error_set(
        reterr, IL_NEWER,
        "%s: version %d of schema '%s' was created by a newer Interlock; this one supports %d",
        s->url.shown, st->version, s->url.schema, il__pg_schema.version);
}

il_status
il__pg_schema_migrate(struct pg_store *s, bool check, struct il__migration *ret, il_error *reterr)
{
    struct state st;
    il_status    owned = il__pg_owners_check(&s->writers[0], s->url.schema, !check,
                                             il__pg_in_ms(s->timeout_ms), reterr);

    if (owned != IL_OK)
        return owned;
    if (!load_state(s, &st, il__pg_in_ms(s->timeout_ms)))
        return il__pg_error(&s->writers[0], reterr);
    if (st.min_version > il__pg_schema.version)
        return refuse_newer(s, &st, reterr);
    *ret = (struct il__migration){
        .from      = st.version,
        .to        = MAX(st.version, il__pg_schema.version),
        .functions = st.version < il__pg_schema.version || functions_are_old(&st),
    };
    return check || !ret->functions ? IL_OK : migrate(s, true, reterr);
}

/* ---- opening --------------------------------------------------------------------------------- */

static il_status
judge(const struct pg_store *s, const struct state *st, il_error *reterr)
{
    if (st->min_version > il__pg_schema.version)
        return refuse_newer(s, st, reterr);
    if (st->version < il__pg_schema.version)
        return il__error_set(
            reterr, IL_STORE,
            "%s: schema '%s' has version %d, but this Interlock needs %d; run `interlock migrate`",
            s->url.shown, s->url.schema, st->version, il__pg_schema.version);
    if (st->test_clock != s->remote.test_clock)
        return il__error_set(reterr, IL_INVAL,
                             "%s: the store was created %s ?clock=test; open it the same way",
                             s->url.shown, st->test_clock ? "with" : "without");
    return IL_OK;
}

il_status
il__pg_schema_prepare(struct pg_store *s, bool existing, il_error *reterr)
{
    struct state st;
    il_status    owned = il__pg_owners_check(&s->writers[0], s->url.schema, false,
                                             il__pg_in_ms(s->timeout_ms), reterr);

    if (owned != IL_OK)
        return owned;
    if (!load_state(s, &st, il__pg_in_ms(s->timeout_ms)))
        return il__pg_error(&s->writers[0], reterr);
    if (st.version == 0 && existing)
        return il__error_set(reterr, IL_STORE,
                             "%s: no store in schema '%s'; run `interlock migrate` to create one",
                             s->url.shown, s->url.schema);
    if (st.version == 0 || functions_are_old(&st)) {
        il_status migrated = migrate(s, false, reterr);
        if (migrated != IL_OK)
            return migrated;
        if (!load_state(s, &st, il__pg_in_ms(s->timeout_ms)))
            return il__pg_error(&s->writers[0], reterr);
    }
    return judge(s, &st, reterr);
}
