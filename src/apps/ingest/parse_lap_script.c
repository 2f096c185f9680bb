/*
 * parse_lap_script.c: a tolerant reader of the inline lap script:
 *
 *     racerLaps[346997] = { 'driverName' : 'FELIX KOEGLER', ..., 'laps' : [ { 'lapNum' : '1',
 *     'pos' : '1', 'time' : '37.234', 'pace' : '17/10:28.285', 'segments' : [ ] }, ... ] };
 *
 * Everything else in the script is passed over, token by token, so that braces and quotes inside
 * strings and comments mean nothing. Keys may be unquoted, values may be bare words, commas may be
 * missing or too many. No function recurses. An assignment that cannot be read to its end is kept
 * with a fault, and reading continues where it stopped.
 */
#include "apps/ingest/parse_lap_script.h"

#include "apps/ingest/liverc.h"
#include "base/arena.h"
#include "base/parse.h"

struct reader {
    const char *at, *end;
    void      **mem;
    const char *fault; /* of the current assignment */
    bool        no_memory;
};

/* ---- tokens ---------------------------------------------------------------------------------- */

static bool
is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$';
}

static bool
starts(const struct reader *r, const char *with)
{
    size_t n = strlen(with);

    return (size_t)(r->end - r->at) >= n && memcmp(r->at, with, n) == 0;
}

/* If a comment begins here, go on after it. */
static bool
skip_comment(struct reader *r)
{
    if (*r->at != '/')
        return false;
    if (starts(r, "//")) {
        const char *eol = memchr(r->at, '\n', (size_t)(r->end - r->at));
        r->at           = eol != NULL ? eol : r->end;
        return true;
    }
    if (starts(r, "/*")) {
        const char *close = memmem(r->at + 2, (size_t)(r->end - r->at) - 2, "*/", 2);
        r->at             = close != NULL ? close + 2 : r->end;
        return true;
    }
    return false;
}

static void
skip_blanks(struct reader *r)
{
    do {
        while (r->at < r->end && (unsigned char)*r->at <= ' ')
            r->at++;
    } while (r->at < r->end && skip_comment(r));
}

/* The character after blanks; '\0' at the end. */
static char
peek(struct reader *r)
{
    skip_blanks(r);
    return r->at < r->end ? *r->at : '\0';
}

static bool
take(struct reader *r, char c)
{
    if (peek(r) != c)
        return false;
    r->at++;
    return true;
}

static bool
is_quote(char c)
{
    return c == '\'' || c == '"' || c == '`';
}

/* The string that begins here: *ret_text points behind the quote. It ends with its quote, or, if
 * that is missing, with the line. */
static size_t
take_string(struct reader *r, const char **ret_text)
{
    char        quote = *r->at++;
    const char *begin = r->at;

    while (r->at < r->end && *r->at != quote && (*r->at != '\n' || quote == '`'))
        r->at += *r->at == '\\' && r->at + 1 < r->end ? 2 : 1;
    size_t n_bytes = (size_t)(r->at - begin);
    if (r->at < r->end && *r->at == quote)
        r->at++;
    *ret_text = begin;
    return n_bytes;
}

