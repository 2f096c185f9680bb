/*
 * concurrent.c: several servers change the same rows of a data store at the same moment: no change
 * of a tenant is lost, and an admin key remains.
 */
#include <pthread.h>
#include <stdio.h>

#include "data/place.h"

#define ROUNDS 30
#define N_SERVERS 3

struct server {
    struct il__data       *d;
    pthread_barrier_t     *barrier;
    struct il__data_tenant tenant;
    char                   key[DATA_ID_BYTES];
    il_status              status;
    il_error               error;
};

/* Each with a handle of its own; those of a data store in memory share one. */
static void
open_servers(struct server servers[N_SERVERS], const struct t_place *p, struct il__data *d,
             pthread_barrier_t *barrier)
{
    T_EQ(pthread_barrier_init(barrier, NULL, N_SERVERS), 0);
    for (size_t i = 0; i < N_SERVERS; i++)
        servers[i] =
            (struct server){ .d = p->shared ? t_data_open(p, NULL) : d, .barrier = barrier };
}

static void
close_servers(struct server servers[N_SERVERS], const struct t_place *p)
{
    T_EQ(pthread_barrier_destroy(servers[0].barrier), 0);
    for (size_t i = 0; p->shared && i < N_SERVERS; i++)
        il__data_close(servers[i].d);
}

/* All do it at once. */
static void
together(struct server servers[N_SERVERS], void *(*work)(void *server))
{
    pthread_t threads[N_SERVERS];

    for (size_t i = 0; i < N_SERVERS; i++)
        T_EQ(pthread_create(&threads[i], NULL, work, &servers[i]), 0);
    for (size_t i = 0; i < N_SERVERS; i++)
        T_EQ(pthread_join(threads[i], NULL), 0);
}

/* ---- changes of a tenant --------------------------------------------------------------------- */

static void *
change(void *arg)
{
    struct server *s = arg;

    (void)pthread_barrier_wait(s->barrier);
    s->status = il__data_tenant_set(s->d, &s->tenant, NULL, NULL, &s->error);
    return NULL;
}

static void
take_limits(void *cookie, const struct il__data_tenant *t)
{
    T_STREQ(t->name, "Acme");
    *(struct il__data_limits *)cookie = t->limits;
}

D_TEST(no_change_of_a_tenant_is_lost)
{
    struct server          servers[N_SERVERS];
    pthread_barrier_t      barrier;
    struct il__data_limits limits;
    il_error               err;

    T_EQ(il__data_tenant_create(d, &(struct il__data_tenant){ .id = "acme", .name = "Acme" }, &err),
         IL_OK);
    open_servers(servers, p, d, &barrier);
    for (int64_t round = 1; round <= ROUNDS; round++) {
        for (size_t i = 0; i < N_SERVERS; i++)
            servers[i].tenant =
                (struct il__data_tenant){ .id = "acme", .limits = il__data_limits_keep };
        servers[0].tenant.limits.locks = round;
        servers[1].tenant.limits.jobs  = round;
        servers[2].tenant.limits.bytes = round;
        together(servers, change);
        for (size_t i = 0; i < N_SERVERS; i++) {
            if (servers[i].status != IL_OK)
                T_FAIL("%s", servers[i].error.message);
        }
        T_EQ(il__data_tenant_get(d, "acme", take_limits, &limits, &err), IL_OK);
        T_EQ(limits.locks, round);
        T_EQ(limits.jobs, round);
        T_EQ(limits.bytes, round);
    }
    close_servers(servers, p);
}

/* ---- the last admin key ---------------------------------------------------------------------- */

static void *
revoke(void *arg)
{
    struct server *s = arg;

    (void)pthread_barrier_wait(s->barrier);
    s->status = il__data_key_revoke(s->d, NULL, s->key, true, &s->error);
    return NULL;
}

/* Each server revokes one of the admin keys that there are: the last one to do so is refused. */
D_TEST(an_admin_key_remains)
{
    struct server     servers[N_SERVERS];
    pthread_barrier_t barrier;
    char              secret[DATA_KEY_BYTES_MAX];
    il_error          err;
    uint64_t          n = 0;

    open_servers(servers, p, d, &barrier);
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t n_refused = 0;
        for (size_t i = 0; i < N_SERVERS; i++) {
            if (servers[i].status == IL_STATE)
                continue; /* that of the round before */
            t_key_make(d, "t", DATA_ROLE_ADMIN, servers[i].key, secret);
        }
        together(servers, revoke);
        for (size_t i = 0; i < N_SERVERS; i++) {
            if (servers[i].status == IL_STATE)
                n_refused++;
            else if (servers[i].status != IL_OK)
                T_FAIL("%s", servers[i].error.message);
        }
        T_EQ(n_refused, 1);
        T_EQ(il__data_key_count(d, &n, &err), IL_OK);
        T_EQU(n, 1);
    }
    close_servers(servers, p);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        D_ROW(no_change_of_a_tenant_is_lost),
        D_ROW(an_admin_key_remains),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
