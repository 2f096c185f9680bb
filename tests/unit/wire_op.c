/*
 * wire_op.c: a client of the server must see exactly what a caller of the library sees. Two memory
 * stores play the same random histories: one gets each op directly, the other gets it through JSON
 * and returns its result through JSON.
 */
#include "diff/same.h"
#include "harness/unit.h"
#include "wire/wire.h"

#define N_SEEDS 150
#define N_STEPS 400

static unsigned seen[IL_OP_COUNT][IL_STATUS_COUNT];

struct play {
    struct t_store *s[N_SIDES]; /* the second is behind the wire */
    struct same     same;
    void           *mem;
    char            why[WHY_BYTES];
};

static json_t *
load(const struct il__buf *b)
{
    json_t  *json = NULL;
    il_error err;

    T_TRUE(!b->failed);
    if (il__wire_load_answer(b->data, b->n_bytes, &json, &err) != IL_OK)
        T_FAIL("%s: %s", err.message, b->data);
    return json;
}

/* ---- an op on either side -------------------------------------------------------------------- */

static void
apply(struct t_store *s, il_op *op)
{
    il_error err;

    if (il_apply(t_handle(s), op, 1, &err) != IL_OK)
        T_FAIL("%s", err.message);
}

/* What a client sends is what a caller says; if no client could send it, the store refuses it. */
static bool
send_op(struct play *p, const il_op *in, il_op *out, json_t **ret_json)
{
    AUTO_BUF struct il__buf b = { 0 };
    il_error                err;

    il__buf_init(&b, (size_t)8 << 20);
    il__wire_print_op(&b, in);
    *ret_json   = load(&b);
    bool parsed = il__wire_parse_op(*ret_json, out, &p->mem, &err) == IL_OK;
    out->tenant = in->tenant;
    return parsed;
}

/* What it is told, as the client sees it. */
static void
receive(const il_op *op, il_op *ret)
{
    AUTO_BUF struct il__buf b = { 0 };
    il_error                err;

    *ret     = *op;
    ret->mem = NULL;
    ret->out = (il_op_out){ 0 };
    il__buf_init(&b, (size_t)64 << 20);
    il__wire_print_result(&b, op, WIRE_RAW);
    json_t *json = load(&b);
    if (il__wire_parse_result(json, ret, &err) != IL_OK)
        T_FAIL("%s: %s: %s", il_op_name(op->type), err.message, b.data);
    json_decref(json);

    /* For people: whatever it is, it is JSON. */
    il__buf_clear(&b);
    il__wire_print_result(&b, op, 0);
    json_decref(load(&b));
}

/* The same text for both: what no comparison by meaning would find. */
static void
compare_texts(const il_op *a, const il_op *b)
{
    AUTO_BUF struct il__buf text_a = { 0 };
    AUTO_BUF struct il__buf text_b = { 0 };

    il__buf_init(&text_a, (size_t)64 << 20);
    il__buf_init(&text_b, (size_t)64 << 20);
    il__wire_print_result(&text_a, a, WIRE_RAW);
    il__wire_print_result(&text_b, b, WIRE_RAW);
    T_STREQ(il__buf_str(&text_b), il__buf_str(&text_a));
}

static void
apply_both(struct play *p, const il_op ops[N_SIDES])
{
    il_op   direct = ops[0];
    il_op   remote = { 0 };
    il_op   told   = { 0 };
    json_t *json   = NULL;

    apply(p->s[0], &direct);
    if (send_op(p, &ops[1], &remote, &json)) {
        apply(p->s[1], &remote);
        receive(&remote, &told);
        if (!same_result(&p->same, &direct, &told))
            T_FAIL("%s: %s", il_op_name(direct.type), p->why);
        compare_texts(&remote, &told);
        seen[direct.type][direct.status]++;
    } else {
        T_EQ(direct.status, IL_INVAL);
    }
    il_op_release(&direct);
    il_op_release(&remote);
    il_op_release(&told);
    json_decref(json);
    il__arena_clear(&p->mem);
}

/* ---- histories ------------------------------------------------------------------------------- */

