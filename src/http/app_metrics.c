/*
 * app_metrics.c: the counters, gauges and histograms that apps declare (struct http_app_metric).
 * Any thread changes them; metrics_print.c prints them.
 */
#include "base/clock.h"
#include "base/error.h"
#include "http/metrics_internal.h"
#include "http/server.h"

static size_t
cells_of(const struct http_app_metric *metric)
{
    return metric->label != NULL ? metric->n_values : 1;
}

il_status
http_app_metrics_open(struct http_metrics *m, il_error *reterr)
{
    const struct http_options *o = m->server->o;

    CHECK(o->n_apps <= HTTP_APPS_MAX);
    for (size_t i = 0; i < o->n_apps; i++) {
        size_t n = 0;
        for (size_t k = 0; k < o->apps[i]->n_metrics; k++)
            n += cells_of(&o->apps[i]->metrics[k]);
        m->cells[i] = il__calloc(MAX(n, 1), sizeof *m->cells[i]);
        if (m->cells[i] == NULL)
            return il__error_nomem(reterr);
    }
    return IL_OK;
}

void
http_app_metrics_close(struct http_metrics *m)
{
    for (size_t i = 0; i < HTTP_APPS_MAX; i++)
        il__free(m->cells[i]);
}

static struct http_app_cell *
cell_of(struct http_server *s, const struct http_app *app, size_t metric, size_t value)
{
    size_t i_app = 0, i_cell = value;

    CHECK(metric < app->n_metrics && value < cells_of(&app->metrics[metric]));
    while (s->o->apps[i_app] != app) {
        i_app++;
        CHECK(i_app < s->o->n_apps);
    }
    for (size_t k = 0; k < metric; k++)
        i_cell += cells_of(&app->metrics[k]);
    return &s->metrics->cells[i_app][i_cell];
}

void
http_app_count(struct http_server *s, const struct http_app *app, size_t metric, size_t value,
               int64_t n)
{
    CHECK(app->metrics[metric].type == HTTP_METRIC_gauge ||
          (app->metrics[metric].type == HTTP_METRIC_counter && n >= 0));
    atomic_fetch_add_explicit(&cell_of(s, app, metric, value)->value, n, memory_order_relaxed);
}

void
http_app_gauge(struct http_server *s, const struct http_app *app, size_t metric, size_t value,
               int64_t now)
{
    CHECK(app->metrics[metric].type == HTTP_METRIC_gauge);
    atomic_store_explicit(&cell_of(s, app, metric, value)->value, now, memory_order_relaxed);
}

void
http_app_observe(struct http_server *s, const struct http_app *app, size_t metric, size_t value,
                 int64_t ns)
{
    struct http_app_cell *cell = cell_of(s, app, metric, value);
    size_t                i    = 0;

    CHECK(app->metrics[metric].type == HTTP_METRIC_histogram);
    while (i < HTTP_BOUNDS && (double)ns / 1e9 > http_lock_bounds[i])
        i++;
    atomic_fetch_add_explicit(&cell->counts[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&cell->value, ns, memory_order_relaxed);
}
