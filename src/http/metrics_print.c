/*
 * metrics_print.c: GET /metrics: the text format of Prometheus, version 0.0.4. Nothing here queries
 * the store.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/limits.h"
#include "http/log.h"
#include "http/metrics_internal.h"
#include "http/pool.h"
#include "http/route.h"
#include "http/row_locks.h"
#include "http/server.h"
#include "runtime/metrics.h"

/* ---- the format ------------------------------------------------------------------------------ */

static void
head(struct il__buf *b, const char *name, const char *type, const char *help)
{
    il__buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

enum metric {
#define X(id, name, type, labels, help) METRIC_##id,
#include "http/metrics_labels.def"
#undef X
};

/* Print the header of a metric of metrics_labels.def; returns its name. */
static const char *
begin(struct il__buf *b, enum metric metric)
{
    static const struct {
        const char *name, *type, *help;
    } rows[] = {
#define X(id, name, type, labels, help) { name, type, help },
#include "http/metrics_labels.def"
#undef X
    };

    head(b, rows[metric].name, rows[metric].type, rows[metric].help);
    return rows[metric].name;
}

/* Print a label value; only backslash, quote and newline are escaped. */
static void
label_value(struct il__buf *b, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\\' || *p == '"')
            il__buf_addc(b, '\\');
        if (*p == '\n')
            il__buf_adds(b, "\\n");
        else
            il__buf_addc(b, *p);
    }
}

static void
label(struct il__buf *b, char before, const char *name, const char *value)
{
    il__buf_addc(b, before);
    il__buf_adds(b, name);
    il__buf_adds(b, "=\"");
    label_value(b, value);
    il__buf_addc(b, '"');
}

static void
put(struct il__buf *b, const char *name, double number)
{
    il__buf_addf(b, "%s %.17g\n", name, number);
}

/* The lines of one histogram; labels is `a="x",` or "". */
static void
histogram(struct il__buf *b, const char *name, const char *labels, const double *bounds,
          const uint64_t *counts, size_t n, double sum)
{
    uint64_t total = 0;
    size_t   cut   = strlen(labels);

    for (size_t i = 0; i <= n; i++) {
        total += counts[i];
        if (i < n)
            il__buf_addf(b, "%s_bucket{%sle=\"%g\"} %" PRIu64 "\n", name, labels, bounds[i], total);
        else
            il__buf_addf(b, "%s_bucket{%sle=\"+Inf\"} %" PRIu64 "\n", name, labels, total);
    }
    if (cut == 0) {
        il__buf_addf(b, "%s_sum %.9g\n%s_count %" PRIu64 "\n", name, sum, name, total);
        return;
    }
    int len = (int)(cut - 1); /* without the comma */
    il__buf_addf(b, "%s_sum{%.*s} %.9g\n%s_count{%.*s} %" PRIu64 "\n", name, len, labels, sum, name,
                 len, labels, total);
}

/* ---- metrics of the handle ------------------------------------------------------------------- */

static void
print_handle_counter(void *cookie, const char *name, const char *help, uint64_t count)
{
    /* The server has it in seconds: interlock_commit_seconds_sum. */
    if (strcmp(name, "interlock_commit_microseconds_total") == 0)
        return;
    head(cookie, name, "counter", help);
    il__buf_addf(cookie, "%s %" PRIu64 "\n", name, count);
}

static void
print_handle_histogram(void *cookie, const struct il__histogram *h)
{
    head(cookie, h->name, "histogram", h->help);
    histogram(cookie, h->name, "", h->bounds, h->counts, h->n, h->sum);
}

/* ---- locks and cache ------------------------------------------------------------------------- */

static const char *const result_names[] = { "success", "conflict", "error" };
static const char *const look_names[]   = { "hit", "stale", "lead", "waited", "miss" };
_Static_assert(ARRAY_LEN(result_names) == HTTP_RESULT_COUNT &&
                   ARRAY_LEN(look_names) == HTTP_LOOK_COUNT,
               "one name each");

static void
print_results(struct il__buf *b, enum metric metric, const char *const *names,
              const uint64_t *values, size_t n)
{
    const char *name = begin(b, metric);

    for (size_t i = 0; i < n; i++)
        il__buf_addf(b, "%s{result=\"%s\"} %" PRIu64 "\n", name, names[i], values[i]);
}

static void
print_locks(const struct http_metrics *m, struct il__buf *b)
{
    print_results(b, METRIC_acquisitions, result_names, m->acquisitions, HTTP_RESULT_COUNT);
    histogram(b, begin(b, METRIC_wait), "", http_lock_bounds, m->wait.counts, HTTP_BOUNDS,
              m->wait.sum);
    histogram(b, begin(b, METRIC_hold), "", http_lock_bounds, m->hold.counts, HTTP_BOUNDS,
              m->hold.sum);
    print_results(b, METRIC_looks, look_names, m->looks, HTTP_LOOK_COUNT);
}