/* The op names what its fence belongs to. */
static void
take_names(il_op *op, const struct known *k)
{
    if (k->tenant != NULL)
        op->tenant = k->tenant;
    if (k->key != NULL && il__op_family(op->type) != IL__FAMILY_QUEUE)
        op->key = k->key;
    if (k->holder != NULL)
        op->holder = k->holder;
    if (k->id != NULL && il__op_family(op->type) == IL__FAMILY_RUN)
        op->in.run.id = k->id;
    if (k->id != NULL && il__op_family(op->type) == IL__FAMILY_QUEUE)
        op->in.job.id = k->id;
}

static void
play_op(struct play *p, const struct step *st)
{
    il_op               ops[N_SIDES] = { st->op, st->op };
    const struct known *k =
        st->takes_fence ? same_known(&p->same, il__op_family(st->op.type), st->i_known) : NULL;

    for (size_t i = 0; i < N_SIDES; i++) {
        if (st->takes_fence)
            ops[i].fence = k != NULL ? k->real[i] : 1;
        if (k != NULL && st->own_names)
            take_names(&ops[i], k);
        if (st->kind == STEP_SWEEP)
            ops[i] = (il_op){ .type = IL_OP_SWEEP, .in.list = { .limit = st->limit } };
        if (ops[i].type == IL_OP_RUN_START) /* these do not go over the wire */
            ops[i].in.run.minute_max = ops[i].in.run.hour_max = 0;
    }
    apply_both(p, ops);
}

static void
play_step(struct play *p, const struct step *st)
{
    p->same.now_ms  = t_clock_boot(&p->s[0]->clock);
    p->same.wall_ms = t_clock_wall(&p->s[0]->clock);
    switch (st->kind) {
    case STEP_OP:
    case STEP_LIST:
    case STEP_SWEEP:
        play_op(p, st);
        break;
    case STEP_WALL:
        for (size_t i = 0; i < N_SIDES; i++)
            t_clock_set_wall(&p->s[i]->clock, st->ms);
        break;
    default:
        for (size_t i = 0; i < N_SIDES; i++)
            t_pass(p->s[i], st->ms > 0 ? st->ms : 100);
    }
}

static void
play(uint64_t seed)
{
    static const char *const ranks[] = { "a", "b", "c" };
    struct step             *steps   = il__calloc(N_STEPS, sizeof *steps);
    struct play             *p       = il__calloc(1, sizeof *p);

    T_TRUE(steps != NULL && p != NULL);
    p->same.why = p->why;
    for (size_t i = 0; i < N_SIDES; i++) {
        p->s[i] = t_store_new(t_engine_find("memory"));
        if (history_ranked(seed))
            t_store_set_ranks(p->s[i], ranks, ARRAY_LEN(ranks));
    }
    history_make(seed, steps, N_STEPS);
    for (size_t i = 0; i < N_STEPS; i++)
        play_step(p, &steps[i]);
    for (size_t i = 0; i < N_SIDES; i++)
        t_store_free(p->s[i]);
    il__arena_free(&p->mem);
    il__free(p);
    il__free(steps);
}

U_TEST(histories_through_the_wire)
{
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++)
        play(seed);
}

/* The histories got somewhere: every type was applied, and nearly every status was told. */
U_TEST(nothing_was_left_out)
{
    unsigned n_types    = 0;
    unsigned n_statuses = 0;

    for (unsigned type = IL_OP_NONE + 1; type < IL_OP_COUNT; type++) {
        unsigned n = 0;
        for (unsigned st = 0; st < IL_STATUS_COUNT; st++)
            n += seen[type][st];
        if (n == 0)
            (void)printf("# never: %s\n", il_op_name((il_op_type)type));
        n_types += n > 0;
    }
    for (unsigned st = 0; st < IL_STATUS_COUNT; st++) {
        unsigned n = 0;
        for (unsigned type = IL_OP_NONE + 1; type < IL_OP_COUNT; type++)
            n += seen[type][st];
        if (n == 0)
            (void)printf("# never: %s\n", il_status_name((il_status)st));
        n_statuses += n > 0;
    }
    T_EQU(n_types, IL_OP_COUNT - 1);
    T_TRUE(n_statuses >= 20);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(histories_through_the_wire),
        U_ROW(nothing_was_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
