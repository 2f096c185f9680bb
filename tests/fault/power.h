/*
 * power.h: the work done until the power fails, and the checks afterwards; for locks and for jobs.
 */
#ifndef T_POWER_H
#define T_POWER_H

#include "fault/disk.h"

#define POWER_LOST 3 /* exit statuses of a judge */
#define POWER_DAMAGED 4

struct power {
    char             dir[T_PATH_BYTES];
    char             image[T_PATH_BYTES]; /* for a judge: what the cut left */
    char             url[T_PATH_BYTES];
    struct disk_plan plan;
    /* by the worker before the cut: a line for each op that was acknowledged */
    const char *said;
};

/* All of these are given a struct power and run in a process of their own (so no T_…), for a
 * process has one disk. */
int power_lock_work(void *arg);
int power_lock_judge(void *arg);
int power_job_work(void *arg);
int power_job_judge(void *arg);

/* Open the image that was left, for a judge. NULL: it is damaged, and that was said. */
il *power_open_image(struct power *w);

#endif
