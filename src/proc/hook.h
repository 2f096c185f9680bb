/*
 * hook.h: runs a command of the user's when a piece of work has ended: on_success, on_failure,
 * on_lost.
 *
 * The command is started directly, without a shell, under a reaper of its own (proc.h): it never
 * lives longer than IL__HOOK_LIMIT_MS, nor than its caller, and neither does anything it starts. It
 * gets the facts about the work as variables INTERLOCK_NAME and as one JSON object on its standard
 * input; other variables INTERLOCK_* of ours, which may hold keys and passwords, are left out. What
 * it prints goes to our standard error.
 *
 * A hook is called when the work is over and everything it held has been released, so it delays
 * nobody else.
 */
#ifndef IL_PROC_HOOK_H
#define IL_PROC_HOOK_H

#include "base/base.h"

#define IL__HOOK_LIMIT_MS 10000
#define IL__HOOK_FACTS_MAX 24
#define IL__HOOK_WHY_BYTES 160

/* In the order of their variables and members; both have the name, in capitals after INTERLOCK_
 * and as it is. Texts are borrowed. */
struct il__hook_facts {
    size_t n;
    struct {
        const char *name;
        const char *text; /* NULL = a number */
        int64_t     number;
    } row[IL__HOOK_FACTS_MAX];
};

/* A text that is NULL or empty is null in JSON, and its variable is empty. */
void il__hook_text(struct il__hook_facts *f, const char *name, const char *text);
void il__hook_number(struct il__hook_facts *f, const char *name, int64_t number);

struct il__hook {
    char *const                 *argv;
    const struct il__hook_facts *facts;
    /* For a server: of our environment only PATH, HOME and the like are passed on, and what it
     * prints is discarded. */
    bool served;
    int  stop_fd;                      /* readable: ask should_stop(); -1 = none */
    bool (*should_stop)(void *cookie); /* NULL = stop */
    void *cookie;
};

/* Run it, and wait for its end. True if its exit status is 0; otherwise `why` says what went wrong:
 * "exit status 3". Any thread; blocks up to IL__HOOK_LIMIT_MS, and a moment more. */
bool il__hook_run(const struct il__hook *h, char why[IL__HOOK_WHY_BYTES]) MUST_USE;

#endif
