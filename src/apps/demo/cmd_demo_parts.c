/*
 * cmd_demo_parts.c: the processes of the demo. Each is this binary, under a reaper (src/proc), so
 * that it ends with the demo, however that ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/demo/cmd_demo.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"

#define READY_MS 10000
#define LOOK_MS 20
#define ARGS_MAX 24

/* A shell records the process id and opens the log, then it becomes the process. */
#define BECOME "echo $$ >\"$0.pid\" && exec \"$@\" >>\"$0.log\" 2>&1"
/* It stays the parent of a holder: a reaper does not leave its command stopped (src/proc/reaper.c),
 * but that is what the button `pause-holder` does to the holder. */
#define START "\"$@\" >>\"$0.log\" 2>&1 & echo $! >\"$0.pid\"; wait $!"
extern char **environ;

static const struct {
    const char *name;
    const char *script;
    int64_t     grace_ms;
} rows[DEMO_PARTS] = {
    [DEMO_SERVER]        = { "server", BECOME, 6000 },
    [DEMO_SITE]          = { "site", BECOME, 1000 },
    [DEMO_SEED]          = { "seed", BECOME, 1000 },
    [DEMO_WORKER_PART]   = { DEMO_WORKER, BECOME, 1000 },
    [DEMO_HOLDER_1_PART] = { DEMO_HOLDER_1, START, 2000 },
    [DEMO_HOLDER_2_PART] = { DEMO_HOLDER_2, START, 2000 },
};

/* The worker's command: most jobs take 2 s, some fail, that of the button `kill-worker` takes 8. */
static const char send_mail[] = "read -r mail; case $mail in "
                                "*nobody*) echo 'no such mailbox' >&2; exit 1 ;; "
                                "*'\"seconds\":8'*) echo \"$INTERLOCK_JOB_ID\" >" DEMO_AT_WORK
                                "; sleep 8 ;; *) sleep 2 ;; esac; echo sent";
/* What the holders do under their lease. */
static const char export_customers[] =
    "echo \"exporting with fence $INTERLOCK_FENCE\"; sleep " DEMO_EXPORT_S;

/* ---- starting -------------------------------------------------------------------------------- */

static il_status
start(struct demo *d, enum demo_part_id id, const char *const *args, il_error *reterr)
{
    char              place[DEMO_PATH_BYTES];
    const char       *argv[ARGS_MAX] = { "/bin/sh", "-c", rows[id].script, place, d->self };
    size_t            n              = 5;
    struct demo_part *part           = &d->parts[id];

    (void)snprintf(place, sizeof place, "%s/%s", d->dir, rows[id].name);
    for (; *args != NULL; args++) {
        CHECK(n + 1 < ARGS_MAX);
        argv[n++] = *args;
    }
    struct proc_spec spec = { .argv                  = (char *const *)(uintptr_t)argv,
                              /* not changed */ .env = environ,
                              .cwd                   = d->dir,
                              .grace_ms              = rows[id].grace_ms };
    part->start_ns        = il__clock_boot_ns();
    il_status st          = il__proc_start(d->spawner, &spec, &part->child, reterr);
    part->runs            = st == IL_OK;
    return st;
}

