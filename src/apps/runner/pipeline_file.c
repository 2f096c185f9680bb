/*
 * pipeline_file.c: parses a pipeline file: its own keys, schedule, parameters, probe. Steps are
 * read in pipeline_step.c, single fields in pipeline_field.c. docs/PIPELINES.md describes the
 * format for users.
 */
#include "apps/runner/pipeline_internal.h"

#include <stdio.h>

#include "apps/runner/template.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/parse.h"

#define DAY_MS 86400000
#define VALUE_BYTES_MAX 2048

static const char *const root_keys[] = {
    "pipeline_id",
    "description",
    "version",
    "schedule",
    "timezone",
    "parameters",
    "timeout_minutes",
    "timeout",
    "lock_timeout_seconds",
    "stall_timeout_seconds",
    "on_conflict",
    "queue_max",
    "retry_attempts",
    "retry_delay",
    "lock_acquisition_retries",
    "lock_acquisition_retry_delay_seconds",
    "lock_metrics_enabled",
    "preflight",
    "on_success",
    "on_failure",
    "on_lost",
    "steps",
    NULL,
};

/* ---- references ------------------------------------------------------------------------------ */

int64_t
il__pipeline_next_tick(const struct pipeline *p, int64_t after_ms)
{
    return p->schedule_text != NULL ? il__cron_next_in(p->zone, &p->schedule, after_ms) : IL__NEVER;
}

struct pipeline *
il__pipeline_ref(struct pipeline *p)
{
    CHECK(__atomic_fetch_add(&p->n_refs, 1, __ATOMIC_RELAXED) > 0);
    return p;
}

void
il__pipeline_unref(struct pipeline *p)
{
    /* Release, so that every use happened before; acquire, so that the thread that frees it sees
     * them. */
    if (p == NULL || __atomic_fetch_sub(&p->n_refs, 1, __ATOMIC_ACQ_REL) > 1)
        return;
    il__arena_free(&p->mem);
    il__free(p);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void
read_id(struct reading *r, const struct doc_node *root)
{
    /* Reserved because they are parts of paths: GET /pipelines/runs, POST /pipelines/run/{id}. */
    static const char *const taken[] = { "run", "runs", "locks", "reload" };
    struct pipeline         *p       = own(r)->p;
    char                     key[sizeof PIPELINE_KEY_PREFIX + PIPELINE_ID_BYTES_MAX];

    p->id                     = il__reading_id(r, root, "pipeline_id", "", PIPELINE_ID_BYTES_MAX);
    const struct doc_node *id = il__doc_get(root, "pipeline_id");
    p->id_line                = id != NULL ? id->line : 0;
    if (p->id == NULL)
        return;
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        if (strcmp(p->id, taken[i]) == 0)
            il__reading_fault(r, il__doc_get(root, "pipeline_id")->line, PLACE("", "pipeline_id"),
                              "'%s' is reserved and cannot be a pipeline_id", p->id);
    }
    (void)snprintf(key, sizeof key, "%s%s", PIPELINE_KEY_PREFIX, p->id);
    p->key = il__reading_strdup(r, key);
}

/* ---- parameters ------------------------------------------------------------------------------ */

static const char *
read_default(struct reading *r, const struct doc_node *node, const char *at)
{
    static const char *const keys[] = { "default", "description", NULL };

    if (node->type == DOC_MAP) {
        if (!il__reading_keys(r, node, at, keys, NULL))
            return NULL;
        (void)il__reading_text(r, node, at, "description", 4096, false); /* only checked */
        node = il__doc_get(node, "default");
        if (node == NULL)
            return NULL;
    }
    if (node->type != DOC_TEXT) {
        il__reading_fault(r, node->line, PLACE(at, ""),
                          "must be a default value, or a mapping with `default` and `description`");
        return NULL;
    }
    if (node->text == NULL)
        return NULL;
    if (strlen(node->text) > VALUE_BYTES_MAX) {
        il__reading_fault(r, node->line, PLACE(at, ""), "default longer than %d bytes",
                          VALUE_BYTES_MAX);
        return NULL;
    }
    return il__reading_strdup(r, node->text);
}

