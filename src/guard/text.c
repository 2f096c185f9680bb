/*
 * text.c: scans SQL text as far as necessary before a database sees it. Only the database
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
il__guard_ends_transaction(const char *sql)
{
    static const char *const words[] = { "abort",   "begin",    "commit",    "end",
                                         "release", "rollback", "savepoint", "start" };
    const char              *at      = il__guard_skip(sql, true);
    size_t                   n       = word_bytes(at);

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (is_word(at, n, words[i]))
            return true;
    }
    if (!is_word(at, n, "prepare"))
        return false;
    at = skip_blanks(at + n, true, false);
    return is_word(at, word_bytes(at), "transaction");
}
