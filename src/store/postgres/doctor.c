/*
 * doctor.c: the findings of `interlock doctor` about a PostgreSQL store: how the server's settings
 * weaken our guarantees, and which indexes a user's table needs when it is used as a queue.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/partial_index.h"
#include "store/postgres/postgres_internal.h"

#define SKEW_MS 1000
#define SNAPSHOT_S 300 /* an older one prevents much cleanup */
#define VALUE_BYTES 96
#define REQUEST_BYTES_MAX 4096

struct report {
    struct il__report to;
    const json_t     *is;
};

static void
tell_server(const struct report *r)
{
    bool old = il__remote_number(r->is, "server_version_num") < 130000;

    il__tell(&r->to, old ? IL__FINDING_WARN : IL__FINDING_GOOD, "server_version",
             il__remote_text(r->is, "server_version"),
             old ? "older than the oldest tested version, 13" : "supported version");
    if (il__remote_number(r->is, "in_recovery") != 0)
        il__tell(&r->to, IL__FINDING_BAD, "recovery", "standby",
                 "nothing can be granted here: connect to the primary");
}

/* Off where it should be on. */
static void
tell_switch(const struct report *r, const char *name, enum il__finding_level off,
            const char *on_means, const char *off_means)
{
    const char *value = il__remote_text(r->is, name);
    bool        is_on = strcmp(value, "off") != 0;

    il__tell(&r->to, is_on ? IL__FINDING_GOOD : off, name, value, is_on ? on_means : off_means);
}

/* Does this role have the rights that verbs need? */
static void
tell_role(const struct report *r)
{
    const char *isolation = il__remote_text(r->is, "default_transaction_isolation");
    const char *read_only = il__remote_text(r->is, "default_transaction_read_only");
    int64_t     n_denied  = il__remote_number(r->is, "n_denied");
    bool        committed = strcmp(isolation, "read committed") == 0;
    bool        writes    = strcmp(read_only, "off") == 0;
    char        text[VALUE_BYTES];

    il__tell(&r->to, committed ? IL__FINDING_GOOD : IL__FINDING_NOTE,
             "default_transaction_isolation", isolation,
             committed
                 ? "reads under a mutex see everything committed before"
                 : "each call needs two extra round trips; set it to 'read committed' for the "
                   "role or database");
    il__tell(
        &r->to, writes ? IL__FINDING_GOOD : IL__FINDING_BAD, "default_transaction_read_only",
        read_only,
        writes ? "writes are possible"
               : "nothing can be granted; set default_transaction_read_only = off for the role or "
                 "database");
    if (n_denied == 0)
        (void)snprintf(text, sizeof text, "%.60s", il__remote_text(r->is, "role"));
    else
        (void)snprintf(text, sizeof text, "%.40s, not for %" PRId64 " of %" PRId64,
                       il__remote_text(r->is, "role"), n_denied,
                       il__remote_number(r->is, "n_relations"));
    il__tell(&r->to, n_denied == 0 ? IL__FINDING_GOOD : IL__FINDING_BAD, "privileges", text,
             n_denied == 0
                 ? "the role can write all tables of the store"
                 : "ops fail; grant the role SELECT, INSERT, UPDATE, DELETE on all tables "
                   "and USAGE, UPDATE on all sequences of the schema");
}

static void
tell_durability(const struct report *r)
{
    const char *commit = il__remote_text(r->is, "synchronous_commit");
    bool        on     = strcmp(commit, "off") != 0;

    tell_switch(r, "fsync", IL__FINDING_BAD, "commits are on disk before they are acknowledged",
                "a crash of the machine loses acknowledged leases and can damage the database");
    tell_switch(r, "full_page_writes", IL__FINDING_WARN, "torn pages are repaired after a crash",
                "a crash of the machine can damage pages");
    il__tell(
        &r->to, on ? IL__FINDING_GOOD : IL__FINDING_BAD, "synchronous_commit", commit,
        on ? "acknowledged data survives a crash of the server"
           : "a crash of the server loses the latest acknowledged commits: a key may be granted "
             "twice");
}

