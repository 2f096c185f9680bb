/*
 * redis.h: redis-server as a child, and direct commands to it.
 *
 * IL_TEST_REDIS, the path of a Unix socket, names a running server; without it each test program
 * that needs one starts its own, which has no persistence and exits with the program.
 */
#ifndef T_REDIS_H
#define T_REDIS_H

#include "harness/proc.h"
#include "harness/tmp.h"

#define T_REDIS_REPLY_BYTES 65536

struct t_redis {
    struct t_proc proc;
    char          dir[T_PATH_BYTES];
    char          socket[T_PATH_BYTES];
    int           port; /* 0 = none */
};

/* Make a folder for it, on a real disk when it is to survive a crash, and choose a free port if it
 * is to have one. */
void t_redis_init(struct t_redis *r, bool on_disk, bool has_port);
/* Start it there with more arguments (NULL-terminated, or NULL) and wait until it answers. Again
 * after a kill. */
void t_redis_start(struct t_redis *r, const char *const args[]);
void t_redis_kill(struct t_redis *r); /* as a crash does */
void t_redis_release(struct t_redis *r);

/* Say one command of words to the server at `socket`; the reply as text (arrays: a line each).
 * Returns `out`. */
const char *t_redis_ask(const char *socket, char out[T_REDIS_REPLY_BYTES],
                        const char *const words[]);
#define T_REDIS(r, out, ...) \
    t_redis_ask((r)->socket, (out), (const char *const[]){ __VA_ARGS__, NULL })

/* Make it a replica of another one, which has a port, and wait until it follows. */
void t_redis_follow(struct t_redis *r, const struct t_redis *master);

/* A port that nobody uses now. */
int t_free_port(void);

#endif
