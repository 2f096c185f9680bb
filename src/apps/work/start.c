/*
 * start.c: the op of a trigger: RUN_START with IL_RUN_SLOT. In one commit the store decides whether
 * there is a new run, which one exists already, and whether the tenant may have one more. The op
 * executes nothing: see dispatch.c.
 */
#include <stdio.h>

#include "apps/work/work.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "core/limits.h"

/* What the run's row says about its trigger; execute.c reads it. */
static il_status
make_meta(const struct work_start *s, void **mem, const char **ret, il_error *reterr)
{
    json_t   *meta = json_pack("{s:s, s:s, s:O?}", s->class, s->name, "version",
                             s->version != NULL ? s->version : "", "parameters", s->parameters);
    il_status st   = IL_OK;

    if (meta != NULL && s->parameters == NULL &&
        json_object_set_new(meta, "parameters", json_object()) != 0) {
        json_decref(meta);
        meta = NULL;
    }
    char *text = meta != NULL ? json_dumps(meta, JSON_COMPACT) : NULL;
    json_decref(meta);
    if (text == NULL)
        st = il__error_set(reterr, IL_NOMEM, "out of memory for the parameters");
    else if (strlen(text) > IL_META_BYTES_MAX)
        st = il__error_set(reterr, IL_LIMIT,
                           "%s '%s': the parameters take %zu bytes as JSON, more than %d", s->class,
                           s->name, strlen(text), IL_META_BYTES_MAX);
    else if ((*ret = il__arena_strdup(mem, text)) == NULL)
        st = il__error_set(reterr, IL_NOMEM, "out of memory for the parameters");
    free(text);
    return st;
}

/* Copy the strings of the op that belong to the caller: the op may outlive them. */
static bool
copy_names(const struct work_start *s, void **mem, il_op *op)
{
    size_t n_key = strlen(s->class) + 1 + strlen(s->name) + 1;
    char  *key   = il__arena_alloc(mem, n_key);

    if (key != NULL)
        (void)snprintf(key, n_key, "%s:%s", s->class, s->name);
    op->key            = key;
    op->tenant         = il__arena_strdup(mem, s->tenant);
    op->in.run.id      = il__arena_strdup(mem, s->id);
    op->in.run.trigger = il__arena_strdup(mem, s->type);
    op->in.run.by      = il__arena_strdup(mem, s->by != NULL ? s->by : "");
    return op->tenant != NULL && op->key != NULL && op->in.run.id != NULL &&
           op->in.run.trigger != NULL && op->in.run.by != NULL;
}

/* A run that counts towards the daily limit is kept until the day is over, even if runs are kept
 * for less. */
static int64_t
keep_ms(const struct work_start *s)
{
    if (s->day_max == 0 || s->keep_ms == 0)
        return s->keep_ms;
    return MAX(s->keep_ms, IL__DAY_MS - il__clock_wall_ms() % IL__DAY_MS + WORK_CLOCKS_MS);
}

il_status
work_start_op(const struct work_start *s, void **mem, il_op *op, il_error *reterr)
{
    const char *meta = NULL;

    if (s->parameters != NULL && !json_is_object(s->parameters))
        return il__error_set(reterr, IL_INVAL, "%s '%s': the parameters must be an object",
                             s->class, s->name);
    il_status st = make_meta(s, mem, &meta, reterr);
    if (st != IL_OK)
        return st;
    *op = (il_op){ .type = IL_OP_RUN_START, .flags = IL_RUN_SLOT };
    if (!copy_names(s, mem, op))
        return il__error_set(reterr, IL_NOMEM, "out of memory for a trigger");
    op->in.run.policy     = s->policy;
    op->in.run.queue_max  = s->queue_max;
    op->in.run.keep_ms    = keep_ms(s);
    op->in.run.meta       = meta;
    op->in.run.live_max   = s->live_max;
    op->in.run.day_max    = s->day_max;
    op->in.run.minute_max = s->minute_max;
    op->in.run.hour_max   = s->hour_max;
    return IL_OK;
}
