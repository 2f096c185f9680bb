/*
 * tenant.c: tenants, which own the keys, and their limits.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "core/key.h"
#include "data/data_internal.h"

#define IDS_PAGE 256

il_status
il__data_check_tenant(const char *id, il_error *reterr)
{
    size_t n = id != NULL ? strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789_") : 0;

    if (n == 0 || id[n] != '\0')
        return il__error_set(reterr, IL_INVAL,
                             "invalid tenant id; use lower-case letters, digits and '_'");
    if (n > IL_TENANT_BYTES_MAX)
        return il__error_set(reterr, IL_INVAL, "tenant id longer than %d bytes",
                             IL_TENANT_BYTES_MAX);
    return IL_OK;
}

static il_status
check(const struct il__data_tenant *t, il_error *reterr)
{
    const int64_t limits[] = {
#define X(name, heading) t->limits.name,
#include "data/limits.def"
#undef X
    };

    il_status st = il__data_check_tenant(t->id, reterr);
    if (st == IL_OK)
        st = il__check_optional("name of the tenant", t->name, DATA_NAME_BYTES_MAX, false, reterr);
    for (size_t i = 0; st == IL_OK && i < ARRAY_LEN(limits); i++) {
        if (limits[i] < 0 || limits[i] > DATA_LIMIT_MAX)
            st = il__error_set(reterr, IL_INVAL,
                               "tenant limits must be between 0 (default) and %lld",
                               (long long)DATA_LIMIT_MAX);
    }
    return st;
}

void
il__data_tenant_params(struct data_param             params[DATA_TENANT_PARAMS],
                       const struct il__data_tenant *t, int64_t now_ms)
{
    size_t n = 0;

    params[n++] = DATA_TEXT(t->id);
    params[n++] = DATA_TEXT(t->name != NULL ? t->name : "");
#define X(name, heading) params[n++] = DATA_NUMBER(t->limits.name);
#include "data/limits.def"
#undef X
    params[n++] = DATA_NUMBER(now_ms);
    CHECK(n == DATA_TENANT_PARAMS);
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
    struct il__data_tenant t = { .id = row->columns[0].text, .name = row->columns[1].text };
    size_t                 i = 2;

#define X(name, heading) t.limits.name = row->columns[i++].number;
#include "data/limits.def"
#undef X
    t.created_at_ms = row->columns[i].number;
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

struct ids {
    void       **mem;
    const char **items;
    size_t       n;
    bool         no_memory;
};

static void
take_id(void *cookie, const struct il__data_tenant *t)
{
    struct ids  *ids = cookie;
    const char **id  = il__arena_append(ids->mem, &ids->items, &ids->n, sizeof *id);

    if (id != NULL)
        *id = il__arena_strdup(ids->mem, t->id);
    ids->no_memory = ids->no_memory || id == NULL || *id == NULL;
}

il_status
il__data_tenant_ids(struct il__data *d, size_t n_max, void **mem, const char ***ret, size_t *ret_n,
                    il_error *reterr)
{
    struct ids ids    = { .mem = mem };
    size_t     n_want = 0; /* read so far, if there are as many */
    il_status  st     = IL_OK;

    while (st == IL_OK && !ids.no_memory && ids.n == n_want && ids.n < n_max) {
        uint32_t n_page = (uint32_t)MIN(n_max - ids.n, IDS_PAGE);
        n_want += n_page;
        st = il__data_tenant_list(d, ids.n > 0 ? ids.items[ids.n - 1] : NULL, n_page, take_id, &ids,
                                  reterr);
    }
    if (st == IL_OK && ids.no_memory)
        st = il__error_nomem(reterr);
    if (st == IL_OK) {
        *ret   = ids.items;
        *ret_n = ids.n;
    }
    return st;
}
