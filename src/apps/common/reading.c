/*
 * reading.c: parses single fields of a YAML file: texts, numbers, durations, choices. Each function
 * reports what is wrong with the value and continues, so that one pass finds all faults of a file.
 */
#include "apps/common/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/suggest.h"

#define HOOK_WORDS_MAX 64

/* ---- remarks --------------------------------------------------------------------------------- */

static void PRINTF_LIKE(5, 0) add_note(struct reading *r, bool is_error, size_t line,
                                       struct place where, const char *fmt, va_list ap)
{
    char field[READING_FIELD_BYTES];
    char text[400];
    struct reading_note *new = il__arena_alloc(&r->scratch, sizeof *new);

    *(is_error ? &r->n_errors : &r->n_advice) += 1;
    if ((is_error ? r->n_errors : r->n_advice) > READING_REMARKS_MAX)
        return;
    (void)snprintf(field, sizeof field, "%s%s%s", where.at,
                   where.at[0] != '\0' && where.key[0] != '\0' ? "." : "", where.key);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    char *field_copy = il__arena_strdup(&r->scratch, field);
    char *text_copy  = il__arena_strdup(&r->scratch, text);
    if (new == NULL || field_copy == NULL || text_copy == NULL) {
        r->no_memory = true;
        return;
    }
    new->remark = (struct doc_remark){ r->path, line, field_copy, text_copy, is_error };
    struct reading_note **at = &r->notes;
    while (*at != NULL && (*at)->remark.line <= line)
        at = &(*at)->next;
    new->next = *at;
    *at       = new;
}

void
il__reading_fault(struct reading *r, size_t line, struct place where, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_note(r, true, line, where, fmt, ap);
    va_end(ap);
}

void
il__reading_advise(struct reading *r, size_t line, struct place where, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_note(r, false, line, where, fmt, ap);
    va_end(ap);
}

static il_status
tell(const struct reading *r, doc_remark_fn *remark, void *cookie, il_error *reterr)
{
    bool first = true;

    for (const struct reading_note *m = r->notes; m != NULL; m = m->next) {
        const struct doc_remark *found = &m->remark;
        if (remark != NULL)
            remark(cookie, found);
        if (!first || !found->is_error)
            continue;
        (void)il__error_set(reterr, IL_INVAL, "%.200s:%zu: %s%s%s", found->path, found->line,
                            found->field, found->field[0] != '\0' ? ": " : "", found->text);
        first = false;
    }
    return r->n_errors > 0 ? IL_INVAL : IL_OK;
}

il_status
il__reading_end(struct reading *r, doc_remark_fn *remark, void *cookie, il_error *reterr)
{
    il_status st = tell(r, remark, cookie, reterr);

    il__arena_free(&r->scratch);
    r->notes = NULL;
    return r->no_memory ? il__error_set(reterr, IL_NOMEM, "%.200s: out of memory", r->path) : st;
}

/* ---- files ----------------------------------------------------------------------------------- */

bool
il__reading_is_yaml(const char *name)
{
    const char *dot = strrchr(name, '.');

    return name[0] != '.' && dot != NULL && (strcmp(dot, ".yml") == 0 || strcmp(dot, ".yaml") == 0);
}

bool
il__reading_is_tenant(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return n > 0 && n <= IL_TENANT_BYTES_MAX && name[n] == '\0';
}

bool
il__reading_file(const char *path, char *text, size_t n_max, struct stat *ret_stat, size_t *ret_n)
{
    int     fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got;
    size_t  n = 0;

    if (fd < 0)
        return false;
    bool ok = fstat(fd, ret_stat) == 0; /* of what is read now */
    if (ok && !S_ISREG(ret_stat->st_mode)) {
        errno = EINVAL;
        ok    = false;
    }
    while (ok && n <= n_max && (got = read(fd, text + n, n_max + 1 - n)) != 0) {
        if (got > 0)
            n += (size_t)got;
        else
            ok = errno == EINTR;
    }
    int saved = errno;
    (void)close(fd);
    errno  = saved;
    *ret_n = n;
    return ok;
}

