/*
 * name.c: identifiers in SQL text. They cannot be bound, so only names as spelled in the catalogue
 * are used, in quotes.
 */
#include "base/error.h"
#include "guard/guard_internal.h"

struct found {
    bool  there;
    char *names[2]; /* owned */
};

static bool
take_names(void *cookie, const struct guard_row *row)
{
    struct found *f = cookie;

    f->there = true;
    for (size_t i = 0; i < row->n && i < ARRAY_LEN(f->names); i++) {
        il__free(f->names[i]);
        f->names[i] = il__strdup(row->values[i] != NULL ? row->values[i] : "");
    }
    return false;
}

static void
found_release(struct found *f)
{
    il__free(f->names[0]);
    il__free(f->names[1]);
}

static void
add_quoted(struct il__buf *out, const char *name)
{
    il__buf_addc(out, '"');
    for (; *name != '\0'; name++) {
        if (*name == '"')
            il__buf_addc(out, '"');
        il__buf_addc(out, *name);
    }
    il__buf_addc(out, '"');
}

static il_status
look(struct guard_tx *tx, const char *schema, const char *table, struct found *f, il_error *reterr)
{
    const char *values[] = { schema, table };

    il_status st = tx->c->ops->ask(tx->c, GUARD_TABLE, values, 2, take_names, f, reterr);
    if (st == IL_OK && f->there && (f->names[0] == NULL || f->names[1] == NULL))
        st = il__error_set(reterr, IL_NOMEM, "out of memory for a name");
    return st;
}

/* Try the whole name first: a dot may be part of it. Then try each dot as the one after the
 * schema. */
static il_status
find_table(struct guard_tx *tx, const char *name, struct found *f, il_error *reterr)
{
    char schema[GUARD_NAME_BYTES_MAX + 1];

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

static il_status
find_column(struct guard_tx *tx, const char *name, const struct found *table, const char *column,
            struct found *f, il_error *reterr)
{
    const char *values[] = { table->names[0], table->names[1], column };

    il_status st = tx->c->ops->ask(tx->c, GUARD_COLUMN, values, 3, take_names, f, reterr);
    if (st == IL_OK && !f->there)
        return il__error_set(reterr, IL_NOT_FOUND, "table %s has no column %s", name, column);
    if (st == IL_OK && f->names[0] == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for a name");
    return st;
}

il_status
il__guard_quote(struct guard_tx *tx, const char *table, const char *column, struct il__buf *out,
                il_error *reterr)
{
    struct found AUTO(found_release) t = { 0 };
    struct found AUTO(found_release) f = { 0 };

    CHECK(tx != NULL && table != NULL && out != NULL);
    if (tx->failed)
        return il__error_set(reterr, IL_STATE, "a statement of the transaction failed");
    if (strlen(table) > GUARD_NAME_BYTES_MAX ||
        (column != NULL && strlen(column) > GUARD_NAME_BYTES_MAX))
        return il__error_set(reterr, IL_NOT_FOUND, "table or column name longer than %d bytes",
                             GUARD_NAME_BYTES_MAX);
    il_status st = find_table(tx, table, &t, reterr);
    if (st == IL_OK && column != NULL)
        st = find_column(tx, table, &t, column, &f, reterr);
    if (st == IL_OK && column == NULL) {
        add_quoted(out, t.names[0]);
        il__buf_addc(out, '.');
        add_quoted(out, t.names[1]);
    } else if (st == IL_OK) {
        add_quoted(out, f.names[0]);
    } else if (st != IL_NOT_FOUND) {
        tx->failed = true;
    }
    if (st == IL_OK && out->failed)
        st = il__error_set(reterr, IL_NOMEM, "out of memory for a name");
    return st;
}

void
il__guard_fill(const char *text, const char *table, const char *column, struct il__buf *out)
{
    for (const char *at = strchr(text, '@'); at != NULL; at = strchr(text, '@')) {
        bool is_table = strncmp(at, "@table", 6) == 0;
        CHECK(is_table || (column != NULL && strncmp(at, "@column", 7) == 0));
        il__buf_add(out, text, (size_t)(at - text));
        il__buf_adds(out, is_table ? table : column);
        text = at + (is_table ? 6 : 7);
    }
    il__buf_adds(out, text);
}