static void
tell_standbys(const struct report *r)
{
    int64_t n       = il__remote_number(r->is, "n_standbys");
    int64_t n_async = il__remote_number(r->is, "n_async");
    char    text[VALUE_BYTES];

    (void)snprintf(text, sizeof text, "%" PRId64 ", %" PRId64 " asynchronous", n, n_async);
    if (n == 0)
        il__tell(&r->to, IL__FINDING_NOTE, "standbys", "none",
                 "if this server is lost, its leases are lost too");
    else if (n_async > 0)
        il__tell(
            &r->to, IL__FINDING_WARN, "standbys", text,
            "a failover to an asynchronous standby can lose acknowledged grants, and fences may "
            "repeat: set synchronous_standby_names");
    else
        il__tell(&r->to, IL__FINDING_GOOD, "standbys", text,
                 "a failover loses no acknowledged data");
}

static void
tell_upkeep(const struct report *r)
{
    int64_t snapshot_s = il__remote_number(r->is, "snapshot_s");
    char    text[VALUE_BYTES];

    tell_switch(r, "autovacuum", IL__FINDING_BAD, "expired rows are cleaned up",
                "tables grow without bound and become slower");
    (void)snprintf(text, sizeof text, "%" PRId64 " s", snapshot_s);
    il__tell(&r->to, snapshot_s > SNAPSHOT_S ? IL__FINDING_WARN : IL__FINDING_GOOD,
             "oldest transaction", text,
             snapshot_s > SNAPSHOT_S
                 ? "rows deleted since it started cannot be vacuumed; see pg_stat_activity"
                 : "does not hold back vacuum");
    (void)snprintf(text, sizeof text, "%" PRId64 " MB, %" PRId64 " rows, %" PRId64 " dead",
                   il__remote_number(r->is, "bytes") >> 20, il__remote_number(r->is, "n_live"),
                   il__remote_number(r->is, "n_dead"));
    il__tell(&r->to, IL__FINDING_NOTE, "tables", text,
             "size of the schema according to the statistics");
}

static void
tell_clock(const struct report *r)
{
    int64_t skew_ms = il__remote_number(r->is, "wall_ms") - il__clock_wall_ms();
    char    text[VALUE_BYTES];

    (void)snprintf(text, sizeof text, "%+" PRId64 " ms", skew_ms);
    if (skew_ms > SKEW_MS || skew_ms < -SKEW_MS)
        il__tell(
            &r->to, IL__FINDING_WARN, "clock", text,
            "the server's clock differs from this machine's; leases are correct, but displayed "
            "times are off");
    else
        il__tell(&r->to, IL__FINDING_GOOD, "clock", text,
                 "the clocks of the server and this machine agree");
}

static void
tell_guards(const struct report *r)
{
    int64_t n_refused = il__remote_number(r->is, "n_refused");
    char    text[VALUE_BYTES];

    (void)snprintf(text, sizeof text, "%" PRId64 " tables, %" PRId64 " writes refused",
                   il__remote_number(r->is, "n_guards"), n_refused);
    il__tell(&r->to, IL__FINDING_NOTE, "guards", text,
             "tables that reject writes without a current fence; see interlock guard");
}

/* ---- a table of the user's ------------------------------------------------------------------- */

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

/* What doctor looks for. */
struct wanted_index {
    const char *first, *second; /* its first columns; NULL: unique on just the first */
    bool        running;        /* it must find jobs that are being processed, not ready ones */
    const char *what, *missing;
};

