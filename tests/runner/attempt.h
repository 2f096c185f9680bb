/*
 * attempt.h: an attempt of a step without a runner: the test does the work of step.c.
 */
#ifndef T_ATTEMPT_H
#define T_ATTEMPT_H

#include <pthread.h>
#include <stdatomic.h>

#include "apps/runner/step.h"
#include "base/buf.h"
#include "guard/ground.h"
#include "harness/event.h"

struct t_attempt {
    struct runner_attempt  pub;
    struct pipeline_step   step;
    struct pipeline_values values;
    struct il__connection  connection;
    struct runner_result   result;
    struct il__buf         out;
    pthread_mutex_t        mutex;
    atomic_bool            stop;
    void (*stop_fn)(void *);
    void          *stop_cookie;
    pthread_t      thread;
    struct t_event done;
    struct t_event written; /* once per piece of output */
    void (*run)(struct runner_attempt *, struct runner_result *);
};

void t_attempt_init(struct t_attempt *t);
void t_attempt_release(struct t_attempt *t);
void t_attempt_value(struct t_attempt *t, const char *name, const char *value);
/* Run it here; what was written before is forgotten. */
enum runner_outcome t_attempt_run(struct t_attempt *t,
                                  void (*run)(struct runner_attempt *, struct runner_result *));
/* Run it on a thread; stop it; wait for it. */
void t_attempt_start(struct t_attempt *t,
                     void (*run)(struct runner_attempt *, struct runner_result *));
void t_attempt_stop(struct t_attempt *t);
void t_attempt_end(struct t_attempt *t);
#define T_OUT(t) il__buf_str(&(t)->out)

#endif
