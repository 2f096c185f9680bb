/*
 * doctor_checks.c: what is wrong with a table, and the statement that fixes it. docs/CLI.md lists
 * the rules; each is one function here. Statements come from sql/doctor.sql.
 */
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "base/arena.h"
#include "base/error.h"
#include "cli/doctor.h"

#include "doctor_sql.inc"

#define INDEX_NAME_BYTES_MAX 56 /* PostgreSQL has 63; a number may follow */
#define NAMES_TRIED_MAX 100

/* What one check works with. */
struct checking {
    struct doctor_database    *db;
    const struct doctor_table *t; /* NULL: the file */
    doctor_finding_fn         *each;
    void                      *cookie;
    il_error                  *reterr;
    struct il__buf             name, value, means, columns, fix; /* texts of the finding */
    struct doctor_finding      f;
};

static void
begin(struct checking *c, enum doctor_check check)
{
    struct il__buf *bufs[] = { &c->name, &c->value, &c->means, &c->columns, &c->fix };

    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) {
        il__buf_release(bufs[i]);
        il__buf_init(bufs[i], DOCTOR_TEXT_BYTES_MAX);
    }
    c->f = (struct doctor_finding){ .check = check, .n_violations = -1 };
}

static void
checking_release(struct checking *c)
{
    begin(c, DOCTOR_FILE);
}

static il_status
report(struct checking *c, enum il__finding_level level)
{
    if (c->name.failed || c->value.failed || c->means.failed || c->columns.failed || c->fix.failed)
        return il__error_set(c->reterr, IL_NOMEM, "out of memory for a finding");
    c->f.level = level;
    c->f.table = c->t != NULL ? c->t->name : NULL;
    c->f.name  = il__buf_str(&c->name);
    c->f.value = il__buf_str(&c->value);
    c->f.means = il__buf_str(&c->means);
    c->f.fix   = c->fix.n_bytes > 0 ? il__buf_str(&c->fix) : NULL;
    c->each(c->cookie, &c->f);
    return IL_OK;
}

/* ---- texts ----------------------------------------------------------------------------------- */

struct fill {
    const char *name, *text;
};

/* Append a statement with @name replaced, without its last newline. */
static void
fill(struct il__buf *out, const char *sql, const struct fill *fills, size_t n)
{
    size_t n_sql = strlen(sql);

    for (const char *end = sql + n_sql - (n_sql > 0 && sql[n_sql - 1] == '\n'); sql < end;) {
        size_t i = 0;
        while (*sql == '@' && i < n && strncmp(sql + 1, fills[i].name, strlen(fills[i].name)) != 0)
            i++;
        if (*sql == '@' && i < n) {
            il__buf_adds(out, fills[i].text);
            sql += 1 + strlen(fills[i].name);
        } else {
            il__buf_addc(out, *sql++);
        }
    }
}

/* "a", "b" */
static void
add_quoted(struct il__buf *out, const char *const *columns, size_t n, const char *between,
           const char *after)
{
    for (size_t i = 0; i < n; i++) {
        il__buf_adds(out, i > 0 ? between : "");
        il__doctor_quote(out, columns[i]);
        il__buf_adds(out, after);
    }
}

/* a, b: for people. */
static void
add_plain(struct il__buf *out, const char *const *columns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        il__buf_addf(out, "%s%s", i > 0 ? ", " : "", columns[i]);
}

/* A name for a new index that is free: idx_TABLE_COLUMNS, with a number if it must be. */
static il_status
index_name(struct checking *c, const char *const *columns, size_t n, struct il__buf *out)
{
    AUTO_BUF struct il__buf base = { 0 }, name = { 0 };
    bool                    taken = true;
    il_status               st    = IL_OK;

    il__buf_init(&base, DOCTOR_TEXT_BYTES_MAX);
    il__buf_init(&name, DOCTOR_TEXT_BYTES_MAX);
    il__buf_addf(&base, "idx_%s", c->t->name);
    for (size_t i = 0; i < n; i++)
        il__buf_addf(&base, "_%s", columns[i]);
    size_t n_bytes = MIN(base.n_bytes, INDEX_NAME_BYTES_MAX);
    while (n_bytes > 0 && ((unsigned char)il__buf_str(&base)[n_bytes] & 0xc0) == 0x80)
        n_bytes--; /* not in the middle of a character */
    for (int i = 1; st == IL_OK && taken && i <= NAMES_TRIED_MAX; i++) {
        il__buf_clear(&name);
        il__buf_add(&name, il__buf_str(&base), n_bytes);
        if (i > 1)
            il__buf_addf(&name, "_%d", i);
        st = il__doctor_is_taken(c->db, c->t, il__buf_str(&name), &taken, c->reterr);
    }
    il__doctor_quote(out, il__buf_str(&name));
    return st;
}

