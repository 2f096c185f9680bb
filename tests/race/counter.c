/*
 * counter.c: many wrappers, one key, a counter that is not atomic: it is exact, and fences grow in
 * the order of entry. Without the key the same counter loses updates; otherwise this would prove
 * nothing.
 */
#include <inttypes.h>
#include <stdio.h>

#include "race/race.h"

#define WRAPPERS 32
#define ROUNDS 3 /* one after the other, of each */

static unsigned
read_counter(const struct race *r)
{
    char    *text = t_file_read(r->file, NULL);
    unsigned n    = (unsigned)strtoul(text, NULL, 10);

    free(text);
    return n;
}

U_TEST(the_counter_is_exact)
{
    struct race    r;
    struct t_proc *procs = calloc(WRAPPERS, sizeof *procs);
    char           loop[4096];
    uint64_t       before = 0;
    unsigned       n      = 0;

    race_init(&r);
    (void)snprintf(
        loop, sizeof loop,
        "for i in 1 2 %d; do '%s' run --wait 60s counter -- '%s' count '%s' '%s' || exit; done",
        ROUNDS, r.bin, r.worker, r.file, r.log);
    for (unsigned i = 0; i < WRAPPERS; i++)
        t_proc_start(&procs[i], (const char *const[]){ "sh", "-c", loop, NULL }, NULL);
    for (unsigned i = 0; i < WRAPPERS; i++) {
        int status = t_proc_exit(&procs[i], 60000);
        if (status != 0)
            T_FAIL("wrapper %u: status %d: %s", i, status, procs[i].text);
        t_proc_release(&procs[i]);
    }
    free(procs);
    T_EQU(read_counter(&r), WRAPPERS * ROUNDS);
    char *log = t_file_read(r.log, NULL);
    for (char *line = log, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        uint64_t fence = strtoull(line, NULL, 10);
        T_LESS(before, fence);
        before = fence;
        n++;
    }
    free(log);
    T_EQU(n, WRAPPERS * ROUNDS);
    race_release(&r);
}

U_TEST(without_the_key_it_is_not)
{
    struct race   r;
    struct t_proc p;

    race_init(&r);
    t_proc_start(&p,
                 (const char *const[]){ r.bin, "race", "32", "--expect", "32", "--", r.worker,
                                        "count", r.file, r.log, NULL },
                 NULL);
    T_EQ(t_proc_exit(&p, 60000), 0);
    t_proc_release(&p);
    print_message("# without a key, 32 increments gave %u\n", read_counter(&r));
    T_LESS(read_counter(&r), 32);
    race_release(&r);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(the_counter_is_exact),
        U_ROW(without_the_key_it_is_not),
    };

    return cmocka_run_group_tests_name("counter", tests, NULL, NULL);
}
