/*
 * keys.c: tenants and keys: creating, finding, listing in pages, revoking, expiry; valid names;
 * hostile input.
 */
#include <pthread.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "data/place.h"

#define URL_SAFE "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

/* ---- keys ------------------------------------------------------------------------------------ */

D_TEST(a_key_is_made_and_found)
{
    struct il__data_key key = {
        .tenant        = "acme_2",
        .name          = "of \"Robert'); DROP TABLE il_api_key;--\"",
        .role          = DATA_ROLE_OPERATOR,
        .permissions   = "admin:usage queue:claim",
        .prefix        = "pipeline:",
        .expires_at_ms = il__clock_wall_ms() + 60000,
    };
    char         id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];
    struct t_key k;
    il_error     err;

    T_EQ(il__data_key_create(d, &key, true, id, secret, &err), IL_OK);
    T_TRUE(strncmp(secret, "sk_acme_2_", 10) == 0);
    T_EQ(strlen(secret), 10 + 43);
    T_EQ(strspn(secret + 10, URL_SAFE), 43);
    T_EQ(t_key_find(d, secret, &k), IL_OK);
    T_STREQ(k.id, id);
    T_STREQ(k.tenant, key.tenant);
    T_STREQ(k.name, key.name);
    T_EQ(k.role, DATA_ROLE_OPERATOR);
    T_STREQ(k.permissions, key.permissions);
    T_STREQ(k.prefix, key.prefix);
    T_EQ(k.expires_at_ms, key.expires_at_ms);
    T_TRUE(k.created_at_ms > il__clock_wall_ms() - 60000 && k.created_at_ms <= il__clock_wall_ms());
    T_EQ(k.used_at_ms, 0);
    T_EQ(k.revoked_at_ms, 0);
}

D_TEST(no_two_keys_are_alike)
{
    char id[DATA_ID_BYTES], a[DATA_KEY_BYTES_MAX], b[DATA_KEY_BYTES_MAX], first[DATA_ID_BYTES];
    struct t_key k;

    t_key_make(d, "t", DATA_ROLE_READ, first, a);
    t_key_make(d, "t", DATA_ROLE_WRITE, id, b);
    T_TRUE(strcmp(a, b) != 0);
    T_EQ(t_key_find(d, a, &k), IL_OK);
    T_STREQ(k.id, first);
    T_EQ(k.role, DATA_ROLE_READ);
}

D_TEST(an_unknown_key)
{
    char          id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX], other[DATA_KEY_BYTES_MAX];
    unsigned char hash[DATA_HASH_BYTES], shorter[DATA_HASH_BYTES];
    struct t_key  k;

    t_key_make(d, "t", DATA_ROLE_READ, id, secret);
    T_EQ(t_key_find(d, "", &k), IL_NOT_FOUND);
    T_EQ(t_key_find(d, "sk_t_", &k), IL_NOT_FOUND);
    T_EQ(t_key_find(d, "' OR '1'='1", &k), IL_NOT_FOUND);
    memcpy(other, secret, sizeof other);
    other[strlen(other) - 1] = (char)(other[strlen(other) - 1] == 'A' ? 'B' : 'A');
    T_EQ(t_key_find(d, other, &k), IL_NOT_FOUND);
    /* The length counts, and a NUL is a byte like any other. */
    il__data_key_hash(d, secret, strlen(secret), hash);
    il__data_key_hash(d, secret, strlen(secret) + 1, shorter);
    T_TRUE(memcmp(hash, shorter, sizeof hash) != 0);
}

D_TEST(a_long_one_is_no_trouble)
{
    static char   big[1 << 20];
    unsigned char hash[DATA_HASH_BYTES];
    il_error      err;

    memset(big, 'x', sizeof big);
    il__data_key_hash(d, big, sizeof big, hash);
    T_EQ(il__data_key_find(d, hash, t_key_take, &(struct t_key){ 0 }, &err), IL_NOT_FOUND);
}

D_TEST(without_its_tenant)
{
    struct il__data_key key = { .tenant = "nobody", .role = DATA_ROLE_READ };
    char                id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];
    il_error            err;
    uint64_t            n;

    T_EQ(il__data_key_create(d, &key, false, id, secret, &err), IL_NOT_FOUND);
    T_HAS(err.message, "nobody");
    T_EQ(il__data_key_count(d, &n, &err), IL_OK);
    T_EQU(n, 0);
    T_EQ(il__data_tenant_create(d, &(struct il__data_tenant){ .id = "nobody" }, &err), IL_OK);
    T_EQ(il__data_key_create(d, &key, false, id, secret, &err), IL_OK);
}

