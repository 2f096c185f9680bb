/*
 * doctor_catalogue.c: tables as the database's catalogue describes them: columns, indexes, foreign
 * keys. Both engines answer with the same columns; the statements are in sql/doctor_*.sql. Decides
 * nothing: that is doctor_checks.c.
 */
#include <ctype.h>
#include <strings.h>

#include "base/arena.h"
#include "base/error.h"
#include "cli/doctor.h"

#include "doctor_postgres_sql.inc"
#include "doctor_sqlite_sql.inc"

#define TABLES_MAX 10000
#define VALUES_MAX 2

enum text {
    TEXT_FIND,
    TEXT_LIST,
    TEXT_COLUMNS,
    TEXT_INDEXES,
    TEXT_FOREIGN_KEYS,
    TEXT_TAKEN,
    TEXT_CONSTRAINTS,
    TEXT_COUNT
};

static const char *
text_of(const struct doctor_database *db, enum text text)
{
    static const char *const sqlite[TEXT_COUNT]   = { sql_sqlite_find,         sql_sqlite_list,
                                                      sql_sqlite_columns,      sql_sqlite_indexes,
                                                      sql_sqlite_foreign_keys, sql_sqlite_taken,
                                                      sql_sqlite_constraints };
    static const char *const postgres[TEXT_COUNT] = {
        sql_postgres_find,       sql_postgres_list,         sql_postgres_columns,
        sql_postgres_indexes,    sql_postgres_foreign_keys, sql_postgres_taken,
        sql_postgres_constraints
    };

    return db->path != NULL ? sqlite[text] : postgres[text];
}

static il_status
out_of_memory(il_error *reterr)
{
    return il__error_set(reterr, IL_NOMEM, "out of memory for the catalogue of a database");
}

il_status
il__doctor_ask(struct doctor_database *db, const char *sql, const char *const *values,
               size_t n_values, il_guard_row_fn *each, void *cookie, il_error *reterr)
{
    il_guard_value bound[VALUES_MAX];

    CHECK(n_values <= ARRAY_LEN(bound));
    for (size_t i = 0; i < n_values; i++)
        bound[i] = il_guard_text(values[i]);
    il_guard_query q = { .sql      = sql,
                         .values   = bound,
                         .n_values = n_values,
                         .flags    = IL_GUARD_AS_TEXT,
                         .each     = each,
                         .cookie   = cookie };
    return il_guard_exec(db->tx, &q, NULL, reterr);
}

const char *
il__doctor_text(const il_guard_row *row, size_t i)
{
    CHECK(i < row->n);
    return row->values[i].type == IL_GUARD_NULL ? NULL : row->values[i].data;
}

static bool
is_set(const il_guard_row *row, size_t i)
{
    const char *text = il__doctor_text(row, i);

    return text != NULL && strcmp(text, "0") != 0;
}

void
il__doctor_quote(struct il__buf *out, const char *name)
{
    il__buf_addc(out, '"');
    for (; *name != '\0'; name++) {
        if (*name == '"')
            il__buf_addc(out, '"');
        il__buf_addc(out, *name);
    }
    il__buf_addc(out, '"');
}

/* Where rows go. */
struct reading {
    struct doctor_database *db;
    struct doctor_table    *tables, *last_table;
    struct doctor_table    *table; /* whose parts are read */
    struct doctor_column   *last_column;
    struct doctor_key     **keys; /* the indexes or the foreign keys */
    struct doctor_key      *last_key;
    size_t                  n_tables;
    bool                    is_other; /* a view */
    bool                    failed;
};

static char *
copy(struct reading *r, const char *text)
{
    char *made = text != NULL ? il__arena_strdup(&r->db->mem, text) : NULL;

    r->failed = r->failed || (text != NULL && made == NULL);
    return made;
}

static void *
make(struct reading *r, size_t n_bytes)
{
    void *made = il__arena_alloc(&r->db->mem, n_bytes);

    if (made != NULL)
        memset(made, 0, n_bytes);
    r->failed = r->failed || made == NULL;
    return made;
}

/* ---- columns --------------------------------------------------------------------------------- */

static int
take_column(void *cookie, const il_guard_row *row)
{
    struct reading       *r     = cookie;
    struct doctor_column *c     = make(r, sizeof *c);
    const char           *place = il__doctor_text(row, 2);

    if (c == NULL)
        return 0;
    c->name   = copy(r, il__doctor_text(row, 0));
    c->is_int = is_set(row, 1);
    c->place  = place != NULL ? (size_t)strtoul(place, NULL, 10) : 0;
    if (r->last_column != NULL)
        r->last_column->next = c;
    else
        r->table->columns = c;
    r->last_column = c;
    return !r->failed;
}

