/*
 * once.h: internals of idempotency keys; the rules are in once.md.
 *
 * An engine loads the entry stored for a key, calls these functions to decide what the op does with
 * it, and stores the outcome. So every engine gives the same answers.
 */
#ifndef IL_CORE_ONCE_H
#define IL_CORE_ONCE_H

#include "base/base.h"

/* What people read. */
#define IL__SAY_OTHER_REQUEST "the key was used for another request"
#define IL__SAY_OTHER_ANSWER "another response was already stored"
#define IL__SAY_NOT_THE_CLAIM "the claim has expired, or the key belongs to another attempt"

/* Whether a key is claimed or answered. Stored by engines with tables: the numbers never change. */
enum il__once_state {
    IL__ONCE_RUNNING = 1,
    IL__ONCE_DONE    = 2,
};

/* The entry stored for a key. Names and bytes belong to the engine. */
struct il__once {
    const char *attempt; /* that has the claim, or gave the answer */
    uint64_t    token;
    const void *fingerprint;
    size_t      fingerprint_bytes;
    bool        done;       /* answered; else the claim is RUNNING, alive or dead */
    int64_t     expires_ms; /* of the claim, in lease time */
    int64_t     keep_ms;
    int64_t     purge_ms;   /* purged then: RUNNING in lease time, DONE on the wall clock */
    int64_t     created_at; /* wall clock */
    const char *meta;       /* never NULL */
    const char *before;     /* meta of the attempt it was taken over from; NULL = none */
    int32_t     code;
    const void *response; /* if DONE; an engine may leave it out until needed */
    size_t      response_bytes;
};

/* Check the inputs of an op of this family and fill in defaults; tenant is checked. Lengths of
 * names checked with il__op_name() are recorded. IL_INVAL names the input and the reason. */
il_status il__once_check(il_op *op, il_error *reterr) MUST_USE;

enum il__once_step {
    IL__ONCE_ANSWERED, /* status and outputs are complete, except the value of a REPLAY */
    IL__ONCE_CLAIM,    /* store a new claim; out.fence will be its token */
    IL__ONCE_TAKE,     /* the same, replacing the dead one but keeping its created_at */
    IL__ONCE_RENEW,    /* move expires_ms and purge_ms of the claim, keep its token */
};

/*
 * ONCE_BEGIN and ONCE_GET. `e` is NULL when nothing is stored, and need not contain its response.
 * The status may be IL_NOMEM, with IL__ONCE_ANSWERED: then change nothing.
 */
enum il__once_step il__once_begin(il_op *op, const struct il__once *e, int64_t now_ms,
                                  int64_t wall_ms);
/* When a claim that is created or renewed now would be deleted. */
int64_t il__once_claim_purge_ms(const il_op *op, int64_t now_ms);
/* The meta of a claim by takeover: its own, else that of the dead claim. */
const char *il__once_meta(const il_op *op, const struct il__once *taken);

/* ONCE_FINISH. True: store the answer, keep it for e->keep_ms from now, and wake waiters. `e` has
 * its response if it is DONE with the op's token. */
bool il__once_finish(il_op *op, const struct il__once *e, int64_t now_ms, int64_t wall_ms);
/* ONCE_ABANDON. True: delete the entry and wake waiters. */
bool il__once_abandon(il_op *op, const struct il__once *e, int64_t now_ms, int64_t wall_ms);

#endif