D_TEST(revoked)
{
    char         id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];
    struct t_key k = { .n = 0 };
    il_error     err;
    uint64_t     n;

    t_key_make(d, "t", DATA_ROLE_READ, id, secret);
    T_EQ(il__data_key_get(d, NULL, id, t_key_take, &k, &err), IL_OK);
    T_STREQ(k.tenant, "t");
    T_EQ(il__data_key_get(d, "t", id, t_key_take, &k, &err), IL_OK);
    T_EQ(il__data_key_get(d, "other", id, t_key_take, &k, &err), IL_NOT_FOUND);
    T_EQ(il__data_key_get(d, NULL, "' OR 1=1", t_key_take, &k, &err), IL_NOT_FOUND);
    T_EQ(il__data_key_revoke(d, "other", id, false, &err), IL_NOT_FOUND);
    T_EQ(il__data_key_revoke(d, NULL, "x' OR '1'='1", false, &err), IL_NOT_FOUND);
    T_EQ(il__data_key_revoke(d, NULL, "00000000-0000-7000-8000-000000000000", false, &err),
         IL_NOT_FOUND);
    T_EQ(il__data_key_count(d, &n, &err), IL_OK);
    T_EQU(n, 1);
    T_EQ(il__data_key_revoke(d, "t", id, false, &err), IL_OK);
    T_EQ(t_key_find(d, secret, &k), IL_OK);
    int64_t revoked_at_ms = k.revoked_at_ms;
    T_TRUE(revoked_at_ms > 0);
    T_EQ(il__data_key_revoke(d, NULL, id, false, &err), IL_OK);
    T_EQ(t_key_find(d, secret, &k), IL_OK);
    T_EQ(k.revoked_at_ms, revoked_at_ms);
    T_EQ(il__data_key_count(d, &n, &err), IL_OK);
    T_EQU(n, 0);
}

/* No other key stands in for the last admin key: revoked, expired, or of another role. */
D_TEST(the_last_admin_key)
{
    struct il__data_key key = { .tenant = "t", .role = DATA_ROLE_ADMIN };
    char         id[DATA_ID_BYTES], other[DATA_ID_BYTES], late[DATA_ID_BYTES], plain[DATA_ID_BYTES];
    char         secret[DATA_KEY_BYTES_MAX], ignored[DATA_KEY_BYTES_MAX];
    struct t_key k;
    il_error     err;
    il_status    st;
    uint64_t     n = 4;

    t_key_make(d, "t", DATA_ROLE_ADMIN, id, secret);
    t_key_make(d, "other", DATA_ROLE_ADMIN, other, ignored);
    t_key_make(d, "t", DATA_ROLE_OPERATOR, plain, ignored);
    do /* again if it has expired by now */
        key.expires_at_ms = il__clock_wall_ms() + 200;
    while ((st = il__data_key_create(d, &key, false, late, ignored, &err)) == IL_INVAL);
    T_EQ(st, IL_OK);
    for (int64_t until_ms = il__clock_wall_ms() + 10000; n > 3 && il__clock_wall_ms() < until_ms;)
        T_EQ(il__data_key_count(d, &n, &err), IL_OK);
    T_EQU(n, 3);
    T_EQ(il__data_key_revoke(d, NULL, other, true, &err), IL_OK);
    T_EQ(il__data_key_revoke(d, NULL, id, true, &err), IL_STATE);
    T_HAS(err.message, "last usable admin key");
    T_EQ(il__data_key_revoke(d, "other", id, true, &err), IL_NOT_FOUND);
    T_EQ(t_key_find(d, secret, &k), IL_OK);
    T_EQ(k.revoked_at_ms, 0);
    T_EQ(il__data_key_revoke(d, NULL, other, true, &err), IL_OK); /* again */
    T_EQ(il__data_key_revoke(d, NULL, late, true, &err), IL_OK);
    T_EQ(il__data_key_revoke(d, NULL, plain, true, &err), IL_OK);
    T_EQ(il__data_key_revoke(d, NULL, id, false, &err), IL_OK);
}

