/*
 * lock_report.c: reads lines of row locks and groups them; see lock_report.h. cmd_locks_report.c
 * prints them.
 */
#include "cli/lock_report.h"

#include <errno.h>
#include <jansson.h>

#include "base/error.h"
#include "base/hash.h"
#include "cli/request.h"
#include "interlock-guard.h"

#define US_PER_MS 1000
#define ROW_LOCKS_PATH "/admin/row-locks"
#define MS_MAX 1e15 /* of a time: it fits into 64 bits in microseconds */

/* What the report needs of a line. Texts are borrowed from the JSON. */
struct lock_line {
    const char *pipeline, *entity, *caller;
    uint64_t    wait_us, hold_us;
    bool        violation;
};

/* ---- lines ----------------------------------------------------------------------------------- */

enum line {
    LINE_END,
    LINE_READ,
    LINE_LONG, /* skipped */
};

static enum line
read_line(FILE *file, char line[CLI_LOCKS_LINE_BYTES_MAX], size_t *ret_bytes)
{
    size_t n = 0;
    int    c = getc_unlocked(file);

    if (c == EOF)
        return LINE_END;
    for (; c != EOF && c != '\n'; c = getc_unlocked(file)) {
        if (n < CLI_LOCKS_LINE_BYTES_MAX)
            line[n] = (char)c;
        n++;
    }
    *ret_bytes = n;
    return n <= CLI_LOCKS_LINE_BYTES_MAX ? LINE_READ : LINE_LONG;
}

static bool
is_blank(const char *line, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return false;
    }
    return true;
}

/* A text of the line; NULL, and the reason, if it is missing. */
static const char *
take_text(const json_t *json, const char *name, char why[80])
{
    const char *text = json_string_value(json_object_get(json, name));

    if (text == NULL)
        (void)snprintf(why, 80, "'%s' is missing or not a string", name);
    return text;
}

static bool
take_ms(const json_t *json, const char *name, uint64_t *ret_us, char why[80])
{
    const json_t *value = json_object_get(json, name);
    double        ms    = json_number_value(value);

    if (!json_is_number(value) || !(ms >= 0 && ms <= MS_MAX)) {
        (void)snprintf(why, 80, "'%s' is missing or not a non-negative number", name);
        return false;
    }
    *ret_us = (uint64_t)(ms * US_PER_MS + 0.5);
    return true;
}

static bool
take_outcome(const json_t *json, bool *ret_violation, char why[80])
{
    const char *text = take_text(json, "outcome", why);

    for (int i = 0; text != NULL && i < IL_GUARD_OUTCOME_COUNT; i++) {
        if (strcmp(text, il_guard_outcome_name((il_guard_outcome)i)) == 0) {
            *ret_violation = i == IL_GUARD_VIOLATION;
            return true;
        }
    }
    if (text != NULL)
        (void)snprintf(why, 80, "unknown outcome '%.40s'", text);
    return false;
}

static bool
take_line(const json_t *json, struct lock_line *ret, char why[80])
{
    return (ret->pipeline = take_text(json, "pipeline", why)) != NULL &&
           (ret->entity = take_text(json, "entity", why)) != NULL &&
           (ret->caller = take_text(json, "caller", why)) != NULL &&
           take_ms(json, "lock_wait_ms", &ret->wait_us, why) &&
           take_ms(json, "lock_hold_ms", &ret->hold_us, why) &&
           take_outcome(json, &ret->violation, why);
}

/* Lines of a program's log that are about something else have another event. */
static bool
is_lock(const json_t *json)
{
    static const char what[] = "lock_acquired";
    const char       *event  = json_string_value(json_object_get(json, "event"));
    size_t            n      = event != NULL ? strlen(event) : 0;

    if (n < sizeof what - 1 || strcmp(event + n - (sizeof what - 1), what) != 0)
        return false;
    return n == sizeof what - 1 || event[n - sizeof what] == '.';
}

/* ---- groups ---------------------------------------------------------------------------------- */

static uint64_t
hash_line(const struct lock_line *l)
{
    uint64_t hash = il__hash_stable(l->pipeline, strlen(l->pipeline), 0);

    hash = il__hash_stable(l->entity, strlen(l->entity), hash);
    return il__hash_stable(l->caller, strlen(l->caller), hash);
}

