/*
 * partial_index.c: decides whether a partial index serves a worker that looks for jobs, from the
 * text of its condition, without evaluating anything.
 */
#include "store/partial_index.h"

#include <ctype.h>
#include <strings.h>

/* States of jobs, as queues call them. */
static const char *const ready_states[]   = { "PENDING", "READY",   "QUEUED",  "SCHEDULED",
                                              "NEW",     "WAITING", "CREATED", "RETRY" };
static const char *const running_states[] = { "RUNNING", "PROCESSING", "EXECUTING",   "CLAIMED",
                                              "LOCKED",  "ACTIVE",     "IN_PROGRESS", "STARTED" };
static const char *const ended_states[]   = { "COMPLETED", "COMPLETE", "DONE",   "FINISHED",
                                              "SUCCEEDED", "SUCCESS",  "FAILED", "DEAD",
                                              "CANCELLED", "CANCELED", "ERROR" };

static bool
is_among(const char *word, size_t n, const char *const *words, size_t n_words)
{
    for (size_t i = 0; i < n_words; i++) {
        if (strlen(words[i]) == n && strncasecmp(word, words[i], n) == 0)
            return true;
    }
    return false;
}

static bool
is_ready(const char *word, size_t n)
{
    return is_among(word, n, ready_states, ARRAY_LEN(ready_states));
}

static bool
is_running(const char *word, size_t n)
{
    return is_among(word, n, running_states, ARRAY_LEN(running_states));
}

/* The next character that is not inside '...'; NULL at the end. */
static const char *
skip_literal(const char *at)
{
    while (*at == '\'') {
        at = strchr(at + 1, '\'');
        if (at == NULL)
            return NULL;
        at++;
    }
    return *at != '\0' ? at : NULL;
}

/* Is this word, in capitals, in the text outside of '...'? */
static bool
has_word(const char *text, const char *word)
{
    size_t n      = strlen(word);
    bool   before = false; /* part of a longer word */

    for (const char *at = skip_literal(text); at != NULL; at = skip_literal(at + 1)) {
        bool is_part = isalnum((unsigned char)*at) || *at == '_';
        if (!before && strncasecmp(at, word, n) == 0 && !isalnum((unsigned char)at[n]) &&
            at[n] != '_')
            return true;
        before = is_part;
    }
    return false;
}

/*
 * The condition as PostgreSQL prints it: (status = 'X'::text), status = ANY (ARRAY['X'::text, …]),
 * or <> and <> ALL for excluded states; or as somebody wrote it for SQLite: status IN ('X', 'Y'),
 * status NOT IN (…), status != 'X'.
 */
enum il__serves
il__partial_index_serves(const char *where, const char *column, bool running)
{
    bool without =
        strstr(where, "<>") != NULL || strstr(where, "!=") != NULL || has_word(where, "NOT");
    bool is_known = has_word(where, column) && !has_word(where, "AND") && !has_word(where, "OR") &&
                    (without || strchr(where, '=') != NULL || has_word(where, "IN"));
    size_t n_named = 0, n_wrong = 0;
    bool   named_wanted = false;

    for (const char *at = strchr(where, '\''); at != NULL; n_named++) {
        const char *end = strchr(at + 1, '\'');
        if (end == NULL)
            break;
        size_t n     = (size_t)(end - at - 1);
        named_wanted = named_wanted || (running ? is_running(at + 1, n) : is_ready(at + 1, n));
        n_wrong += (running ? is_ready(at + 1, n) : is_running(at + 1, n)) ||
                   is_among(at + 1, n, ended_states, ARRAY_LEN(ended_states));
        at = strchr(end + 1, '\'');
    }
    if (!is_known || n_named == 0)
        return IL__SERVES_PERHAPS;
    if (named_wanted)
        return without ? IL__SERVES_NOT : IL__SERVES;
    if (n_wrong == n_named)
        return without ? IL__SERVES : IL__SERVES_NOT;
    return IL__SERVES_PERHAPS;
}
