/*
 * load.c: reads invariants from a folder: DIR/TENANT/NAME.yml, each a list of invariants, and those
 * that apps register. docs/CHECKS.md describes the format for users.
 *
 * What cannot be read becomes an invariant with a fault, which then counts as one that cannot run:
 * a typing error must not make a check disappear.
 */
#include "apps/check/check.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "apps/common/reading.h"
#include "base/arena.h"
#include "base/error.h"
#include "core/limits.h"

#define DESCRIPTION_BYTES_MAX 4096
#define CRON_BYTES_MAX 200
#define ZONE_NAME_BYTES_MAX 63

struct loading {
    struct check_set *set;
    const char       *tenant;   /* of the files being read; "" outside of a tenant's folder */
    size_t            i_tenant; /* its first invariant in the set */
    const char       *dir;      /* its folder */
    char             *text;     /* CHECK_FILE_BYTES_MAX + 1 bytes */
    doc_remark_fn    *remark;
    void             *cookie;
};

/* ---- the set --------------------------------------------------------------------------------- */

void
il__checks_release(struct check_set *set)
{
    il__free(set->items);
    il__arena_free(&set->mem);
    *set = (struct check_set){ 0 };
}

static il_status
no_memory(il_error *reterr)
{
    return il__error_set(reterr, IL_NOMEM, "checks: out of memory");
}

il_status
il__checks_add(struct check_set *set, struct check **ret, il_error *reterr)
{
    if (set->n == CHECK_ITEMS_MAX)
        return il__error_set(reterr, IL_INVAL, "checks: too many invariants (maximum %d)",
                             CHECK_ITEMS_MAX);
    if (!il__grow(&set->items, set->n, &set->capacity, sizeof *set->items))
        return no_memory(reterr);
    struct check *c  = &set->items[set->n];
    *c               = (struct check){ .description = "", .path = "", .severity = INVARIANT_ERROR };
    c->timeout_ms    = CHECK_TIMEOUT_MS;
    c->schedule_text = CHECK_SCHEDULE;
    il_status st     = il__cron_parse(CHECK_SCHEDULE, &c->schedule, reterr);
    if (st == IL_OK)
        st = il__zone_get("UTC", &c->zone, reterr);
    if (st != IL_OK)
        return st;
    set->n++;
    *ret = c;
    return IL_OK;
}

int64_t
il__check_next_tick(const struct check *c, int64_t after_ms)
{
    return c->fault == NULL ? il__cron_next_in(c->zone, &c->schedule, after_ms) : IL__NEVER;
}

/* ---- baseline -------------------------------------------------------------------------------- */

#define BASELINE_FORMS "must be a list of keys, or the name of a file in this folder"

/* Keep the keys; the array is copied. */
static void
set_baseline(struct reading *r, struct check *c, const char **keys, size_t n)
{
    if (r->no_memory)
        return;
    n                 = il__invariant_baseline_sort(keys, n);
    const char **kept = il__reading_alloc(r, n, sizeof *kept);
    if (kept == NULL)
        return;
    memcpy(kept, keys, n * sizeof *kept);
    c->baseline   = kept;
    c->n_baseline = n;
}

static void
baseline_list(struct reading *r, const struct doc_node *list, const char *at, struct check *c)
{
    AUTO_FREE const char **keys = NULL;
    size_t                 n    = 0;

    if (list->n > CHECK_BASELINE_MAX) {
        il__reading_fault(r, list->line, PLACE(at, "baseline"), "too many keys (maximum %d)",
                          CHECK_BASELINE_MAX);
        return;
    }
    keys = il__calloc(list->n + 1, sizeof *keys);
    r->no_memory |= keys == NULL;
    for (const struct doc_node *m = list->first; m != NULL && keys != NULL; m = m->next) {
        const char *key = il__reading_scalar(r, m, PLACE(at, "baseline"), "a key");
        if (key != NULL)
            keys[n++] = il__reading_strdup(r, key);
    }
    if (keys != NULL)
        set_baseline(r, c, keys, n);
}

/* The lines of a text that are not empty become keys. False: there are too many. */
static bool
split_lines(struct reading *r, const char *text, const char **keys, size_t *ret_n)
{
    size_t n = 0;

    for (const char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        size_t n_key  = length > 0 && line[length - 1] == '\r' ? length - 1 : length;
        if (n_key > 0 && n == CHECK_BASELINE_MAX)
            return false;
        if (n_key > 0) {
            char *key = il__reading_alloc(r, n_key + 1, 1);
            if (key == NULL)
                break;
            memcpy(key, line, n_key);
            keys[n++] = key;
        }
        line += length + (line[length] == '\n');
    }
    *ret_n = n;
    return true;
}