il_status
demo_part_start(struct demo *d, enum demo_part_id id, il_error *reterr)
{
    char config[DEMO_PATH_BYTES], store[DEMO_PATH_BYTES], here[64], url[72], site[64];
    char today[IL__TIME_TEXT_BYTES]; /* for the newest event of the site */

    (void)snprintf(config, sizeof config, "%s/config.yml", d->dir);
    (void)snprintf(store, sizeof store, "sqlite:%s/store.db", d->dir);
    (void)snprintf(here, sizeof here, "127.0.0.1:%u", d->port);
    (void)snprintf(url, sizeof url, "http://%s", here);
    (void)snprintf(site, sizeof site, "127.0.0.1:%u", d->site_port);
    (void)il__time_text(il__clock_wall_ms(), today);
#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
    const char *const *args[DEMO_PARTS] = {
        [DEMO_SERVER] = ARGS("serve", "--config", config, "--listen", here, "--log-format", "text",
                             "--allow-root"),
        [DEMO_SITE] =
            ARGS("demo-site", "--listen", site, "--events", "2", "--entries", "24", "--races", "8",
                 "--laps", "12", "--newest", today, "--change-every", "40"),
        [DEMO_SEED] = ARGS("campus", "seed", "--store", store, "--tenant", DEMO_TENANT, "--quiet"),
        [DEMO_WORKER_PART] =
            ARGS("queue", "work", "--server", url, "--quiet", "--create", "--jobs", "2", "--lease",
                 DEMO_LEASE, DEMO_QUEUE, "--", "sh", "-c", send_mail),
        [DEMO_HOLDER_1_PART] =
            ARGS("run", "--server", url, "--quiet", "--ttl", DEMO_LEASE, "--wait", "forever",
                 DEMO_KEY, "--", "sh", "-c", export_customers),
    };
#undef ARGS
    args[DEMO_HOLDER_2_PART] = args[DEMO_HOLDER_1_PART];
    return start(d, id, args[id], reterr);
}

static bool
answers(unsigned port)
{
    struct sockaddr_in a  = { .sin_family      = AF_INET,
                              .sin_port        = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool               ok = fd >= 0 && connect(fd, (const void *)&a, sizeof a) == 0;

    if (fd >= 0)
        (void)close(fd); /* nothing was sent */
    return ok;
}

il_status
demo_server_start(struct demo *d, il_error *reterr)
{
    struct proc_report report;
    il_status          st = demo_part_start(d, DEMO_SERVER, reterr);

    for (int waited_ms = 0; st == IL_OK && waited_ms < READY_MS; waited_ms += LOOK_MS) {
        if (answers(d->port))
            return IL_OK;
        if (demo_part_ended(d, DEMO_SERVER, &report))
            break;
        (void)poll(NULL, 0, LOOK_MS);
    }
    return st != IL_OK ? st
                       : il__error_set(reterr, IL_STORE,
                                       "the server did not start; see %s/server.log", d->dir);
}

/* ---- while they run -------------------------------------------------------------------------- */

bool
demo_part_ended(struct demo *d, enum demo_part_id id, struct proc_report *ret)
{
    struct demo_part *part = &d->parts[id];

    if (!part->runs)
        return false;
    il__proc_report(&part->child, ret);
    if (ret->end == PROC_END_NONE)
        return false;
    il__proc_finish(&part->child);
    part->runs = false;
    return true;
}

int
demo_server_pid(const struct demo *d)
{
    char path[DEMO_PATH_BYTES];
    int  pid = 0;
    (void)snprintf(path, sizeof path, "%s/%s.pid", d->dir, rows[DEMO_SERVER].name);
    FILE *file = fopen(path, "re");

    if (file != NULL) {
        if (fscanf(file, "%d", &pid) != 1)
            pid = 0;
        (void)fclose(file); /* was only read */
    }
    return pid;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void
finish(struct demo *d, enum demo_part_id from, enum demo_part_id below)
{
    for (enum demo_part_id i = from; i < below; i++) {
        if (d->parts[i].runs)
            il__proc_stop(&d->parts[i].child);
    }
    for (enum demo_part_id i = from; i < below; i++) {
        if (d->parts[i].runs)
            il__proc_finish(&d->parts[i].child);
        d->parts[i].runs = false;
    }
}

/* Those that use the server first: they give back what they hold. Then the server, which may be
 * reading the site. */
void
demo_parts_end(struct demo *d)
{
    finish(d, DEMO_SEED, DEMO_PARTS);
    finish(d, DEMO_SERVER, DEMO_SERVER + 1);
    finish(d, DEMO_SITE, DEMO_SITE + 1);
    il__proc_spawner_close(d->spawner);
    d->spawner = NULL;
}