static void
print_tenants(const struct http_gathered *g, struct il__buf *b, enum metric metric, size_t offset)
{
    const char *name = begin(b, metric);

    for (size_t i = 0; i < g->n_tenants; i++) {
        uint64_t n;
        memcpy(&n, (const char *)&g->tenants[i] + offset, sizeof n);
        il__buf_adds(b, name);
        label(b, '{', "tenant_id", g->tenants[i].tenant);
        il__buf_addf(b, "} %" PRIu64 "\n", n);
    }
}

/* ---- row locks ------------------------------------------------------------------------------- */

static void
print_row_histogram(struct http_server *s, struct il__buf *b, enum metric metric, bool is_hold)
{
    const char *name = begin(b, metric);

    for (size_t i = 0; i < http_row_series_count(s); i++) {
        const struct http_row_series *it = http_row_series(s, i);
        const struct http_histogram  *h  = is_hold ? &it->hold : &it->wait;
        AUTO_BUF struct il__buf       labels;
        il__buf_init(&labels, 4096);
        label(&labels, ',', "pipeline", it->pipeline);
        label(&labels, ',', "entity", it->entity);
        il__buf_addc(&labels, ',');
        histogram(b, name, il__buf_str(&labels) + 1, http_lock_bounds, h->counts, HTTP_BOUNDS,
                  h->sum);
    }
}

static void
print_row_locks(struct http_server *s, struct il__buf *b)
{
    print_row_histogram(s, b, METRIC_row_wait, false);
    print_row_histogram(s, b, METRIC_row_hold, true);
    const char *name = begin(b, METRIC_row_violations);
    for (size_t i = 0; i < http_row_series_count(s); i++) {
        const struct http_row_series *it = http_row_series(s, i);
        il__buf_adds(b, name);
        label(b, '{', "pipeline", it->pipeline);
        label(b, ',', "entity", it->entity);
        il__buf_addf(b, "} %" PRIu64 "\n", it->n_violations);
    }
}

/* ---- pipelines ------------------------------------------------------------------------------- */

/* Calls fn for each pipeline; the shared one only if it was needed. */
static void
each_pipeline(struct http_metrics *m, struct il__buf *b,
              void (*fn)(struct il__buf *b, const struct http_pipeline *p))
{
    for (size_t i = 0; i < m->pipelines.size; i++) {
        if (m->pipelines.slots[i].item != NULL)
            fn(b, m->pipelines.slots[i].item);
    }
    if (m->other_used)
        fn(b, &m->other);
}

static void
pipeline_labels(struct il__buf *b, const struct http_pipeline *p)
{
    label(b, '{', "tenant_id", p->tenant);
    label(b, ',', "pipeline_id", p->name);
}

static void
pipeline_value(struct il__buf *b, const char *name, const struct http_pipeline *p, double value)
{
    il__buf_adds(b, name);
    pipeline_labels(b, p);
    il__buf_addf(b, "} %.9g\n", value);
}

static void
pipeline_histogram(struct il__buf *b, const char *name, const struct http_pipeline *p,
                   const struct http_histogram *h)
{
    AUTO_BUF struct il__buf labels;

    il__buf_init(&labels, 4096);
    label(&labels, ',', "tenant_id", p->tenant);
    label(&labels, ',', "pipeline_id", p->name);
    il__buf_addc(&labels, ',');
    histogram(b, name, il__buf_str(&labels) + 1, http_lock_bounds, h->counts, HTTP_BOUNDS, h->sum);
}

static void
print_acquisitions(struct il__buf *b, const struct http_pipeline *p)
{
    for (size_t i = 0; i < HTTP_RESULT_COUNT; i++) {
        il__buf_adds(b, "pipeline_lock_acquisitions_total");
        pipeline_labels(b, p);
        il__buf_addf(b, ",result=\"%s\"} %" PRIu64 "\n", result_names[i], p->acquisitions[i]);
    }
}

static void
print_active(struct il__buf *b, const struct http_pipeline *p)
{
    pipeline_value(b, "pipeline_active_locks", p, (double)p->n_locks);
}

static void
print_running(struct il__buf *b, const struct http_pipeline *p)
{
    pipeline_value(b, "pipeline_running_count", p, (double)p->n_runs);
}

static void
print_age(struct il__buf *b, const struct http_pipeline *p)
{
    if (p->timeout > 0)
        pipeline_value(b, "pipeline_lock_age_seconds", p, p->age);
}

static void
print_timeout(struct il__buf *b, const struct http_pipeline *p)
{
    if (p->timeout > 0)
        pipeline_value(b, "pipeline_lock_timeout_seconds", p, p->timeout);
}