D_TEST(expired)
{
    struct il__data_key key = { .tenant = "t", .role = DATA_ROLE_READ };
    char                id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];
    struct t_key        k;
    il_error            err;
    uint64_t            n = 1;

    key.expires_at_ms = il__clock_wall_ms();
    T_EQ(il__data_key_create(d, &key, true, id, secret, &err), IL_INVAL);
    key.expires_at_ms = il__clock_wall_ms() + 200;
    T_EQ(il__data_key_create(d, &key, true, id, secret, &err), IL_OK);
    /* It is found, and its caller sees that its time is over; it is not counted any more. */
    for (int64_t until_ms = il__clock_wall_ms() + 10000; n > 0 && il__clock_wall_ms() < until_ms;)
        T_EQ(il__data_key_count(d, &n, &err), IL_OK);
    T_EQU(n, 0);
    T_EQ(t_key_find(d, secret, &k), IL_OK);
    T_EQ(k.expires_at_ms, key.expires_at_ms);
}

D_TEST(used_to_the_minute)
{
    char         id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];
    struct t_key k;
    il_error     err;

    t_key_make(d, "t", DATA_ROLE_READ, id, secret);
    T_EQ(il__data_key_used(d, id, 1800000059999, &err), IL_OK);
    T_EQ(t_key_find(d, secret, &k), IL_OK);
    T_EQ(k.used_at_ms, 1800000000000);
    T_EQ(il__data_key_used(d, id, 1700000000000, &err), IL_OK); /* not backwards */
    T_EQ(t_key_find(d, secret, &k), IL_OK);
    T_EQ(k.used_at_ms, 1800000000000);
    T_EQ(il__data_key_used(d, id, 1800000060000, &err), IL_OK);
    T_EQ(t_key_find(d, secret, &k), IL_OK);
    T_EQ(k.used_at_ms, 1800000060000);
    T_EQ(il__data_key_used(d, "00000000-0000-7000-8000-000000000000", 1800000060000, &err), IL_OK);
}

static il_status
create(struct il__data *d, struct il__data_key key)
{
    char      id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX] = "untouched";
    il_error  err = { .message = "" };
    il_status st  = il__data_key_create(d, &key, true, id, secret, &err);

    if (st != IL_OK) {
        T_TRUE(err.message[0] != '\0');
        T_STREQ(secret, "untouched");
    }
    return st;
}

D_TEST(what_a_key_may_be)
{
    static char big[1 << 20];
    char        tenant[IL_TENANT_BYTES_MAX + 2], name[DATA_NAME_BYTES_MAX + 2],
        permissions[DATA_PERMISSIONS_BYTES_MAX + 2];

    memset(big, 'x', sizeof big - 1);
#define KEY(field, value)                                                     \
    ({                                                                        \
        struct il__data_key key_ = { .tenant = "t", .role = DATA_ROLE_READ }; \
        key_.field               = (value);                                   \
        create(d, key_);                                                      \
    })
    T_EQ(KEY(name, NULL), IL_OK);
    T_EQ(KEY(role, DATA_ROLE_NONE), IL_OK);
    T_EQ(KEY(role, DATA_ROLE_COUNT), IL_INVAL);
    T_EQ(KEY(role, (enum il__data_role)77), IL_INVAL);
    T_EQ(KEY(name, big), IL_INVAL);
    T_EQ(KEY(name, "a\nb"), IL_INVAL);
    T_EQ(KEY(name, "\xff\xfe"), IL_INVAL);
    T_EQ(KEY(name, "Schl\xc3\xbcssel"), IL_OK);
    T_EQ(KEY(prefix, big), IL_INVAL);
    T_EQ(KEY(prefix, "\xc3"), IL_INVAL);
    T_EQ(KEY(permissions, "a"), IL_OK);
    T_EQ(KEY(permissions, "a:b.c_d-9"), IL_OK);
    T_EQ(KEY(permissions, "A"), IL_INVAL);
    T_EQ(KEY(permissions, "a  b"), IL_INVAL);
    T_EQ(KEY(permissions, " a"), IL_INVAL);
    T_EQ(KEY(permissions, "a "), IL_INVAL);
    T_EQ(KEY(permissions, "a,b"), IL_INVAL);
    T_EQ(KEY(permissions, "a b c d e f g h i j k l m n o p"), IL_OK);
    T_EQ(KEY(permissions, "a b c d e f g h i j k l m n o p q"), IL_INVAL);
    T_EQ(KEY(permissions, big), IL_INVAL);
    memset(permissions, 'p', sizeof permissions - 1);
    permissions[DATA_PERMISSION_BYTES_MAX] = '\0';
    T_EQ(KEY(permissions, permissions), IL_OK);
    permissions[DATA_PERMISSION_BYTES_MAX]     = 'p';
    permissions[DATA_PERMISSION_BYTES_MAX + 1] = '\0';
    T_EQ(KEY(permissions, permissions), IL_INVAL);
    T_EQ(KEY(tenant, NULL), IL_INVAL);
    T_EQ(KEY(tenant, ""), IL_INVAL);
    T_EQ(KEY(tenant, "A"), IL_INVAL);
    T_EQ(KEY(tenant, "a-b"), IL_INVAL);
    T_EQ(KEY(tenant, "a'b"), IL_INVAL);
    T_EQ(KEY(tenant, big), IL_INVAL);
    memset(tenant, 't', sizeof tenant);
    tenant[IL_TENANT_BYTES_MAX] = '\0';
    T_EQ(KEY(tenant, tenant), IL_OK);
    tenant[IL_TENANT_BYTES_MAX]     = 't';
    tenant[IL_TENANT_BYTES_MAX + 1] = '\0';
    T_EQ(KEY(tenant, tenant), IL_INVAL);
    memset(name, 'n', sizeof name);
    name[DATA_NAME_BYTES_MAX] = '\0';
    T_EQ(KEY(name, name), IL_OK);
#undef KEY
}

