/*
 * report.c: what `interlock doctor` says of a PostgreSQL store: settings of the server and what they cost in promises, and the
 * indexes of a table of the user's that is used as a queue (R4.14).
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/postgres/postgres_internal.h"

#define SKEW_MS 1000
#define SNAPSHOT_S 300 /* an older one keeps much from being cleaned up */
#define VALUE_BYTES 96
#define REQUEST_BYTES_MAX 4096

struct report {
    il__report_fn *each;
    void          *cookie;
    const json_t  *is;
};

static void
tell(const struct report *r, enum il__finding_level level, const char *name, const char *value,
     const char *means)
{
    r->each(r->cookie, &(struct il__finding){ level, name, value, means });
}

static void
tell_server(const struct report *r)
{
    bool old = il__remote_number(r->is, "server_version_num") < 130000;

    tell(r, old ? IL__FINDING_WARN : IL__FINDING_GOOD, "server_version",
         il__remote_text(r->is, "server_version"),
         old ? "is older than what Interlock is tested with: 13" : "is one that Interlock works with");
    if (il__remote_number(r->is, "in_recovery") != 0)
        tell(r, IL__FINDING_BAD, "recovery", "standby",
             "nothing can be granted here: name the primary");
}

/* Off where it should be on. */
static void
tell_switch(const struct report *r, const char *name, enum il__finding_level off,
            const char *on_means, const char *off_means)
{
    const char *value = il__remote_text(r->is, name);
    bool        is_on = strcmp(value, "off") != 0;

    tell(r, is_on ? IL__FINDING_GOOD : off, name, value, is_on ? on_means : off_means);
}

/* Can this role do what verbs do? */
static void
tell_role(const struct report *r)
{
    const char *isolation = il__remote_text(r->is, "default_transaction_isolation");
    const char *read_only = il__remote_text(r->is, "default_transaction_read_only");
    int64_t     n_denied  = il__remote_number(r->is, "n_denied");
    bool        committed = strcmp(isolation, "read committed") == 0;
    bool        writes    = strcmp(read_only, "off") == 0;
    char        text[VALUE_BYTES];

    tell(r, committed ? IL__FINDING_GOOD : IL__FINDING_BAD, "default_transaction_isolation", isolation,
         committed ? "what is read under a mutex is what was committed before"
                   : "every op is refused: ALTER ROLE or ALTER DATABASE ... SET "
                     "default_transaction_isolation = 'read committed'");
    tell(r, writes ? IL__FINDING_GOOD : IL__FINDING_BAD, "default_transaction_read_only", read_only,
         writes ? "ops can write"
                : "nothing can be granted: ALTER ROLE or ALTER DATABASE ... SET "
                  "default_transaction_read_only = off");
    if (n_denied == 0)
        (void)snprintf(text, sizeof text, "%.60s", il__remote_text(r->is, "role"));
    else
        (void)snprintf(text, sizeof text, "%.40s, not for %" PRId64 " of %" PRId64,
                       il__remote_text(r->is, "role"), n_denied,
                       il__remote_number(r->is, "n_relations"));
    tell(r, n_denied == 0 ? IL__FINDING_GOOD : IL__FINDING_BAD, "privileges", text,
         n_denied == 0 ? "the role may write all tables of the store"
                       : "ops fail: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES and USAGE "
                         "ON ALL SEQUENCES IN the schema TO the role");
}

static void
tell_durability(const struct report *r)
{
    const char *commit = il__remote_text(r->is, "synchronous_commit");
    bool        on     = strcmp(commit, "off") != 0;

    tell_switch(r, "fsync", IL__FINDING_BAD, "commits are on disk before they are acknowledged",
                "a crash of the machine loses acknowledged leases and can damage the database");
    tell_switch(r, "full_page_writes", IL__FINDING_WARN, "a torn page is put right after a crash",
                "a crash of the machine can damage pages");
    tell(r, on ? IL__FINDING_GOOD : IL__FINDING_BAD, "synchronous_commit", commit,
         on ? "what was acknowledged survives a crash of the server"
            : "a crash of the server loses what was acknowledged last: a key may be granted twice");
}