static enum il__serves
serves_of(const json_t *index, const struct wanted_index *w)
{
    const json_t *columns = json_object_get(index, "columns");
    const char   *where   = il__remote_text_or_null(index, "where");
    const char   *a       = json_string_value(json_array_get(columns, 0));
    const char   *b       = json_string_value(json_array_get(columns, 1));

    if (a == NULL || strcmp(a, w->first) != 0 || !json_is_true(json_object_get(index, "valid")))
        return IL__SERVES_NOT;
    if (w->second == NULL) /* NULLs may be there twice anyway */
        return b == NULL && json_is_true(json_object_get(index, "unique")) &&
                       (where == NULL || strcmp(where, "(idempotency_key IS NOT NULL)") == 0)
                   ? IL__SERVES
                   : IL__SERVES_NOT;
    if (b == NULL || strcmp(b, w->second) != 0)
        return IL__SERVES_NOT;
    return where == NULL ? IL__SERVES : il__partial_index_serves(where, w->first, w->running);
}

/* The statement that creates it is in `missing`. */
static void
tell_index(const struct report *r, const struct wanted_index *w)
{
    const json_t   *columns = json_object_get(r->is, "columns");
    const json_t   *indexes = json_object_get(r->is, "indexes");
    enum il__serves best    = IL__SERVES_NOT;
    const json_t   *found   = NULL;
    char            text[VALUE_BYTES];

    for (size_t i = 0; i < json_array_size(indexes); i++) {
        enum il__serves serves = serves_of(json_array_get(indexes, i), w);
        if (serves > best) {
            best  = serves;
            found = json_array_get(indexes, i);
        }
    }
    (void)snprintf(text, sizeof text, w->second != NULL ? "(%s, %s)" : "unique (%s)", w->first,
                   w->second);
    if (!has_column(columns, w->first) || (w->second != NULL && !has_column(columns, w->second)))
        il__tell(&r->to, IL__FINDING_NOTE, text, "no such column", "not applicable");
    else if (best == IL__SERVES)
        il__tell(&r->to, IL__FINDING_GOOD, text, il__remote_text(found, "name"), w->what);
    else if (best == IL__SERVES_PERHAPS)
        il__tell(&r->to, IL__FINDING_NOTE, text, il__remote_text(found, "name"),
                 "partial index: check that its condition covers the jobs to be found");
    else
        il__tell(&r->to, IL__FINDING_WARN, text, "missing", w->missing);
}

static void
tell_table(const struct report *r)
{
    static const struct wanted_index wanted[] = {
        { .first   = "idempotency_key",
          .what    = "a request cannot be stored twice",
          .missing = "two requests with the same key can both be stored: CREATE UNIQUE INDEX ON "
                     "your table (idempotency_key)" },
        { .first   = "status",
          .second  = "created_at",
          .what    = "the next job is found quickly, however many jobs are finished",
          .missing = "finding the next job scans the table: CREATE INDEX ON your table (status, "
                     "created_at)" },
        { .first   = "status",
          .second  = "updated_at",
          .running = true,
          .what    = "jobs of dead workers are found quickly",
          .missing = "finding jobs of dead workers scans the table: CREATE INDEX ON your table "
                     "(status, updated_at)" },
    };

    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        tell_index(r, &wanted[i]);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Run a batch of one request, in the kind of transaction it needs: *ret_head is its reply. */
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
        return il__pg_misunderstood(c, "unexpected format of a report");
    return il__pg_exec(c, s->sql[PG_rollback], until_ns);
}

/* Uses a separate connection and bypasses il__remote_send_alone(): if the server's defaults make
 * every op fail, this must be able to say why. */
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
        return il__error_set(reterr, IL_NOMEM, "out of memory for a report");
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

    if (st == IL_OK && il__remote_status(head) != IL_OK)
        st = il__error_set(reterr, il__remote_status(head), "%s", il__remote_text(head, "detail"));
    if (st == IL_OK && table != NULL)
        tell_table(&(struct report){ { each, cookie }, head });
    else if (st == IL_OK)
        tell_settings(&(struct report){ { each, cookie }, head });
    json_decref(head);
    return st;
}