struct doc_node *
il__reading_tree(struct reading *r, const char *text, size_t n_bytes, size_t n_max)
{
    struct doc_node *root = NULL;
    struct doc_fault fault;

    if (n_bytes > n_max) {
        il__reading_fault(r, 0, PLACE("", ""), "file too large (maximum %zu bytes)", n_max);
        return NULL;
    }
    il_status st = il__doc_read(&r->scratch, text, n_bytes, &root, &fault);
    if (st == IL_NOMEM)
        r->no_memory = true;
    else if (st != IL_OK)
        il__reading_fault(r, fault.line, PLACE("", ""), "%s", fault.text);
    return st == IL_OK ? root : NULL;
}

/* ---- memory ---------------------------------------------------------------------------------- */

void *
il__reading_alloc(struct reading *r, size_t n, size_t size)
{
    void *p = il__arena_alloc(r->mem, MAX(n, 1) * size);

    if (p == NULL)
        r->no_memory = true;
    else
        memset(p, 0, MAX(n, 1) * size);
    return p;
}

char *
il__reading_strdup(struct reading *r, const char *text)
{
    char *copy = il__arena_strdup(r->mem, text);

    r->no_memory |= copy == NULL;
    return copy;
}

/* ---- mappings -------------------------------------------------------------------------------- */

const struct doc_node *
il__doc_get(const struct doc_node *map, const char *key)
{
    for (const struct doc_node *m = map->first; m != NULL; m = m->next) {
        if (strcmp(m->key, key) == 0)
            return m;
    }
    return NULL;
}

/* names[i] of a NULL-terminated array, for il__suggest(). */
static const char *
name_at(const void *cookie, size_t i)
{
    const char *const *names = cookie;

    return names[i];
}

const char *
il__reading_hint(const char *word, const char *(*next)(const void *cookie, size_t i),
                 const void *cookie, char *out, size_t n_bytes)
{
    const char *meant = il__suggest(word, next, cookie);

    out[0] = '\0';
    if (meant != NULL)
        (void)snprintf(out, n_bytes, " (did you mean '%.64s'?)", meant);
    return out;
}

struct two_lists {
    const char *const *first, *const *second;
};

static const char *
name_of_two(const void *cookie, size_t i)
{
    const struct two_lists *l = cookie;

    for (const char *const *n = l->first; *n != NULL; n++) {
        if (i-- == 0)
            return *n;
    }
    return l->second != NULL ? l->second[i] : NULL;
}

static bool
is_one_of(const char *word, const char *const *names)
{
    for (; names != NULL && *names != NULL; names++) {
        if (strcmp(word, *names) == 0)
            return true;
    }
    return false;
}

bool
il__reading_keys(struct reading *r, const struct doc_node *map, const char *at,
                 const char *const *names, const char *const *more)
{
    struct two_lists lists = { names, more };
    char             hint[100];
    bool             ok = true;

    if (map->type != DOC_MAP) {
        il__reading_fault(r, map->line, PLACE(at, ""), "must be a mapping (name: value)");
        return false;
    }
    for (const struct doc_node *m = map->first; m != NULL; m = m->next) {
        if (is_one_of(m->key, names) || is_one_of(m->key, more))
            continue;
        ok = false;
        il__reading_fault(r, m->key_line, PLACE(at, ""), "unknown key '%.60s'%s", m->key,
                          il__reading_hint(m->key, name_of_two, &lists, hint, sizeof hint));
    }
    return ok;
}

/* ---- scalars --------------------------------------------------------------------------------- */

const char *
il__reading_scalar(struct reading *r, const struct doc_node *node, struct place where,
                   const char *what)
{
    if (node->type == DOC_MAP && node->plain && node->n == 1 && node->first->type == DOC_TEXT &&
        node->first->text == NULL) {
        il__reading_fault(r, node->line, where,
                          "write \"{%.60s}\" in quotes; without them YAML reads a mapping",
                          node->first->key);
        return NULL;
    }
    if (node->type != DOC_TEXT)
        il__reading_fault(r, node->line, where, "must be %s, not a %s", what,
                          node->type == DOC_LIST ? "list" : "mapping");
    else if (node->text == NULL)
        il__reading_fault(r, node->line, where, "no value; must be %s", what);
    return node->type == DOC_TEXT ? node->text : NULL;
}

