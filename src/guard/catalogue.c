/*
 * catalogue.c: tables, columns and primary keys as the database's catalogue has them. Identifiers
 * cannot be bound: this is the only place where a name becomes SQL text, and only as the catalogue
 * spells it. What was found is kept for as long as the connection lives.
 */
#include "base/error.h"
#include "guard/guard_internal.h"

struct guard_name {
    struct guard_name *next;
    char              *asked; /* as the caller named it */
    char              *name;  /* as the catalogue has it */
    char              *quoted;
};

/* ---- the catalogue's answers ----------------------------------------------------------------- */

/* Up to two texts of the first row, copied. */
struct found {
    bool  there;
    char *names[2];
};

static void
found_release(struct found *f)
{
    il__free(f->names[0]);
    il__free(f->names[1]);
}

static int
take_names(void *cookie, const il_guard_row *row)
{
    struct found *f = cookie;

    f->there = true;
    for (size_t i = 0; i < row->n && i < ARRAY_LEN(f->names); i++)
        f->names[i] = il__strdup(row->values[i].data != NULL ? row->values[i].data : "");
    return 0;
}

static il_status
out_of_memory(il_error *reterr)
{
    return il__error_set(reterr, IL_NOMEM, "out of memory for a name");
}

static char *
quote(const char *name, char mark)
{
    AUTO_BUF struct il__buf out = { 0 };

    il__buf_init(&out, 4 * IL_GUARD_NAME_BYTES_MAX);
    il__buf_addc(&out, mark);
    for (; *name != '\0'; name++) {
        if (*name == mark)
            il__buf_addc(&out, mark);
        il__buf_addc(&out, *name);
    }
    il__buf_addc(&out, mark);
    return il__buf_take(&out);
}

/* For a statement that may run after the name has changed: SQLite takes a name in double quotes
 * that it does not know for a string. */
static char *
quote_kept(const struct guard_conn *c, const char *name)
{
    return quote(name, c->ops->is_postgres ? '"' : '`');
}

