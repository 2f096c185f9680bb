/*
 * sql_scan.c: scans SQL text as far as necessary before a database sees it. Only the database
 * interprets a statement; this only finds where it begins, and with which word.
 */
#include <ctype.h>
#include <strings.h>

#include "guard/guard_internal.h"

/* Skip a comment that begins at `at`. An unterminated one extends to the end of the text. */
static const char *
skip_block(const char *at, bool nested)
{
    unsigned depth = 1;

    at += 2;
    while (*at != '\0' && depth > 0) {
        if (at[0] == '*' && at[1] == '/') {
            depth--;
            at += 2;
        } else if (nested && at[0] == '/' && at[1] == '*') {
            depth++;
            at += 2;
        } else {
            at++;
        }
    }
    return at;
}

static const char *
skip_blanks(const char *sql, bool nested, bool semicolons)
{
    for (;;) {
        if (*sql == ' ' || (*sql >= '\t' && *sql <= '\r') || (semicolons && *sql == ';'))
            sql++;
        else if (sql[0] == '-' && sql[1] == '-')
            sql += strcspn(sql, "\r\n");
        else if (sql[0] == '/' && sql[1] == '*')
            sql = skip_block(sql, nested);
        else
            return sql;
    }
}

const char *
il__guard_skip(const char *sql, bool nested)
{
    return skip_blanks(sql, nested, true);
}

static bool
is_word(const char *at, size_t n, const char *word)
{
    return strlen(word) == n && strncasecmp(at, word, n) == 0;
}

static size_t
word_bytes(const char *at)
{
    size_t n = 0;

    while (isalpha((unsigned char)at[n]) || at[n] == '_')
        n++;
    return n;
}

bool
il__guard_sets_path(const char *sql)
{
    return strcasestr(sql, "search_path") != NULL || strcasestr(sql, "set_config") != NULL ||
           strcasestr(sql, "reset") != NULL || strcasestr(sql, "discard") != NULL;
}

bool
il__guard_ends_transaction(const char *sql, bool nested)
{
    static const char        bom[]   = "\xEF\xBB\xBF"; /* SQLite skips one */
    static const char *const words[] = { "abort",   "begin",    "commit",    "end",
                                         "release", "rollback", "savepoint", "start" };
    const char              *at      = il__guard_skip(sql, nested);

    if (strncmp(at, bom, sizeof bom - 1) == 0)
        at = il__guard_skip(at + sizeof bom - 1, nested);
    size_t n = word_bytes(at);

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (is_word(at, n, words[i]))
            return true;
    }
    if (!is_word(at, n, "prepare"))
        return false;
    at = skip_blanks(at + n, nested, false);
    return is_word(at, word_bytes(at), "transaction");
}

/* One token of a CREATE TABLE text: a word, a quoted name, or a single character. */
struct token {
    const char *at;
    size_t      n_bytes;
    char        quote; /* what ends a quoted name or string; 0 = none */
};

static const char *
next_token(const char *sql, struct token *ret)
{
    sql  = skip_blanks(sql, false, false);
    *ret = (struct token){ .at = sql };
    if (*sql == '"' || *sql == '`' || *sql == '\'' || *sql == '[') {
        ret->quote = *sql == '[' ? ']' : *sql;
        ret->at    = ++sql;
        while (*sql != '\0' && *sql != ret->quote)
            sql++;
        ret->n_bytes = (size_t)(sql - ret->at);
        return *sql != '\0' ? sql + 1 : sql;
    }
    while (isalnum((unsigned char)*sql) || *sql == '_' || *sql == '$' || (*sql & 0x80) != 0)
        sql++;
    if (sql == ret->at && *sql != '\0')
        sql++;
    ret->n_bytes = (size_t)(sql - ret->at);
    return sql;
}

bool
il__guard_declares(const char *sql, const char *constraint, bool *ret_foreign)
{
    struct token t;
    bool         is_next = false;

    for (sql = next_token(sql, &t); t.n_bytes > 0 || t.quote != 0; sql = next_token(sql, &t)) {
        if (is_next && t.quote != '\'' && is_word(t.at, t.n_bytes, constraint)) {
            (void)next_token(sql, &t);
            *ret_foreign =
                is_word(t.at, t.n_bytes, "foreign") || is_word(t.at, t.n_bytes, "references");
            return true;
        }
        is_next = t.quote == 0 && is_word(t.at, t.n_bytes, "constraint");
    }
    return false;
}
