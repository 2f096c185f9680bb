/*
 * clock.c: reading the machine's clocks. What leases make of them is in src/store/lease_clock.c.
 */
#include "base/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

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

/* Read a small file of /proc into text; an unreadable one gives "". */
static void
read_small(const char *path, char *text, size_t n_bytes)
{
    ssize_t n  = -1;
    int     fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        n = read(fd, text, n_bytes - 1);
        (void)close(fd); /* was only read from */
    }
    text[n > 0 ? n : 0] = '\0';
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

    read_small("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    read_small("/etc/machine-id", machine, sizeof machine);
    boot[strcspn(boot, "\n")]       = '\0';
    machine[strcspn(machine, "\n")] = '\0';
    (void)snprintf(machine_boot_id, sizeof machine_boot_id, "%s%s%s", boot,
                   machine[0] != '\0' ? "@" : "", machine); /* fits */

    /* Lines "monotonic SEC NSEC" and "boottime SEC NSEC": what the namespace adds to each clock. */
    read_small("/proc/self/timens_offsets", text, sizeof text);
    const char *line = strstr(text, "boottime");
    long long   sec  = 0;
    long long   nsec = 0;
    if (line != NULL && sscanf(line, "boottime %lld %lld", &sec, &nsec) == 2)
        timens_offset_ms = sec * 1000 + nsec / IL__NS_PER_MS;
}

/*
 * CLOCK_BOOTTIME at the price of a coarse clock: the coarse monotonic clock (a tick behind at most, and a
 * tenth of the price) plus the difference between the two, which only a suspend changes. It is taken again
 * every 50 ms, so after a suspend this clock is behind for that long, never ahead.
 *
 * Race-free without a lock: the difference is one atomic word, and so is the time of its next reading; two
 * threads that read it anew at once store the same.
 */
#define DIFFERENCE_MS 50

static int64_t
machine_boot_ms(void *cookie UNUSED)
{
    static _Atomic int64_t difference_ms;
    static _Atomic int64_t read_again_ms = INT64_MIN;
    struct timespec        ts;

    CHECK(clock_gettime(CLOCK_MONOTONIC_COARSE, &ts) == 0);
    int64_t mono_ms = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / IL__NS_PER_MS;
    if (mono_ms >= atomic_load_explicit(&read_again_ms, memory_order_acquire)) {
        CHECK(clock_gettime(CLOCK_MONOTONIC, &ts) == 0);
        int64_t now_ms = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / IL__NS_PER_MS;
        atomic_store(&difference_ms, il__clock_boot_ns() / IL__NS_PER_MS - now_ms - timens_offset_ms);
        atomic_store_explicit(&read_again_ms, mono_ms + DIFFERENCE_MS, memory_order_release);
    }
    return mono_ms + atomic_load_explicit(&difference_ms, memory_order_relaxed);
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
    static const il_clock machine = { machine_boot_ms, machine_wall_ms, machine_boot_id_text, NULL };

    CHECK(pthread_once(&machine_once, machine_init) == 0);
    return &machine;
}
