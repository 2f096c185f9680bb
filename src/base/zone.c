/*
 * zone.c: looks up time zones by name, and what applies at a time. zone_file.c parses their files.
 */
#include "base/zone.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mutex.h"

#define ZONES_DIR "/usr/share/zoneinfo"

size_t
il__zone_span(const struct il__zone *z, int64_t ms)
{
    size_t lo = 0;
    size_t hi = z->n;

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (z->transitions[mid].at_ms <= ms)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* ---- zones by name --------------------------------------------------------------------------- */

/* Zones looked up so far, kept for the life of the process: there are only a few hundred. */
struct zone_entry {
    struct zone_entry *next;
    struct il__zone    zone;
};

static struct il__mutex           mutex = { PTHREAD_MUTEX_INITIALIZER,
                                            IL__MUTEX_zone }; /* protects `entries`; a leaf */
static struct zone_entry         *entries;
static struct il__zone_transition utc_transitions[] = { { 0, 0 } };
static struct il__zone            utc               = { "UTC", 1, utc_transitions };

static const struct il__zone *
find(const char *name)
{
    const struct zone_entry *e;

    il__mutex_lock(&mutex);
    for (e = entries; e != NULL && strcmp(e->zone.name, name) != 0; e = e->next)
        ;
    il__mutex_unlock(&mutex);
    return e != NULL ? &e->zone : NULL;
}

/* Europe/Berlin, Etc/GMT+5: nothing that leads out of the folder. */
static bool
name_ok(const char *name)
{
    size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/");

    return n > 0 && name[n] == '\0' && name[0] != '/' && name[0] != '-' && name[n - 1] != '/' &&
           strstr(name, "//") == NULL && n < sizeof((struct il__zone *)NULL)->name;
}

/* The bytes of its file; 0 = no such file. */
static size_t
read_zone_file(const char *name, unsigned char *data, size_t n_max)
{
    const char *dir = secure_getenv("TZDIR");
    char        path[512];
    struct stat st;
    size_t      n = 0;

    int n_path =
        snprintf(path, sizeof path, "%s/%s", dir != NULL && dir[0] == '/' ? dir : ZONES_DIR, name);
    int fd = n_path < (int)sizeof path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0)
        return 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        ssize_t got;
        while (n < n_max && (got = read(fd, data + n, n_max - n)) != 0) {
            if (got > 0)
                n += (size_t)got;
            else if (errno != EINTR)
                break;
        }
    }
    (void)close(fd);
    return n;
}

static il_status
load(const char *name, struct zone_entry **ret, il_error *reterr)
{
    AUTO_FREE unsigned char              *data = il__alloc(IL__ZONE_FILE_BYTES_MAX);
    AUTO_FREE struct il__zone_transition *transitions =
        il__calloc(IL__ZONE_TRANSITIONS_MAX, sizeof *transitions);
    AUTO_FREE struct zone_entry *e = il__calloc(1, sizeof *e);

    if (data == NULL || transitions == NULL || e == NULL)
        return il__error_nomem(reterr);
    size_t n_bytes = read_zone_file(name, data, IL__ZONE_FILE_BYTES_MAX);
    size_t n       = n_bytes > 0 ? il__zone_parse(data, n_bytes, transitions) : 0;
    if (n == 0 && access(ZONES_DIR, F_OK) != 0)
        return il__error_set(reterr, IL_INVAL,
                             "cannot read time zone '%s': no time zones installed (package tzdata)",
                             name);
    if (n == 0)
        return il__error_set(reterr, IL_INVAL,
                             "unknown time zone '%s'; use a name such as Europe/Berlin", name);
    (void)snprintf(e->zone.name, sizeof e->zone.name, "%s", name);
    e->zone.n           = n;
    e->zone.transitions = il__alloc(n * sizeof *transitions);
    if (e->zone.transitions == NULL)
        return il__error_nomem(reterr);
    memcpy(e->zone.transitions, transitions, n * sizeof *transitions);
    *ret = TAKE(e);
    return IL_OK;
}

il_status
il__zone_get(const char *name, const struct il__zone **ret, il_error *reterr)
{
    struct zone_entry *e = NULL;

    if (strcmp(name, "UTC") == 0) { /* even where no zones are installed */
        *ret = &utc;
        return IL_OK;
    }
    if (!name_ok(name))
        return il__error_set(reterr, IL_INVAL,
                             "'%.60s' is not a time zone name such as Europe/Berlin", name);
    *ret = find(name);
    if (*ret != NULL)
        return IL_OK;
    il_status st = load(name, &e, reterr);
    if (st != IL_OK)
        return st;
    CHECK(e != NULL);
    /* Two threads may load the same zone; both entries are equal, and stay. */
    il__mutex_lock(&mutex);
    e->next = entries;
    entries = e;
    il__mutex_unlock(&mutex);
    *ret = &e->zone;
    return IL_OK;
}