/* Control characters other than tabs and newlines. */
static bool
has_control(const char *s)
{
    for (; *s != '\0'; s++) {
        if (((unsigned char)*s < 0x20 && strchr("\t\n\r", *s) == NULL) || *s == 0x7F)
            return true;
    }
    return false;
}

const char *
il__reading_text(struct reading *r, const struct doc_node *map, const char *at, const char *key,
                 size_t n_max, bool required)
{
    const struct doc_node *node = il__doc_get(map, key);

    if (node == NULL) {
        if (required)
            il__reading_fault(r, map->line, PLACE(at, key), "missing");
        return NULL;
    }
    const char *text = il__reading_scalar(r, node, PLACE(at, key), "a string");
    if (text == NULL)
        return NULL;
    if (text[0] == '\0' && required)
        il__reading_fault(r, node->line, PLACE(at, key), "must not be empty");
    else if (strlen(text) > n_max)
        il__reading_fault(r, node->line, PLACE(at, key), "longer than %zu bytes", n_max);
    else if (has_control(text))
        il__reading_fault(r, node->line, PLACE(at, key), "must not contain control characters");
    else
        return il__reading_strdup(r, text);
    return NULL;
}

int64_t
il__reading_number(struct reading *r, const struct doc_node *map, const char *at, const char *key,
                   int64_t min, int64_t max, int64_t fallback)
{
    const struct doc_node *node = il__doc_get(map, key);
    uint64_t               number;

    if (node == NULL)
        return fallback;
    const char *text = il__reading_scalar(r, node, PLACE(at, key), "a number");
    if (text == NULL)
        return fallback;
    if (il__parse_u64(text, (uint64_t)max, &number) && (int64_t)number >= min)
        return (int64_t)number;
    il__reading_fault(r, node->line, PLACE(at, key),
                      "must be a whole number from %" PRId64 " to %" PRId64 ", not '%.60s'", min,
                      max, text);
    return fallback;
}

int64_t
il__reading_duration(struct reading *r, const struct doc_node *map, const char *at, const char *key,
                     int64_t min_ms, int64_t max_ms, int64_t fallback)
{
    const struct doc_node *node = il__doc_get(map, key);
    char                   min_text[IL__DURATION_TEXT_BYTES];
    char                   max_text[IL__DURATION_TEXT_BYTES];
    int64_t                ms;

    if (node == NULL)
        return fallback;
    const char *text = il__reading_scalar(r, node, PLACE(at, key), "a duration such as 45s");
    if (text == NULL)
        return fallback;
    if (il_parse_duration(text, &ms, NULL) == IL_OK && ms >= min_ms && ms <= max_ms)
        return ms;
    il__reading_fault(r, node->line, PLACE(at, key),
                      "must be a duration from %s to %s (250ms, 30s, 5m, 1h), not '%.60s'",
                      il__duration_text(min_ms, min_text), il__duration_text(max_ms, max_text),
                      text);
    return fallback;
}

bool
il__reading_bool(struct reading *r, const struct doc_node *map, const char *at, const char *key,
                 bool fallback)
{
    const struct doc_node *node = il__doc_get(map, key);
    const char            *text =
        node != NULL ? il__reading_scalar(r, node, PLACE(at, key), "true or false") : NULL;

    if (text == NULL)
        return fallback;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return text[0] == 't';
    il__reading_fault(r, node->line, PLACE(at, key), "must be true or false, not '%.60s'", text);
    return fallback;
}

static bool
same_choice(const char *a, const char *b)
{
    for (; *a != '\0' || *b != '\0'; a++, b++) {
        if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_')))
            return false;
    }
    return true;
}