struct ids {
    char     last[DATA_ID_BYTES];
    unsigned n;
};

static void
take_id(void *cookie, const struct il__data_key *key)
{
    struct ids *ids = cookie;

    T_TRUE(strcmp(ids->last, key->id) < 0);
    (void)snprintf(ids->last, sizeof ids->last, "%s", key->id);
    ids->n++;
}

static unsigned
list_pages(struct il__data *d, const char *tenant, uint32_t limit)
{
    struct ids ids = { .n = 0 };
    il_error   err;

    for (unsigned before = 1; before != ids.n;) {
        before = ids.n;
        char after[DATA_ID_BYTES];
        memcpy(after, ids.last, sizeof after);
        T_EQ(il__data_key_list(d, tenant, after, limit, take_id, &ids, &err), IL_OK);
        T_TRUE(ids.n - before <= (limit != 0 ? limit : 100));
    }
    return ids.n;
}

D_TEST(listed_in_pages)
{
    char         id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];
    struct t_key k = { .n = 0 };
    il_error     err;

    for (unsigned i = 0; i < 25; i++)
        t_key_make(d, i % 5 == 0 ? "five" : "rest", DATA_ROLE_READ, id, secret);
    T_EQ(list_pages(d, NULL, 7), 25);
    T_EQ(list_pages(d, NULL, 1), 25);
    T_EQ(list_pages(d, NULL, 25), 25);
    T_EQ(list_pages(d, NULL, 0), 25);
    T_EQ(list_pages(d, NULL, UINT32_MAX), 25);
    T_EQ(list_pages(d, "five", 2), 5);
    T_EQ(list_pages(d, "nobody", 2), 0);
    T_EQ(il__data_key_list(d, NULL, "not an id", 1, t_key_take, &k, &err), IL_INVAL);
    T_EQ(il__data_key_list(d, "Bad!", NULL, 1, t_key_take, &k, &err), IL_INVAL);
    T_EQ(k.n, 0);
}

D_TEST(roles_have_names)
{
    for (enum il__data_role role = DATA_ROLE_NONE; role < DATA_ROLE_COUNT; role++)
        T_EQ(il__data_role_parse(il__data_role_name(role)), role);
    T_EQ(il__data_role_parse("root"), DATA_ROLE_COUNT);
    T_EQ(il__data_role_parse(""), DATA_ROLE_COUNT);
    T_EQ(il__data_role_parse(NULL), DATA_ROLE_COUNT);
}

/* ---- signatures and tokens ------------------------------------------------------------------- */

