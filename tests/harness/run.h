/*
 * run.h: one-line helpers for ops on runs.
 */
#ifndef T_RUN_H
#define T_RUN_H

#include "harness/store.h"

struct t_run_args {
    int         unused_;
    const char *tenant;
    uint32_t    flags;
    il_policy   policy;
    uint32_t    queue_max;
    int64_t     ttl_ms;
    int64_t     wait_ms;
    int64_t     settle_ms;
    int64_t     keep_ms;
    const char *trigger;
    const char *by;
    const char *meta;
    const char *place;
    const char *stage;
    int32_t     percent; /* progress, plus 1: 0 = as before */
    const char *error;
    const void *log;
    size_t      log_bytes;
    uint64_t    offset;
    uint32_t    live_max;
    uint32_t    day_max, minute_max, hour_max;
    const char *prefix;
    const char *cursor;
    uint32_t    limit;
    uint32_t    states;
};

#define T_RUN_ARGS(...) ((struct t_run_args){ .unused_ = 0, __VA_ARGS__ })

/* Each applies one op, as those of store.h do. */
#define t_run_start(s, key, holder, id, ...) \
    t_op_run(s, NULL, t_run_op(IL_OP_RUN_START, key, holder, id, 0, T_RUN_ARGS(__VA_ARGS__)))
#define t_run_stage(s, id, holder, fence, ...) \
    t_op_run(s, NULL, t_run_op(IL_OP_RUN_STAGE, NULL, holder, id, fence, T_RUN_ARGS(__VA_ARGS__)))
#define t_run_finish(s, id, holder, fence, state_, ...) \
    t_op_run(                                           \
        s, NULL,                                        \
        t_run_finish_op(                                \
            t_run_op(IL_OP_RUN_FINISH, NULL, holder, id, fence, T_RUN_ARGS(__VA_ARGS__)), state_))
#define t_run_cancel(s, id, reason, ...) \
    t_op_run(                            \
        s, NULL,                         \
        t_run_op(IL_OP_RUN_CANCEL, NULL, NULL, id, 0, T_RUN_ARGS(.error = (reason), __VA_ARGS__)))
#define t_run_get(s, id, ...) \
    t_op_run(s, NULL, t_run_op(IL_OP_RUN_GET, NULL, NULL, id, 0, T_RUN_ARGS(__VA_ARGS__)))
#define t_run_list(s, key, ...) \
    t_op_run(s, NULL, t_run_op(IL_OP_RUN_LIST, key, NULL, NULL, 0, T_RUN_ARGS(__VA_ARGS__)))
#define t_run_log(s, id, offset_) \
    t_op_run(                     \
        s, NULL,                  \
        t_run_log_op(t_run_op(IL_OP_RUN_LOG, NULL, NULL, id, 0, T_RUN_ARGS(.flags = 0)), offset_))

#define T_SLOT .flags = IL_RUN_SLOT
#define T_LOG_AT(at, text, n) .flags = IL_LOG_AT, .offset = (at), .log = (text), .log_bytes = (n)

/* Build an op without applying it. */
il_op t_run_op(il_op_type type, const char *key, const char *holder, const char *id, uint64_t fence,
               struct t_run_args a);
il_op t_run_finish_op(il_op op, il_run_state state);
il_op t_run_log_op(il_op op, uint64_t offset);

/* The op has this status and shows one run, which is in this state; the run. */
#define T_RUN(op, status, state) t_run_is((op), (status), (state), __FILE__, __LINE__)
const il_run_info *t_run_is(const il_op *op, il_status status, il_run_state state, const char *file,
                            int line);

/* The run of this id, which must be in this state. */
#define T_RUN_NOW(s, id, state) T_RUN(t_run_get(s, id), IL_OK, state)

/*
 * What must be true of the runs of a tenant at every commit: those that are RUNNING have exactly
 * one lease, HELD or CLOSING, with their fence and holder, and per key there is at most one.
 */
void t_run_invariants(struct t_store *s, const char *tenant);

#endif