/* A file of keys, one per line. */
static void
baseline_file(struct reading *r, const struct doc_node *node, const char *at, struct check *c)
{
    const struct loading *l     = r->own;
    struct place          where = PLACE(at, "baseline");
    char                  path[4096];
    struct stat           st;
    size_t                n = 0;

    if (strchr(node->text, '/') != NULL || node->text[0] == '.' || node->text[0] == '\0' ||
        snprintf(path, sizeof path, "%s/%s", l->dir, node->text) >= (int)sizeof path) {
        il__reading_fault(r, node->line, where, BASELINE_FORMS);
        return;
    }
    AUTO_FREE char        *text = il__calloc(CHECK_FILE_BYTES_MAX + 2, 1);
    AUTO_FREE const char **keys = il__calloc(CHECK_BASELINE_MAX, sizeof *keys);
    if (text == NULL || keys == NULL) {
        r->no_memory = true;
    } else if (!il__reading_file(path, text, CHECK_FILE_BYTES_MAX, &st, &n)) {
        il__reading_fault(r, node->line, where, "cannot read %.100s: %s", node->text,
                          errno == EINVAL ? "not a regular file" : strerror(errno));
    } else if (n > CHECK_FILE_BYTES_MAX || memchr(text, '\0', n) != NULL) {
        il__reading_fault(r, node->line, where, "%.100s must be a text file of at most %d bytes",
                          node->text, CHECK_FILE_BYTES_MAX);
    } else if (!split_lines(r, text, keys, &n)) {
        il__reading_fault(r, node->line, where, "%.100s has too many keys (maximum %d)", node->text,
                          CHECK_BASELINE_MAX);
    } else {
        set_baseline(r, c, keys, n);
    }
}

static void
read_baseline(struct reading *r, const struct doc_node *map, const char *at, struct check *c)
{
    const struct doc_node *node = il__doc_get(map, "baseline");

    if (node == NULL)
        return;
    if (node->type == DOC_LIST)
        baseline_list(r, node, at, c);
    else if (node->type == DOC_TEXT && node->text != NULL)
        baseline_file(r, node, at, c);
    else
        il__reading_fault(r, node->line, PLACE(at, "baseline"), BASELINE_FORMS);
}

/* ---- an invariant ---------------------------------------------------------------------------- */

/* schedule: "0 9 * * 1", or {cron: "0 9 * * 1", zone: Europe/Berlin} */
static void
read_schedule(struct reading *r, const struct doc_node *map, const char *at, struct check *c)
{
    static const char *const keys[] = { "cron", "zone", NULL };
    const struct doc_node   *node   = il__doc_get(map, "schedule");
    char                     below[READING_FIELD_BYTES];
    const char              *cron, *zone = NULL;

    if (node == NULL)
        return;
    if (node->type == DOC_MAP) {
        (void)snprintf(below, sizeof below, "%s.schedule", at);
        if (!il__reading_keys(r, node, below, keys, NULL))
            return;
        cron = il__reading_text(r, node, below, "cron", CRON_BYTES_MAX, true);
        zone = il__reading_text(r, node, below, "zone", ZONE_NAME_BYTES_MAX, false);
    } else {
        cron = il__reading_text(r, map, at, "schedule", CRON_BYTES_MAX, true);
    }
    if (il__reading_cron(r, cron, node->line, PLACE(at, "schedule"), &c->schedule))
        c->schedule_text = cron;
    if (zone != NULL) /* a fault is reported */
        (void)il__reading_zone(r, zone, node->line, PLACE(at, "schedule"), &c->zone);
}

/* Is its first word one of a query? A statement of another kind returns no rows, and would seem to
 * find nothing. */