static struct lock_group *
group_new(const struct lock_line *l)
{
    size_t n[3] = { strlen(l->pipeline) + 1, strlen(l->entity) + 1, strlen(l->caller) + 1 };
    struct lock_group *g = il__calloc(1, sizeof *g);

    if (g == NULL || (g->pipeline = il__alloc(n[0] + n[1] + n[2])) == NULL) {
        il__free(g);
        return NULL;
    }
    g->entity = g->pipeline + n[0];
    g->caller = g->entity + n[1];
    memcpy(g->pipeline, l->pipeline, n[0]);
    memcpy(g->entity, l->entity, n[1]);
    memcpy(g->caller, l->caller, n[2]);
    return g;
}

static void
group_free(struct lock_group *g)
{
    il__free(g->wait.us);
    il__free(g->hold.us);
    il__free(g->pipeline);
    il__free(g);
}

/* *ret NULL: there are too many groups already. False: out of memory. */
static bool
find_group(struct lock_report *r, const struct lock_line *l, struct lock_group **ret)
{
    uint64_t           hash = hash_line(l);
    size_t             i    = il__map_start(&r->map, hash);
    struct lock_group *g;

    for (; (g = il__map_next(&r->map, hash, &i)) != NULL; i++) {
        if (strcmp(g->pipeline, l->pipeline) == 0 && strcmp(g->entity, l->entity) == 0 &&
            strcmp(g->caller, l->caller) == 0)
            break;
    }
    *ret = g;
    if (g != NULL || r->n_groups == CLI_LOCKS_GROUPS_MAX)
        return true;
    if (r->groups == NULL)
        r->groups = il__calloc(CLI_LOCKS_GROUPS_MAX, sizeof(struct lock_group *));
    if (r->groups == NULL || !il__map_reserve(&r->map) || (g = group_new(l)) == NULL)
        return false;
    il__map_add(&r->map, hash, g);
    r->groups[r->n_groups++] = g;
    *ret                     = g;
    return true;
}

static bool
grow(struct lock_group *g)
{
    size_t    n    = MIN(MAX(g->capacity * 2, 64), (size_t)CLI_LOCKS_KEPT_MAX);
    uint32_t *wait = il__realloc(g->wait.us, n * sizeof *wait);

    if (wait != NULL)
        g->wait.us = wait;
    uint32_t *hold = il__realloc(g->hold.us, n * sizeof *hold);
    if (hold != NULL)
        g->hold.us = hold;
    if (wait == NULL || hold == NULL)
        return false;
    g->capacity = n;
    return true;
}

