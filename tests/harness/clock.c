/*
 * clock.c: the test clock.
 */
#include "harness/clock.h"

#include <stdio.h>
#include <time.h>

#include "base/base.h"

static int64_t
read_boot_ms(void *cookie)
{
    const struct t_clock *c = cookie;

    return atomic_load(&c->boot_ms);
}

static int64_t
read_wall_ms(void *cookie)
{
    const struct t_clock *c = cookie;

    return atomic_load(&c->wall_ms);
}

static const char *
read_boot_id(void *cookie)
{
    const struct t_clock *c = cookie;

    return c->boot_ids[atomic_load(&c->n_boots)];
}

void
t_clock_init(struct t_clock *c)
{
    atomic_init(&c->boot_ms, T_BOOT_MS_START);
    atomic_init(&c->wall_ms, T_WALL_MS_START);
    atomic_init(&c->n_boots, 0);
    for (unsigned i = 0; i < T_BOOTS_MAX; i++)
        (void)snprintf(c->boot_ids[i], sizeof c->boot_ids[i], "test-boot-%u", i);
    c->il = (il_clock){ read_boot_ms, read_wall_ms, read_boot_id, c };
}

void
t_clock_step(struct t_clock *c, int64_t ms)
{
    CHECK(ms >= 0);
    atomic_fetch_add(&c->boot_ms, ms);
    atomic_fetch_add(&c->wall_ms, ms);
}

void
t_clock_set_wall(struct t_clock *c, int64_t delta_ms)
{
    atomic_fetch_add(&c->wall_ms, delta_ms);
}

void
t_clock_reboot(struct t_clock *c, int64_t off_ms, int64_t boot_ms)
{
    CHECK(atomic_load(&c->n_boots) + 1 < T_BOOTS_MAX);
    atomic_fetch_add(&c->n_boots, 1);
    atomic_store(&c->boot_ms, boot_ms);
    atomic_fetch_add(&c->wall_ms, off_ms);
}

void
t_clock_set_boot_id(struct t_clock *c, const char *boot_id)
{
    char *id = c->boot_ids[atomic_load(&c->n_boots)];

    (void)snprintf(id, sizeof c->boot_ids[0], "%s", boot_id);
}

int64_t
t_clock_boot(const struct t_clock *c)
{
    return atomic_load(&c->boot_ms);
}

int64_t
t_clock_wall(const struct t_clock *c)
{
    return atomic_load(&c->wall_ms);
}

int64_t
t_real_ms(void)
{
    struct timespec ts;

    CHECK(clock_gettime(CLOCK_MONOTONIC, &ts) == 0);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