static bool
is_query(const char *sql)
{
    static const char *const words[] = { "SELECT", "WITH", "VALUES" };

    for (;;) { /* blanks, parentheses and comments */
        sql += strspn(sql, " \t\r\n(");
        const char *end = NULL;
        if (strncmp(sql, "--", 2) == 0)
            end = strchr(sql, '\n');
        else if (strncmp(sql, "/*", 2) == 0 && (end = strstr(sql + 2, "*/")) != NULL)
            end += 2;
        if (end == NULL)
            break;
        sql = end;
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t n = strlen(words[i]);
        if (strncasecmp(sql, words[i], n) == 0 && strchr(" \t\r\n(*'/-", sql[n]) != NULL)
            return true;
    }
    return false;
}

static void
read_sql(struct reading *r, const struct doc_node *map, const char *at, struct check *c)
{
    c->sql = il__reading_text(r, map, at, "sql", CHECK_SQL_BYTES_MAX, true);
    if (c->sql != NULL && !is_query(c->sql))
        il__reading_fault(r, il__doc_get(map, "sql")->line, PLACE(at, "sql"),
                          "must be a query: SELECT, WITH or VALUES");
}

static void
read_name(struct reading *r, const struct doc_node *map, const char *at, struct check *c)
{
    const struct loading *l    = r->own;
    const char           *name = il__reading_id(r, map, "name", at, CHECK_NAME_BYTES_MAX);

    if (name == NULL)
        return;
    if (strcmp(name, "results") == 0 || strcmp(name, "run") == 0)
        il__reading_fault(r, il__doc_get(map, "name")->line, PLACE(at, "name"),
                          "'%s' is reserved for the route /checks/%s; choose another name", name,
                          name);
    for (const struct check *other = &l->set->items[l->i_tenant]; other < c; other++) {
        if (strcmp(other->name, name) == 0) {
            il__reading_fault(r, il__doc_get(map, "name")->line, PLACE(at, "name"),
                              "duplicate name '%s', already used at %.200s:%zu", name, other->path,
                              other->line);
            break;
        }
    }
    c->name = name;
}

/* The first fault at or below a line, as "PATH:LINE: field: reason". */
static const char *
first_fault(struct reading *r, size_t line)
{
    char text[1024];

    for (const struct reading_note *n = r->notes; n != NULL; n = n->next) {
        const struct doc_remark *m = &n->remark;
        if (!m->is_error || m->line < line)
            continue;
        (void)snprintf(text, sizeof text, "%.400s:%zu: %s%s%s", m->path, m->line, m->field,
                       m->field[0] != '\0' ? ": " : "", m->text);
        return il__reading_strdup(r, text);
    }
    return "too many errors in its file";
}

static void
read_item(struct reading *r, const struct doc_node *map, size_t i, struct check *c)
{
    static const char *const keys[]   = { "name",       "description", "connection", "sql",
                                          "severity",   "schedule",    "baseline",   "timeout",
                                          "on_success", "on_failure",  "on_lost",    NULL };
    const char              *file     = strrchr(r->path, '/') + 1;
    size_t                   n_errors = r->n_errors;
    char                     at[32], name[CHECK_NAME_BYTES_MAX + 32];

    (void)snprintf(at, sizeof at, "[%zu]", i);
    (void)snprintf(name, sizeof name, "%.*s%s", CHECK_NAME_BYTES_MAX, file, at);
    c->tenant = ((const struct loading *)r->own)->tenant;
    c->name   = il__reading_strdup(r, name); /* until it has been read */
    c->path   = r->path;
    c->line   = map->line;
    if (il__reading_keys(r, map, at, keys, NULL) || map->type == DOC_MAP) {
        read_name(r, map, at, c);
        const char *description =
            il__reading_text(r, map, at, "description", DESCRIPTION_BYTES_MAX, false);
        c->description = description != NULL ? description : "";
        c->connection  = il__reading_id(r, map, "connection", at, CHECK_NAME_BYTES_MAX);
        size_t chosen = il__reading_choice(r, map, at, "severity", il__invariant_severities, false);
        c->severity   = chosen != SIZE_MAX ? (enum invariant_severity)chosen : INVARIANT_ERROR;
        c->timeout_ms = il__reading_duration(r, map, at, "timeout", CHECK_TIMEOUT_MS_MIN,
                                             CHECK_TIMEOUT_MS_MAX, CHECK_TIMEOUT_MS);
        read_sql(r, map, at, c);
        read_schedule(r, map, at, c);
        read_baseline(r, map, at, c);
        c->on_success = il__reading_hook(r, map, at, "on_success");
        c->on_failure = il__reading_hook(r, map, at, "on_failure");
        c->on_lost    = il__reading_hook(r, map, at, "on_lost");
    }
    if (r->n_errors > n_errors)
        c->fault = first_fault(r, map->line);
}

