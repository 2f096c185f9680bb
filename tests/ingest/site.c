/*
 * site.c (tests): starts the generated site; see site.h.
 */
#include "ingest/site.h"

#include <signal.h>
#include <stdio.h>

#include "harness/check.h"

static int
serve(void *arg)
{
    struct site_serve *how = arg;
    il_error           err = { .message = "" };

    how->listen = "127.0.0.1:0";
    how->out    = stdout;
    if (il__site_serve(how, &err) == IL_OK)
        return 0;
    (void)printf("failed: %s\n", err.message);
    return 1;
}

void
t_site_start(struct t_site *s, const struct site_serve *how)
{
    static const char scheme[] = "http://";
    char              line[T_PROC_LINE_BYTES];

    s->how = *how;
    t_proc_fork(&s->proc, serve, &s->how);
    T_LINE(&s->proc, scheme, T_SITE_MS, line);
    (void)snprintf(s->host, sizeof s->host, "%.99s", line + strlen(scheme));
    t_path(s->base, "%.400s/{slug}", line);
}

void
t_site_stop(struct t_site *s)
{
    t_proc_signal(&s->proc, SIGTERM);
    T_EQ(t_proc_exit(&s->proc, T_SITE_MS), 0);
    t_proc_release(&s->proc);
}

struct site_serve
t_site_small(void)
{
    struct site_serve how = { .site = SITE_OPTIONS_INIT, .fail_how = SITE_FAIL_NOT };

    how.site.n_entries = 8;
    how.site.n_races   = 3;
    how.site.n_laps    = 5;
    return how;
}