static void
print_expirations(struct il__buf *b, const struct http_pipeline *p)
{
    pipeline_value(b, "pipeline_lock_expirations_total", p, (double)p->expirations);
}

static void
print_wait(struct il__buf *b, const struct http_pipeline *p)
{
    pipeline_histogram(b, "pipeline_lock_wait_time_seconds", p, &p->wait);
}

static void
print_hold(struct il__buf *b, const struct http_pipeline *p)
{
    pipeline_histogram(b, "pipeline_lock_duration_seconds", p, &p->hold);
}

static void
print_pipelines(struct http_metrics *m, struct il__buf *b)
{
    static const struct {
        const char *name, *type, *help;
        void (*fn)(struct il__buf *b, const struct http_pipeline *p);
    } rows[] = {
#define X(name, type, fn, labels, help) { name, type, help, fn },
#include "http/metrics_pipeline.def"
#undef X
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        head(b, rows[i].name, rows[i].type, rows[i].help);
        each_pipeline(m, b, rows[i].fn);
    }
}

/* ---- queues ---------------------------------------------------------------------------------- */

static void
queue_value(struct il__buf *b, const char *name, const struct http_queue_row *q, const char *state,
            double value)
{
    il__buf_adds(b, name);
    label(b, '{', "tenant_id", q->tenant);
    label(b, ',', "queue", q->name);
    if (state != NULL)
        label(b, ',', "state", state);
    il__buf_addf(b, "} %.17g\n", value);
}

static void
print_queues(const struct http_gathered *g, struct il__buf *b)
{
    static const struct {
        const char *name, *type, *state, *help;
        size_t      offset;
    } rows[] = {
#define X(member, name, type, state, help) \
    { name, type, state, help, offsetof(struct http_queue_row, member) },
#include "http/metrics_queue.def"
#undef X
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (i == 0 || strcmp(rows[i].name, rows[i - 1].name) != 0)
            head(b, rows[i].name, rows[i].type, rows[i].help);
        for (size_t j = 0; j < g->n_queues; j++) {
            uint64_t n;
            memcpy(&n, (const char *)&g->queues[j] + rows[i].offset, sizeof n);
            queue_value(b, rows[i].name, &g->queues[j], rows[i].state, (double)n);
        }
    }
    const char *name = begin(b, METRIC_oldest);
    for (size_t j = 0; j < g->n_queues; j++)
        queue_value(b, name, &g->queues[j], NULL, (double)g->queues[j].oldest_ms / 1e3);
}

/* ---- guards of tables ------------------------------------------------------------------------ */