/* CREATE INDEX, or REINDEX of an invalid one, into c->fix. */
static il_status
index_fix(struct checking *c, const char *sql, const struct doctor_key *invalid,
          const char *const *columns, size_t n)
{
    AUTO_BUF struct il__buf name = { 0 };
    il_status               st   = IL_OK;

    il__buf_init(&name, DOCTOR_TEXT_BYTES_MAX);
    if (invalid != NULL) {
        il__doctor_quote(&name, c->t->schema);
        il__buf_addc(&name, '.');
        il__doctor_quote(&name, invalid->name);
        sql = sql_fix_reindex;
    } else {
        st = index_name(c, columns, n, &name);
    }
    add_quoted(&c->columns, columns, n, ", ", "");
    const struct fill fills[] = { { "name", il__buf_str(&name) },
                                  { "table", c->t->target },
                                  { "columns", il__buf_str(&c->columns) } };
    fill(&c->fix, sql, fills, ARRAY_LEN(fills));
    return st;
}

/* ---- rows that a constraint would refuse ----------------------------------------------------- */

static int
add_number(void *cookie, const il_guard_row *row)
{
    int64_t    *n    = cookie;
    const char *text = il__doctor_text(row, 0);

    *n += text != NULL ? (int64_t)strtoll(text, NULL, 10) : 0;
    return 0;
}

static int
add_example(void *cookie, const il_guard_row *row)
{
    struct checking        *c    = cookie;
    AUTO_BUF struct il__buf text = { 0 };

    il__buf_init(&text, DOCTOR_TEXT_BYTES_MAX);
    for (size_t i = 0; i < row->n; i++) {
        const char *value = il__doctor_text(row, i);
        il__buf_addf(&text, "%s%.200s", i > 0 ? ", " : "", value != NULL ? value : "NULL");
    }
    const char *kept = il__arena_strdup(&c->db->mem, il__buf_str(&text));
    if (kept != NULL && c->f.n_examples < DOCTOR_EXAMPLES_MAX)
        c->f.examples[c->f.n_examples++] = kept;
    return 1;
}

static il_status
ask_rows(struct checking *c, const char *sql, const char *const *columns, size_t n,
         il_guard_row_fn *each, void *cookie)
{
    AUTO_BUF struct il__buf text = { 0 }, names = { 0 }, present = { 0 }, absent = { 0 };

    il__buf_init(&text, DOCTOR_TEXT_BYTES_MAX);
    il__buf_init(&names, DOCTOR_TEXT_BYTES_MAX);
    il__buf_init(&present, DOCTOR_TEXT_BYTES_MAX);
    il__buf_init(&absent, DOCTOR_TEXT_BYTES_MAX);
    add_quoted(&names, columns, n, ", ", "");
    add_quoted(&present, columns, n, " AND ", " IS NOT NULL");
    add_quoted(&absent, columns, n, " OR ", " IS NULL");
    const struct fill fills[] = { { "table", c->t->quoted },
                                  { "columns", il__buf_str(&names) },
                                  { "present", il__buf_str(&present) },
                                  { "absent", il__buf_str(&absent) } };
    fill(&text, sql, fills, ARRAY_LEN(fills));
    if (text.failed || names.failed || present.failed || absent.failed)
        return il__error_set(c->reterr, IL_NOMEM, "out of memory for a statement");
    return il__doctor_ask(c->db, il__buf_str(&text), NULL, 0, each, cookie, c->reterr);
}

/* Count the rows that a unique index, or a primary key, would refuse, with examples. */
static il_status
count_violations(struct checking *c, const char *const *columns, size_t n, bool primary)
{
    c->f.n_violations = 0;
    il_status st      = ask_rows(c, sql_twice_count, columns, n, add_number, &c->f.n_violations);
    if (st == IL_OK && c->f.n_violations > 0)
        st = ask_rows(c, sql_twice_some, columns, n, add_example, c);
    if (st == IL_OK && primary)
        st = ask_rows(c, sql_absent_count, columns, n, add_number, &c->f.n_violations);
    if (c->f.n_violations > 0)
        il__buf_addf(&c->means, "; %" PRId64 " %s this", c->f.n_violations,
                     c->f.n_violations == 1 ? "row violates" : "rows violate");
    return st;
}

/* ---- primary key ----------------------------------------------------------------------------- */

