/*
 * report_refusal.c: reports to the store that this run was refused its key, for the history of the
 * key.
 *
 * It follows the answer, and is given up after a second: the run is over in any case, and a report
 * that fails is not worth a message.
 */
#include <stdio.h>

#include "base/parse.h"
#include "cli/store.h"
#include "cli/wrap/meta.h"
#include "cli/wrap/wrap_internal.h"

#define REASON_BYTES 64

/* wrap_bounded_call(): it may still be used when the call was given up. */
static struct {
    char  meta[IL_META_BYTES_MAX + 1];
    char  reason[REASON_BYTES];
    char  holder[IL_HOLDER_BYTES_MAX + 1];
    char  other[IL_META_BYTES_MAX + 1];
    il_op got, op;
} report;

/* The conflicting lease; it may have ended meanwhile. */
static void
find_holder(struct wrap *r)
{
    report.got = (il_op){ .type = IL_OP_GET, .key = r->opts->key };
    if (il_apply(r->store, &report.got, 1, NULL) != IL_OK)
        return;
    for (size_t i = 0; i < report.got.out.n_items; i++) {
        const il_lease_info *info = &report.got.out.items[i];
        if (info->fence != report.op.fence)
            continue;
        report.op.in.refused.other   = info->meta;
        report.op.in.refused.held_ms = MIN(MAX(info->age_ms, 1), IL_DELAY_MS_MAX);
    }
}

static il_status
report_now(struct wrap *r, void *cookie UNUSED, il_error *reterr)
{
    if (report.op.in.refused.other == NULL && report.op.fence != 0)
        find_holder(r);
    il_status status = il_apply(r->store, &report.op, 1, reterr);
    il_op_release(&report.op);
    il_op_release(&report.got);
    return status;
}

static void
send_report(struct wrap *r)
{
    il_error error;

    wrap_meta_caller(r->opts->argv, report.meta);
    if (report.meta[0] == '\0')
        return;
    report.op.type            = IL_OP_REFUSED;
    report.op.key             = r->opts->key;
    report.op.in.refused.meta = report.meta;
    wrap_bound_calls(r, true);
    (void)wrap_bounded_call(r, report_now, NULL, &error);
}

void
wrap_report_refusal(struct wrap *r, const il_error *error)
{
    const struct wrap_opts *o = r->opts;
    char                    text[IL__DURATION_TEXT_BYTES];

    if (il__config_is_server(o->store_url))
        return; /* the server has refused it, and reports that itself */
    report.op = (il_op){ .fence = error->fence };
    (void)snprintf(report.holder, sizeof report.holder, "%s", error->holder);
    if (report.holder[0] != '\0')
        report.op.holder = report.holder;
    if (o->on_conflict == WRAP_SKIP)
        (void)snprintf(report.reason, sizeof report.reason, "skipped");
    else if (o->wait_ms > 0)
        (void)snprintf(report.reason, sizeof report.reason, "gave up after waiting %s",
                       il__duration_text(o->wait_ms, text));
    if (report.reason[0] != '\0')
        report.op.in.refused.reason = report.reason;
    send_report(r);
}

void
wrap_report_refusal_once(struct wrap *r, const char *meta, int64_t age_ms)
{
    (void)snprintf(report.other, sizeof report.other, "%s", meta != NULL ? meta : "");
    report.op = (il_op){ .in.refused = { .other   = report.other,
                                         .held_ms = MIN(MAX(age_ms, 1), IL_DELAY_MS_MAX),
                                         .reason  = "the first attempt was still running" } };
    send_report(r);
}
