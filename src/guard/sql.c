/*
 * sql.c: statements with names filled in. Only names that the catalogue has given (catalogue.c) and
 * numbers of placeholders become SQL text; values are bound.
 */
#include "base/error.h"
#include "guard/guard_internal.h"

#define USUAL_TEXT_BYTES 250

void
il__guard_sql_init(struct guard_sql *q)
{
    il__buf_init(&q->text, GUARD_SQL_BYTES_MAX);
    char *room = il__buf_room(&q->text, USUAL_TEXT_BYTES);
    if (room != NULL) /* else the buffer has failed */
        *room = '\0';
    q->values   = q->few;
    q->n_values = 0;
}

void
il__guard_sql_release(struct guard_sql *q)
{
    il__buf_release(&q->text);
    if (q->values != q->few)
        il__free(q->values);
}

void
il__guard_sql_need(struct guard_sql *q, const struct il__buf *part)
{
    q->text.failed = q->text.failed || part->failed;
}

static bool
make_room(struct guard_sql *q)
{
    if (q->values != q->few || q->n_values < GUARD_VALUES_FEW)
        return true;
    il_guard_value *values = il__alloc(IL_GUARD_VALUES_MAX * sizeof *values);
    if (values == NULL)
        return false;
    memcpy(values, q->few, sizeof q->few);
    q->values = values;
    return true;
}

/* $1, $2, …; statements are built anew for each call, and printf would take half of the time. */
static void
add_placeholder(struct il__buf *out, size_t number)
{
    char  text[24];
    char *at = text + sizeof text;

    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    *--at = '$';
    il__buf_add(out, at, (size_t)(text + sizeof text - at));
}

bool
il__guard_sql_value(struct guard_sql *q, struct il__buf *out, il_guard_value value)
{
    if (q->n_values == IL_GUARD_VALUES_MAX || !il__guard_value_is_valid(&value))
        return false;
    if (!make_room(q)) {
        q->text.failed = true;
        return true;
    }
    q->values[q->n_values++] = value;
    add_placeholder(out, q->n_values);
    return true;
}

static il_status
bad_value(const char *column, il_error *reterr)
{
    return il__error_set(reterr, IL_INVAL,
                         "column %s: the value is not initialized, or the statement has more than "
                         "%d values",
                         column, IL_GUARD_VALUES_MAX);
}

il_status
il__guard_sql_where(il_guard_tx *tx, struct guard_table *t, const il_guard_column *key, size_t n,
                    const char *prefix, struct guard_sql *q, struct il__buf *out, il_error *reterr)
{
    for (size_t i = 0; i < n; i++) {
        const char *quoted = NULL;
        il_status   st     = il__guard_column(tx, t, key[i].name, &quoted, reterr);
        if (st != IL_OK)
            return st;
        il__buf_adds(out, i > 0 ? " AND " : "");
        il__buf_adds(out, prefix);
        il__buf_adds(out, quoted);
        if (key[i].value.type == IL_GUARD_NULL) {
            il__buf_adds(out, " IS NULL");
            continue;
        }
        il__buf_adds(out, " = ");
        if (!il__guard_sql_value(q, out, key[i].value))
            return bad_value(key[i].name, reterr);
    }
    return IL_OK;
}

void
il__guard_sql_key(const struct guard_table *t, struct il__buf *out)
{
    for (size_t i = 0; i < t->n_key; i++) {
        il__buf_adds(out, i > 0 ? ", " : "");
        il__buf_adds(out, t->key_quoted[i]);
    }
}

void
il__guard_sql_fill(const char *text, const struct guard_fill *fills, size_t n, struct il__buf *out)
{
    for (const char *at = strchr(text, '@'); at != NULL; at = strchr(text, '@')) {
        size_t i_best = n, n_best = 0;
        for (size_t i = 0; i < n; i++) { /* the longest name that fits: @key_text is not @key */
            if (fills[i].name[0] != at[1])
                continue;
            size_t n_name = strlen(fills[i].name);
            if (n_name > n_best && strncmp(at + 1, fills[i].name, n_name) == 0) {
                i_best = i;
                n_best = n_name;
            }
        }
        CHECK(i_best < n);
        il__buf_add(out, text, (size_t)(at - text));
        il__buf_adds(out, fills[i_best].text);
        text = at + 1 + n_best;
    }
    il__buf_adds(out, text);
}

void
il__guard_fill(const char *text, const char *table, const char *column, struct il__buf *out)
{
    const struct guard_fill fills[] = { { "table", table }, { "column", column } };

    il__guard_sql_fill(text, fills, column != NULL ? 2 : 1, out);
}
