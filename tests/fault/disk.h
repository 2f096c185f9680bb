/*
 * disk.h: simulates a power cut. A VFS below SQLite keeps, beside the files in use, an image of
 * what would be left after a power cut: each file as of its last sync.
 */
#ifndef T_DISK_H
#define T_DISK_H

#include "harness/check.h"
#include "harness/tmp.h"

enum disk_loss {
    DISK_DROPS, /* what was not synced is gone */
    DISK_MIXES, /* of what was not synced, some sectors are there and some are not */
    DISK_LIES   /* it says that it has synced, and has not */
};

struct disk_plan {
    enum disk_loss loss;
    uint64_t       seed; /* of DISK_MIXES */
};

/*
 * Take over this process's files, before any is opened; the image goes to the folder `image`. At
 * every sync the power could go before the sync takes effect, or right after it. For each of these
 * cuts the process writes a line DISK_CUT_LINE to its output, and leaves in `image`, below
 * disk_cut_dir(), what the cut would leave. It then carries on.
 */
#define DISK_CUT_LINE "cut"
void disk_install(const char *image, const struct disk_plan *plan);

/* The folder of the i-th cut, from 0: at sync i / 2 + 1, the even ones before it takes effect. */
void disk_cut_dir(const char *image, unsigned i, char path[T_PATH_BYTES]);

#endif
