/*
 * session_type.c: infers the session type and the event name from a page's texts.
 */
#include <ctype.h>
#include <strings.h>

#include "apps/ingest/liverc.h"
#include "base/base.h"

const char *const il__liverc_sessions[LIVERC_SESSION_COUNT] = {
    [LIVERC_SESSION_RACE] = "race",         [LIVERC_SESSION_SEEDING] = "seeding",
    [LIVERC_SESSION_PRACTICE] = "practice", [LIVERC_SESSION_QUALIFYING] = "qualifying",
    [LIVERC_SESSION_MAIN] = "main",         [LIVERC_SESSION_HEAT] = "heat",
};

static bool
has(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

/* Q1, Q2 or Q3 as a word. */
static bool
has_round(const char *text)
{
    for (size_t i = 0; text[i] != '\0'; i++) {
        bool begins = i == 0 || !isalnum((unsigned char)text[i - 1]);
        if (begins && (text[i] == 'q' || text[i] == 'Q') && text[i + 1] >= '1' &&
            text[i + 1] <= '3' && !isalnum((unsigned char)text[i + 2]))
            return true;
    }
    return false;
}

enum liverc_session
il__liverc_session(const char *section, const char *label, const char *url)
{
    if (has(section, "seeding"))
        return LIVERC_SESSION_SEEDING;
    if (has(section, "practice") && !has(section, "ranking"))
        return LIVERC_SESSION_PRACTICE;
    if (has(section, "qualif"))
        return LIVERC_SESSION_QUALIFYING;
    if (has(label, "practice") || has(url, "practice"))
        return LIVERC_SESSION_PRACTICE;
    if (has(label, "qualif") || has_round(label))
        return LIVERC_SESSION_QUALIFYING;
    if (has(label, "main"))
        return LIVERC_SESSION_MAIN;
    if (has(label, "heat"))
        return LIVERC_SESSION_HEAT;
    return LIVERC_SESSION_RACE;
}

/* ---- names of events ------------------------------------------------------------------------- */

#define TOKENS_MAX 64

struct tokens {
    struct {
        const char *text;
        size_t      n_bytes;
    } items[TOKENS_MAX];
    size_t n;
};

static bool
is_word(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

static bool
has_token(const struct tokens *t, const char *text, size_t n_bytes)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->items[i].n_bytes == n_bytes && strncasecmp(t->items[i].text, text, n_bytes) == 0)
            return true;
    }
    return false;
}

/* The different words of two or more characters. */
static void
split(const char *text, struct tokens *ret)
{
    ret->n = 0;
    while (*text != '\0' && ret->n < TOKENS_MAX) {
        size_t n = 0;
        while (is_word(text[n]))
            n++;
        if (n >= 2 && !has_token(ret, text, n)) {
            ret->items[ret->n].text      = text;
            ret->items[ret->n++].n_bytes = n;
        }
        text += n > 0 ? n : 1;
    }
}

/* The first word that is a year; NULL = none. */
static const char *
find_year(const struct tokens *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const char *w = t->items[i].text;
        if (t->items[i].n_bytes == 4 && strspn(w, "0123456789") >= 4 &&
            (w[0] == '1' || w[0] == '2'))
            return w;
    }
    return NULL;
}

const char *
il__liverc_event_name(const char *club, const char *meet)
{
    struct tokens a, b;
    size_t        n_common = 0;

    if (club[0] == '\0' || meet[0] == '\0')
        return meet[0] != '\0' ? meet : club;
    split(club, &a);
    split(meet, &b);
    for (size_t i = 0; i < a.n; i++)
        n_common += has_token(&b, a.items[i].text, a.items[i].n_bytes);
    if (2 * n_common < MIN(a.n, b.n)) /* little in common: the club's name, and its meet's */
        return meet;
    const char *year_a = find_year(&a), *year_b = find_year(&b);
    if (year_a != NULL && year_b != NULL && memcmp(year_a, year_b, 4) != 0)
        return club;
    return meet;
}
