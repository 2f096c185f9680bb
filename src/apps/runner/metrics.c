/*
 * metrics.c: what the runner counts, for /metrics (metrics.def); and which pipelines have series of their own.
 */
#include <inttypes.h>

#include "apps/runner/routes.h"

void
runner_app_print(void *state, struct il__buf *out)
{
    const struct runner_app *app = state;
    struct runner_stats      stats;

    runner_stats(app->runner, &stats);
#define X(member, name, type, help)                                                                 \
    il__buf_addf(out, "# HELP " name " " help "\n# TYPE " name " " type "\n" name " %" PRIu64 "\n", \
                 stats.member);
#include "apps/runner/metrics.def"
#undef X
}

/* R1.25: labels are bounded by what is configured. O(1). */
enum http_known
runner_app_known(void *cookie, const char *tenant, const char *pipeline)
{
    const struct runner_app *app     = cookie;
    enum http_known          unknown = app->has_pipelines ? HTTP_KNOWN_NOT : HTTP_KNOWN;
    struct pipeline         *p       = il__catalogue_get(app->catalogue, tenant, pipeline);

    if (p == NULL)
        return app->lock_metrics ? unknown : HTTP_KNOWN_NOT_MADE;
    enum http_known known = p->lock_metrics ? HTTP_KNOWN : HTTP_KNOWN_NOT_MADE;
    il__pipeline_unref(p);
    return known;
}