D_TEST(a_signature)
{
    char             text[] = "01990000-0000-7000-8000-000000000001.1763222400000";
    char             mine[DATA_SIGNATURE_BYTES], again[DATA_SIGNATURE_BYTES];
    struct il__data *other = t_data_open(p, NULL);

    il__data_sign(d, text, strlen(text), mine);
    T_EQ(strspn(mine, "0123456789abcdef"), DATA_SIGNATURE_BYTES - 1);
    T_TRUE(il__data_is_signed(d, text, strlen(text), mine));
    if (p->shared) { /* another server of the same data store */
        il__data_sign(other, text, strlen(text), again);
        T_STREQ(again, mine);
    }
    il__data_close(other);
    for (size_t i = 0; i < strlen(text); i++) {
        text[i] ^= 1;
        T_TRUE(!il__data_is_signed(d, text, strlen(text), mine));
        text[i] ^= 1;
    }
    T_TRUE(!il__data_is_signed(d, text, strlen(text) - 1, mine));
    for (size_t i = 0; i + 1 < sizeof mine; i++) {
        mine[i] ^= 1;
        T_TRUE(!il__data_is_signed(d, text, strlen(text), mine));
        mine[i] ^= 1;
    }
    T_TRUE(!il__data_is_signed(d, text, strlen(text), (char[DATA_SIGNATURE_BYTES]){ "" }));
}

/* What is stored of an API key is no signature, so that nobody who reads the table can sign. */
D_TEST(a_signature_is_no_hash_of_a_key)
{
    unsigned char hash[DATA_HASH_BYTES];
    char          hex[DATA_SIGNATURE_BYTES];

    il__data_key_hash(d, "text", 4, hash);
    for (size_t i = 0; i < sizeof hash; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", hash[i]);
    T_TRUE(!il__data_is_signed(d, "text", 4, hex));
}

D_TEST(tokens_differ)
{
    char     a[DATA_TOKEN_BYTES], b[DATA_TOKEN_BYTES];
    il_error err;

    T_EQ(il__data_token(a, &err), IL_OK);
    T_EQ(il__data_token(b, &err), IL_OK);
    T_EQ(strspn(a, URL_SAFE), DATA_TOKEN_BYTES - 1);
    T_TRUE(strcmp(a, b) != 0);
}

/* ---- tenants --------------------------------------------------------------------------------- */

struct tenants {
    unsigned               n;
    char                   last[IL_TENANT_BYTES_MAX + 1], name[DATA_NAME_BYTES_MAX + 1];
    struct il__data_limits limits;
    int64_t                created_at_ms;
};

static void
take_tenant(void *cookie, const struct il__data_tenant *t)
{
    struct tenants *ts = cookie;

    T_TRUE(strcmp(ts->last, t->id) < 0);
    (void)snprintf(ts->last, sizeof ts->last, "%s", t->id);
    (void)snprintf(ts->name, sizeof ts->name, "%s", t->name);
    ts->limits        = t->limits;
    ts->created_at_ms = t->created_at_ms;
    ts->n++;
}

D_TEST(a_tenant)
{
    struct il__data_tenant t = {
        .id     = "acme",
        .name   = "Acme 'n' Sons",
        .limits = { 100, 200, 3, 4, 5, DATA_LIMIT_MAX, 7, 8, DATA_RUNS_MAX, 10, DATA_BYTES_MAX },
    };
    struct tenants ts = { .n = 0 };
    il_error       err;

    T_EQ(il__data_tenant_get(d, "acme", take_tenant, &ts, &err), IL_NOT_FOUND);
    T_EQ(il__data_tenant_set(d, &t, NULL, NULL, &err), IL_NOT_FOUND);
    T_EQ(il__data_tenant_create(d, &t, &err), IL_OK);
    T_EQ(il__data_tenant_create(d, &t, &err), IL_DUPLICATE);
    T_EQ(il__data_tenant_get(d, "acme", take_tenant, &ts, &err), IL_OK);
    T_STREQ(ts.name, t.name);
    T_TRUE(memcmp(&ts.limits, &t.limits, sizeof t.limits) == 0);
    T_TRUE(ts.created_at_ms > 0);
    t.name                       = "Acme";
    t.limits.requests_per_second = 0;
    ts.last[0]                   = '\0';
    T_EQ(il__data_tenant_set(d, &t, take_tenant, &ts, &err), IL_OK);
    T_STREQ(ts.name, "Acme");
    T_TRUE(memcmp(&ts.limits, &t.limits, sizeof t.limits) == 0);
    T_TRUE(ts.created_at_ms > 0);
    ts.last[0] = '\0';
    T_EQ(il__data_tenant_get(d, "acme", take_tenant, &ts, &err), IL_OK);
    T_STREQ(ts.name, "Acme");
    T_EQ(ts.limits.requests_per_second, 0);
    t.id = "ACME";
    T_EQ(il__data_tenant_create(d, &t, &err), IL_INVAL);
    T_EQ(il__data_tenant_get(d, "ACME", take_tenant, &ts, &err), IL_INVAL);
}

/* What is not given stays. */
D_TEST(a_change_of_a_tenant)
{
    struct il__data_tenant t  = { .id     = "acme",
                                  .name   = "Acme",
                                  .limits = { .locks = 7, .runs = 3 } };
    struct tenants         ts = { .n = 0 };
    il_error               err;

    T_EQ(il__data_tenant_create(d, &t, &err), IL_OK);
    t.limits       = il__data_limits_keep;
    t.limits.locks = 0;
    t.limits.bytes = 11;
    t.name         = NULL;
    T_EQ(il__data_tenant_set(d, &t, take_tenant, &ts, &err), IL_OK);
    T_EQ(ts.n, 1);
    T_STREQ(ts.name, "Acme");
    T_EQ(ts.limits.locks, 0);
    T_EQ(ts.limits.runs, 3);
    T_EQ(ts.limits.bytes, 11);
    T_EQ(ts.limits.jobs, 0);
    t.limits   = il__data_limits_keep;
    t.name     = "";
    ts.last[0] = '\0';
    T_EQ(il__data_tenant_set(d, &t, take_tenant, &ts, &err), IL_OK);
    T_STREQ(ts.name, "");
    T_EQ(ts.limits.bytes, 11);
}

D_TEST(limits_have_ranges)
{
    static const struct {
        struct il__data_limits limits;
        const char            *name;
    } bad[] = {
        { { .jobs = -1 }, "jobs" },
        { { .jobs = DATA_LIMIT_MAX + 1 }, "jobs" },
        { { .runs = DATA_RUNS_MAX + 1 }, "runs" },
        { { .bytes = DATA_BYTES_MAX + 1 }, "bytes" },
        { { .bytes = INT64_MIN }, "bytes" },
    };
    il_error err;

    T_EQ(il__data_tenant_create(d, &(struct il__data_tenant){ .id = "old" }, &err), IL_OK);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct il__data_tenant t = { .id = "new", .limits = bad[i].limits };
        T_EQ(il__data_tenant_create(d, &t, &err), IL_INVAL);
        T_HAS(err.message, bad[i].name);
        t.id = "old";
        if (t.limits.jobs != DATA_LIMIT_KEEP)
            T_EQ(il__data_tenant_set(d, &t, NULL, NULL, &err), IL_INVAL);
    }
    struct il__data_tenant t = { .id = "old", .limits = il__data_limits_keep };
    t.limits.runs            = DATA_LIMIT_KEEP - 1;
    T_EQ(il__data_tenant_set(d, &t, NULL, NULL, &err), IL_INVAL);
}