static void
read_parameters(struct reading *r, const struct doc_node *root)
{
    const struct doc_node *map = il__doc_get(root, "parameters");
    struct pipeline       *p   = own(r)->p;

    if (map == NULL || (map->type == DOC_TEXT && map->text == NULL))
        return;
    if (map->type != DOC_MAP || map->n > PIPELINE_PARAMETERS_MAX) {
        il__reading_fault(r, map->line, PLACE("", "parameters"),
                          "must be a mapping of at most %d names to their defaults",
                          PIPELINE_PARAMETERS_MAX);
        return;
    }
    p->parameters = il__reading_alloc(r, map->n, sizeof *p->parameters);
    for (const struct doc_node *m = map->first; m != NULL && p->parameters != NULL; m = m->next) {
        char at[READING_FIELD_BYTES];
        (void)snprintf(at, sizeof at, "parameters.%.100s", m->key);
        if (!il__pipeline_parameter_ok(m->key)) {
            bool known = il__template_is_name(m->key, strlen(m->key));
            il__reading_fault(r, m->key_line, PLACE("", "parameters"),
                              known ? "'%.80s' is reserved for the runner"
                                    : "'%.80s' is not a name (letters, digits, '_'; at most 64)",
                              m->key);
            continue;
        }
        struct pipeline_parameter *parameter = &p->parameters[p->n_parameters];
        parameter->name                      = il__reading_strdup(r, m->key);
        parameter->fallback                  = read_default(r, m, at);
        p->n_parameters += parameter->name != NULL;
    }
}

/* ---- schedule -------------------------------------------------------------------------------- */

static void
set_schedule(struct reading *r, const char *cron, size_t line, struct place where)
{
    if (il__reading_cron(r, cron, line, where, &own(r)->p->schedule))
        own(r)->p->schedule_text = cron;
}

static void
read_schedule(struct reading *r, const struct doc_node *root)
{
    static const char *const keys[]   = { "cron", "zone", "catch_up", NULL };
    const struct doc_node   *node     = il__doc_get(root, "schedule");
    const struct doc_node   *own_zone = il__doc_get(root, "timezone");
    const char              *zone     = "UTC";
    const struct doc_node   *zone_at  = root;
    struct place             where    = PLACE("", "timezone");

    own(r)->p->catch_up_ms = 60000;
    if (own_zone != NULL) {
        zone    = il__reading_text(r, root, "", "timezone", 63, true);
        zone_at = own_zone;
    }
    if (node != NULL && node->type == DOC_MAP) {
        (void)il__reading_keys(r, node, "schedule", keys, NULL); /* reports */
        const struct doc_node *inner = il__doc_get(node, "zone");
        const struct doc_node *cron  = il__doc_get(node, "cron");
        set_schedule(r, il__reading_text(r, node, "schedule", "cron", 200, true),
                     cron != NULL ? cron->line : node->line, PLACE("schedule", "cron"));
        own(r)->p->catch_up_ms =
            il__reading_duration(r, node, "schedule", "catch_up", 0, DAY_MS, 60000);
        if (inner != NULL && own_zone != NULL)
            il__reading_fault(r, inner->key_line, PLACE("schedule", "zone"),
                              "cannot be combined with timezone");
        if (inner != NULL) {
            zone    = il__reading_text(r, node, "schedule", "zone", 63, true);
            zone_at = inner;
            where   = PLACE("schedule", "zone");
        }
    } else if (node != NULL && (node->type != DOC_TEXT || node->text != NULL)) {
        set_schedule(r, il__reading_text(r, root, "", "schedule", 200, true), node->line,
                     PLACE("", "schedule"));
    }
    if (zone != NULL)
        (void)il__reading_zone(r, zone, zone_at->line, where, &own(r)->p->zone); /* reports */
    if (own_zone != NULL && node == NULL)
        il__reading_advise(r, own_zone->key_line, PLACE("", "timezone"),
                           "has no effect without `schedule`");
}

/* ---- lock ------------------------------------------------------------------------------------ */

static void
read_lock(struct reading *r, const struct doc_node *root)
{
    struct pipeline *p = own(r)->p;
    const char      *policies[IL_POLICY_COUNT + 1];

    for (size_t i = 0; i < IL_POLICY_COUNT; i++)
        policies[i] = il_policy_name((il_policy)i);
    policies[IL_POLICY_COUNT] = NULL;
    size_t policy             = il__reading_choice(r, root, "", "on_conflict", policies, false);
    p->on_conflict            = policy != SIZE_MAX ? (il_policy)policy : IL_POLICY_JOIN;
    p->queue_max              = (uint32_t)il__reading_number(r, root, "", "queue_max", 1, 10000, 0);
    p->lock_timeout_ms =
        1000 * il__reading_number(r, root, "", "lock_timeout_seconds", 60, 86400, 0);
    p->stall_timeout_ms =
        1000 * il__reading_number(r, root, "", "stall_timeout_seconds", 1, 86400, 0);
    p->lock_retries = (uint32_t)il__reading_number(r, root, "", "lock_acquisition_retries", 0, 100,
                                                   own(r)->defaults->lock_retries);
    p->lock_retry_delay_ms = own(r)->defaults->lock_retry_delay_ms;
    if (il__doc_get(root, "lock_acquisition_retry_delay_seconds") != NULL)
        p->lock_retry_delay_ms =
            1000 *
            il__reading_number(r, root, "", "lock_acquisition_retry_delay_seconds", 0, 3600, 5);
    p->lock_metrics =
        il__reading_bool(r, root, "", "lock_metrics_enabled", own(r)->defaults->lock_metrics);
    own(r)->own_lock_retries = il__doc_get(root, "lock_acquisition_retries") != NULL ||
                               il__doc_get(root, "lock_acquisition_retry_delay_seconds") != NULL;
}