static void
tell_standbys(const struct report *r)
{
    int64_t n       = il__remote_number(r->is, "n_standbys");
    int64_t n_async = il__remote_number(r->is, "n_async");
    char    text[VALUE_BYTES];

    (void)snprintf(text, sizeof text, "%" PRId64 ", %" PRId64 " asynchronous", n, n_async);
    if (n == 0)
        tell(r, IL__FINDING_NOTE, "standbys", "none", "if this server is lost, so are its leases");
    else if (n_async > 0)
        tell(r, IL__FINDING_WARN, "standbys", text,
             "a fail-over to an asynchronous one can lose acknowledged grants, and fences may "
             "repeat: "
             "set synchronous_standby_names");
    else
        tell(r, IL__FINDING_GOOD, "standbys", text, "a fail-over loses nothing that was acknowledged");
}

static void
tell_upkeep(const struct report *r)
{
    int64_t snapshot_s = il__remote_number(r->is, "snapshot_s");
    char    text[VALUE_BYTES];

    tell_switch(r, "autovacuum", IL__FINDING_BAD, "what is over is cleaned up",
                "the tables grow without end, and everything becomes slower");
    (void)snprintf(text, sizeof text, "%" PRId64 " s", snapshot_s);
    tell(r, snapshot_s > SNAPSHOT_S ? IL__FINDING_WARN : IL__FINDING_GOOD, "oldest transaction", text,
         snapshot_s > SNAPSHOT_S
             ? "what has ended since it began cannot be cleaned up: look in pg_stat_activity"
             : "keeps nothing from being cleaned up for long");
    (void)snprintf(text, sizeof text, "%" PRId64 " MB, %" PRId64 " rows, %" PRId64 " dead",
                   il__remote_number(r->is, "bytes") >> 20, il__remote_number(r->is, "n_live"),
                   il__remote_number(r->is, "n_dead"));
    tell(r, IL__FINDING_NOTE, "tables", text, "of the schema; as the statistics have it");
}

static void
tell_clock(const struct report *r)
{
    int64_t skew_ms = il__remote_number(r->is, "wall_ms") - il__clock_wall_ms();
    char    text[VALUE_BYTES];

    (void)snprintf(text, sizeof text, "%+" PRId64 " ms", skew_ms);
    if (skew_ms > SKEW_MS || skew_ms < -SKEW_MS)
        tell(r, IL__FINDING_WARN, "clock",
             text, "the server's and this machine's differ; leases run on the server's, but times shown for people do not agree");
    else
        tell(r, IL__FINDING_GOOD, "clock", text, "the server's and this machine's agree");
}

static void
tell_guards(const struct report *r)
{
    int64_t n_refused = il__remote_number(r->is, "n_refused");
    char    text[VALUE_BYTES];

    (void)snprintf(text, sizeof text, "%" PRId64 " tables, %" PRId64 " writes refused",
                   il__remote_number(r->is, "n_guards"), n_refused);
    tell(r, IL__FINDING_NOTE, "guards", text,
         "tables that refuse a write without a current fence; see interlock guard");
}

/* ---- a table of the user's --------------------------------------------------------------------------------------------- */

static bool
has_column(const json_t *columns, const char *name)
{
    for (size_t i = 0; i < json_array_size(columns); i++) {
        const char *column = json_string_value(json_array_get(columns, i));
        if (column != NULL && strcmp(column, name) == 0)
            return true;
    }
    return false;
}

/* An index that begins with these columns; a unique one on just the first, if second is NULL. */
static const json_t *
find_index(const json_t *indexes, const char *first, const char *second)
{
    for (size_t i = 0; i < json_array_size(indexes); i++) {
        const json_t *index   = json_array_get(indexes, i);
        const json_t *columns = json_object_get(index, "columns");
        const char   *a       = json_string_value(json_array_get(columns, 0));
        const char   *b       = json_string_value(json_array_get(columns, 1));
        if (a == NULL || strcmp(a, first) != 0 || !json_is_true(json_object_get(index, "valid")))
            continue;
        if (second == NULL ? b == NULL && json_is_true(json_object_get(index, "unique"))
                           : b != NULL && strcmp(b, second) == 0)
            return index;
    }
    return NULL;
}

