/*
 * audit.c: the audit log: listed newest first, in pages, by tenant and by action; old entries are
 * purged; any text is recorded.
 */
#include <stdio.h>

#include "data/place.h"

struct actions {
    unsigned n;
    uint64_t first, last; /* seq */
    char     what[DATA_ACTION_TEXT_BYTES_MAX + 1], reason[DATA_ACTION_TEXT_BYTES_MAX + 1], who[512],
        details[DATA_ACTION_TEXT_BYTES_MAX + 1];
    int64_t at_ms;
};

static void
take(void *cookie, const struct il__data_action *a)
{
    struct actions *as = cookie;

    T_TRUE(as->last == 0 || a->seq < as->last);
    if (as->first == 0)
        as->first = a->seq;
    as->last  = a->seq;
    as->at_ms = a->at_ms;
    (void)snprintf(as->what, sizeof as->what, "%s", a->what);
    (void)snprintf(as->reason, sizeof as->reason, "%s", a->reason);
    (void)snprintf(as->who, sizeof as->who, "%s", a->who);
    (void)snprintf(as->details, sizeof as->details, "%s", a->details);
    as->n++;
}

static void
add(struct il__data *d, const char *tenant, const char *action, unsigned n, int64_t at_ms)
{
    struct il__data_action actions[10] = { { 0 } };
    il_error               err;

    T_TRUE(n <= ARRAY_LEN(actions));
    for (unsigned i = 0; i < n; i++)
        actions[i] = (struct il__data_action){ .at_ms   = at_ms,
                                               .tenant  = tenant,
                                               .who     = "cli:root",
                                               .action  = action,
                                               .what    = "k",
                                               .outcome = "OK" };
    T_EQ(il__data_audit_add(d, actions, n, &err), IL_OK);
}

static unsigned
count(struct il__data *d, const char *tenant, const char *action, uint32_t limit)
{
    struct actions as = { .n = 0 };
    il_error       err;

    for (unsigned before = 1; before != as.n;) {
        before = as.n;
        T_EQ(il__data_audit_list(d, tenant, action, as.last, limit, take, &as, &err), IL_OK);
    }
    return as.n;
}

D_TEST(newest_first_in_pages)
{
    struct actions as = { .n = 0 };
    il_error       err;

    for (unsigned i = 0; i < 5; i++) {
        add(d, "a", "lock.break", 4, 0);
        add(d, "b", i % 2 == 0 ? "lock.break" : "key.create", 3, 0);
    }
    T_EQ(count(d, NULL, NULL, 0), 35);
    T_EQ(count(d, NULL, NULL, 1), 35);
    T_EQ(count(d, NULL, NULL, 34), 35);
    T_EQ(count(d, "a", NULL, 6), 20);
    T_EQ(count(d, NULL, "key.create", 4), 6);
    T_EQ(count(d, "b", "lock.break", 2), 9);
    T_EQ(count(d, "a", "key.create", 2), 0);
    T_EQ(count(d, "' OR 1=1 --", NULL, 2), 0);
    T_EQ(il__data_audit_list(d, NULL, NULL, UINT64_MAX, 1, take, &as, &err), IL_OK);
    T_EQ(as.n, 1);
    T_TRUE(as.at_ms > 0);
    T_STREQ(as.who, "cli:root");
    T_EQ(il__data_audit_list(d, NULL, NULL, 1, 1, take, &as, &err), IL_OK);
    T_EQ(as.n, 1);
    T_EQ(il__data_audit_add(d, NULL, 0, &err), IL_OK);
}

D_TEST(old_ones_are_purged)
{
    uint64_t       n = 0, n_all = 0;
    struct actions as = { .n = 0 };
    il_error       err;

    for (unsigned i = 0; i < 120; i++)
        add(d, "old", "x", 10, 1000 + i);
    add(d, "new", "x", 5, 0);
    T_EQ(il__data_audit_list(d, "old", NULL, 0, 1, take, &as, &err), IL_OK);
    do {
        T_EQ(il__data_audit_purge(d, 1000000, &n, &err), IL_OK);
        T_TRUE(n <= 1000);
        n_all += n;
    } while (n > 0);
    T_EQU(n_all, 1200);
    T_EQ(count(d, NULL, NULL, 0), 5);
    /* A number that was given is not given again, also when the newest rows are gone. */
    T_EQ(il__data_audit_purge(d, INT64_MAX, &n, &err), IL_OK);
    T_EQU(n, 5);
    add(d, "later", "x", 1, 0);
    struct actions later = { .n = 0 };
    T_EQ(il__data_audit_list(d, NULL, NULL, 0, 1, take, &later, &err), IL_OK);
    T_TRUE(later.first > as.first + 5);
}

D_TEST(whatever_it_looks_like)
{
    static char            big[1 << 20];
    struct il__data_action action = { .tenant  = NULL,
                                      .action  = "x",
                                      .who     = big,
                                      .what    = big,
                                      .reason  = "\xff a \xc3\xbc '\"; --\n",
                                      .details = NULL };
    struct actions         as     = { .n = 0 };
    il_error               err;

    memset(big, 'y', sizeof big - 1);
    memcpy(big + DATA_ACTION_TEXT_BYTES_MAX - 1, "\xc3\xbc",
           2); /* a character across the end is left out whole */
    T_EQ(il__data_audit_add(d, &action, 1, &err), IL_OK);
    T_EQ(il__data_audit_list(d, NULL, NULL, 0, 0, take, &as, &err), IL_OK);
    T_EQ(as.n, 1);
    T_EQ(strlen(as.what), DATA_ACTION_TEXT_BYTES_MAX - 1);
    T_EQ(strspn(as.what, "y"), DATA_ACTION_TEXT_BYTES_MAX - 1);
    T_EQ(strlen(as.who), 256);
    T_STREQ(as.reason, "? a \xc3\xbc '\"; --\n");
    T_STREQ(as.details, "");
    T_EQ(il__data_audit_list(d, "\xff", NULL, 0, 0, take, &as, &err), IL_INVAL);
    T_EQ(il__data_audit_list(d, NULL, "\xff", 0, 0, take, &as, &err), IL_INVAL);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { D_ROW(newest_first_in_pages),
                                               D_ROW(old_ones_are_purged),
                                               D_ROW(whatever_it_looks_like) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
