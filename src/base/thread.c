/*
 * thread.c: starting threads; the contract is in thread.h.
 */
#include "base/thread.h"

#include <signal.h>

int
il__thread_start(pthread_t *ret, void *(*fn)(void *), void *cookie)
{
    static const int own[] = { SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
    sigset_t         all, caller;

    CHECK(sigfillset(&all) == 0);
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        CHECK(sigdelset(&all, own[i]) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &caller) == 0);
    int rc = pthread_create(ret, NULL, fn, cookie);
    CHECK(pthread_sigmask(SIG_SETMASK, &caller, NULL) == 0);
    return rc;
}
