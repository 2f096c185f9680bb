/*
 * clock.c: reads the machine's clocks. src/store/sqlite/state.c derives lease time from them.
 */
#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

int64_t
il__clock_boot_ns(void)
{
    struct timespec ts;

    CHECK(clock_gettime(CLOCK_BOOTTIME, &ts) == 0);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t
il__clock_wall_us(void)
{
    struct timespec ts;

    CHECK(clock_gettime(CLOCK_REALTIME, &ts) == 0);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t
il__clock_wall_ms(void)
{
    return il__clock_wall_us() / 1000;
}

static pthread_once_t machine_once = PTHREAD_ONCE_INIT;
static int64_t        timens_offset_ms;
static char           machine_boot_id[IL__BOOT_ID_BYTES];

static void
machine_init(void)
{
    char text[256];
    char boot[48];
    char machine[48];

    (void)il__read_small("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    (void)il__read_small("/etc/machine-id", machine, sizeof machine);
    boot[strcspn(boot, "\n")]       = '\0';
    machine[strcspn(machine, "\n")] = '\0';
    (void)snprintf(machine_boot_id, sizeof machine_boot_id, "%s%s%s", boot,
                   machine[0] != '\0' ? "@" : "", machine); /* fits */

    /* Lines "monotonic SEC NSEC" and "boottime SEC NSEC": the namespace's offset for each clock. */
    (void)il__read_small("/proc/self/timens_offsets", text, sizeof text);
    const char *line = strstr(text, "boottime");
    long long   sec  = 0;
    long long   nsec = 0;
    if (line != NULL && sscanf(line, "boottime %lld %lld", &sec, &nsec) == 2)
        timens_offset_ms = sec * 1000 + nsec / IL__NS_PER_MS;
}

/*
 * A coarse clock plus a cached offset to CLOCK_BOOTTIME would not do: after a suspend it lags until
 * the offset is refreshed; a lease granted in between would expire early, and its key go to a
 * second holder.
 */
static int64_t
machine_boot_ms(void *cookie UNUSED)
{
    return il__clock_boot_ns() / IL__NS_PER_MS - timens_offset_ms;
}

static int64_t
machine_wall_ms(void *cookie UNUSED)
{
    return il__clock_wall_ms();
}

static const char *
machine_boot_id_text(void *cookie UNUSED)
{
    return machine_boot_id;
}

const il_clock *
il__clock_machine(void)
{
    static const il_clock machine = { machine_boot_ms, machine_wall_ms, machine_boot_id_text,
                                      NULL };

    CHECK(pthread_once(&machine_once, machine_init) == 0);
    return &machine;
}