/* The columns that could be it: id, or those of a unique index. */
static size_t
key_candidate(const struct doctor_table *t, const char **columns)
{
    size_t n = 0;

    if (il__doctor_column(t, "id") != NULL) {
        columns[0] = "id";
        return 1;
    }
    for (const struct doctor_key *k = t->indexes; k != NULL && n == 0; k = k->next) {
        bool fits = k->is_unique && k->is_valid && k->where == NULL;
        for (size_t i = 0; i < k->n_columns; i++)
            fits = fits && k->columns[i] != NULL;
        for (size_t i = 0; fits && i < k->n_columns; i++)
            columns[n++] = k->columns[i];
    }
    return n;
}

static il_status
check_primary_key(struct checking *c)
{
    const struct doctor_table *t = c->t;
    const char                *columns[DOCTOR_KEY_COLUMNS_MAX];
    size_t                     n  = key_candidate(t, columns);
    il_status                  st = IL_OK;

    begin(c, DOCTOR_PRIMARY_KEY);
    il__buf_adds(&c->name, "primary key");
    if (t->primary != NULL) {
        add_plain(&c->value, t->primary->columns, t->primary->n_columns);
        il__buf_adds(&c->means, "every row can be identified and locked");
        return report(c, IL__FINDING_GOOD);
    }
    il__buf_adds(&c->value, "missing");
    il__buf_adds(&c->means, "rows cannot be locked individually or told from duplicates");
    if (c->db->path != NULL)
        il__buf_adds(&c->means,
                     "; SQLite cannot add one: create a new table, copy the rows, rename it");
    if (c->db->path != NULL || t->is_partitioned)
        return report(c, IL__FINDING_WARN);
    add_quoted(&c->columns, columns, n, ", ", "");
    const struct fill fills[] = { { "table", t->target }, { "columns", il__buf_str(&c->columns) } };
    fill(&c->fix, n > 0 ? sql_fix_primary_key : sql_fix_identity, fills, ARRAY_LEN(fills));
    if (n > 0)
        st = count_violations(c, columns, n, true);
    return st == IL_OK ? report(c, IL__FINDING_WARN) : st;
}

/* ---- idempotency keys ------------------------------------------------------------------------ */

static bool
ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);

    return n >= n_end && strcasecmp(text + n - n_end, end) == 0;
}

static bool
is_tenant(const char *column)
{
    return column != NULL &&
           (strcasecmp(column, "tenant") == 0 || strcasecmp(column, "tenant_id") == 0);
}

/* A table of amounts. */
static bool
is_ledger(const struct doctor_table *t)
{
    for (const struct doctor_column *c = t->columns; c != NULL; c = c->next) {
        if (strcasecmp(c->name, "amount") == 0 || ends_with(c->name, "_amount") ||
            strcasecmp(c->name, "balance_after") == 0)
            return true;
    }
    return false;
}

static bool
is_idempotency_key(const struct doctor_table *t, const struct doctor_column *c)
{
    return strcasestr(c->name, "idempotency_key") != NULL ||
           (ends_with(c->name, "_key") && is_ledger(t));
}

/* Does the condition of a partial index say only that the column is not NULL? NULLs may be there
 * twice anyway. */
static bool
is_not_null(const char *where, const char *column)
{
    char   text[IL_GUARD_NAME_BYTES_MAX + 32], wanted[IL_GUARD_NAME_BYTES_MAX + 32];
    size_t n = 0;

    for (; *where != '\0' && n < sizeof text - 1; where++) {
        if (strchr(" \t\r\n()\"`[];", *where) == NULL)
            text[n++] = *where;
    }
    text[n] = '\0';
    (void)snprintf(wanted, sizeof wanted, "%sISNOTNULL", column);
    if (*where == '\0' && strcasecmp(text, wanted) == 0)
        return true;
    (void)snprintf(wanted, sizeof wanted, "%sNOTNULL", column);
    return *where == '\0' && strcasecmp(text, wanted) == 0;
}

/* Is it unique on this column, per tenant at most? */
static bool
is_unique_on(const struct doctor_key *k, const char *column)
{
    bool has = false;

    if (!k->is_unique || (k->where != NULL && !is_not_null(k->where, column)))
        return false;
    for (size_t i = 0; i < k->n_columns; i++) {
        if (k->columns[i] != NULL && strcmp(k->columns[i], column) == 0)
            has = true;
        else if (!is_tenant(k->columns[i]))
            return false;
    }
    return has;
}

static const char *
tenant_of(const struct doctor_table *t)
{
    for (const struct doctor_column *c = t->columns; c != NULL; c = c->next) {
        if (is_tenant(c->name))
            return c->name;
    }
    return NULL;
}

