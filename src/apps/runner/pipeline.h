/*
 * pipeline.h: a pipeline as defined by its YAML file, and the catalogue of all pipelines.
 * docs/PIPELINES.md describes the format for users.
 *
 * A pipeline is immutable once read, and reference-counted: a run keeps the version it was started
 * with, whatever a reload brings. DIR holds a folder per tenant with its *.yml and *.yaml files.
 */
#ifndef IL_APPS_RUNNER_PIPELINE_H
#define IL_APPS_RUNNER_PIPELINE_H

#include "apps/common/yaml.h"
#include "core/cron.h"
#include "base/base.h"
#include "base/buf.h"
#include "core/limits.h" /* IL__NEVER */
#include "proc/proc.h"

#define PIPELINE_ID_BYTES_MAX 128
#define PIPELINE_STEPS_MAX 100
#define PIPELINE_LEVEL_STEPS_MAX 10 /* run at once */
#define PIPELINE_PARAMETERS_MAX 64
#define PIPELINE_FILE_BYTES_MAX (1 << 20)
/* the store key is this and the id, in the tenant's namespace */
#define PIPELINE_KEY_PREFIX "pipeline:"

enum pipeline_step_type {
    PIPELINE_COMMAND,
    PIPELINE_SQL,
    PIPELINE_HTTP,
    PIPELINE_CHECK,
    PIPELINE_STEP_TYPE_COUNT
};
extern const char *const il__pipeline_step_types[]; /* "command", … NULL */

enum pipeline_on_failure {
    PIPELINE_STOP,     /* the run fails, nothing that follows starts */
    PIPELINE_CONTINUE, /* the step is WARNING, the run continues */
    PIPELINE_ALERT,    /* the same, and a warning is raised: event, metric, log */
};

/* A text in which {name} is replaced by a parameter. {{name}} is the text {name}; any other brace
 * ({x y}, {"a": {}}) is left as is. Names were checked when the file was read. */
struct pipeline_text {
    const char *text;
};

enum pipeline_escape {
    PIPELINE_PLAIN,
    PIPELINE_URL,
    PIPELINE_JSON
};

struct pipeline_pair { /* env, headers */
    const char          *name;
    struct pipeline_text value;
};

/* Kinds of expectations. */
enum pipeline_kind {
    PIPELINE_ROW_COUNT,     /* row_count: min <= rows <= max */
    PIPELINE_COLUMN_EXISTS, /* column_exists */
    PIPELINE_NOT_NULL,      /* not_null */
    PIPELINE_BETWEEN,       /* value_between: min <= column <= max in every row (NULL passes) */
    PIPELINE_UNIQUE,        /* unique */
    /* sql: rows returned are violations; with min or max, its first value must lie between them */
    PIPELINE_CUSTOM,
    /* any other kind: fails when the check runs; `pipelines check` warns about it */
    PIPELINE_UNKNOWN,
};
struct pipeline_expectation {
    enum pipeline_kind   kind;
    const char          *kind_text; /* as written */
    const char          *column;    /* NULL = none */
    const char          *min, *max; /* decimal numbers or texts as written; NULL = unbounded */
    struct pipeline_text sql;       /* {name} is bound */
};

/* What to run, for a command step or a command probe. */
struct pipeline_command {
    struct pipeline_text *argv; /* without `shell`: each element is substituted separately */
    size_t                n_argv;
    /* shell: true: the script for /bin/sh -c, never substituted; parameters are in the
     * environment ($INTERLOCK_PARAM_name) */
    const char           *script;
    struct pipeline_pair *env;
    size_t                n_env;
    struct proc_limits    limits;
};
struct pipeline_http {
    const char           *method;
    struct pipeline_text  url; /* substituted values are percent-encoded */
    struct pipeline_pair *headers;
    size_t                n_headers;
    struct pipeline_text  body; /* text NULL = none. JSON if written as a mapping or a list */
    /* escaping of substituted values: by Content-Type; without one, JSON if it looks like JSON
     * (then application/json is sent) */
    enum pipeline_escape body_escape;
    int64_t              expect_from, expect_to; /* statuses that mean success: 200..299 */
};

