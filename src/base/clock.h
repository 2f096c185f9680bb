/*
 * clock.h: the machine's two clocks, and the hooks that replace them in tests.
 *
 * Boot time (CLOCK_BOOTTIME) keeps counting while the machine is suspended and does not jump when
 * the wall clock is set: every lease, wait and deadline uses it. Wall time is for display.
 */
#ifndef IL_BASE_CLOCK_H
#define IL_BASE_CLOCK_H

#include "base/base.h"

#define IL__NS_PER_MS 1000000

int64_t il__clock_boot_ns(void);
int64_t il__clock_wall_ms(void);
int64_t il__clock_wall_us(void);

#define IL__BOOT_ID_BYTES 128

/*
 * The machine's clock as an il_clock. Its boot_id is BOOT@MACHINE, or BOOT alone when the machine
 * has no id, so that a reboot can be distinguished from another machine. Its boot_ms is
 * CLOCK_BOOTTIME without the offset of a time namespace, so that processes in different containers
 * of one machine agree.
 */
const il_clock *il__clock_machine(void);

/* The current time of such a clock; lease time is derived from it. */
static inline int64_t
il__clock_now_ms(const il_clock *clock)
{
#ifdef IL_MUTANT_wall_clock_as_lease_time
    return clock->wall_ms(clock->cookie);
#else
    return clock->boot_ms(clock->cookie);
#endif
}

#endif