/* `what` it is for; the statement that makes it is in `means` when it is missing. */
static void
tell_index(const struct report *r, const char *first, const char *second, const char *what,
           const char *missing)
{
    const json_t *columns = json_object_get(r->is, "columns");
    const json_t *index   = find_index(json_object_get(r->is, "indexes"), first, second);
    char          text[VALUE_BYTES];

    (void)snprintf(text, sizeof text, second != NULL ? "(%s, %s)" : "unique (%s)", first, second);
    if (!has_column(columns, first) || (second != NULL && !has_column(columns, second)))
        tell(r, IL__FINDING_NOTE, text, "no such column", "nothing to say");
    else if (index != NULL)
        tell(r, IL__FINDING_GOOD, text, il__remote_text(index, "name"), what);
    else
        tell(r, IL__FINDING_WARN, text, "missing", missing);
}

static void
tell_table(const struct report *r)
{
    tell_index(
        r, "idempotency_key", NULL,
        "the same request cannot be stored twice", "two requests with one key can both be stored: CREATE UNIQUE INDEX ON it (idempotency_key)");
    tell_index(
        r, "status", "created_at", "the next job is found at once, however many are finished",
        "the next job is found by reading the table: CREATE INDEX ON it (status, created_at)");
    tell_index(
        r, "status", "updated_at",
        "jobs whose worker is gone are found at once", "jobs whose worker is gone are found by reading the table: CREATE INDEX ON it (status, updated_at)");
}

/* ---- the whole -------------------------------------------------------------------------------------------------------------- */

/* A batch of one request, in a transaction of the kind that it needs: *ret_head is its reply. */
static bool
ask(struct pg_store *s, struct pg_conn *c, const char *batch, json_t **ret_head)
{
    int64_t         until_ns = il__pg_in_ms(s->timeout_ms);
    struct pg_query q        = {
               .sql      = s->sql[PG_call],
               .n_params = 4,
               .types    = { PG_JSONB, PG_BYTEA_ARRAY, PG_INT8, PG_INT8 },
               .values   = { batch },
    };

    if (!il__pg_exec(c, s->sql[PG_report_begin], until_ns))
        return false;
    PGresult *r = il__pg_query(c, &q, until_ns);
    if (r == NULL)
        return false;
    if (il__pq->PQntuples(r) > 0 && il__pq->PQnfields(r) == 4)
        *ret_head =
            json_loadb(il__pq->PQgetvalue(r, 0, 1), (size_t)il__pq->PQgetlength(r, 0, 1), 0, NULL);
    il__pq->PQclear(r);
    if (*ret_head == NULL)
        return il__pg_misunderstood(c, "a report could not be understood");
    return il__pg_exec(c, s->sql[PG_rollback], until_ns);
}

/* Over a connection of its own, past il__remote_ask(): with defaults that make every op fail, this is to say why. */
static il_status
ask_for(struct pg_store *s, const char *table, json_t **ret_head, il_error *reterr)
{
    struct remote_request AUTO_REQUEST r     = { 0 };
    struct il__buf AUTO_BUF            batch = { 0 };
    struct pg_conn                     c;
    il_status                          st = IL_OK;

    il__remote_begin(&r, table != NULL ? "x_table" : "x_settings");
    il__remote_put_text(&r, "table", table);
    il__buf_init(&batch, REQUEST_BYTES_MAX);
    if (il__remote_end(&r))
        il__buf_addf(&batch, "[%.*s]", (int)r.json.n_bytes, r.json.data);
    if (batch.n_bytes == 0 || batch.failed)
        return il__error_set(reterr, IL_NOMEM, "no memory for a report");
    il__pg_store_conn_init(s, &c, s->url.server);
    if (!ask(s, &c, il__buf_str(&batch), ret_head))
        st = il__pg_error(&c, reterr);
    il__pg_conn_close(&c);
    return st;
}

static void
tell_settings(const struct report *r)
{
    tell_server(r);
    tell_role(r);
    tell_durability(r);
    tell_standbys(r);
    tell_upkeep(r);
    tell_clock(r);
    tell_guards(r);
}

il_status
il__pg_report(struct remote_store *s, const char *table, il__report_fn *each, void *cookie,
              il_error *reterr)
{
    json_t   *head = NULL;
    il_status st   = ask_for(il__pg_from(s), table, &head, reterr);

    if (st == IL_OK && il__remote_number(head, "status") != IL_OK)
        st = il__error_set(reterr, (il_status)il__remote_number(head, "status"), "%s",
                           il__remote_text(head, "detail"));
    if (st == IL_OK && table != NULL)
        tell_table(&(struct report){ each, cookie, head });
    else if (st == IL_OK)
        tell_settings(&(struct report){ each, cookie, head });
    json_decref(head);
    return st;
}
