/*
 * match.c: decides whether a user and a driver are the same person. Names are compared in a form
 * that does not depend on case, punctuation and the order of first and last name.
 */
#include <ctype.h>

#include "apps/ingest/libraries.h"
#include "apps/ingest/liverc.h"

const char *const il__liverc_links[LIVERC_LINK_COUNT] = {
    [LIVERC_LINK_NONE] = "none",           [LIVERC_LINK_SUGGESTED] = "suggested",
    [LIVERC_LINK_CONFIRMED] = "confirmed", [LIVERC_LINK_REJECTED] = "rejected",
    [LIVERC_LINK_CONFLICT] = "conflict",
};

#define TOKENS_MAX 64
#define POINTS_MAX LIVERC_TEXT_BYTES_MAX

/* ---- names ----------------------------------------------------------------------------------- */

static bool
is_word(utf8proc_int32_t point)
{
    switch (il__utf8proc->utf8proc_category(point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return true;
    default:
        return false;
    }
}

/* Lower case, `&` as a word, no punctuation; `text` is normalised. */
static void
fold(const char *text, struct il__buf *out)
{
    const utf8proc_uint8_t *at = (const utf8proc_uint8_t *)text;

    while (*at != '\0') {
        utf8proc_int32_t point = 0;
        utf8proc_uint8_t bytes[4];
        utf8proc_ssize_t step = il__utf8proc->utf8proc_iterate(at, -1, &point);
        CHECK(step > 0);
        at += step;
        if (point == '&') {
            il__buf_adds(out, " and ");
        } else if (point == ' ') {
            il__buf_addc(out, ' ');
        } else if (is_word(point)) {
            utf8proc_ssize_t n =
                il__utf8proc->utf8proc_encode_char(il__utf8proc->utf8proc_tolower(point), bytes);
            il__buf_add(out, bytes, (size_t)n);
        }
    }
}

static size_t
split(char *text, const char *tokens[TOKENS_MAX])
{
    size_t n    = 0;
    char  *save = NULL;

    for (char *t = strtok_r(text, " ", &save); t != NULL && n < TOKENS_MAX;
         t       = strtok_r(NULL, " ", &save))
        tokens[n++] = t;
    return n;
}

/* Words that clubs and teams append. */
static bool
is_suffix(const char *token)
{
    static const char *const suffixes[] = { "rc", "raceway", "club", "inc", "team" };

    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        if (strcmp(token, suffixes[i]) == 0)
            return true;
    }
    return false;
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void
il__liverc_match_name(const char *name, struct il__buf *out)
{
    AUTO_BUF struct il__buf folded = { 0 };
    const char             *tokens[TOKENS_MAX];
    size_t                  first = 0;

    il__buf_init(&folded, 8 * LIVERC_TEXT_BYTES_MAX);
    bool failed = !il__liverc_normalise(name, strlen(name), out);
    fold(il__buf_str(out), &folded);
    failed |= out->failed || folded.failed;
    il__buf_clear(out);
    size_t n = folded.n_bytes > 0 ? split(folded.data, tokens) : 0;
    if (n > 1 && strspn(tokens[0], "0123456789") == strlen(tokens[0]))
        first = 1;
    while (n > first + 1 && is_suffix(tokens[n - 1]))
        n--;
    if (n > first)
        qsort(tokens + first, n - first, sizeof *tokens, by_text);
    for (size_t i = first; i < n; i++) {
        if (i == first || strcmp(tokens[i], tokens[i - 1]) != 0)
            il__buf_addf(out, "%s%s", i > first ? " " : "", tokens[i]);
    }
    out->failed |= failed;
}

/* ---- similarity ------------------------------------------------------------------------------ */

static size_t
decode(const char *text, utf8proc_int32_t points[POINTS_MAX])
{
    const utf8proc_uint8_t *at = (const utf8proc_uint8_t *)text;
    size_t                  n  = 0;

    for (; *at != '\0' && n < POINTS_MAX; n++) {
        utf8proc_ssize_t step = il__utf8proc->utf8proc_iterate(at, -1, &points[n]);
        at += step > 0 ? step : 1; /* an invalid byte is a character that equals no other */
    }
    return n;
}

static double
jaro(const utf8proc_int32_t *a, size_t n_a, const utf8proc_int32_t *b, size_t n_b)
{
    bool   of_a[POINTS_MAX] = { false }, of_b[POINTS_MAX] = { false };
    size_t window    = MAX(MAX(n_a, n_b) / 2, 1) - 1;
    size_t n_matches = 0, n_out_of_order = 0;

    for (size_t i = 0; i < n_a; i++) {
        size_t end = MIN(i + window + 1, n_b);
        for (size_t j = i > window ? i - window : 0; j < end && !of_a[i]; j++) {
            if (!of_b[j] && a[i] == b[j]) {
                of_a[i] = of_b[j] = true;
                n_matches++;
            }
        }
    }
    if (n_matches == 0)
        return 0;
    for (size_t i = 0, j = 0; i < n_a; i++) {
        if (!of_a[i])
            continue;
        while (!of_b[j])
            j++;
        n_out_of_order += a[i] != b[j++];
    }
    double m = (double)n_matches;
    return (m / (double)n_a + m / (double)n_b + (m - (double)n_out_of_order / 2) / m) / 3;
}

double
il__liverc_similarity(const char *a, const char *b)
{
    utf8proc_int32_t points_a[POINTS_MAX], points_b[POINTS_MAX];
    size_t           n_a = decode(a, points_a), n_b = decode(b, points_b);
    size_t           n_prefix = 0;

    if (n_a == 0 || n_b == 0)
        return n_a == n_b ? 1 : 0;
    double score = jaro(points_a, n_a, points_b, n_b);
    if (score <= 0.7)
        return score;
    while (n_prefix < 4 && n_prefix < MIN(n_a, n_b) && points_a[n_prefix] == points_b[n_prefix])
        n_prefix++;
    return score + (double)n_prefix * 0.1 * (1 - score);
}

/* ---- links ----------------------------------------------------------------------------------- */

struct liverc_likeness
il__liverc_compare(const char *name_a, const char *transponder_a, const char *name_b,
                   const char *transponder_b)
{
    struct liverc_likeness l = { 0 };

    l.same_transponder = transponder_a != NULL && transponder_b != NULL &&
                         transponder_a[0] != '\0' && strcmp(transponder_a, transponder_b) == 0;
    l.n_transponder_events = l.same_transponder ? 1 : 0;
    l.same_name            = name_a[0] != '\0' && strcmp(name_a, name_b) == 0;
    if (name_a[0] != '\0' && name_b[0] != '\0')
        l.score = il__liverc_similarity(name_a, name_b);
    return l;
}

enum liverc_link
il__liverc_link(const struct liverc_likeness *l, double *ret_score)
{
    *ret_score = l->same_transponder || l->same_name ? 1 : l->score;
    if (l->same_name || l->score >= LIVERC_SCORE_CONFIRMED ||
        (l->n_transponder_events >= 2 && l->score >= LIVERC_SCORE_SUGGESTED))
        return LIVERC_LINK_CONFIRMED;
    if (l->same_transponder || l->score >= LIVERC_SCORE_SUGGESTED)
        return LIVERC_LINK_SUGGESTED;
    return LIVERC_LINK_NONE;
}
