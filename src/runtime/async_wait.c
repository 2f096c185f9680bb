/*
 * async_wait.c: parked calls, and the watcher: a thread that sleeps until any word of the board
 * changes or the next call is due, and then has those calls repeated.
 *
 * No wake-up is lost. A call is parked under the mutex, and then its word is compared with its
 * value before the op was applied: this catches earlier changes. The watcher catches later ones: if
 * `watches` is set, it has set WATCHED before its last check (base/board.h); if not, it is poked.
 * Since all this happens under one mutex, one of the two always applies.
 *
 * Claims: a change of a queue's word, with a thousand claims parked at it, means that there may be
 * a job, and usually there is just one. So only the first few claims are repeated; each one that
 * gets a job triggers the next few. A claim that finds nothing stops this, since the others would
 * find nothing either; they keep sleeping, and poll from time to time as usual.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "runtime/async_internal.h"

/* the watcher polls: a wake-up may be lost with the process that owed it */
#define LOOK_NS (1000 * (int64_t)IL__NS_PER_MS)
#define IDLE_NS (60 * LOOK_NS)
#define TOGETHER_NS (100 * (int64_t)IL__NS_PER_MS) /* keep-alives are sent together */
#define CLAIMS_FIRST 8 /* repeated when the word of their queue changes */
#define CLAIMS_NEXT 2  /* after each of them that got a job */
#define NAMES_MAX 4    /* queues that share a word and are distinguished */

/* ---- in and out of the tables ---------------------------------------------------------------- */

static void
add(struct il__async *a, struct il__call *call)
{
    uint32_t slot = call->slot;

    call->next = NULL;
    call->prev = a->last[slot];
    if (call->prev != NULL) {
        call->prev->next = call;
    } else {
        a->first[slot] = call;
        a->seen[slot]  = call->seen;
        a->occupied[slot / 64] |= UINT64_C(1) << slot % 64;
    }
    a->last[slot] = call;
    il__heap_add(&a->due, &call->due);
    call->state = CALL_PARKED;
    a->n_parked++;
}

