/*
 * cmd_demo.h: what the files of `interlock demo` share.
 *
 *   cmd_demo.c         the command: two processes that watch each other, messages
 *   cmd_demo_folder.c  the temporary folder: configuration, sample files, the API key
 *   cmd_demo_parts.c   the processes of the demo: a server, a site, a worker, holders of a key
 *   cmd_demo_load.c    a thread that loads sample data, and then gives the server a little to do
 */
#ifndef IL_APPS_DEMO_CMD_DEMO_H
#define IL_APPS_DEMO_CMD_DEMO_H

#include <pthread.h>
#include <stdatomic.h>

#include "apps/demo/demo.h"
#include "cli/cli.h"
#include "proc/proc.h"

#define DEMO_PORT 7600
#define DEMO_PATH_BYTES 512

/* The processes, in the order in which they are started. */
enum demo_part_id {
    DEMO_SERVER,
    DEMO_SITE,
    DEMO_SEED, /* ends by itself; the others are started again */
    DEMO_WORKER_PART,
    DEMO_HOLDER_1_PART,
    DEMO_HOLDER_2_PART,
    DEMO_PARTS,
};

struct demo_part {
    struct proc_child child;
    bool              runs;
    int64_t           start_ns; /* when it was started, or is to be started again; 0 = not */
};

struct demo_load {
    pthread_t   thread;
    bool        started;
    atomic_bool stop;
    atomic_bool ready; /* the sample data is loaded */
};

struct demo {
    char                 dir[256];
    char                 self[DEMO_PATH_BYTES]; /* this binary */
    unsigned             port, site_port;
    char                 secret[DATA_KEY_BYTES_MAX], key_id[DATA_ID_BYTES];
    char                 link[DATA_TOKEN_BYTES]; /* signs in to the page once, with the key */
    int                  signal_fd;
    struct proc_spawner *spawner;
    struct demo_part     parts[DEMO_PARTS];
    struct demo_load     load;
};

/* ---- cmd_demo_folder.c ----------------------------------------------------------------------- */

il_status demo_folder_make(struct demo *d, il_error *reterr) MUST_USE;
/* The sample files, and a configuration with the ports of the demo. */
il_status demo_folder_fill(const struct demo *d, il_error *reterr) MUST_USE;
/* An API key for everything, and the token of a link that signs in with it. */
il_status demo_key_make(struct demo *d, il_error *reterr) MUST_USE;
void      demo_folder_remove(const struct demo *d);

/* ---- cmd_demo_parts.c ------------------------------------------------------------------------ */

/* Start the server, and wait until it listens. */
il_status demo_server_start(struct demo *d, il_error *reterr) MUST_USE;
il_status demo_part_start(struct demo *d, enum demo_part_id id, il_error *reterr) MUST_USE;
/* Has it ended? Then it is gone when this returns, and *ret says how. */
bool demo_part_ended(struct demo *d, enum demo_part_id id, struct proc_report *ret);
/* The process id of the server, from its file; 0: unknown. */
int  demo_server_pid(const struct demo *d);
void demo_parts_end(struct demo *d);

/* ---- cmd_demo_load.c ------------------------------------------------------------------------- */

il_status demo_load_start(struct demo *d, il_error *reterr) MUST_USE;
void      demo_load_end(struct demo *d);

#endif
