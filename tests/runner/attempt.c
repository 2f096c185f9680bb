/*
 * attempt.c: see attempt.h.
 */
#include "runner/attempt.h"

static struct t_attempt *
from(const struct runner_attempt *a)
{
    return a->own;
}

void
t_attempt_init(struct t_attempt *t)
{
    *t                   = (struct t_attempt){ .result = { .exit_code = -1 } };
    t->step.id           = "s";
    t->step.connection   = "db";
    t->connection.name   = "db";
    t->pub.step          = &t->step;
    t->pub.values        = &t->values;
    t->pub.run_id        = "run-1";
    t->pub.key           = G_KEY;
    t->pub.timeout_ms    = G_LIMIT_MS;
    t->pub.connections   = &t->connection;
    t->pub.n_connections = 1;
    t->pub.own           = t;
    il__buf_init(&t->out, (size_t)16 << 20);
    T_EQ(pthread_mutex_init(&t->mutex, NULL), 0);
    t_event_init(&t->done);
    t_event_init(&t->written);
}

void
t_attempt_release(struct t_attempt *t)
{
    il__free(t->result.details);
    il__buf_release(&t->out);
    T_TRUE(t->stop_fn == NULL);
    T_EQ(pthread_mutex_destroy(&t->mutex), 0);
    t_event_release(&t->done);
    t_event_release(&t->written);
}

void
t_attempt_value(struct t_attempt *t, const char *name, const char *value)
{
    t->values.items[t->values.n].name  = name;
    t->values.items[t->values.n].value = value;
    t->values.n++;
}

enum runner_outcome
t_attempt_run(struct t_attempt *t, void (*run)(struct runner_attempt *, struct runner_result *))
{
    il__buf_clear(&t->out);
    il__free(t->result.details);
    run(&t->pub, &t->result);
    return t->result.outcome;
}

static void *
run_main(void *arg)
{
    struct t_attempt *t = arg;

    t->run(&t->pub, &t->result);
    t_event_add(&t->done);
    return NULL;
}

void
t_attempt_start(struct t_attempt *t, void (*run)(struct runner_attempt *, struct runner_result *))
{
    t->run = run;
    T_EQ(pthread_create(&t->thread, NULL, run_main, t), 0);
}

void
t_attempt_stop(struct t_attempt *t)
{
    (void)pthread_mutex_lock(&t->mutex);
    atomic_store(&t->stop, true);
    if (t->stop_fn != NULL)
        t->stop_fn(t->stop_cookie);
    (void)pthread_mutex_unlock(&t->mutex);
}

void
t_attempt_end(struct t_attempt *t)
{
    T_WAIT(&t->done, 1, G_LIMIT_MS);
    T_EQ(pthread_join(t->thread, NULL), 0);
}

/* ---- what step.c does ------------------------------------------------------------------------ */

void
runner_attempt_output(struct runner_attempt *a, int stream UNUSED, const void *data, size_t n_bytes)
{
    struct t_attempt *t = from(a);

    (void)pthread_mutex_lock(&t->mutex);
    il__buf_add(&t->out, data, n_bytes);
    (void)pthread_mutex_unlock(&t->mutex);
    t_event_add(&t->written);
}

bool
runner_attempt_should_stop(const struct runner_attempt *a)
{
    return atomic_load(&from(a)->stop);
}

void
runner_attempt_on_stop(struct runner_attempt *a, void (*fn)(void *), void *cookie)
{
    struct t_attempt *t = from(a);

    (void)pthread_mutex_lock(&t->mutex);
    t->stop_fn     = fn;
    t->stop_cookie = cookie;
    if (fn != NULL && atomic_load(&t->stop))
        fn(cookie);
    (void)pthread_mutex_unlock(&t->mutex);
}
