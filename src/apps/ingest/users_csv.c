/*
 * users_csv.c: reads users from CSV.
 *
 * The reader is our own: libcsv counts rows, not lines, but a user fixing a large file needs the
 * line number. The text of a row is collected in a buffer that grows: its size is not computed
 * before.
 */
#include <ctype.h>

#include "apps/ingest/links.h"
#include "apps/ingest/persist_internal.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/parse.h"

enum column {
    COLUMN_EMAIL,
    COLUMN_NAME,
    COLUMN_TRANSPONDER,
    COLUMN_COUNT
};
static const char *const column_names[COLUMN_COUNT] = { "email", "name", "transponder" };

#define FIELDS_MAX 64

struct csv {
    const char *at, *end;
    size_t      line; /* of `at` */
    char        separator;
    void      **mem;
    size_t      row_line;

    struct il__buf row;                /* the fields of the last row, each with a NUL */
    size_t         fields[FIELDS_MAX]; /* where they start */
    size_t         n_fields;
    size_t         columns[COLUMN_COUNT]; /* index of a field; SIZE_MAX = not in the file */

    struct ingest_user  *users;
    size_t               n;
    ingest_csv_fault_fn *fault;
    void                *cookie;
    il_error            *reterr;
    size_t               n_faults;
    bool                 no_memory;
};

static void
report(struct csv *c, size_t line, const char *text)
{
    if (c->n_faults++ == 0)
        (void)il__error_set(c->reterr, IL_INVAL, "line %zu: %s", line, text);
    if (c->fault != NULL)
        c->fault(c->cookie, line, text);
}

static bool
is_row_end(const struct csv *c)
{
    return c->at == c->end || *c->at == '\n' || *c->at == '\r';
}

static bool
is_field_end(const struct csv *c)
{
    return is_row_end(c) || *c->at == c->separator;
}

static void
skip_spaces(struct csv *c)
{
    while (c->at < c->end && *c->at == ' ')
        c->at++;
}

/* The rest of a field that starts with a quote. False: the row cannot be read. */
static bool
read_quoted(struct csv *c)
{
    for (c->at++; c->at < c->end; c->at++) {
        if (*c->at == '"' && (c->at + 1 == c->end || c->at[1] != '"'))
            break;
        c->at += *c->at == '"'; /* two stand for one */
        c->line += *c->at == '\n';
        il__buf_addc(&c->row, *c->at);
    }
    if (c->at == c->end) {
        report(c, c->row_line, "unterminated quote");
        return false;
    }
    c->at++;
    skip_spaces(c);
    if (!is_field_end(c))
        report(c, c->line, "unexpected text after a closing quote");
    return is_field_end(c);
}

/* The next field; spaces around it are dropped. False: the row cannot be read. */
static bool
read_field(struct csv *c)
{
    size_t start = c->row.n_bytes;

    if (c->n_fields == FIELDS_MAX) {
        report(c, c->row_line, "too many fields");
        return false;
    }
    c->fields[c->n_fields++] = start;
    skip_spaces(c);
    if (c->at < c->end && *c->at == '"' && !read_quoted(c))
        return false;
    for (; !is_field_end(c); c->at++)
        il__buf_addc(&c->row, *c->at);
    while (c->row.n_bytes > start && c->row.data[c->row.n_bytes - 1] == ' ')
        c->row.n_bytes--;
    il__buf_addc(&c->row, '\0');
    return !c->row.failed;
}

/* The next row that is not blank. False: the end, or the rest cannot be read. */
static bool
read_row(struct csv *c)
{
    while (c->at < c->end && (*c->at == '\n' || *c->at == '\r' || *c->at == ' ')) {
        c->line += *c->at == '\n';
        c->at++;
    }
    if (c->at == c->end)
        return false;
    c->row_line = c->line;
    c->n_fields = 0;
    il__buf_clear(&c->row);
    for (bool more = true; more; c->at += more) {
        if (!read_field(c))
            return false;
        more = !is_row_end(c);
    }
    return true;
}

