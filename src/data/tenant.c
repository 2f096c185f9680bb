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

/* The limits are at least limit_min. */
static il_status
check(const struct il__data_tenant *t, int64_t limit_min, il_error *reterr)
{
    const struct {
        const char *name;
        int64_t     value, max;
    } limits[] = {
#define LIMIT(name, option, heading, max, help) { #name, t->limits.name, max },
#include "data/limits.def"
#undef LIMIT
    };

    il_status st = il__data_check_tenant(t->id, reterr);
    if (st == IL_OK)
        st = il__check_optional("name of the tenant", t->name, DATA_NAME_BYTES_MAX, false, reterr);
    for (size_t i = 0; st == IL_OK && i < ARRAY_LEN(limits); i++) {
        if (limits[i].value < limit_min || limits[i].value > limits[i].max)
            st = il__error_set(reterr, IL_INVAL,
                               "tenant limit '%s' must be between 0 (default) and %lld",
                               limits[i].name, (long long)limits[i].max);
    }
    return st;
}

void
il__data_tenant_params(struct data_param             params[DATA_TENANT_PARAMS],
                       const struct il__data_tenant *t, int64_t last)
{
    size_t n = 0;

    params[n++] = DATA_TEXT(t->id);
    params[n++] = DATA_TEXT(t->name != NULL ? t->name : "");
#define LIMIT(name, ...) params[n++] = DATA_NUMBER(t->limits.name);
#include "data/limits.def"
#undef LIMIT
    params[n++] = DATA_NUMBER(last);
    CHECK(n == DATA_TENANT_PARAMS);
}

il_status
il__data_tenant_create(struct il__data *d, const struct il__data_tenant *t, il_error *reterr)
{
    struct data_param params[DATA_TENANT_PARAMS];
    uint64_t          n_added = 0;
    il_status         st      = check(t, 0, reterr);

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

#define LIMIT(name, ...) t.limits.name = row->columns[i++].number;
#include "data/limits.def"
#undef LIMIT
    t.created_at_ms = row->columns[i].number;
    l->n++;
    if (l->each != NULL)
        l->each(l->cookie, &t);
}

#ifdef IL_MUTANT_tenant_written_whole
static void
fill_in(void *cookie, const struct il__data_tenant *now)
{
    struct il__data_limits *limits = cookie;

#define LIMIT(name, ...)                 \
    if (limits->name == DATA_LIMIT_KEEP) \
        limits->name = now->limits.name;
#include "data/limits.def"
#undef LIMIT
}
#endif

il_status
il__data_tenant_set(struct il__data *d, const struct il__data_tenant *t, il__data_tenant_fn *each,
                    void *cookie, il_error *reterr)
{
    struct data_param params[DATA_TENANT_PARAMS];
    struct listing    l  = { each, cookie, 0 };
    il_status         st = check(t, DATA_LIMIT_KEEP, reterr);

    if (st != IL_OK)
        return st;
#ifdef IL_MUTANT_tenant_written_whole
    struct il__data_tenant whole = *t;
    IGNORE(il__data_tenant_get(d, t->id, fill_in, &whole.limits, reterr) != IL_OK);
    t = &whole;
#endif
    il__data_tenant_params(params, t, t->name != NULL);
    st = il__data_write(d, DATA_tenant_set, params, DATA_TENANT_PARAMS, take_tenant, &l, reterr);
    return st == IL_OK && l.n == 0 ? unknown(t->id, reterr) : st;
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

/* ---- limits ---------------------------------------------------------------------------------- */

const struct il__data_limits il__data_limits_keep = {
#define LIMIT(name, ...) .name = DATA_LIMIT_KEEP,
#include "data/limits.def"
#undef LIMIT
};

struct il__data_limits
il__data_limits_merge(const struct il__data_limits *own, const struct il__data_limits *by_default)
{
    struct il__data_limits limits;

#define LIMIT(name, option, heading, max, help) \
    limits.name = MIN(own->name != 0 ? own->name : by_default->name, max);
#include "data/limits.def"
#undef LIMIT
    limits.burst = own->requests_per_second != 0 ? own->burst : by_default->burst;
    return limits;
}

static void
merge_own(void *cookie, const struct il__data_tenant *t)
{
    struct il__data_limits *limits = cookie;

    *limits = il__data_limits_merge(&t->limits, limits);
}

il_status
il__data_tenant_limits(struct il__data *d, const char *id, struct il__data_limits *limits,
                       il_error *reterr)
{
    struct il__data_limits merged = *limits;
    il_status              st     = il__data_tenant_get(d, id, merge_own, &merged, reterr);

    if (st == IL_OK)
        *limits = merged;
    return st == IL_NOT_FOUND ? IL_OK : st;
}