/* A limit of the tenant replaces the default; the burst goes with the rate. */
D_TEST(limits_that_apply)
{
    const struct il__data_limits by_default = {
        .requests_per_second = 10, .burst = 50, .locks = 4, .runs = 5
    };
    struct il__data_tenant t = { .id = "acme", .limits = { .burst = 7, .runs = 2, .bytes = 100 } };
    struct il__data_limits l = by_default;
    il_error               err;

    T_EQ(il__data_tenant_limits(d, "acme", &l, &err), IL_OK);
    T_TRUE(memcmp(&l, &by_default, sizeof l) == 0); /* there is no such tenant */
    T_EQ(il__data_tenant_create(d, &t, &err), IL_OK);
    T_EQ(il__data_tenant_limits(d, "acme", &l, &err), IL_OK);
    T_EQ(l.requests_per_second, 10);
    T_EQ(l.burst, 50);
    T_EQ(l.locks, 4);
    T_EQ(l.jobs, 0);
    T_EQ(l.runs, 2);
    T_EQ(l.bytes, 100);
    t.limits.requests_per_second = 3;
    l                            = il__data_limits_merge(&t.limits, &by_default);
    T_EQ(l.requests_per_second, 3);
    T_EQ(l.burst, 7);
    t.limits.runs = 1000; /* written into the table by somebody else */
    T_EQ(il__data_limits_merge(&t.limits, &by_default).runs, DATA_RUNS_MAX);
    T_EQ(il__data_tenant_limits(d, "Acme!", &l, &err), IL_INVAL);
}

