/*
 * disk.h: simulates a power cut. A VFS below SQLite keeps, beside the files in use, an image of
 * what would be left after a power cut: each file as of its last sync.
 */
#ifndef T_DISK_H
#define T_DISK_H

#include "harness/check.h"

enum disk_loss {
    DISK_DROPS, /* what was not synced is gone */
    DISK_MIXES, /* of what was not synced, some sectors are there and some are not */
    DISK_LIES   /* it says that it has synced, and has not */
};

struct disk_cut {
    enum disk_loss loss;
    unsigned       at;     /* the sync at which the power goes, from 1 */
    bool           before; /* before it takes effect, or right after */
    uint64_t       seed;   /* of DISK_MIXES */
};

/* Take over this process's files, before any is opened; images go to the folder `image`. When the
 * power goes, the process ends with DISK_CUT_STATUS, in the middle of whatever it does. */
#define DISK_CUT_STATUS 99
void disk_install(const char *image, const struct disk_cut *cut);

#endif