const struct doctor_column *
il__doctor_column(const struct doctor_table *t, const char *name)
{
    for (const struct doctor_column *c = t->columns; c != NULL; c = c->next) {
        if (strcmp(c->name, name) == 0)
            return c;
    }
    return NULL;
}

/* The primary key of SQLite's ordinary tables is in no list of indexes. */
static void
add_primary(struct reading *r)
{
    struct doctor_table *t = r->table;
    struct doctor_key   *k = NULL;

    for (const struct doctor_column *c = t->columns; c != NULL; c = c->next) {
        if (c->place == 0 || c->place > DOCTOR_KEY_COLUMNS_MAX)
            continue;
        if (k == NULL && (k = make(r, sizeof *k)) == NULL)
            return;
        k->columns[c->place - 1] = c->name;
        k->n_columns             = MAX(k->n_columns, c->place);
    }
    if (k == NULL)
        return;
    k->name      = "primary key";
    k->is_unique = k->is_valid = true;
    k->next                    = t->indexes;
    t->indexes = t->primary = k;
}

/* ---- indexes and foreign keys ---------------------------------------------------------------- */

/* The last character of what is quoted ('...', "...", `...`, [...]) or a comment; else `at`. */
static const char *
skip_quoted(const char *at)
{
    const char *end = NULL;

    if (at[0] == '-' && at[1] == '-')
        return at + strcspn(at, "\n") - 1;
    if (at[0] == '/' && at[1] == '*')
        end = strstr(at + 2, "*/");
    else if (strchr("'\"`[", *at) != NULL)
        end = strchr(at + 1, *at == '[' ? ']' : *at);
    return end != NULL ? end : at;
}

/* The next place of a word in SQL text, in any case and outside of quotes and, unless inside, of
 * parentheses; NULL: none. */
static const char *
find_word(const char *sql, const char *word, bool inside)
{
    size_t n     = strlen(word);
    int    depth = 0;
    bool   part  = false;

    for (const char *at = sql; *at != '\0'; at++) {
        if (!part && (depth == 0 || inside) && strncasecmp(at, word, n) == 0 &&
            !isalnum((unsigned char)at[n]) && at[n] != '_')
            return at;
        part = isalnum((unsigned char)*at) || *at == '_';
        depth += (*at == '(') - (*at == ')');
        at = skip_quoted(at);
    }
    return NULL;
}

/* The condition of a partial index: SQLite has it only as part of CREATE INDEX. */
static const char *
condition_of(const struct reading *r, const char *text)
{
    const char *where = text;

    if (text != NULL && r->db->path != NULL) {
        where = find_word(text, "WHERE", false);
        where = where != NULL ? where + strlen("WHERE") : text;
    }
    return where;
}

/* A row is a column of a key; those of one key follow each other. */
static int
take_key(void *cookie, const il_guard_row *row)
{
    struct reading    *r    = cookie;
    struct doctor_key *k    = r->last_key;
    const char        *name = il__doctor_text(row, 0);

    if (k == NULL || strcmp(k->name, name) != 0) {
        k = make(r, sizeof *k);
        if (k == NULL || (k->name = copy(r, name)) == NULL)
            return 0;
        k->is_unique = is_set(row, 1);
        k->is_valid  = is_set(row, 2);
        k->where     = copy(r, condition_of(r, il__doctor_text(row, 3)));
        k->parent    = copy(r, il__doctor_text(row, 5));
        if (r->last_key != NULL)
            r->last_key->next = k;
        else
            *r->keys = k;
        r->last_key = k;
    }
    if (k->n_columns < DOCTOR_KEY_COLUMNS_MAX)
        k->columns[k->n_columns++] = copy(r, il__doctor_text(row, 4));
    return !r->failed;
}

