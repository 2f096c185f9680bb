/*
 * robots.c: reads robots.txt; see robots.h. Parsing costs O(file size); a query costs O(rules ×
 * length of pattern and path).
 */
#include "apps/ingest/robots.h"

#include <strings.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/parse.h"

/* ---- escapes --------------------------------------------------------------------------------- */

/* Letters, digits and - . _ ~ mean the same with and without an escape. */
static bool
is_unreserved(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

/* Write patterns and paths alike: no escape that is not needed, and the others in capitals. */
static void
normalise(const char *text, size_t n, struct il__buf *out)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < n; i++) {
        int           byte   = i + 2 < n ? il__percent_byte(text + i) : -1;
        bool          escape = byte >= 0;
        unsigned char c      = (unsigned char)(escape ? byte : text[i]);
        i += escape ? 2 : 0;
        if (escape ? is_unreserved(c) : (c > ' ' && c < 0x7f)) {
            il__buf_addc(out, (char)c);
        } else {
            il__buf_addc(out, '%');
            il__buf_addc(out, digits[c / 16]);
            il__buf_addc(out, digits[c % 16]);
        }
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
    struct robots *r;
    const char    *agent;
    bool           wanted;    /* the current group is for us */
    bool           in_agents; /* the last line named an agent: the next one joins the group */
    bool           no_memory;
};

/* A field of a line: without white space around it. */
struct field {
    const char *at;
    size_t      n;
};

static struct field
trim(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    while (end > at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    return (struct field){ at, (size_t)(end - at) };
}

static bool
is(struct field f, const char *word)
{
    return f.n == strlen(word) && strncasecmp(f.at, word, f.n) == 0;
}

/* The word that names a crawler, at the front of a value such as "Interlock/1.0". */
static bool
names(struct field value, const char *agent)
{
    size_t n = 0;

    while (n < value.n && is_unreserved((unsigned char)value.at[n]) && value.at[n] != '.')
        n++;
    return is((struct field){ value.at, n }, agent);
}

static void
add_rule(struct reading *in, struct field pattern, bool allow)
{
    AUTO_BUF struct il__buf text = { 0 };
    struct robots          *r    = in->r;

    if (pattern.n == 0)
        return; /* "Disallow:" without a value denies nothing */
    if (r->n == ROBOTS_RULES_MAX || pattern.n > ROBOTS_PATTERN_BYTES_MAX) {
        r->denies_all = true;
        return;
    }
    il__buf_init(&text, (size_t)3 * ROBOTS_PATTERN_BYTES_MAX);
    normalise(pattern.at, pattern.n, &text);
    char *copy = text.failed ? NULL : il__arena_strdup(&r->mem, il__buf_str(&text));
    if (r->rules == NULL)
        r->rules = il__arena_alloc(&r->mem, ROBOTS_RULES_MAX * sizeof *r->rules);
    if (copy == NULL || r->rules == NULL) {
        in->no_memory = true;
        return;
    }
    r->rules[r->n++] = (struct robots_rule){ copy, allow };
}

static void
read_line(struct reading *in, const char *line, size_t n)
{
    const char *hash  = memchr(line, '#', n);
    const char *end   = hash != NULL ? hash : line + n;
    const char *colon = memchr(line, ':', (size_t)(end - line));

    if (colon == NULL)
        return; /* anything that is no field is passed over */
    struct field name = trim(line, colon), value = trim(colon + 1, end);
    if (is(name, "user-agent")) {
        bool ours     = strcmp(in->agent, "*") == 0 ? is(value, "*") : names(value, in->agent);
        in->wanted    = ours || (in->in_agents && in->wanted);
        in->in_agents = true;
        return;
    }
    bool allow = is(name, "allow");
    if (!allow && !is(name, "disallow"))
        return; /* such as Sitemap: it belongs to no group */
    in->in_agents = false;
    if (in->wanted)
        add_rule(in, value, allow);
}

/* True: a group is for this agent. */
static bool
read_groups(struct reading *in, const char *text, size_t n_bytes)
{
    const char *end   = text + n_bytes;
    bool        found = false;

    while (text < end && !in->no_memory) {
        const char *line = text;
        while (text < end && *text != '\n' && *text != '\r')
            text++;
        read_line(in, line, (size_t)(text - line));
        found = found || in->wanted;
        text += text < end;
    }
    return found;
}

bool
il__robots_parse(struct robots *r, const char *text, size_t n_bytes, const char *agent)
{
    struct reading in = { .r = r, .agent = agent };

    *r = (struct robots){ .n = 0 };
    if (n_bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
        text += 3;
        n_bytes -= 3;
    }
    if (!read_groups(&in, text, n_bytes) && !in.no_memory) {
        in = (struct reading){ .r = r, .agent = "*" };
        (void)read_groups(&in, text, n_bytes);
    }
    if (in.no_memory)
        il__robots_release(r);
    return !in.no_memory;
}

void
il__robots_release(struct robots *r)
{
    il__arena_free(&r->mem);
    *r = (struct robots){ .n = 0 };
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Does the pattern match the beginning of the path? A star is tried with the shortest text first;
 * when it fails, only the last star has to be tried with more. */
static bool
matches(const char *pattern, const char *path)
{
    const char *star = NULL, *again = NULL;

    for (;;) {
        if (*pattern == '\0')
            return true; /* a pattern is a prefix */
        if (pattern[0] == '$' && pattern[1] == '\0' && *path == '\0')
            return true;
        if (*pattern == '*') {
            star  = ++pattern;
            again = path;
        } else if (*path != '\0' && *pattern == *path) {
            pattern++;
            path++;
        } else if (star != NULL && *again != '\0') {
            pattern = star;
            path    = ++again;
        } else {
            return false;
        }
    }
}

bool
il__robots_allow(const struct robots *r, const char *path)
{
    AUTO_BUF struct il__buf text  = { 0 };
    size_t                  best  = 0;
    bool                    allow = true;

    if (r->denies_all)
        return false;
    il__buf_init(&text, 3 * strlen(path) + 1);
    normalise(path, strlen(path), &text);
    if (text.failed)
        return false;
    for (size_t i = 0; i < r->n; i++) {
        const struct robots_rule *rule = &r->rules[i];
        size_t                    n    = strlen(rule->pattern);
        if (n < best || !matches(rule->pattern, il__buf_str(&text)))
            continue;
        allow = rule->allow || (n == best && allow);
        best  = n;
    }
    return allow;
}