/* Take a call out; it is in no list then. */
static void
take(struct il__async *a, struct il__call *call, int64_t now_ns)
{
    uint32_t slot = call->slot;

    CHECK(call->state == CALL_PARKED);
    if (call->prev != NULL)
        call->prev->next = call->next;
    else
        a->first[slot] = call->next;
    if (call->next != NULL)
        call->next->prev = call->prev;
    else
        a->last[slot] = call->prev;
    if (a->first[slot] == NULL)
        a->occupied[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    call->next = call->prev = NULL;
    il__heap_remove(&a->due, &call->due);
    call->state = CALL_QUEUED;
    call->waited_ns += now_ns - call->parked_ns;
    a->n_parked--;
}

static void
repeat(struct il__async *a, struct il__call *call, uint32_t flags, int64_t now_ns)
{
    take(a, call, now_ns);
    call->flags |= flags;
    a->n_repeats++;
    if ((flags & CALL_WOKEN) != 0)
        a->n_wakes++;
    il__async_enqueue(a, call);
}

/* When it is repeated without a wake-up. */
static int64_t
due_ns(const struct il__async *a, const struct il__call *call, int64_t now_ns)
{
    int64_t most_ms = il__wait_longest_ms(call->ops);
    int64_t poll_ms = il__store_attend(a->h->store);
    int64_t end_ns  = call->own_until_ns != 0 ? MIN(call->own_until_ns, call->wait_until_ns)
                                              : call->wait_until_ns;

    if (poll_ms > 0)
        most_ms = MIN(most_ms, poll_ms); /* wake-ups by others do not reach us, or not yet */
    int64_t at_ns = now_ns + most_ms * IL__NS_PER_MS;
    if (most_ms > 1000)
        at_ns -= at_ns % TOGETHER_NS;
    return MIN(at_ns, end_ns);
}

bool
il__call_park(struct il__async *a, struct il__call *call, int64_t now_ns, bool *ret_poke)
{
    const il_op *op = call->ops;

    CHECK(il__mutex_held(&a->mutex));
    call->flags &= ~(uint32_t)(CALL_WOKEN | CALL_OBLIGED);
    call->slot      = op->wake[0];
    call->seen      = op->wake[1];
    call->parked_ns = now_ns;
    call->due.at    = due_ns(a, call, now_ns);
    if (op->type == IL_OP_JOB_CLAIM && call->shown == 0)
        call->shown =
            il__hash_mix(il__hash_bytes(op->key, strlen(op->key)),
                         op->tenant != NULL ? il__hash_bytes(op->tenant, strlen(op->tenant)) : 0);
    add(a, call);
    if (il__board_read(a->h->store->board, call->slot) != call->seen) {
        take(a, call, now_ns);
        call->flags |= CALL_WOKEN | (op->type == IL_OP_JOB_CLAIM ? CALL_OBLIGED : 0);
        a->n_wakes++;
        return false;
    }
    if (!a->poked && (!a->watches || call->due.at < a->wakes_ns))
        *ret_poke = a->poked = true;
    return true;
}

/* ---- claims ---------------------------------------------------------------------------------- */

struct claim_name {
    uint64_t hash;
    unsigned n;
};

/* May one more claim of this queue be repeated? */
static bool
may_look(struct claim_name names[NAMES_MAX], uint64_t hash)
{
    for (unsigned i = 0; i < NAMES_MAX; i++) {
        if (names[i].n == 0)
            names[i].hash = hash;
        if (names[i].hash == hash)
            return names[i].n++ < CLAIMS_FIRST;
    }
    return true; /* too many names to distinguish */
}

void
il__call_pass_on(struct il__async *a, const struct il__call *call, struct call_list *ready)
{
    unsigned n = CLAIMS_NEXT;

    if ((call->flags & CALL_OBLIGED) == 0 ||
        (call->status == IL_OK && call->ops->status == IL_EMPTY))
        return;
    int64_t  now_ns = il__clock_boot_ns();
    uint32_t word   = il__board_read(a->h->store->board, call->slot);
    for (struct il__call *c = a->first[call->slot], *next; c != NULL && n > 0; c = next) {
        next = c->next;
        if (c->ops->type != IL_OP_JOB_CLAIM || c->shown != call->shown || c->seen == word)
            continue;
        take(a, c, now_ns);
        c->flags |= CALL_WOKEN | CALL_OBLIGED;
        a->n_wakes++;
        il__calls_add(ready, c);
        n--;
    }
}

/* ---- the watcher ----------------------------------------------------------------------------- */

static void
wake_slot(struct il__async *a, uint32_t slot, uint32_t word, int64_t now_ns)
{
    struct claim_name names[NAMES_MAX] = { 0 };

    a->seen[slot] = word;
    for (struct il__call *call = a->first[slot], *next; call != NULL; call = next) {
        next = call->next;
        if (call->seen == word)
            continue;
        if (call->ops->type != IL_OP_JOB_CLAIM)
            repeat(a, call, CALL_WOKEN, now_ns);
        else if (may_look(names, call->shown))
            repeat(a, call, CALL_WOKEN | CALL_OBLIGED, now_ns);
    }
}

static void
look_at_words(struct il__async *a, int64_t now_ns)
{
    const struct il__board *b = a->h->store->board;

    for (uint32_t i = 0; a->n_parked > 0 && i < ARRAY_LEN(a->occupied); i++) {
        for (uint64_t bits = a->occupied[i]; bits != 0; bits &= bits - 1) {
            uint32_t slot = i * 64 + (uint32_t)__builtin_ctzll(bits);
            uint32_t word = il__board_read(b, slot);
            if (word != a->seen[slot])
                wake_slot(a, slot, word, now_ns);
        }
    }
}

static void
look_at_due(struct il__async *a, int64_t now_ns)
{
    while (il__heap_due(&a->due, now_ns))
        repeat(a, container_of(a->due.first, struct il__call, due), 0, now_ns);
}

/* What the watcher does itself, after checking everything. The mutex is held, but released
 * meanwhile. */
static void
do_own_part(struct il__async *a)
{
    struct call_list ended  = a->ended;
    struct call_list handed = a->handed;

    a->ended  = (struct call_list){ 0 };
    a->handed = (struct call_list){ 0 };
    il__mutex_unlock(&a->mutex);
    il__async_tell(&ended);
    if (handed.head != NULL)
        il__async_apply_here(a, &handed);
    il__mutex_lock(&a->mutex);
}

void *
il__async_watch(void *arg)
{
    struct il__async *a = arg;
    struct il__board *b = a->h->store->board;

    il__mutex_lock(&a->mutex);
    for (;;) {
        uint32_t any;
        /* Calls are added under the mutex and followed by a poke: either they are seen here, or the
         * sleep does not begin. */
        a->poked       = false;
        a->watches     = a->n_parked > 0 || a->hear != NULL;
        any            = a->watches ? il__board_watch(b) : il__board_read(b, IL__BOARD_ANY);
        int64_t now_ns = il__clock_boot_ns();
        look_at_words(a, now_ns);
        look_at_due(a, now_ns);
        if (a->ended.head != NULL || a->handed.head != NULL) {
            do_own_part(a);
            continue;
        }
        if (a->stopping)
            break;
        a->wakes_ns = now_ns + (a->n_parked > 0 ? LOOK_NS : IDLE_NS);
        if (a->due.first != NULL)
            a->wakes_ns = MIN(a->wakes_ns, a->due.first->at);
        int64_t          wakes_ns = a->wakes_ns;
        il__announce_fn *hear     = a->hear;
        il__mutex_unlock(&a->mutex);
        if (hear != NULL && il__async_hear(a, hear))
            wakes_ns = MIN(wakes_ns, now_ns + LOOK_NS);
        (void)il__board_sleep(b, IL__BOARD_ANY, any, MAX(wakes_ns - il__clock_boot_ns(), 0));
        il__mutex_lock(&a->mutex);
    }
    il__mutex_unlock(&a->mutex);
    return NULL;
}

/* ---- ending waits ---------------------------------------------------------------------------- */

void
il__async_cancel(struct il__async *a, struct il__call *call)
{
    bool poke = false;

    il__mutex_lock(&a->mutex);
    if (call->state == CALL_QUEUED || call->state == CALL_PARKED)
        atomic_store(&call->cancel, true);
    if (call->state == CALL_PARKED) {
        take(a, call, il__clock_boot_ns());
        if (il__call_give_up(call) == NEXT_DONE)
            il__async_end(a, call);
        else
            il__async_enqueue(a, call);
        poke = true;
    }
    il__mutex_unlock(&a->mutex);
    if (poke)
        il__board_poke(a->h->store->board);
}

void
il__async_hurry(struct il__async *a)
{
    int64_t now_ns = il__clock_boot_ns();

    il__mutex_lock(&a->mutex);
    atomic_store(&a->hurried, true);
    while (a->due.first != NULL) {
        struct il__call *call = container_of(a->due.first, struct il__call, due);
        if (!a->closing) {
            repeat(a, call, 0, now_ns);
            continue;
        }
        take(a, call, now_ns);
        atomic_store(&call->cancel, true);
        if (il__call_give_up(call) == NEXT_DONE)
            il__async_end(a, call);
        else
            il__async_enqueue(a, call);
    }
    il__mutex_unlock(&a->mutex);
    il__board_poke(a->h->store->board);
}
