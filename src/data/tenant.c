/*
 * tenant.c: tenants, which own the keys, and their limits.
 */
#include "base/clock.h"
#include "base/error.h"
#include "core/key.h"
#include "data/data_internal.h"

il_status
il__data_check_tenant(const char *id, il_error *reterr)
{
    size_t n = id != NULL ? strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789_") : 0;

    if (n == 0 || id[n] != '\0')
        return il__error_set(reterr, IL_INVAL, "a tenant id is lower-case letters, digits and '_'");
    if (n > IL_TENANT_BYTES_MAX)
        return il__error_set(reterr, IL_INVAL, "tenant id longer than %d bytes",
                             IL_TENANT_BYTES_MAX);
    return IL_OK;
}

static il_status
check(const struct il__data_tenant *t, il_error *reterr)
{
    const int64_t limits[] = { t->limits.requests_per_second,
                               t->limits.burst,
                               t->limits.waiters,
                               t->limits.streams,
                               t->limits.locks,
                               t->limits.jobs,
                               t->limits.triggers_per_minute,
                               t->limits.triggers_per_hour,
                               t->limits.runs,
                               t->limits.runs_per_day,
                               t->limits.bytes };

    il_status st = il__data_check_tenant(t->id, reterr);
    if (st == IL_OK)
        st = il__check_optional("the tenant's name", t->name, DATA_NAME_BYTES_MAX, false, reterr);
    for (size_t i = 0; st == IL_OK && i < ARRAY_LEN(limits); i++) {
        if (limits[i] < 0 || limits[i] > DATA_LIMIT_MAX)
            st = il__error_set(reterr, IL_INVAL,
                               "a tenant limit must be between 0 (default) and %lld",
                               (long long)DATA_LIMIT_MAX);
    }
    return st;
}

void
il__data_tenant_params(struct data_param             params[DATA_TENANT_PARAMS],
                       const struct il__data_tenant *t, int64_t now_ms)
{
    const struct il__data_limits *l = &t->limits;

    params[0]  = DATA_TEXT(t->id);
    params[1]  = DATA_TEXT(t->name != NULL ? t->name : "");
    params[2]  = DATA_NUMBER(l->requests_per_second);
    params[3]  = DATA_NUMBER(l->burst);
    params[4]  = DATA_NUMBER(l->waiters);
    params[5]  = DATA_NUMBER(l->streams);
    params[6]  = DATA_NUMBER(l->locks);
    params[7]  = DATA_NUMBER(l->jobs);
    params[8]  = DATA_NUMBER(l->triggers_per_minute);
    params[9]  = DATA_NUMBER(l->triggers_per_hour);
    params[10] = DATA_NUMBER(l->runs);
    params[11] = DATA_NUMBER(l->runs_per_day);
    params[12] = DATA_NUMBER(l->bytes);
    params[13] = DATA_NUMBER(now_ms);
}

il_status
il__data_tenant_create(struct il__data *d, const struct il__data_tenant *t, il_error *reterr)
{
    struct data_param params[DATA_TENANT_PARAMS];
    uint64_t          n_added = 0;
    il_status         st      = check(t, reterr);

    if (st != IL_OK)
        return st;
    il__data_tenant_params(params, t, il__clock_wall_ms());
    st = il__data_write(d, DATA_tenant_add, params, DATA_TENANT_PARAMS, il__data_count_row,
                        &n_added, reterr);
    if (st == IL_OK && n_added == 0)
        st = il__error_set(reterr, IL_DUPLICATE, "tenant %s already exists", t->id);
    return st;
}

static il_status
unknown(const char *id, il_error *reterr)
{
    return il__error_set(reterr, IL_NOT_FOUND, "no such tenant: %s", id);
}

il_status
il__data_tenant_set(struct il__data *d, const struct il__data_tenant *t, il_error *reterr)
{
    struct data_param params[DATA_TENANT_PARAMS];
    uint64_t          n_set = 0;
    il_status         st    = check(t, reterr);

    if (st != IL_OK)
        return st;
    il__data_tenant_params(params, t, il__clock_wall_ms());
    st = il__data_write(d, DATA_tenant_set, params, DATA_TENANT_PARAMS - 1, il__data_count_row,
                        &n_set, reterr);
    return st == IL_OK && n_set == 0 ? unknown(t->id, reterr) : st;
}

struct listing {
    il__data_tenant_fn *each;
    void               *cookie;
    uint64_t            n;
};

static void
take_tenant(void *cookie, const struct data_row *row)
{
    struct listing        *l = cookie;
    struct il__data_tenant t = {
        .id            = row->columns[0].text,
        .name          = row->columns[1].text,
        .limits        = { .requests_per_second = row->columns[2].number,
                           .burst               = row->columns[3].number,
                           .waiters             = row->columns[4].number,
                           .streams             = row->columns[5].number,
                           .locks               = row->columns[6].number,
                           .jobs                = row->columns[7].number,
                           .triggers_per_minute = row->columns[8].number,
                           .triggers_per_hour   = row->columns[9].number,
                           .runs                = row->columns[10].number,
                           .runs_per_day        = row->columns[11].number,
                           .bytes               = row->columns[12].number },
        .created_at_ms = row->columns[13].number,
    };

    l->n++;
    if (l->each != NULL)
        l->each(l->cookie, &t);
}

il_status
il__data_tenant_get(struct il__data *d, const char *id, il__data_tenant_fn *each, void *cookie,
                    il_error *reterr)
{
    struct listing l  = { each, cookie, 0 };
    il_status      st = il__data_check_tenant(id, reterr);

    if (st != IL_OK)
        return st;
    const struct data_param params[] = { DATA_TEXT(id) };
    st = il__data_read(d, DATA_tenant_get, params, ARRAY_LEN(params), take_tenant, &l, reterr);
    return st == IL_OK && l.n == 0 ? unknown(id, reterr) : st;
}

il_status
il__data_tenant_list(struct il__data *d, const char *after, uint32_t limit,
                     il__data_tenant_fn *each, void *cookie, il_error *reterr)
{
    struct listing l  = { each, cookie, 0 };
    il_status      st = after != NULL ? il__data_check_tenant(after, reterr) : IL_OK;

    if (st != IL_OK)
        return st;
    const struct data_param params[] = { DATA_TEXT(after != NULL ? after : ""),
                                         DATA_NUMBER(il__data_page(limit)) };
    return il__data_read(d, DATA_tenant_list, params, ARRAY_LEN(params), take_tenant, &l, reterr);
}
