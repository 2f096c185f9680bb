/*
 * metrics.c: the runner's counters for /metrics (metrics.def), and which pipelines get their own
 * series.
 */
#include <inttypes.h>

#include "apps/runner/serve.h"

void
runner_app_print(void *state, struct il__buf *out)
{
    const struct runner_app *app = state;
    struct runner_stats      stats;

    runner_stats(app->runner, &stats);
#define X(member, name, type, help)                                                            \
    il__buf_addf(out,                                                                          \
                 "# HELP " name " " help "\n# TYPE " name " " type "\n" name " %" PRIu64 "\n", \
                 stats.member);
#include "apps/runner/metrics.def"
#undef X
}

/* Labels are bounded by the configuration. O(1). */
enum http_known
runner_app_known(void *cookie, const char *tenant, const char *pipeline, int64_t *ret_timeout_ms)
{
    const struct runner_app *app     = cookie;
    enum http_known          unknown = app->has_pipelines ? HTTP_KNOWN_NOT : HTTP_KNOWN;
    struct pipeline         *p       = il__catalogue_get(app->catalogue, tenant, pipeline);

    if (ret_timeout_ms != NULL)
        *ret_timeout_ms = runner_lock_timeout_ms(app->runner, p);
    if (p == NULL)
        return app->lock_metrics ? unknown : HTTP_KNOWN_NOT_MADE;
    enum http_known known = p->lock_metrics ? HTTP_KNOWN : HTTP_KNOWN_NOT_MADE;
    il__pipeline_unref(p);
    return known;
}
