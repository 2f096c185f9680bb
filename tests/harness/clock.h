/*
 * clock.h: a clock that stands still until a test moves it.
 */
#ifndef T_CLOCK_H
#define T_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

#include "interlock.h"

#define T_BOOT_MS_START INT64_C(1000000)
#define T_WALL_MS_START INT64_C(1800000000000) /* 2027-01-15T08:00:00Z */
#define T_BOOTS_MAX 64                         /* reboots of one clock */

/* Read by threads of the library while the test moves it, hence atomic. */
struct t_clock {
    _Atomic int64_t boot_ms;
    _Atomic int64_t wall_ms;
    atomic_uint     n_boots;
    char            boot_ids[T_BOOTS_MAX][32];
    il_clock        il; /* what il_open() gets */
};

void t_clock_init(struct t_clock *c);

/* Time passes: both clocks move. Never backwards. */
void t_clock_step(struct t_clock *c, int64_t ms);
/* Somebody sets the wall clock. */
void t_clock_set_wall(struct t_clock *c, int64_t delta_ms);
/* The machine was off for off_ms and starts again: another boot id, boot time from `boot_ms`. */
void t_clock_reboot(struct t_clock *c, int64_t off_ms, int64_t boot_ms);
/* The id of the current boot, for tests that care what it says. */
void t_clock_set_boot_id(struct t_clock *c, const char *boot_id);

int64_t t_clock_boot(const struct t_clock *c);
int64_t t_clock_wall(const struct t_clock *c);

/* The machine's monotonic clock, for limits on real waiting. */
int64_t t_real_ms(void);

#endif
