/* reload.c: SIGHUP: reads the configuration again and applies it to the server and its apps. */
#include "base/error.h"
#include "http/audit.h"
#include "http/log.h"
#include "http/server.h"

void
http_reload(struct http_server *s)
{
    const char *restart = NULL;
    il_error    err;
    il_status   st;

    if (s->o->reload == NULL)
        return;
    st = s->o->reload(s->o->reload_cookie, s->o, &restart, &err);
    if (st != IL_OK) {
        http_log(s, HTTP_EVENT_reload_refused, "%s", err.message);
        return;
    }
    http_log_set_level(s, s->o->log_level);
    http_apps_reload(s);
    if (restart != NULL)
        http_log(s, HTTP_EVENT_reloaded, "%s has changed and takes effect after a restart",
                 restart);
    else
        http_log(s, HTTP_EVENT_reloaded, NULL);
    http_audit_self(
        s, &(struct http_action){ .action = "config.reload", .what = "config", .outcome = "OK" });
}