/* splitmix64 */
static uint64_t
next_random(struct lock_report *r)
{
    uint64_t x = r->random += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void
note_max(struct lock_times *t, uint64_t us, uint64_t line)
{
    if (us <= t->max_us && t->max_line != 0)
        return;
    t->max_us   = us;
    t->max_line = line;
}

/* False: out of memory. */
static bool
group_add(struct lock_report *r, struct lock_group *g, const struct lock_line *l)
{
    size_t at = g->n_kept;

    if (g->n_kept == g->capacity && g->capacity < CLI_LOCKS_KEPT_MAX && !grow(g))
        return false;
    g->n++;
    g->n_violations += l->violation;
    note_max(&g->wait, l->wait_us, r->n_lines);
    note_max(&g->hold, l->hold_us, r->n_lines);
    if (g->n_kept < g->capacity)
        g->n_kept++;
    else if ((at = next_random(r) % g->n) >= g->n_kept) /* each is kept with the same probability */
        return true;
    g->wait.us[at] = (uint32_t)MIN(l->wait_us, (uint64_t)UINT32_MAX);
    g->hold.us[at] = (uint32_t)MIN(l->hold_us, (uint64_t)UINT32_MAX);
    return true;
}

static int
compare_groups(const void *a, const void *b)
{
    const struct lock_group *x = *(struct lock_group *const *)a,
                            *y = *(struct lock_group *const *)b;
    int diff                   = strcmp(x->pipeline, y->pipeline);

    if (diff == 0)
        diff = strcmp(x->entity, y->entity);
    return diff != 0 ? diff : strcmp(x->caller, y->caller);
}

static int
compare_us(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void
sort_all(struct lock_report *r)
{
    if (r->n_groups == 0)
        return;
    qsort(r->groups, r->n_groups, sizeof(struct lock_group *), compare_groups);
    for (size_t i = 0; i < r->n_groups; i++) {
        struct lock_group *g = r->groups[i];
        qsort(g->wait.us, g->n_kept, sizeof *g->wait.us, compare_us);
        qsort(g->hold.us, g->n_kept, sizeof *g->hold.us, compare_us);
    }
}

uint32_t
il__cli_lock_percentile(const struct lock_group *g, const struct lock_times *t, unsigned percent)
{
    CHECK(g->n_kept > 0 && percent <= 100);
    size_t rank = (g->n_kept * percent + 99) / 100;
    return t->us[rank > 0 ? rank - 1 : 0];
}

/* ---- reading --------------------------------------------------------------------------------- */

static void
note_bad(struct lock_report *r, const char *why)
{
    if (r->n_bad < CLI_LOCKS_BAD_MAX) {
        r->bad[r->n_bad].line = r->n_lines;
        (void)snprintf(r->bad[r->n_bad].why, sizeof r->bad[r->n_bad].why, "%s", why);
    }
    r->n_bad++;
}

/* False: out of memory. */
static bool
add_json(struct lock_report *r, const json_t *json)
{
    struct lock_line   l;
    struct lock_group *g;
    char               why[80];

    if (!is_lock(json)) {
        r->n_other++;
        return true;
    }
    if (!take_line(json, &l, why)) {
        note_bad(r, why);
        return true;
    }
    if (!find_group(r, &l, &g))
        return false;
    if (g == NULL) {
        r->n_dropped++;
        return true;
    }
    r->n_locks++;
    return group_add(r, g, &l);
}

static bool
add_line(struct lock_report *r, const char *line, size_t n)
{
    json_error_t error;

    if (is_blank(line, n))
        return true;
    json_t *json = json_loadb(line, n, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL && json_error_code(&error) == json_error_out_of_memory)
        return false;
    bool ok = true;
    if (json == NULL)
        note_bad(r, "not JSON");
    else if (!json_is_object(json))
        note_bad(r, "not a JSON object");
    else
        ok = add_json(r, json);
    json_decref(json);
    return ok;
}

il_status
il__cli_lock_report_read(struct lock_report *r, FILE *file, il_error *reterr)
{
    char     *line = il__alloc(CLI_LOCKS_LINE_BYTES_MAX);
    bool      ok   = line != NULL;
    size_t    n    = 0;
    enum line what;

    while (ok && (what = read_line(file, line, &n)) != LINE_END) {
        r->n_lines++;
        if (what == LINE_LONG)
            note_bad(r, "longer than 65,536 bytes");
        else
            ok = add_line(r, line, n);
    }
    il__free(line);
    if (!ok)
        return il__error_set(reterr, IL_NOMEM, "out of memory for the report");
    if (ferror(file) != 0)
        return il__error_set(reterr, IL_STORE, "cannot read the log: %s", strerror(errno));
    sort_all(r);
    return IL_OK;
}

/* A page of GET /admin/row-locks. Returns whether there was memory for it. */
static bool
add_page(struct lock_report *r, const json_t *page)
{
    const json_t *item;
    size_t        i;
    bool          ok = true;

    json_array_foreach(json_object_get(page, "items"), i, item)
    {
        const json_t *lock = json_object_get(item, "lock");
        r->n_lines++;
        if (ok && json_is_object(lock))
            ok = add_json(r, lock);
        else if (ok)
            note_bad(r, "not a JSON object");
    }
    return ok;
}

il_status
il__cli_lock_report_ask(const struct cli *cli, struct lock_report *r, il_error *reterr)
{
    AUTO_BUF struct il__buf path = { 0 };
    bool                    more = true;

    il__buf_init(&path, 256);
    il__buf_adds(&path, ROW_LOCKS_PATH);
    while (more) {
        json_t   *page = NULL;
        il_status st   = il__cli_request(cli, "GET", il__buf_str(&path), NULL, 0, &page, reterr);
        if (st != IL_OK)
            return st;
        bool        ok   = add_page(r, page);
        const char *next = json_string_value(json_object_get(page, "next"));
        more             = ok && next != NULL;
        il__buf_clear(&path);
        il__buf_adds(&path, ROW_LOCKS_PATH "?cursor=");
        il__buf_add_url(&path, next != NULL ? next : "");
        json_decref(page);
        if (!ok)
            return il__error_set(reterr, IL_NOMEM, "out of memory for the report");
    }
    sort_all(r);
    return IL_OK;
}

void
il__cli_lock_report_release(struct lock_report *r)
{
    for (size_t i = 0; i < r->n_groups; i++)
        group_free(r->groups[i]);
    il__free(r->groups);
    il__map_release(&r->map);
}