static void
read_preflight(struct reading *r, const struct doc_node *root)
{
    static const char *const types[]  = { "command", "http", NULL };
    static const char *const common[] = { "type", "timeout", NULL };
    const struct doc_node   *node     = il__doc_get(root, "preflight");

    own(r)->p->preflight_timeout_ms = 10000;
    if (node == NULL || (node->type == DOC_TEXT && node->text == NULL))
        return;
    if (node->type != DOC_MAP) {
        il__reading_fault(r, node->line, PLACE("", "preflight"),
                          "must be a mapping with type command and run, or type http and url");
        return;
    }
    own(r)->p->preflight_timeout_ms =
        il__reading_duration(r, node, "preflight", "timeout", 100, 60000, 10000);
    size_t type = il__reading_choice(r, node, "preflight", "type", types, true);
    if (type == SIZE_MAX)
        return;
    (void)il__reading_keys(r, node, "preflight", common,
                           type == 0 ? il__pipeline_read_command_keys
                                     : il__pipeline_read_http_keys); /* reports */
    own(r)->p->preflight = type == 0 ? PIPELINE_PROBE_COMMAND : PIPELINE_PROBE_HTTP;
    own(r)->in_probe     = true;
    if (type == 0)
        il__pipeline_read_command(r, node, "preflight", &own(r)->p->probe_command);
    else
        il__pipeline_read_http(r, node, "preflight", &own(r)->p->probe_http);
    own(r)->in_probe = false;
}

/* ---- the whole file -------------------------------------------------------------------------- */

static void
read_root(struct reading *r, const struct doc_node *root)
{
    static const struct reading_timeout timeout = { 1440, 1000, DAY_MS, 1800000 };
    struct pipeline                    *p       = own(r)->p;

    if (root->type != DOC_MAP) {
        il__reading_fault(r, root->line, PLACE("", ""), "must be a mapping (pipeline_id: …)");
        return;
    }
    (void)il__reading_keys(r, root, "", root_keys, NULL); /* reports */
    read_id(r, root);
    p->description         = il__reading_text(r, root, "", "description", 4096, false);
    p->version             = il__reading_text(r, root, "", "version", 64, false);
    p->description         = p->description != NULL ? p->description : "";
    p->version             = p->version != NULL ? p->version : "";
    p->timeout_ms          = il__reading_timeout(r, root, "", &timeout, &own(r)->own_timeout);
    own(r)->retry_attempts = (uint32_t)il__reading_number(r, root, "", "retry_attempts", 0, 10, 0);
    own(r)->retry_delay_ms = il__reading_duration(r, root, "", "retry_delay", 0, 300000, 1000);
    read_parameters(r, root); /* before anything that may refer to one */
    read_schedule(r, root);
    p->on_success = il__reading_hook(r, root, "", "on_success");
    p->on_failure = il__reading_hook(r, root, "", "on_failure");
    p->on_lost    = il__reading_hook(r, root, "", "on_lost");
    read_lock(r, root);
    read_preflight(r, root);
    il__pipeline_read_steps(r, root);
    if (r->n_errors == 0 && !r->no_memory)
        il__pipeline_advise(r, root);
}

il_status
il__pipeline_parse(const char *tenant, const char *path, const char *text, size_t n_bytes,
                   const struct pipeline_defaults *defaults, doc_remark_fn *remark, void *cookie,
                   struct pipeline **ret, il_error *reterr)
{
    struct pipeline        *p    = il__calloc(1, sizeof *p);
    struct pipeline_reading mine = { .p = p, .defaults = defaults };

    if (p == NULL)
        return il__error_set(reterr, IL_NOMEM, "%s: out of memory", path);
    struct reading r            = { .path = path, .mem = &p->mem, .own = &mine };
    p->n_refs                   = 1;
    p->hash                     = il__hash_stable(text, n_bytes, 0);
    p->tenant                   = il__reading_strdup(&r, tenant);
    p->path                     = il__reading_strdup(&r, path);
    const struct doc_node *root = il__reading_tree(&r, text, n_bytes, PIPELINE_FILE_BYTES_MAX);
    if (root != NULL)
        read_root(&r, root);
    il_status st = il__reading_end(&r, remark, cookie, reterr);
    if (st != IL_OK) {
        il__pipeline_unref(p);
        return st;
    }
    *ret = p;
    return IL_OK;
}