static void
print_guards(const struct http_gathered *g, struct il__buf *b)
{
    const char *name = begin(b, METRIC_refused);

    for (size_t i = 0; i < g->n_guards; i++) {
        il__buf_adds(b, name);
        label(b, '{', "tenant_id", g->guards[i].tenant);
        label(b, ',', "table", g->guards[i].table);
        il__buf_addf(b, "} %" PRIu64 "\n", g->guards[i].n_refused);
    }
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static const char *
route_name(size_t i)
{
    return i < http_n_routes ? http_route(i)->id : "none";
}

static void
print_requests(const struct http_metrics *m, struct il__buf *b)
{
    const char *name = begin(b, METRIC_requests);

    for (size_t i = 0; i <= http_n_routes; i++) {
        for (int class = 1; class <= 5; class ++) {
            if (m->routes[i].classes[class] > 0)
                il__buf_addf(b, "%s{route=\"%s\",class=\"%dxx\"} %" PRIu64 "\n", name,
                             route_name(i), class, m->routes[i].classes[class]);
        }
    }
    name = begin(b, METRIC_took);
    for (size_t i = 0; i <= http_n_routes; i++) {
        const struct http_histogram *h = &m->routes[i].took;
        uint64_t                     n = 0;
        char                         labels[96];
        for (size_t j = 0; j <= HTTP_BOUNDS; j++)
            n += h->counts[j];
        (void)snprintf(labels, sizeof labels, "route=\"%s\",", route_name(i)); /* ids are short */
        if (n > 0)
            histogram(b, name, labels, http_took_bounds, h->counts, HTTP_BOUNDS, h->sum);
    }
}

static void
print_counts(const struct http_metrics *m, struct il__buf *b)
{
    static const struct {
        const char *name, *type, *help;
    } rows[] = {
#define X(id, type, name, help) { name, #type, help },
#include "http/metrics.def"
#undef X
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        head(b, rows[i].name, rows[i].type, rows[i].help);
        put(b, rows[i].name, (double)m->counts[i]);
    }
}

static void
print_values(const struct http_metrics *m, struct il__buf *b)
{
    struct http_server    *s     = m->server;
    struct il__async_stats async = { .n_parked = 0 };

    if (s->async != NULL)
        il__async_stats(s->async, &async);
#define X(name, type, expression, help) \
    head(b, name, type, help);          \
    put(b, name, (double)(expression));
#include "http/metrics_values.def"
#undef X
    il__buf_adds(b, begin(b, METRIC_build));
    label(b, '{', "version", il_version());
    il__buf_adds(b, "} 1\n");
}

/* ---- apps ------------------------------------------------------------------------------------ */

static void
print_app_histogram(struct il__buf *b, const char *name, const char *labels,
                    struct http_app_cell *cell)
{
    uint64_t counts[HTTP_BOUNDS + 1];

    for (size_t i = 0; i <= HTTP_BOUNDS; i++)
        counts[i] = atomic_load_explicit(&cell->counts[i], memory_order_relaxed);
    histogram(b, name, labels, http_lock_bounds, counts, HTTP_BOUNDS,
              (double)atomic_load_explicit(&cell->value, memory_order_relaxed) / 1e9);
}

/* Prints a metric and returns the number of its cells. */
static size_t
print_app_metric(struct il__buf *b, const struct http_app_metric *metric,
                 struct http_app_cell *cells)
{
    static const char *const types[] = { "counter", "gauge", "histogram" };
    size_t                   n       = metric->label != NULL ? metric->n_values : 1;

    head(b, metric->name, types[metric->type], metric->help);
    for (size_t i = 0; i < n; i++) {
        AUTO_BUF struct il__buf labels;
        il__buf_init(&labels, 1024);
        if (metric->label != NULL)
            label(&labels, '{', metric->label, metric->values[i]);
        if (metric->type == HTTP_METRIC_histogram) {
            il__buf_addc(&labels, ',');
            print_app_histogram(b, metric->name,
                                metric->label != NULL ? il__buf_str(&labels) + 1 : "", &cells[i]);
            continue;
        }
        il__buf_addf(b, "%s%s%s %" PRId64 "\n", metric->name, il__buf_str(&labels),
                     metric->label != NULL ? "}" : "",
                     (int64_t)atomic_load_explicit(&cells[i].value, memory_order_relaxed));
    }
    return n;
}

static void
print_apps(struct http_metrics *m, struct il__buf *b)
{
    const struct http_options *o = m->server->o;

    for (size_t i = 0; i < o->n_apps; i++) {
        size_t at = 0;
        for (size_t k = 0; k < o->apps[i]->n_metrics; k++)
            at += print_app_metric(b, &o->apps[i]->metrics[k], m->cells[i] + at);
    }
    print_row_locks(m->server, b);
    http_apps_print(m->server, b);
}

/* ---- the process ----------------------------------------------------------------------------- */

static void
read_memory(uint64_t *ret_virtual, uint64_t *ret_resident)
{
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    char     text[128]; /* "" gives zeros */
    char    *end;

    (void)il__read_small("/proc/self/statm", text, sizeof text);
    *ret_virtual  = strtoul(text, &end, 10) * page_bytes;
    *ret_resident = strtoul(end, NULL, 10) * page_bytes;
}

static void
print_process(const struct http_metrics *m, struct il__buf *b)
{
    struct rusage usage       = { .ru_nswap = 0 };
    struct rlimit files       = { .rlim_cur = 0 };
    uint64_t      virtual_mem = 0, resident = 0;

    (void)getrusage(RUSAGE_SELF, &usage);   /* neither can fail with */
    (void)getrlimit(RLIMIT_NOFILE, &files); /* such arguments */
    read_memory(&virtual_mem, &resident);
    put(b, begin(b, METRIC_cpu),
        (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
            (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    put(b, begin(b, METRIC_virtual), (double)virtual_mem);
    put(b, begin(b, METRIC_resident), (double)resident);
    put(b, begin(b, METRIC_max_fds), (double)files.rlim_cur);
    put(b, begin(b, METRIC_start), (double)m->started_ms / 1e3);
}

static void
print_all(struct http_server *s, struct il__buf *b)
{
    struct http_metrics *m = s->metrics;

    il_metrics(s->h, print_handle_counter, b);
    il__histograms(s->h, print_handle_histogram, b);
    print_locks(m, b);
    print_tenants(&m->seen, b, METRIC_active, offsetof(struct http_tenant_row, n_locks));
    print_tenants(&m->seen, b, METRIC_waiters, offsetof(struct http_tenant_row, n_waiters));
    print_pipelines(m, b);
    print_queues(&m->seen, b);
    print_guards(&m->seen, b);
    print_requests(m, b);
    print_counts(m, b);
    print_values(m, b);
    print_process(m, b);
    print_apps(m, b);
}

void
http_metrics(struct http_request *r)
{
    r->server->metrics->scraped_ns = il__clock_boot_ns();
    print_all(r->server, &r->out);
    r->content_type = "text/plain; version=0.0.4; charset=utf-8";
    if (r->out.failed)
        http_fail_nomem(r);
    else
        http_answer(r, 200);
}