/* ---- a file ---------------------------------------------------------------------------------- */

/* An item for a file or folder that cannot be read. */
static il_status
add_bad(struct loading *l, struct reading *r, il_error *reterr)
{
    struct check *c    = NULL;
    const char   *name = strrchr(r->path, '/');
    il_status     st   = il__checks_add(l->set, &c, reterr);

    if (c == NULL)
        return st;
    c->tenant = l->tenant;
    c->path   = r->path;
    c->name   = name != NULL ? name + 1 : r->path;
    c->fault  = first_fault(r, 0);
    return IL_OK;
}

static il_status
read_list(struct loading *l, struct reading *r, const struct doc_node *root, il_error *reterr)
{
    size_t i = 0;

    if (root->type != DOC_LIST || root->n == 0) {
        il__reading_fault(r, root->line, PLACE("", ""), "must be a list of invariants (- name: …)");
        return add_bad(l, r, reterr);
    }
    for (const struct doc_node *m = root->first; m != NULL; m = m->next) {
        struct check *c  = NULL;
        il_status     st = il__checks_add(l->set, &c, reterr);
        if (st != IL_OK)
            return st;
        read_item(r, m, i++, c);
    }
    return IL_OK;
}

static il_status
read_file(struct loading *l, const char *path, il_error *reterr)
{
    struct reading r  = { .path = path, .mem = &l->set->mem, .own = l };
    il_status      st = IL_OK;
    il_error       told; /* was passed to `remark` */
    struct stat    stat;
    size_t         n;

    l->set->n_files++;
    if (l->set->n_files > CHECK_FILES_MAX)
        return il__error_set(reterr, IL_INVAL, "checks: too many files (maximum %d)",
                             CHECK_FILES_MAX);
    if (!il__reading_file(path, l->text, CHECK_FILE_BYTES_MAX, &stat, &n)) {
        il__reading_fault(&r, 0, PLACE("", ""), "cannot read the file: %s",
                          errno == EINVAL ? "not a regular file" : strerror(errno));
        st = add_bad(l, &r, reterr);
    } else {
        const struct doc_node *root = il__reading_tree(&r, l->text, n, CHECK_FILE_BYTES_MAX);
        st = root != NULL ? read_list(l, &r, root, reterr) : add_bad(l, &r, reterr);
    }
    il_status end = il__reading_end(&r, l->remark, l->cookie, &told);
    return st == IL_OK && end == IL_NOMEM ? no_memory(reterr) : st;
}

/* ---- the folder ------------------------------------------------------------------------------ */

static int
is_file(const struct dirent *entry)
{
    return il__reading_is_yaml(entry->d_name);
}

static int
is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Not alphasort(), whose order depends on the locale. */
static int
by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void
free_entries(struct dirent **entries, int n)
{
    for (int i = 0; i < n; i++)
        free(entries[i]); /* NOLINT: scandir() allocated it */
    free(entries);        /* NOLINT */
}

/* Report a fault of the folder itself. */
static il_status
refuse(struct loading *l, const char *path, const char *why, il_error *reterr)
{
    struct reading r = { .path = path, .mem = &l->set->mem, .own = l };
    il_error       told; /* was passed to `remark` */

    il__reading_fault(&r, 0, PLACE("", ""), "%s", why);
    il_status st  = add_bad(l, &r, reterr);
    il_status end = il__reading_end(&r, l->remark, l->cookie, &told);
    return st == IL_OK && end == IL_NOMEM ? no_memory(reterr) : st;
}

/* DIR/NAME in the set's memory; NULL: out of memory. */
static char *
join(struct check_set *set, const char *dir, const char *name)
{
    size_t n    = strlen(dir) + strlen(name) + 2;
    char  *path = il__arena_alloc(&set->mem, n);

    if (path != NULL)
        (void)snprintf(path, n, "%s/%s", dir, name);
    return path;
}

static il_status
read_tenant(struct loading *l, il_error *reterr)
{
    struct dirent **entries = NULL;
    int             n       = scandir(l->dir, &entries, is_file, by_name);
    il_status       st      = IL_OK;
    char            why[128];

    if (n < 0) {
        (void)snprintf(why, sizeof why, "cannot read the folder: %s", strerror(errno));
        return refuse(l, l->dir, why, reterr);
    }
    l->i_tenant = l->set->n;
    for (int i = 0; i < n && st == IL_OK; i++) {
        const char *path = join(l->set, l->dir, entries[i]->d_name);
        st               = path != NULL ? read_file(l, path, reterr) : no_memory(reterr);
    }
    free_entries(entries, n);
    return st;
}