struct pipeline_step {
    const char             *id;
    enum pipeline_step_type type;
    size_t                  line;
    uint32_t               *needs; /* depends_on: indexes of steps */
    size_t                  n_needs;
    uint32_t level;      /* 1 if it depends on no step, else 1 + the highest level it depends on */
    int64_t  timeout_ms; /* timeout_minutes (1..120, default 10), or timeout: 250ms .. 2h */
    uint32_t retries;    /* after the first attempt; default: the pipeline's retry_attempts */
    /* delay before the first retry, doubled each time, at most 5 min; default 1 s */
    int64_t                      retry_delay_ms;
    enum pipeline_on_failure     on_failure;
    struct pipeline_command      command;
    struct pipeline_http         http;
    const char                  *connection; /* sql, check */
    struct pipeline_text        *sql;        /* sql: statements, one each */
    size_t                       n_sql;
    const char                  *table; /* check */
    struct pipeline_expectation *expectations;
    size_t                       n_expectations;
};

struct pipeline_parameter {
    const char *name;
    const char *fallback; /* default; NULL = required */
};

enum pipeline_preflight {
    PIPELINE_NO_PROBE,
    PIPELINE_PROBE_COMMAND,
    PIPELINE_PROBE_HTTP
};

struct pipeline {
    unsigned               n_refs;                              /* il__pipeline_ref(), _unref() */
    void                  *mem;                                 /* arena: everything below */
    const char            *tenant, *id, *description, *version; /* the last two: "" = none */
    const char            *path;                                /* of the file */
    size_t                 id_line;                             /* of pipeline_id there */
    const char            *key;                                 /* "pipeline:ID" */
    uint64_t               hash;                                /* of the file's text */
    const char            *schedule_text;                       /* NULL = none */
    struct il__cron        schedule;
    const struct il__zone *zone;
    char *const           *on_success; /* NULL = none */
    char *const           *on_failure;
    char *const           *on_lost;
    /* a tick missed while no server was running is made up for within this time; default 60 s */
    int64_t                    catch_up_ms;
    struct pipeline_parameter *parameters;
    size_t                     n_parameters;
    int64_t                    timeout_ms; /* timeout_minutes 30 (1..1440), or timeout: 1s .. 24h */
    int64_t                    lock_timeout_ms;  /* 0 = the server's default */
    int64_t                    stall_timeout_ms; /* without a sign of life; 0 = no limit */
    il_policy                  on_conflict;
    uint32_t                   queue_max;
    uint32_t                   lock_retries; /* only with on_conflict: reject */
    int64_t                    lock_retry_delay_ms;
    bool                       lock_metrics;
    enum pipeline_preflight    preflight;
    int64_t                    preflight_timeout_ms;
    struct pipeline_command    probe_command;
    struct pipeline_http       probe_http;
    struct pipeline_step      *steps; /* in the order of the file */
    size_t                     n_steps;
    uint32_t                   n_levels;
};

/* Defaults from the configuration for what a file omits. */
struct pipeline_defaults {
    uint32_t lock_retries;        /* lock_acquisition_retries: 3 */
    int64_t  lock_retry_delay_ms; /* lock_acquisition_retry_delay_seconds: 5 */
    bool     lock_metrics;        /* lock_metrics_enabled */
};

/* Parse the text of one file. IL_OK: *ret has one reference. IL_INVAL: every fault found in one
 * pass was passed to `remark`; reterr has the first: "PATH:LINE: field: reason". Thread-safe. */
il_status il__pipeline_parse(const char *tenant, const char *path, const char *text, size_t n_bytes,
                             const struct pipeline_defaults *defaults, doc_remark_fn *remark,
                             void *cookie, struct pipeline **ret, il_error *reterr) MUST_USE;
struct pipeline *il__pipeline_ref(struct pipeline *p); /* any thread */
void             il__pipeline_unref(struct pipeline *p);
/* The step graph as text, level by level. */
bool il__pipeline_graph(const struct pipeline *p, struct il__buf *out);
/*
 * The first tick after after_ms; IL__NEVER without a schedule. A local time that does not exist
 * ticks at the jump; one that occurs twice ticks the first time only, or with `*` as its hour, both
 * times.
 */