size_t
il__reading_choice(struct reading *r, const struct doc_node *map, const char *at, const char *key,
                   const char *const *names, bool required)
{
    const struct doc_node *node = il__doc_get(map, key);
    char                   hint[100];
    char                   all[160];
    size_t                 n = 0;

    if (node == NULL && !required)
        return SIZE_MAX;
    all[0] = '\0';
    for (size_t i = 0; names[i] != NULL && n < sizeof all; i++)
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i > 0 ? ", " : "", names[i]);
    if (node == NULL) {
        il__reading_fault(r, map->line, PLACE(at, key), "missing; must be one of %s", all);
        return SIZE_MAX;
    }
    const char *text = il__reading_scalar(r, node, PLACE(at, key), "a string");
    if (text == NULL)
        return SIZE_MAX;
    for (size_t i = 0; names[i] != NULL; i++) {
        if (same_choice(text, names[i]))
            return i;
    }
    il__reading_fault(r, node->line, PLACE(at, key), "'%.60s' is not one of %s%s", text, all,
                      il__reading_hint(text, name_at, names, hint, sizeof hint));
    return SIZE_MAX;
}

int64_t
il__reading_timeout(struct reading *r, const struct doc_node *map, const char *at,
                    const struct reading_timeout *t, bool *ret_given)
{
    const struct doc_node *minutes  = il__doc_get(map, "timeout_minutes");
    const struct doc_node *duration = il__doc_get(map, "timeout");

    *ret_given = minutes != NULL || duration != NULL;
    if (minutes != NULL && duration != NULL)
        il__reading_fault(r, duration->key_line, PLACE(at, "timeout"),
                          "cannot be combined with timeout_minutes");
    if (minutes != NULL)
        return 60000 * il__reading_number(r, map, at, "timeout_minutes", 1, t->minutes_max,
                                          t->fallback_ms / 60000);
    return il__reading_duration(r, map, at, "timeout", t->min_ms, t->max_ms, t->fallback_ms);
}

const char *
il__reading_id(struct reading *r, const struct doc_node *map, const char *key, const char *at,
               size_t n_max)
{
    const char *id = il__reading_text(r, map, at, key, n_max, true);

    if (id == NULL)
        return NULL;
    for (const char *p = id; *p != '\0'; p++) {
        if ((*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') ||
            *p == '_' || *p == '-')
            continue;
        il__reading_fault(r, il__doc_get(map, key)->line, PLACE(at, key),
                          "'%.60s' may contain only letters, digits, '_' and '-'", id);
        return NULL;
    }
    return id;
}

/* ---- hooks ----------------------------------------------------------------------------------- */

char *const *
il__reading_hook(struct reading *r, const struct doc_node *map, const char *at, const char *key)
{
    const struct doc_node *list = il__doc_get(map, key);
    size_t                 n    = 0;

    if (list == NULL)
        return NULL;
    if (list->type != DOC_LIST || list->n == 0 || list->n > HOOK_WORDS_MAX) {
        il__reading_fault(r, list->line, PLACE(at, key),
                          "must be a list of a program and its arguments, at most %d",
                          HOOK_WORDS_MAX);
        return NULL;
    }
    char **argv = il__reading_alloc(r, list->n + 1, sizeof *argv);
    for (const struct doc_node *m = list->first; m != NULL && argv != NULL; m = m->next) {
        const char *word = il__reading_scalar(r, m, PLACE(at, key), "a string");
        if (word == NULL)
            return NULL;
        argv[n++] = il__reading_strdup(r, word);
    }
    if (argv == NULL || argv[0] == NULL)
        return NULL;
    if (argv[0][0] == '\0') {
        il__reading_fault(r, list->line, PLACE(at, key), "the program name must not be empty");
        return NULL;
    }
    argv[n] = NULL;
    return argv;
}

/* ---- schedules ------------------------------------------------------------------------------- */

bool
il__reading_cron(struct reading *r, const char *text, size_t line, struct place where,
                 struct il__cron *ret)
{
    il_error err = { 0 };

    if (text == NULL)
        return false;
    if (il__cron_parse(text, ret, &err) == IL_OK)
        return true;
    il__reading_fault(r, line, where, "%s", err.message);
    return false;
}

bool
il__reading_zone(struct reading *r, const char *name, size_t line, struct place where,
                 const struct il__zone **ret)
{
    il_error  err = { 0 };
    il_status st  = il__zone_get(name, ret, &err);

    if (st == IL_NOMEM)
        r->no_memory = true;
    else if (st != IL_OK)
        il__reading_fault(r, line, where, "%s", err.message);
    return st == IL_OK;
}