static il_status
read_entry(struct loading *l, const char *dir, const char *name, const char *tenant,
           il_error *reterr)
{
    const char *path = join(l->set, dir, name);
    struct stat st;
    char        why[128];

    if (path == NULL)
        return no_memory(reterr);
    if (tenant != NULL && strcmp(name, tenant) != 0)
        return IL_OK;
    l->tenant = "";
    if (stat(path, &st) != 0) {
        (void)snprintf(why, sizeof why, "cannot read the file: %s", strerror(errno));
        if (errno == ENOENT && lstat(path, &st) != 0)
            return IL_OK; /* it has just been removed */
        return refuse(l, path, why, reterr);
    }
    if (!S_ISDIR(st.st_mode))
        return il__reading_is_yaml(name)
                   ? refuse(l, path, "move this file into the folder of its tenant", reterr)
                   : IL_OK;
    if (!il__reading_is_tenant(name))
        return refuse(l, path, "the folder's name is not a tenant id (a-z, 0-9, _)", reterr);
    l->tenant = il__arena_strdup(&l->set->mem, name);
    l->dir    = path;
    return l->tenant != NULL ? read_tenant(l, reterr) : no_memory(reterr);
}

il_status
il__checks_load(struct check_set *set, const char *dir, const char *tenant, doc_remark_fn *remark,
                void *cookie, il_error *reterr)
{
    struct loading  l       = { .set = set, .remark = remark, .cookie = cookie };
    struct dirent **entries = NULL;
    int             n       = scandir(dir, &entries, is_visible, by_name);
    il_status       st      = IL_OK;

    if (n < 0)
        return il__error_set(reterr, IL_INVAL, "checks: cannot read folder %.200s: %s", dir,
                             strerror(errno));
    l.text = il__alloc(CHECK_FILE_BYTES_MAX + 1);
    if (l.text == NULL)
        st = no_memory(reterr);
    for (int i = 0; i < n && st == IL_OK; i++)
        st = read_entry(&l, dir, entries[i]->d_name, tenant, reterr);
    il__free(l.text);
    free_entries(entries, n);
    return st;
}

/* ---- apps ------------------------------------------------------------------------------------ */

static il_status
set_app_baseline(struct check_set *set, struct check *c, il_error *reterr)
{
    size_t n = 0;

    while (c->own->baseline != NULL && c->own->baseline[n] != NULL)
        n++;
    const char **keys = il__arena_alloc(&set->mem, (n + 1) * sizeof *keys);
    if (keys == NULL)
        return no_memory(reterr);
    for (size_t i = 0; i < n; i++)
        keys[i] = c->own->baseline[i];
    c->n_baseline = il__invariant_baseline_sort(keys, n);
    c->baseline   = keys;
    return IL_OK;
}

il_status
il__checks_add_app(struct check_set *set, const struct http_app *app, const char *tenant,
                   il_error *reterr)
{
    const char *tenant_copy = il__arena_strdup(&set->mem, tenant);

    if (tenant_copy == NULL)
        return no_memory(reterr);
    for (size_t i = 0; i < app->n_invariants; i++) {
        const struct app_invariant *own = &app->invariants[i];
        struct check               *c   = NULL;
        char                        name[2 * CHECK_NAME_BYTES_MAX];
        il_status                   st = il__checks_add(set, &c, reterr);
        if (st != IL_OK)
            return st;
        CHECK(c != NULL);
        CHECK((own->fn != NULL) != (own->sqlite != NULL && own->postgres != NULL));
        (void)snprintf(name, sizeof name, "%s.%s", app->name, own->name);
        c->tenant      = tenant_copy;
        c->name        = il__arena_strdup(&set->mem, name);
        c->description = own->summary != NULL ? own->summary : "";
        c->severity    = own->severity;
        c->app         = app;
        c->own         = own;
        if (c->name == NULL)
            return no_memory(reterr);
        st = set_app_baseline(set, c, reterr);
        if (st != IL_OK)
            return st;
    }
    return IL_OK;
}