int64_t il__pipeline_next_tick(const struct pipeline *p, int64_t after_ms);

/* ---- parameters ------------------------------------------------------------------------------ */

/* The values of a run: given ones, then defaults, then those set by the runner (run_id, tenant,
 * pipeline_id, fence, step_id, attempt). The owner of the struct owns the strings. */
struct pipeline_values {
    size_t n;
    struct {
        const char *name, *value;
    } items[PIPELINE_PARAMETERS_MAX * 2 + 8];
};
/* NULL = no such value */
const char *il__pipeline_value(const struct pipeline_values *v, const char *name);
/* Is it a valid parameter name: ^[A-Za-z_][A-Za-z0-9_]*$, at most 64 bytes, none of those set by
 * the runner? */
bool il__pipeline_parameter_ok(const char *name);

/* Expand a text; IL_INVAL names a parameter that has no value. */
il_status il__pipeline_expand(const struct pipeline_text *t, const struct pipeline_values *v,
                              enum pipeline_escape escape, struct il__buf *out, il_error *reterr)
    MUST_USE;
/* SQL: each {name} outside quotes and comments becomes $1, $2, …; values[] are the values to
 * bind, at most n_max. */
il_status il__pipeline_bind(const struct pipeline_text *sql, const struct pipeline_values *v,
                            struct il__buf *out, const char **values, size_t n_max, size_t *ret_n,
                            il_error *reterr) MUST_USE;

/* ---- catalogue ------------------------------------------------------------------------------- */

/* All pipelines of a folder; thread-safe. A reload replaces the whole set; a bad file keeps the
 * previous pipeline of its path, or is left out. */
struct pipeline_catalogue;

struct pipeline_loaded {
    /* n_kept: bad files whose last good version stays in use */
    size_t n_pipelines, n_tenants, n_bad, n_kept;
    size_t n_changed;
};
/* `dir` NULL: an empty catalogue. Files are read by several threads. `loaded` may be NULL. IL_OK
 * even with bad files: each was passed to `remark`. Otherwise the folder cannot be read. */
il_status il__catalogue_open(const char *dir, const struct pipeline_defaults *defaults,
                             doc_remark_fn *remark, void *cookie, struct pipeline_loaded *loaded,
                             struct pipeline_catalogue **ret, il_error *reterr) MUST_USE;
void      il__catalogue_close(struct pipeline_catalogue *c);
/* Reload: only files whose size, time or inode changed are read. */
il_status il__catalogue_reload(struct pipeline_catalogue      *c,
                               const struct pipeline_defaults *defaults, doc_remark_fn *remark,
                               void *cookie, struct pipeline_loaded *loaded, il_error *reterr)
    MUST_USE;
/* A reference, or NULL. O(1). */
struct pipeline *il__catalogue_get(struct pipeline_catalogue *c, const char *tenant,
                                   const char *id);
/* The pipelines of a tenant (NULL = of all) in order of (tenant, id) after (after_tenant,
 * after_id); fills refs[0..n), returns how many. */
size_t il__catalogue_list(struct pipeline_catalogue *c, const char *tenant,
                          const char *after_tenant, const char *after_id, struct pipeline **refs,
                          size_t n);
/* Tenants that have pipelines, each once, in order; borrowed until the next reload, so copy
 * them. */
typedef bool pipeline_tenant_fn(void *cookie, const char *tenant);
void il__catalogue_tenants(struct pipeline_catalogue *c, pipeline_tenant_fn *each, void *cookie);
/*
 * Check only: files, folders of a tenant, and folders of those, all that are named, together. Every
 * fault and all advice is passed to `remark`; nothing is kept. IL_OK even with bad files
 * (loaded->n_bad); a missing path and a folder without pipelines are reported as well.
 */
il_status il__pipelines_check(const char *const *paths, size_t n_paths,
                              const struct pipeline_defaults *defaults, doc_remark_fn *remark,
                              void *cookie, struct pipeline_loaded *loaded, il_error *reterr)
    MUST_USE;

#endif