static size_t
take_word(struct reader *r, const char **ret_text)
{
    *ret_text = r->at;
    while (r->at < r->end && is_word(*r->at))
        r->at++;
    return (size_t)(r->at - *ret_text);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The character of \xNN or \uNNNN, `n` digits; -1: none. */
static int
read_hex(const char *digits, size_t n_left, size_t n)
{
    int value = 0;

    if (n_left < n)
        return -1;
    for (size_t i = 0; i < n; i++) {
        int digit = il__hex_digit(digits[i]);
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static char *
put_point(char *out, int point)
{
    if (point == 0 || (point >= 0xD800 && point <= 0xDFFF))
        point = '?';
    if (point < 0x80) {
        *out++ = (char)point;
    } else if (point < 0x800) {
        *out++ = (char)(0xC0 | point >> 6);
        *out++ = (char)(0x80 | (point & 0x3F));
    } else {
        *out++ = (char)(0xE0 | point >> 12);
        *out++ = (char)(0x80 | (point >> 6 & 0x3F));
        *out++ = (char)(0x80 | (point & 0x3F));
    }
    return out;
}

/* What follows a backslash at text[i]; returns the index after it. The result is never longer than
 * the escape. */
static size_t
unescape(const char *text, size_t n_bytes, size_t i, char **out)
{
    size_t n     = text[i] == 'x' ? 2 : text[i] == 'u' ? 4 : 0;
    int    point = n > 0 ? read_hex(text + i + 1, n_bytes - i - 1, n) : -1;

    if (point >= 0) {
        *out = put_point(*out, point);
        return i + 1 + n;
    }
    bool is_blank = text[i] == 'n' || text[i] == 'r' || text[i] == 't' || text[i] == '\n';
    *(*out)++     = is_blank ? ' ' : text[i];
    return i + 1;
}

/* A copy of a string of the script. "" when it is too long, which is a fault. */
static const char *
copy(struct reader *r, const char *text, size_t n_bytes)
{
    if (n_bytes == 0)
        return "";
    if (n_bytes > LIVERC_TEXT_BYTES_MAX) {
        r->fault = "a string is too long";
        return "";
    }
    char *kept = il__arena_alloc(r->mem, n_bytes + 1);
    char *out  = kept;
    if (kept == NULL) {
        r->no_memory = true;
        return "";
    }
    for (size_t i = 0; i < n_bytes;) {
        if (text[i] == '\\' && i + 1 < n_bytes)
            i = unescape(text, n_bytes, i + 1, &out);
        else
            *out++ = text[i++];
    }
    *out = '\0';
    return kept;
}

/* Pass over a value of any kind, up to the comma or bracket that ends it. */
static void
skip_value(struct reader *r)
{
    size_t depth = 0;

    for (char c; (c = peek(r)) != '\0';) {
        const char *unused;
        if (is_quote(c)) {
            (void)take_string(r, &unused);
            continue;
        }
        bool closes = c == '}' || c == ']' || c == ')';
        if (depth == 0 && (closes || c == ',' || c == ';'))
            return;
        if (closes)
            depth--;
        else if (c == '{' || c == '[' || c == '(')
            depth++;
        r->at++;
    }
}

/* A string, number or word; "" for null and for anything else, which is passed over. */
static const char *
take_scalar(struct reader *r)
{
    const char *text;
    size_t      n_bytes;
    char        c = peek(r);

    if (is_quote(c)) {
        n_bytes = take_string(r, &text);
        return copy(r, text, n_bytes);
    }
    text = r->at;
    skip_value(r);
    if (c == '{' || c == '[')
        return "";
    for (n_bytes = 0; text + n_bytes < r->at && (is_word(text[n_bytes]) || text[n_bytes] == '.' ||
                                                 text[n_bytes] == '-' || text[n_bytes] == ':');)
        n_bytes++;
    if ((n_bytes == 4 && memcmp(text, "null", 4) == 0) ||
        (n_bytes == 9 && memcmp(text, "undefined", 9) == 0))
        return "";
    return copy(r, text, n_bytes);
}

/* The next key of an object and its colon; 0 at the closing brace, or with a fault. */
static size_t
take_key(struct reader *r, const char **ret_key)
{
    size_t n_bytes;

    while (take(r, ','))
        ;
    char c = peek(r);
    if (c == '}') {
        r->at++;
        return 0;
    }
    if (is_quote(c))
        n_bytes = take_string(r, ret_key);
    else
        n_bytes = take_word(r, ret_key);
    if (n_bytes == 0 || !take(r, ':')) {
        r->fault = r->at < r->end ? "expected an object" : "the script is truncated";
        return 0;
    }
    return n_bytes;
}

static bool
is_key(const char *key, size_t n_bytes, const char *name)
{
    return strlen(name) == n_bytes && memcmp(key, name, n_bytes) == 0;
}

/* ---- laps ------------------------------------------------------------------------------------ */

/* Go to the next item of an array; false at its end, or with a fault. */
static bool
next_item(struct reader *r)
{
    while (take(r, ','))
        ;
    if (take(r, ']'))
        return false;
    if (r->at >= r->end || *r->at == '}') {
        r->fault = r->at < r->end ? "an array is not closed" : "the script is truncated";
        return false;
    }
    return r->fault == NULL && !r->no_memory;
}

static void
read_segments(struct reader *r, struct racer_lap *lap)
{
    if (!take(r, '[')) {
        skip_value(r);
        return;
    }
    lap->n_segments = 0; /* a second list replaces the first, as in JavaScript */
    while (next_item(r)) {
        if (lap->n_segments == LIVERC_SEGMENTS_MAX) {
            r->fault = "a lap has too many segments";
            return;
        }
        const char **segment =
            il__arena_append(r->mem, &lap->segments, &lap->n_segments, sizeof *segment);
        if (segment == NULL) {
            r->no_memory = true;
            return;
        }
        const char *before = r->at;
        *segment           = take_scalar(r);
        if (r->at == before)
            r->at++; /* a stray bracket */
    }
}

static void
read_lap(struct reader *r, struct racer_lap *lap)
{
    const char *key = NULL;
    size_t      n;

    *lap = (struct racer_lap){ .number = "", .position = "", .time = "", .pace = "" };
    while (r->fault == NULL && !r->no_memory && (n = take_key(r, &key)) > 0) {
        if (is_key(key, n, "lapNum"))
            lap->number = take_scalar(r);
        else if (is_key(key, n, "pos"))
            lap->position = take_scalar(r);
        else if (is_key(key, n, "time"))
            lap->time = take_scalar(r);
        else if (is_key(key, n, "pace"))
            lap->pace = take_scalar(r);
        else if (is_key(key, n, "segments"))
            read_segments(r, lap);
        else
            skip_value(r);
    }
}

static void
read_laps(struct reader *r, struct racer *racer)
{
    if (!take(r, '[')) {
        skip_value(r);
        return;
    }
    racer->n_laps = 0; /* a second list replaces the first, as in JavaScript */
    while (next_item(r)) {
        if (!take(r, '{')) {
            r->fault = "a lap is not an object";
            return;
        }
        if (racer->n_laps > LIVERC_LAPS_MAX) { /* one more for lap 0 */
            r->fault = "too many laps";
            return;
        }
        struct racer_lap *lap = il__arena_append(r->mem, &racer->laps, &racer->n_laps, sizeof *lap);
        if (lap == NULL) {
            r->no_memory = true;
            return;
        }
        read_lap(r, lap);
    }
}

static void
read_racer(struct reader *r, struct racer *racer)
{
    const char *key = NULL;
    size_t      n;

    r->fault = NULL;
    while (r->fault == NULL && !r->no_memory && (n = take_key(r, &key)) > 0) {
        if (is_key(key, n, "driverName"))
            racer->name = take_scalar(r);
        else if (is_key(key, n, "laps"))
            read_laps(r, racer);
        else
            skip_value(r);
    }
    racer->fault = r->fault;
}

/* After `racerLaps`: [346997] = {, or ['346997'] = {. False: something else, nothing was taken. */
static bool
take_target(struct reader *r, const char **ret_id, size_t *ret_n)
{
    const char *before = r->at;

    if (take(r, '[')) {
        *ret_n = is_quote(peek(r)) ? take_string(r, ret_id) : take_word(r, ret_id);
        if (*ret_n > 0 && *ret_n < LIVERC_DRIVER_ID_BYTES && take(r, ']') && take(r, '=') &&
            take(r, '{'))
            return true;
    }
    r->at = before;
    return false;
}

/* The racer with this id, emptied: a later assignment replaces an earlier one. NULL: no memory or
 * too many. */
static struct racer *
racer_for(struct reader *r, struct racers *racers, const char *id)
{
    struct racer *racer = NULL;

    for (size_t i = 0; i < racers->n && racer == NULL; i++)
        racer = strcmp(racers->items[i].id, id) == 0 ? &racers->items[i] : NULL;
    if (racer == NULL) {
        if (racers->n == LIVERC_RESULTS_MAX)
            return NULL;
        racer = il__arena_append(r->mem, &racers->items, &racers->n, sizeof *racer);
        if (racer == NULL) {
            r->no_memory = true;
            return NULL;
        }
    }
    *racer = (struct racer){ .id = id, .name = "" };
    return racer;
}

bool
il__racers_read(void **mem, const char *script, size_t n_bytes, struct racers *racers)
{
    struct reader r = { .at = script, .end = script + n_bytes, .mem = mem };

    while (r.at < r.end && !r.no_memory) {
        const char *text = NULL;
        size_t      n;
        if (is_quote(*r.at)) {
            (void)take_string(&r, &text);
        } else if (is_word(*r.at)) {
            n = take_word(&r, &text);
            if (is_key(text, n, "racerLaps") && take_target(&r, &text, &n)) {
                struct racer *racer = racer_for(&r, racers, copy(&r, text, n));
                if (racer != NULL)
                    read_racer(&r, racer);
            }
        } else if (!skip_comment(&r)) {
            r.at++;
        }
    }
    return !r.no_memory;
}
