/*
 * verify.c: the invariants of race results; see verify.h and sql/verify.sql.
 */
#include "apps/ingest/verify.h"

#include "apps/ingest/persist_internal.h"
#include "base/error.h"

#include "apps/ingest/ingest_sql.inc"

const struct app_invariant il__ingest_invariants[INGEST_INVARIANTS] = {
    { .name     = "orphans",
      .summary  = "every reference points to an existing row",
      .severity = INVARIANT_ERROR,
      .sqlite   = sql_verify_orphans,
      .postgres = sql_verify_orphans },
    { .name     = "lap_count",
      .summary  = "a result has as many laps as were completed",
      .severity = INVARIANT_ERROR,
      .sqlite   = sql_verify_lap_count,
      .postgres = sql_verify_lap_count },
    { .name     = "lap_numbers",
      .summary  = "the laps of a result are numbered 1, 2, 3 and so on",
      .severity = INVARIANT_ERROR,
      .sqlite   = sql_verify_lap_numbers,
      .postgres = sql_verify_lap_numbers },
    { .name     = "laps_missing",
      .summary  = "a result with completed laps has laps",
      .severity = INVARIANT_WARNING,
      .sqlite   = sql_verify_laps_missing,
      .postgres = sql_verify_laps_missing },
    { .name     = "laps_full_without_races",
      .summary  = "an event that is laps_full has races",
      .severity = INVARIANT_ERROR,
      .sqlite   = sql_verify_no_races,
      .postgres = sql_verify_no_races },
    { .name     = "position_gaps",
      .summary  = "the positions of a race are 1, 2, 3 and so on",
      .severity = INVARIANT_ERROR,
      .sqlite   = sql_verify_positions,
      .postgres = sql_verify_positions },
};

/* ---- all of them ----------------------------------------------------------------------------- */

struct verify {
    ingest_verdict_fn *each;
    void              *cookie;
};

static int
take_offender(void *cookie, const il_guard_row *row)
{
    il__invariant_found(cookie, row->values[0].data, row->values[1].data);
    return 1;
}

static il_status
verify_one(struct ingest_tx *t, const struct app_invariant *own, const struct verify *v,
           il_error *reterr)
{
    const struct app_statement s = { own->sqlite, own->postgres };
    struct ingest_offender     offenders[INVARIANT_OFFENDERS_MAX];
    struct invariant_found     found = { 0 };
    bool                       more  = true;
    il_status                  st    = IL_OK;

    if (!il__invariant_found_init(&found, NULL, 0))
        st = il__error_nomem(reterr);
    if (st == IL_OK)
        st = il__ingest_run(t, &s, APP_VALUES(il_guard_text(t->w->tenant)), take_offender, &found,
                            NULL, reterr);
    if (st == IL_OK && found.no_memory)
        st = il__error_nomem(reterr);
    for (size_t i = 0; i < found.n_offenders; i++)
        offenders[i] = (struct ingest_offender){ found.offenders[i].key, found.offenders[i].text };
    if (st == IL_OK)
        more = v->each(v->cookie, &(struct ingest_verdict){
                                      .name        = own->name,
                                      .summary     = own->summary,
                                      .severity    = il__invariant_severity_name(own->severity),
                                      .n           = found.n_new,
                                      .offenders   = offenders,
                                      .n_offenders = found.n_offenders });
    il__invariant_found_release(&found);
    return more ? st : il__error_set(reterr, IL_CANCELLED, "the client disconnected");
}

static il_status
verify_all(struct ingest_tx *t, void *cookie, il_error *reterr)
{
    il_status st = IL_OK;

    for (size_t i = 0; i < INGEST_INVARIANTS && st == IL_OK; i++)
        st = verify_one(t, &il__ingest_invariants[i], cookie, reterr);
    return st;
}

il_status
il__ingest_verify(il_guard *g, const char *tenant, ingest_verdict_fn *each, void *cookie,
                  il_error *reterr)
{
    struct verify v = { each, cookie };

    return il__ingest_read(g, tenant, verify_all, &v, reterr);
}
