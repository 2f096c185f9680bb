/*
 * once.h: idempotency keys from the inside; the rules are in once.md.
 *
 * An engine loads what it has stored for a key, asks here what an op makes of it, and stores what it is told to. So every
 * engine gives the same answers.
 */
#ifndef IL_CORE_ONCE_H
#define IL_CORE_ONCE_H

#include "base/base.h"

/* What people read. */
#define IL__SAY_OTHER_REQUEST "the key was used for another request"
#define IL__SAY_OTHER_ANSWER "another answer was stored"
#define IL__SAY_NOT_THE_CLAIM "the claim ran out, or the key is not this attempt's"

/* What is stored for a key. Names and bytes are the engine's. */
struct il__once {
    const char *attempt; /* that has the claim, or gave the answer */
    uint64_t    token;
    const void *fingerprint;
    size_t      fingerprint_bytes;
    bool        done;       /* answered; else the claim is RUNNING, alive or dead */
    int64_t     expires_ms; /* of the claim, in lease time */
    int64_t     keep_ms;
    int64_t     purge_ms;   /* gone from then on: RUNNING in lease time, DONE on the wall clock */
    int64_t     created_at; /* wall clock */
    const char *meta;       /* never NULL */
    const char *before; /* meta of the attempt that was taken over from; NULL = there was none */
    int32_t     code;
    const void *response; /* DONE; an engine may leave it out until it is asked for */
    size_t      response_bytes;
};

/* Check the inputs of an op of this family and fill in defaults; tenant is checked. Names that were checked with il__op_name() have their
 * lengths noted. IL_INVAL names the input and the reason. */
il_status il__once_check(il_op *op, il_error *reterr) MUST_USE;

/* Is it as if there were no entry? */
bool il__once_gone(const struct il__once *e, int64_t now_ms, int64_t wall_ms);

enum il__once_step {
    IL__ONCE_ANSWERED, /* status and outputs are complete, but for the value of a REPLAY */
    IL__ONCE_CLAIM,    /* store a new claim; out.fence will be its token */
    IL__ONCE_TAKE,     /* the same in the place of the dead one, whose created_at stays */
    IL__ONCE_RENEW,    /* move expires_ms and purge_ms of the claim, keep its token */
};

/*
 * ONCE_BEGIN and ONCE_GET. `e` is NULL when nothing is stored, and need not have its response. The status may be
 * IL_NOMEM, with IL__ONCE_ANSWERED: then nothing must be changed.
 */
enum il__once_step il__once_begin(il_op *op, const struct il__once *e, int64_t now_ms, int64_t wall_ms);
/* When a claim that is made or renewed now would be gone. */
int64_t il__once_claim_purge_ms(const il_op *op, int64_t now_ms);
/* The meta that a claim by takeover has: its own, else that of the dead one. */
const char *il__once_meta(const il_op *op, const struct il__once *taken);

/* ONCE_FINISH. True: store the answer, to be kept for e->keep_ms from now, and wake. `e` has its response if it is DONE with the op's token. */
bool il__once_finish(il_op *op, const struct il__once *e, int64_t now_ms, int64_t wall_ms);
/* ONCE_ABANDON. True: delete the entry, and wake. */
bool il__once_abandon(il_op *op, const struct il__once *e, int64_t now_ms, int64_t wall_ms);

#endif
