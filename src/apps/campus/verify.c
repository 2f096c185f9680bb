/*
 * verify.c: runs the invariants of the campus; see verify.h.
 */
#include "apps/campus/verify.h"

#include "base/error.h"

static int
take_offender(void *cookie, const il_guard_row *row)
{
    struct invariant_found *found = cookie;

    if (row->n > 0 && row->values[0].data != NULL)
        il__invariant_found(found, row->values[0].data, row->n > 1 ? row->values[1].data : NULL);
    return 1;
}

static il_status
look(il_guard *db, const struct app_invariant *v, const char *tenant, struct invariant_found *found,
     il_error *reterr)
{
    const struct app_statement text = { v->sqlite, v->postgres };
    il_guard_tx_opts           o    = IL_GUARD_TX_OPTS_INIT;
    il_guard_tx               *tx   = NULL;

    o.flags      = IL_GUARD_READ_ONLY;
    il_status st = il_guard_begin(db, &o, &tx, reterr);
    if (st == IL_OK)
        st = v->fn != NULL ? v->fn(tx, tenant, found, reterr)
                           : il__tables_run(tx, &text, APP_VALUES(il_guard_text(tenant)),
                                            take_offender, found, NULL, reterr);
    il_guard_rollback(tx);
    return st;
}

il_status
campus_verify(il_guard *db, const char *tenant, campus_broken_fn *broken, void *cookie,
              size_t *ret_n, il_error *reterr)
{
    il_status st = IL_OK;

    *ret_n = 0;
    for (size_t i = 0; i < CAMPUS_INVARIANTS && st == IL_OK; i++) {
        const struct app_invariant *v = &campus_invariants[i];
        struct invariant_found      found;
        size_t                      n_baseline = 0;
        while (v->baseline != NULL && v->baseline[n_baseline] != NULL)
            n_baseline++;
        st = il__invariant_found_init(&found, v->baseline, n_baseline)
                 ? look(db, v, tenant, &found, reterr)
                 : il__error_set(reterr, IL_NOMEM, "campus: out of memory");
        if (st == IL_OK && found.n_new > 0) {
            *ret_n += v->severity == INVARIANT_ERROR;
            if (broken != NULL)
                broken(cookie, v, found.n_new, found.offenders[0].key, found.offenders[0].text);
        }
        il__invariant_found_release(&found);
    }
    return st;
}