/* Which separator the first line uses most. */
static char
find_separator(const char *text, const char *end)
{
    static const char candidates[] = ",;\t";
    size_t            n[3]         = { 0 };
    size_t            best         = 0;

    for (; text < end && *text != '\n'; text++) {
        const char *c = *text != '\0' ? strchr(candidates, *text) : NULL;
        if (c != NULL)
            n[c - candidates]++;
    }
    for (size_t i = 1; i < ARRAY_LEN(n); i++)
        best = n[i] > n[best] ? i : best;
    return candidates[best];
}

static bool
is_name(const char *field, const char *name)
{
    for (; *field != '\0' && tolower((unsigned char)*field) == *name; field++)
        name++;
    return *field == '\0' && *name == '\0';
}

static const char *
field(const struct csv *c, size_t i)
{
    return i < c->n_fields ? il__buf_str(&c->row) + c->fields[i] : "";
}

static bool
read_header(struct csv *c)
{
    for (size_t k = 0; k < COLUMN_COUNT; k++)
        c->columns[k] = SIZE_MAX;
    if (!read_row(c)) {
        if (c->n_faults == 0 && !c->row.failed)
            report(c, 1,
                   "the file is empty; expected a line with the columns email, name and "
                   "transponder");
        return false;
    }
    for (size_t i = 0; i < c->n_fields; i++) {
        for (size_t k = 0; k < COLUMN_COUNT; k++) {
            if (is_name(field(c, i), column_names[k]))
                c->columns[k] = i;
        }
    }
    if (c->columns[COLUMN_EMAIL] == SIZE_MAX || c->columns[COLUMN_NAME] == SIZE_MAX)
        report(c, c->row_line, "the first line must name the columns email and name");
    return c->n_faults == 0;
}

static bool
add_user(struct csv *c, const struct ingest_user *u)
{
    struct ingest_user *added = il__arena_append(c->mem, &c->users, &c->n, sizeof *added);

    if (added != NULL)
        *added = *u;
    return added != NULL;
}

static void
read_user(struct csv *c)
{
    const struct ingest_user u = { .email       = field(c, c->columns[COLUMN_EMAIL]),
                                   .name        = field(c, c->columns[COLUMN_NAME]),
                                   .transponder = field(c, c->columns[COLUMN_TRANSPONDER]) };
    struct ingest_user       taken;
    il_error                 err;

    il_status st = il__ingest_user_take(&u, c->mem, &taken, &err);
    if (st == IL_INVAL)
        report(c, c->row_line, err.message);
    else
        c->no_memory |= st != IL_OK || !add_user(c, &taken);
}

/* All rows. IL_OK also if there were faults. */
static il_status
read_all(struct csv *c)
{
    bool more = read_header(c);

    while (more && !c->no_memory && (more = read_row(c))) {
        if (c->n == INGEST_USERS_MAX)
            return il__error_set(c->reterr, IL_LIMIT, "line %zu: more than %d users", c->row_line,
                                 INGEST_USERS_MAX);
        read_user(c);
    }
    if (c->no_memory || c->row.failed)
        return il__error_set(c->reterr, IL_NOMEM, "out of memory for users");
    return IL_OK;
}

il_status
il__ingest_users_parse(const char *text, size_t n_bytes, void **mem, struct ingest_user **ret,
                       size_t *ret_n, ingest_csv_fault_fn *fault, void *cookie, il_error *reterr)
{
    static const char bom[] = "\xef\xbb\xbf";
    size_t            skip  = n_bytes >= 3 && memcmp(text, bom, 3) == 0 ? 3 : 0;
    struct csv        c     = { .at     = text + skip,
                                .end    = text + n_bytes,
                                .line   = 1,
                                .mem    = mem,
                                .fault  = fault,
                                .cookie = cookie,
                                .reterr = reterr };

    il_status st = il__liverc_load(reterr);
    if (st != IL_OK)
        return st;
    if (memchr(text, '\0', n_bytes) != NULL || !il__utf8_valid(text, n_bytes))
        return il__error_set(reterr, IL_INVAL, "the file is not UTF-8 text");
    c.separator = find_separator(c.at, c.end);
    il__buf_init(&c.row, n_bytes + FIELDS_MAX); /* no row is longer */
    st = read_all(&c);
    il__buf_release(&c.row);
    if (st == IL_OK && c.n_faults > 0)
        return IL_INVAL;
    if (st == IL_OK) {
        *ret   = c.users;
        *ret_n = c.n;
    }
    return st;
}