D_TEST(tenants_in_order_of_bytes)
{
    static const char *const ids[] = { "a_b", "a", "ab", "b9", "b_", "9", "_", "a1" };
    struct tenants           ts    = { .n = 0 };
    il_error                 err;

    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        T_EQ(il__data_tenant_create(d, &(struct il__data_tenant){ .id = ids[i] }, &err), IL_OK);
    T_EQ(il__data_tenant_list(d, NULL, 3, take_tenant, &ts, &err), IL_OK);
    T_EQ(ts.n, 3);
    T_EQ(il__data_tenant_list(d, (char[2]){ ts.last[0], ts.last[1] }, 100, take_tenant, &ts, &err),
         IL_OK);
    T_EQ(ts.n, ARRAY_LEN(ids));
}

D_TEST(ids_of_all_tenants)
{
    void        *mem = NULL;
    const char **ids = NULL;
    char         id[IL_TENANT_BYTES_MAX + 1];
    size_t       n = 7;
    il_error     err;

    T_EQ(il__data_tenant_ids(d, SIZE_MAX, &mem, &ids, &n, &err), IL_OK);
    T_EQU(n, 0);
    for (unsigned i = 513; i-- > 0;) { /* two pages and a tenant */
        (void)snprintf(id, sizeof id, "t%03u", i);
        T_EQ(il__data_tenant_create(d, &(struct il__data_tenant){ .id = id }, &err), IL_OK);
    }
    T_EQ(il__data_tenant_ids(d, SIZE_MAX, &mem, &ids, &n, &err), IL_OK);
    T_EQU(n, 513);
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(id, sizeof id, "t%03u", i);
        T_STREQ(ids[i], id);
    }
    for (size_t n_max = 511; n_max <= 514; n_max++) {
        T_EQ(il__data_tenant_ids(d, n_max, &mem, &ids, &n, &err), IL_OK);
        T_EQU(n, MIN(n_max, 513));
        T_STREQ(ids[510], "t510");
    }
    il__arena_free(&mem);
}

/* ---- several at once ------------------------------------------------------------------------- */

#define N_THREADS 4
#define N_EACH 25

static void *
make_many(void *arg)
{
    struct il__data_key key = { .tenant = "t", .role = DATA_ROLE_WRITE };
    char                id[DATA_ID_BYTES], secret[DATA_KEY_BYTES_MAX];
    unsigned char       hash[DATA_HASH_BYTES];
    struct t_key        k = { .n = 0 };

    for (unsigned i = 0; i < N_EACH; i++) {
        CHECK(il__data_key_create(arg, &key, true, id, secret, NULL) == IL_OK);
        il__data_key_hash(arg, secret, strlen(secret), hash);
        CHECK(il__data_key_find(arg, hash, t_key_take, &k, NULL) == IL_OK);
        CHECK(strcmp(k.id, id) == 0);
        CHECK(il__data_audit_add(arg,
                                 &(struct il__data_action){ .action = "key.create", .what = id }, 1,
                                 NULL) == IL_OK);
    }
    return NULL;
}

D_TEST(threads_take_turns)
{
    pthread_t threads[N_THREADS];
    uint64_t  n = 0;
    il_error  err;

    for (unsigned i = 0; i < N_THREADS; i++)
        T_EQ(pthread_create(&threads[i], NULL, make_many, d), 0);
    for (unsigned i = 0; i < N_THREADS; i++)
        T_EQ(pthread_join(threads[i], NULL), 0);
    T_EQ(il__data_key_count(d, &n, &err), IL_OK);
    T_EQU(n, N_THREADS * N_EACH);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        D_ROW(a_key_is_made_and_found),
        D_ROW(no_two_keys_are_alike),
        D_ROW(an_unknown_key),
        D_ROW(a_long_one_is_no_trouble),
        D_ROW(without_its_tenant),
        D_ROW(revoked),
        D_ROW(the_last_admin_key),
        D_ROW(expired),
        D_ROW(used_to_the_minute),
        D_ROW(what_a_key_may_be),
        D_ROW(listed_in_pages),
        D_ROW(roles_have_names),
        D_ROW(a_signature),
        D_ROW(a_signature_is_no_hash_of_a_key),
        D_ROW(tokens_differ),
        D_ROW(a_tenant),
        D_ROW(a_change_of_a_tenant),
        D_ROW(limits_have_ranges),
        D_ROW(limits_that_apply),
        D_ROW(tenants_in_order_of_bytes),
        D_ROW(ids_of_all_tenants),
        D_ROW(threads_take_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