static il_status
check_idempotency_key(struct checking *c, const struct doctor_column *key)
{
    const char              *columns[2];
    size_t                   n     = 0;
    const struct doctor_key *found = NULL;

    if (tenant_of(c->t) != NULL)
        columns[n++] = tenant_of(c->t);
    columns[n++] = key->name;
    for (const struct doctor_key *k = c->t->indexes; k != NULL; k = k->next) {
        if (is_unique_on(k, key->name) && (found == NULL || !found->is_valid))
            found = k;
    }
    begin(c, DOCTOR_IDEMPOTENCY_KEY);
    il__buf_adds(&c->name, "unique (");
    add_plain(&c->name, columns, n);
    il__buf_adds(&c->name, ")");
    if (found != NULL && found->is_valid) {
        il__buf_adds(&c->value, found->name);
        il__buf_adds(&c->means, "a request cannot be stored twice");
        return report(c, IL__FINDING_GOOD);
    }
    il__buf_addf(&c->value, "%s%s", found != NULL ? found->name : "missing",
                 found != NULL ? " is invalid" : "");
    il__buf_adds(&c->means, "two requests with the same key can both be stored");
    il_status st = count_violations(c, columns, n, false);
    if (c->t->is_partitioned)
        il__buf_adds(&c->means, "; a unique index of a partitioned table needs its partition key");
    else if (st == IL_OK)
        st = index_fix(c, sql_fix_unique, found, columns, n);
    if (st != IL_OK)
        return st;
    return report(c, c->f.n_violations > 0 ? IL__FINDING_BAD : IL__FINDING_WARN);
}

static il_status
check_idempotency_keys(struct checking *c)
{
    il_status st = IL_OK;

    for (const struct doctor_column *k = c->t->columns; st == IL_OK && k != NULL; k = k->next) {
        if (is_idempotency_key(c->t, k))
            st = check_idempotency_key(c, k);
    }
    return st;
}

/* ---- indexes of worker queries --------------------------------------------------------------- */

/* Does the table have a column that only a table of jobs has? */
static bool
is_claimed(const struct doctor_table *t)
{
    static const char *const begins[] = {
        "claim", "lock", "lease", "worker", "attempt", "heartbeat"
    };

    for (const struct doctor_column *c = t->columns; c != NULL; c = c->next) {
        for (size_t i = 0; i < ARRAY_LEN(begins); i++) {
            if (strncasecmp(c->name, begins[i], strlen(begins[i])) == 0)
                return true;
        }
    }
    return false;
}

/* Does the index begin with these columns, after a tenant or queue at most? */
static enum il__serves
serves(const struct doctor_key *k, const char *state, const char *time, bool running)
{
    size_t i = 0;

    while (i < k->n_columns && k->columns[i] != NULL &&
           (is_tenant(k->columns[i]) || strcasecmp(k->columns[i], "queue") == 0))
        i++;
    if (i + 2 > k->n_columns || k->columns[i] == NULL || strcmp(k->columns[i], state) != 0 ||
        k->columns[i + 1] == NULL || strcmp(k->columns[i + 1], time) != 0)
        return IL__SERVES_NOT;
    return k->where == NULL ? IL__SERVES : il__partial_index_serves(k->where, state, running);
}

static il_status
check_worker_index(struct checking *c, const char *state, const char *time, bool running)
{
    const char              *columns[] = { state, time };
    enum il__serves          best      = IL__SERVES_NOT;
    const struct doctor_key *found     = NULL;

    for (const struct doctor_key *k = c->t->indexes; k != NULL; k = k->next) {
        enum il__serves this = serves(k, state, time, running);
        if (this > best || (found != NULL && this == best && !found->is_valid)) {
            best  = this;
            found = k;
        }
    }
    begin(c, DOCTOR_WORKER_INDEX);
    il__buf_addf(&c->name, "(%s, %s)", state, time);
    il__buf_addf(&c->value, "%s%s", found != NULL ? found->name : "missing",
                 found != NULL && !found->is_valid ? " is invalid" : "");
    if (found != NULL && found->is_valid) {
        il__buf_adds(&c->means, best == IL__SERVES_PERHAPS
                                    ? "partial index: check that its condition covers the jobs"
                                : running ? "an index finds jobs of dead workers"
                                          : "an index finds the next job");
        return report(c, best == IL__SERVES_PERHAPS ? IL__FINDING_NOTE : IL__FINDING_GOOD);
    }
    il__buf_adds(&c->means, running ? "finding jobs of dead workers scans the table"
                                    : "finding the next job scans the table");
    il_status st = index_fix(c, sql_fix_index, found, columns, ARRAY_LEN(columns));
    return st == IL_OK ? report(c, IL__FINDING_WARN) : st;
}

