/*
 * site.h (tests): the generated site of race results, in a process of its own.
 */
#ifndef T_INGEST_SITE_H
#define T_INGEST_SITE_H

#include "apps/ingest/site/serve.h"
#include "harness/proc.h"
#include "harness/tmp.h"

#define T_SITE_MS 30000

struct t_site {
    struct t_proc     proc;
    struct site_serve how;
    char              base[T_PATH_BYTES]; /* with {slug} */
    char              host[100];          /* of the permits */
};

/* Fork before any handle is open. `how` is copied; listen, out and json are set here. */
void t_site_start(struct t_site *s, const struct site_serve *how);
void t_site_stop(struct t_site *s);
/* Options of a small site without faults. */
struct site_serve t_site_small(void);

#endif