static il_status
ask(il_guard_tx *tx, enum guard_text text, const char *const *texts, size_t n,
    il_guard_row_fn *each, void *cookie, il_error *reterr)
{
    il_guard_value values[3];

    CHECK(n <= ARRAY_LEN(values));
    for (size_t i = 0; i < n; i++)
        values[i] = il_guard_text(texts[i]);
    struct guard_statement s = { .sql      = tx->c->ops->texts[text],
                                 .values   = values,
                                 .n_values = n,
                                 .each     = each,
                                 .cookie   = cookie };
    return il__guard_run(tx, &s, reterr);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static il_status
look(il_guard_tx *tx, const char *schema, const char *table, struct found *f, il_error *reterr)
{
    const char *texts[] = { schema, table };

    il_status st = ask(tx, GUARD_TEXT_TABLE, texts, 2, take_names, f, reterr);
    if (st == IL_OK && f->there && (f->names[0] == NULL || f->names[1] == NULL))
        st = out_of_memory(reterr);
    return st;
}

/* Try the whole name first: a dot may be part of it. Then try each dot as the one after the
 * schema. */
static il_status
find_table(il_guard_tx *tx, const char *name, struct found *f, il_error *reterr)
{
    char schema[IL_GUARD_NAME_BYTES_MAX + 1];

    il_status st = look(tx, NULL, name, f, reterr);
    for (const char *dot = strchr(name, '.'); st == IL_OK && !f->there && dot != NULL;
         dot             = strchr(dot + 1, '.')) {
        (void)snprintf(schema, sizeof schema, "%.*s", (int)(dot - name), name);
        st = look(tx, schema, dot + 1, f, reterr);
    }
    if (st == IL_OK && !f->there)
        st = il__error_set(reterr, IL_NOT_FOUND, "no such table: %s", name);
    return st;
}

struct key_columns {
    const struct guard_conn *c;
    struct guard_table      *t;
    bool                     failed, too_many;
};

/* Rows of name and 1 if its type is an integer, in the order of the primary key. */
static int
take_key(void *cookie, const il_guard_row *row)
{
    struct key_columns *k = cookie;
    struct guard_table *t = k->t;

    if (t->n_key == IL_GUARD_KEY_COLUMNS_MAX) {
        k->too_many = true;
        return 0;
    }
    const char *name           = row->values[0].data;
    t->key[t->n_key]           = il__strdup(name);
    t->key_quoted[t->n_key]    = quote_kept(k->c, name);
    t->key_is_int[t->n_key]    = row->values[1].integer == 1;
    t->key_is_number[t->n_key] = row->values[1].integer != 0;
    k->failed                  = t->key[t->n_key] == NULL || t->key_quoted[t->n_key] == NULL;
    t->n_key++;
    return !k->failed;
}

static il_status
find_key(il_guard_tx *tx, struct guard_table *t, il_error *reterr)
{
    const char        *texts[] = { t->schema, t->name };
    struct key_columns k       = { .c = tx->c, .t = t };

    il_status st = ask(tx, GUARD_TEXT_PRIMARY_KEY, texts, 2, take_key, &k, reterr);
    if (st == IL_OK && k.failed)
        return out_of_memory(reterr);
    if (st == IL_OK && k.too_many)
        return il__error_set(reterr, IL_INVAL, "table %s: the primary key has more than %d columns",
                             t->asked, IL_GUARD_KEY_COLUMNS_MAX);
    return st;
}

static void
name_free(struct guard_name *c)
{
    il__free(c->asked);
    il__free(c->name);
    il__free(c->quoted);
    il__free(c);
}

static void
table_free(struct guard_table *t)
{
    for (struct guard_name *c = t->columns, *next; c != NULL; c = next) {
        next = c->next;
        name_free(c);
    }
    for (size_t i = 0; i < IL_GUARD_KEY_COLUMNS_MAX; i++) {
        il__free(t->key[i]);
        il__free(t->key_quoted[i]);
    }
    il__free(t->asked);
    il__free(t->schema);
    il__free(t->name);
    il__free(t->quoted);
    il__free(t);
}
DEFINE_AUTO(struct guard_table, table_free)

static void
tables_free(struct guard_table **list)
{
    for (struct guard_table *t = *list, *next; t != NULL; t = next) {
        next = t->next;
        table_free(t);
    }
    *list = NULL;
}

void
il__guard_names_release(struct guard_conn *c)
{
    tables_free(&c->tables);
    tables_free(&c->outdated);
}

void
il__guard_names_outdate(struct guard_conn *c)
{
    struct guard_table **last = &c->outdated;

    while (*last != NULL)
        last = &(*last)->next;
    *last     = c->tables;
    c->tables = NULL;
}

static il_status
table_new(il_guard_tx *tx, const char *name, struct guard_table **ret, il_error *reterr)
{
    struct found                          AUTO(found_release) f = { 0 };
    AUTO(table_freep) struct guard_table *t                     = NULL;

    il_status st = find_table(tx, name, &f, reterr);
    if (st != IL_OK)
        return st;
    t = il__calloc(1, sizeof *t);
    if (t == NULL)
        return out_of_memory(reterr);
    AUTO_BUF struct il__buf quoted = { 0 };
    AUTO_FREE char *schema = quote_kept(tx->c, f.names[0]), *table = quote_kept(tx->c, f.names[1]);
    il__buf_init(&quoted, 8 * IL_GUARD_NAME_BYTES_MAX);
    if (schema != NULL && table != NULL)
        il__buf_addf(&quoted, "%s.%s", schema, table);
    t->asked  = il__strdup(name);
    t->schema = TAKE(f.names[0]);
    t->name   = TAKE(f.names[1]);
    t->quoted = il__buf_take(&quoted);
    if (schema == NULL || table == NULL || t->asked == NULL || t->quoted == NULL)
        return out_of_memory(reterr);
    st = find_key(tx, t, reterr);
    if (st == IL_OK)
        *ret = TAKE(t);
    return st;
}

static il_status
check_name(const char *name, il_error *reterr)
{
    if (name == NULL)
        return il__error_set(reterr, IL_INVAL, "no table or column name given");
    if (strlen(name) > IL_GUARD_NAME_BYTES_MAX)
        return il__error_set(reterr, IL_NOT_FOUND, "table or column name longer than %d bytes",
                             IL_GUARD_NAME_BYTES_MAX);
    return IL_OK;
}

il_status
il__guard_table(il_guard_tx *tx, const char *name, struct guard_table **ret, il_error *reterr)
{
    struct guard_table *t = NULL;

    il_status st = check_name(name, reterr);
    if (st == IL_OK)
        st = il__guard_usable(tx, reterr);
    if (st != IL_OK)
        return st;
    for (t = tx->c->tables; t != NULL && strcmp(t->asked, name) != 0;)
        t = t->next;
    if (t == NULL) {
        st = table_new(tx, name, &t, reterr);
        if (st != IL_OK)
            return st;
        CHECK(t != NULL);
        t->next       = tx->c->tables;
        tx->c->tables = t;
    }
    *ret = t;
    return IL_OK;
}

/* ---- columns --------------------------------------------------------------------------------- */

static il_status
column_new(il_guard_tx *tx, struct guard_table *t, const char *name, struct guard_name **ret,
           il_error *reterr)
{
    const char  *texts[]               = { t->schema, t->name, name };
    struct found AUTO(found_release) f = { 0 };

    il_status st = ask(tx, GUARD_TEXT_COLUMN, texts, 3, take_names, &f, reterr);
    if (st == IL_OK && !f.there)
        return il__error_set(reterr, IL_NOT_FOUND, "table %s has no column %s", t->asked, name);
    if (st != IL_OK)
        return st;
    struct guard_name *c = il__calloc(1, sizeof *c);
    if (c == NULL)
        return out_of_memory(reterr);
    c->asked  = il__strdup(name);
    c->name   = TAKE(f.names[0]);
    c->quoted = c->name != NULL ? quote_kept(tx->c, c->name) : NULL;
    if (c->asked == NULL || c->quoted == NULL) {
        name_free(c);
        return out_of_memory(reterr);
    }
    *ret = c;
    return IL_OK;
}

static il_status
find_column(il_guard_tx *tx, struct guard_table *t, const char *name, struct guard_name **ret,
            il_error *reterr)
{
    struct guard_name *c = NULL;

    il_status st = check_name(name, reterr);
    if (st != IL_OK)
        return st;
    for (c = t->columns; c != NULL && strcmp(c->asked, name) != 0;)
        c = c->next;
    if (c == NULL) {
        st = column_new(tx, t, name, &c, reterr);
        if (st != IL_OK)
            return st;
        CHECK(c != NULL);
        c->next    = t->columns;
        t->columns = c;
    }
    *ret = c;
    return IL_OK;
}

il_status
il__guard_column(il_guard_tx *tx, struct guard_table *t, const char *name, const char **ret,
                 il_error *reterr)
{
    struct guard_name *c = NULL;

    il_status st = find_column(tx, t, name, &c, reterr);
    if (st != IL_OK)
        return st;
    CHECK(c != NULL);
    *ret = c->quoted;
    return IL_OK;
}

/* Standard quotes: the statement is run at once, or shown to people. */
il_status
il__guard_quote(il_guard_tx *tx, const char *table, const char *column, struct il__buf *out,
                il_error *reterr)
{
    struct guard_table *t = NULL;
    struct guard_name  *c = NULL;

    il_status st = il__guard_table(tx, table, &t, reterr);
    if (st == IL_OK && column != NULL)
        st = find_column(tx, t, column, &c, reterr);
    if (st != IL_OK)
        return st;
    CHECK(t != NULL);
    AUTO_FREE char *first  = quote(c != NULL ? c->name : t->schema, '"');
    AUTO_FREE char *second = c == NULL ? quote(t->name, '"') : NULL;
    if (first == NULL || (c == NULL && second == NULL))
        return out_of_memory(reterr);
    il__buf_adds(out, first);
    if (second != NULL)
        il__buf_addf(out, ".%s", second);
    return out->failed ? out_of_memory(reterr) : IL_OK;
}
