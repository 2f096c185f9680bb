/*
 * demo.h: what the two halves of the demo agree on: the command (cmd_demo.c and others), which sets
 * up a folder and starts this binary several times, and the app in the server that it starts, whose
 * routes are the buttons of the page.
 *
 *   app.c          the app
 *   routes.c       the buttons
 *   trigger_ten.c  ten triggers of one pipeline at the same time
 *   cmd_demo*.c    the command; see cmd_demo.h
 *
 * The key `demo.folder` of the configuration is the folder. Without it, which is everywhere but in
 * `interlock demo`, a server does not have the app. In the folder, NAME.pid is the process id of
 * each process of the demo, written again whenever it is restarted.
 */
#ifndef IL_APPS_DEMO_DEMO_H
#define IL_APPS_DEMO_DEMO_H

#include "http/app.h"

#define DEMO_TENANT "acme"
#define DEMO_PIPELINE "slow" /* is triggered ten times */
#define DEMO_QUEUE "mails"   /* of the worker that is killed */
#define DEMO_WORKER "worker"
#define DEMO_AT_WORK "at-work" /* file: id of the newest job of the button at which it has begun */
#define DEMO_KEY "export:customers" /* of the holders, which take turns */
#define DEMO_HOLDER_1 "holder-1"
#define DEMO_HOLDER_2 "holder-2"
#define DEMO_EXPORT_MS 10000 /* how long each of them holds it */
#define DEMO_EXPORT_S "10"
#define DEMO_LEASE_MS 5000
#define DEMO_LEASE "5s"

struct demo_app {
    const char *folder, *url; /* of this server */
    void       *mem;
};

#define DEMO_ROUTES 4
extern const struct http_route demo_routes[DEMO_ROUTES];
extern const struct http_app   demo_http_app;

/* ---- ten triggers (trigger_ten.c) ------------------------------------------------------------ */

#define DEMO_TRIGGERS 10

struct demo_ten {
    uint32_t n_started, n_joined;
    char     run[IL_ID_BYTES_MAX + 1]; /* that was started or joined */
};
/* Trigger the pipeline that often over HTTP at the same time, with $INTERLOCK_API_KEY. Blocks. If a
 * trigger fails, so does the call. */
il_status demo_trigger_ten(const char *url, const char *pipeline, struct demo_ten *ret,
                           il_error *reterr) MUST_USE;

#endif
