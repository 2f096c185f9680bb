/*
 * server.h: engines with a server: where a test's store is, and how it is removed.
 */
#ifndef T_SERVER_H
#define T_SERVER_H

#include "harness/tmp.h"

struct t_server {
    /* The URLs of two new, empty stores: on the test clock and on the machine's. Starts the server
     * if need be. */
    void (*make)(char url[T_PATH_BYTES], char real_url[T_PATH_BYTES]);
    /* The URL of a third one, on the machine's clock, that does not exist until it is opened. NULL:
     * the second does not. */
    void (*absent)(const char *url, char ret[T_PATH_BYTES]);
    /* Wake the word (settle, settle, settle) of every handle, behind what has been sent to them so
     * far. NULL: t_settle() can do it by itself. */
    void (*settle)(const char *url);
    /* Forget them. */
    void (*forget)(const char *url, const char *real_url);
};

extern const struct t_server t_server_postgres; /* postgres.c */
/* postgres.c, behind PgBouncer in transaction mode */
extern const struct t_server t_server_bouncer;
extern const struct t_server t_server_redis; /* redis.c */

#endif