static il_status
check_worker_indexes(struct checking *c)
{
    const char *state = il__doctor_column(c->t, "status") != NULL  ? "status"
                        : il__doctor_column(c->t, "state") != NULL ? "state"
                                                                   : NULL;
    il_status   st    = IL_OK;

    if (state == NULL || !is_claimed(c->t))
        return IL_OK;
    if (il__doctor_column(c->t, "created_at") != NULL)
        st = check_worker_index(c, state, "created_at", false);
    if (st == IL_OK && il__doctor_column(c->t, "updated_at") != NULL)
        st = check_worker_index(c, state, "updated_at", true);
    return st;
}

/* ---- foreign keys ---------------------------------------------------------------------------- */

/* Are the first columns of the index those of the foreign key, in any order? */
static bool
finds_children(const struct doctor_key *index, const struct doctor_key *key)
{
    if (index->n_columns < key->n_columns ||
        (index->where != NULL &&
         (key->n_columns > 1 || !is_not_null(index->where, key->columns[0]))))
        return false;
    for (size_t i = 0; i < key->n_columns; i++) {
        bool found = false;
        for (size_t j = 0; j < key->n_columns; j++)
            found = found ||
                    (index->columns[j] != NULL && strcmp(index->columns[j], key->columns[i]) == 0);
        if (!found)
            return false;
    }
    return true;
}

static il_status
check_foreign_key(struct checking *c, const struct doctor_key *key)
{
    const struct doctor_key *found = NULL;

    for (const struct doctor_key *k = c->t->indexes; k != NULL; k = k->next) {
        if (finds_children(k, key) && (found == NULL || !found->is_valid))
            found = k;
    }
    begin(c, DOCTOR_FOREIGN_KEY);
    il__buf_adds(&c->name, "index (");
    add_plain(&c->name, key->columns, key->n_columns);
    il__buf_adds(&c->name, ")");
    if (found != NULL && found->is_valid) {
        il__buf_adds(&c->value, found->name);
        il__buf_addf(&c->means, "an index finds rows that refer to %s", key->parent);
        return report(c, IL__FINDING_GOOD);
    }
    il__buf_addf(&c->value, "%s%s", found != NULL ? found->name : "missing",
                 found != NULL ? " is invalid" : "");
    il__buf_addf(&c->means,
                 "deleting a row of %s or changing its key scans this table while holding locks",
                 key->parent);
    il_status st = index_fix(c, sql_fix_index, found, key->columns, key->n_columns);
    return st == IL_OK ? report(c, IL__FINDING_WARN) : st;
}

/* ---- counters -------------------------------------------------------------------------------- */

static il_status
check_counters(struct checking *c)
{
    il_status st = IL_OK;

    for (const struct doctor_column *k = c->t->columns; st == IL_OK && k != NULL; k = k->next) {
        if (!k->is_int || (!ends_with(k->name, "_count") && !ends_with(k->name, "_total") &&
                           !ends_with(k->name, "_balance")))
            continue;
        const char *invariant = NULL;
        st                    = il__doctor_mentioned(c->db, c->t, k->name, &invariant, c->reterr);
        if (st != IL_OK)
            return st;
        begin(c, DOCTOR_COUNTER);
        il__buf_adds(&c->name, k->name);
        il__buf_adds(&c->value, invariant != NULL ? invariant : "no invariant");
        il__buf_adds(&c->means,
                     invariant != NULL
                         ? "checked by this invariant"
                         : "derived from other rows: recompute it on a schedule and compare");
        st = report(c, invariant != NULL ? IL__FINDING_GOOD : IL__FINDING_NOTE);
    }
    return st;
}

il_status
il__doctor_check_table(struct doctor_database *db, const struct doctor_table *t,
                       doctor_finding_fn *each, void *cookie, il_error *reterr)
{
    struct checking AUTO(checking_release)
        c        = { .db = db, .t = t, .each = each, .cookie = cookie, .reterr = reterr };
    il_status st = check_primary_key(&c);

    if (st == IL_OK)
        st = check_idempotency_keys(&c);
    if (st == IL_OK)
        st = check_worker_indexes(&c);
    for (const struct doctor_key *k = t->foreign_keys; st == IL_OK && k != NULL; k = k->next)
        st = check_foreign_key(&c, k);
    return st == IL_OK ? check_counters(&c) : st;
}