static int
take_checks(void *cookie, const il_guard_row *row)
{
    struct reading *r  = cookie;
    const char     *at = il__doctor_text(row, 0);

    for (at = at != NULL ? find_word(at, "CHECK", true) : NULL; at != NULL;
         at = find_word(at + strlen("CHECK"), "CHECK", true))
        r->table->n_checks++;
    return 0;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int
take_table(void *cookie, const il_guard_row *row)
{
    struct reading         *r      = cookie;
    struct doctor_table    *t      = make(r, sizeof *t);
    AUTO_BUF struct il__buf quoted = { 0 }, target = { 0 };

    if (t == NULL || ++r->n_tables > TABLES_MAX)
        return 0;
    t->schema         = copy(r, il__doctor_text(row, 0));
    t->name           = copy(r, il__doctor_text(row, 1));
    t->is_partitioned = strcmp(il__doctor_text(row, 2), "partitioned") == 0;
    r->is_other       = !t->is_partitioned && strcmp(il__doctor_text(row, 2), "table") != 0;
    if (r->failed)
        return 0;
    il__buf_init(&quoted, DOCTOR_TEXT_BYTES_MAX);
    il__buf_init(&target, DOCTOR_TEXT_BYTES_MAX);
    il__doctor_quote(&quoted, t->schema);
    il__buf_addc(&quoted, '.');
    il__doctor_quote(&quoted, t->name);
    il__doctor_quote(&target, t->name);
    t->quoted = copy(r, il__buf_str(&quoted));
    /* SQLite: the schema would be in the name of the index */
    t->target = r->db->path != NULL ? copy(r, il__buf_str(&target)) : t->quoted;
    if (r->last_table != NULL)
        r->last_table->next = t;
    else
        r->tables = t;
    r->last_table = t;
    return !r->failed;
}

static il_status
read_part(struct reading *r, enum text text, struct doctor_key **keys, il_guard_row_fn *each,
          il_error *reterr)
{
    const char *values[] = { r->table->schema, r->table->name };

    r->keys     = keys;
    r->last_key = NULL;
    return il__doctor_ask(r->db, text_of(r->db, text), values, ARRAY_LEN(values), each, r, reterr);
}

static il_status
read_table(struct doctor_database *db, struct doctor_table *t, il_error *reterr)
{
    struct reading r  = { .db = db, .table = t };
    il_status      st = read_part(&r, TEXT_COLUMNS, NULL, take_column, reterr);

    if (st == IL_OK)
        st = read_part(&r, TEXT_INDEXES, &t->indexes, take_key, reterr);
    if (st == IL_OK)
        st = read_part(&r, TEXT_FOREIGN_KEYS, &t->foreign_keys, take_key, reterr);
    if (st == IL_OK)
        st = read_part(&r, TEXT_CONSTRAINTS, NULL, take_checks, reterr);
    if (st == IL_OK)
        add_primary(&r);
    return st == IL_OK && r.failed ? out_of_memory(reterr) : st;
}

il_status
il__doctor_read(struct doctor_database *db, const char *name, struct doctor_table **ret,
                il_error *reterr)
{
    AUTO_BUF struct il__buf quoted = { 0 };
    struct reading          r      = { .db = db };
    il_status               st     = IL_OK;

    il__buf_init(&quoted, DOCTOR_TEXT_BYTES_MAX);
    if (name != NULL)
        st = il__guard_quote(db->tx, name, NULL, &quoted, reterr);
    if (st != IL_OK)
        return st;
    const char *value = il__buf_str(&quoted);
    st = il__doctor_ask(db, text_of(db, name != NULL ? TEXT_FIND : TEXT_LIST), &value, name != NULL,
                        take_table, &r, reterr);
    if (st == IL_OK && r.failed)
        st = out_of_memory(reterr);
    if (st == IL_OK && r.is_other)
        st = il__error_set(reterr, IL_INVAL, "%.200s is not a table", name != NULL ? name : "it");
    if (st == IL_OK && r.n_tables > TABLES_MAX)
        st = il__error_set(reterr, IL_INVAL, "the schema has more than %d tables", TABLES_MAX);
    for (struct doctor_table *t = r.tables; st == IL_OK && t != NULL; t = t->next)
        st = read_table(db, t, reterr);
    if (st == IL_OK)
        *ret = r.tables;
    return st;
}

static int
take_taken(void *cookie, const il_guard_row *row)
{
    bool *taken = cookie;

    *taken = is_set(row, 0);
    return 0;
}

il_status
il__doctor_is_taken(struct doctor_database *db, const struct doctor_table *t, const char *name,
                    bool *ret, il_error *reterr)
{
    const char *values[] = { t->schema, name };

    return il__doctor_ask(db, text_of(db, TEXT_TAKEN), values, ARRAY_LEN(values), take_taken, ret,
                          reterr);
}
