/*
 * run.c: the wrapper: from the options to the exit status.
 *
 *     prepare    nothing is held: find the command, block signals, fork the reaper
 *     hold       open the store, take what the command is run under (hold_*.c), or deal with the conflict
 *     run_held   let the reaper start the command, supervise.c, conclude.c
 *
 * The reaper is forked before the store is opened: it must not inherit a descriptor of the store,
 * whose locks would outlive the wrapper, and forking is cheap while the process is small.
 */
#include "cli/run/run.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/out.h"
#include "cli/run/meta.h"
#include "cli/run/run_state.h"
#include "proc/spawn.h"
#include "proc/sys.h"

int
il__run_give_up(struct il__run_state *r, const il_error *error)
{
    r->outcome = "failed";
    il__run_say("%s", error->message);
    return il_status_exit(error->status);
}

/*
 * The holder: given, or new. Within another `interlock run` it is PARENT/NEW, so that both count as
 * one for the detection of deadlocks: a nested run that waits for what its own parent holds is told
 * so. What counts there is the root, the part before the first slash: when the nesting is too deep
 * for all names, ROOT/NEW it is.
 */
static il_status
name_holder(struct il__run_state *r, il_error *reterr)
{
    const char *parent = getenv("INTERLOCK_HOLDER");
    char        uuid[37];

    if (r->opts->holder != NULL) {
        il_status status = il_check_holder(r->opts->holder, reterr);
        if (status == IL_OK)
            (void)snprintf(r->holder, sizeof r->holder, "%s", r->opts->holder);
        return status;
    }
    if (il_uuid(uuid) != IL_OK)
        return il__error_set(reterr, IL_STORE, "there is no randomness to name the holder");
    size_t n_bytes = parent != NULL && il_check_holder(parent, NULL) == IL_OK ? strlen(parent) : 0;
    if (n_bytes + sizeof uuid > IL_HOLDER_BYTES_MAX)
        n_bytes = strcspn(parent, "/");
    if (n_bytes > 0 && n_bytes + sizeof uuid <= IL_HOLDER_BYTES_MAX)
        (void)snprintf(r->holder, sizeof r->holder, "%.*s/%s", (int)n_bytes, parent, uuid);
    else
        (void)snprintf(r->holder, sizeof r->holder, "%s", uuid);
    return IL_OK;
}

static il_status
check(struct il__run_state *r, il_error *reterr)
{
    const struct il__run_opts *o      = r->opts;
    il_status                  status = il_check_key(o->key, reterr);

    r->ttl_ms   = o->ttl_ms != 0 ? o->ttl_ms : IL_TTL_MS_DEFAULT;
    r->grace_ms = MIN(MAX(o->grace_ms, 0), r->ttl_ms / 3);
    if (status != IL_OK)
        return status;
    if (r->ttl_ms < IL_TTL_MS_MIN || r->ttl_ms > IL_TTL_MS_MAX)
        return il__error_set(reterr, IL_INVAL, "the ttl of %" PRId64 " ms is not within 1s and 24h",
                             r->ttl_ms);
    return name_holder(r, reterr);
}

/* Everything that can fail before anything is touched, then the reaper. */
static int
prepare(struct il__run_state *r)
{
    const struct il__run_opts *o = r->opts;
    il_error                   error;

    CHECK(o->argv[0] != NULL);
    il__run_fds_ensure();
    if (check(r, &error) != IL_OK)
        return il__run_give_up(r, &error);
    int status = il__run_resolve(o->argv[0], &r->path);
    if (status != 0) {
        r->outcome = "failed";
        return status;
    }
    if (o->kind == IL__RUN_RECORD &&
        (il_uuid(r->id) != IL_OK || setenv("INTERLOCK_RUN", r->id, 1) != 0)) {
        il__error_set(&error, IL_STORE, "there is no randomness or memory to name the run");
        return il__run_give_up(r, &error);
    }
    il__run_tty_open(&r->tty);
    /* A subreaper as well: if the reaper is killed, what was below it comes to us. */
    if (!il__run_signals_open(r) || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 ||
        (r->hold->sink.add != NULL && !il__run_pump_init(&r->pump))) {
        il__error_set(&error, IL_NOMEM, "cannot prepare the run: %s", strerror(errno));
        return il__run_give_up(r, &error);
    }
    struct il__reaper_opts reaper = {
        .path        = r->path,
        .argv        = o->argv,
        .key         = o->key,
        .holder      = r->holder,
        .grace_ns    = r->grace_ms * IL__NS_PER_MS,
        .timeout_ns  = o->timeout_ms > 0 ? o->timeout_ms * IL__NS_PER_MS : 0,
        .out_fd      = r->pump.write_fds[0],
        .err_fd      = r->pump.write_fds[1],
        .wrapper_fds = { r->pump.read_fds[0], r->pump.read_fds[1] },
        .quiet       = o->quiet,
        .tty         = &r->tty,
    };
    if (il__reaper_start(&reaper, &r->reaper, &error) != IL_OK)
        return il__run_give_up(r, &error);
    il__run_pump_forked(&r->pump);
    return IL__RUN_GO_ON;
}

void
il__run_publish_deadline(struct il__run_state *r, int64_t deadline_ns)
{
    int64_t known_ns = atomic_load(&r->reaper.shared->deadline_ns);

    while (known_ns < deadline_ns &&
           !atomic_compare_exchange_weak(&r->reaper.shared->deadline_ns, &known_ns, deadline_ns))
        continue;
}

int
il__run_interrupted(struct il__run_state *r, int sig)
{
    r->outcome = "interrupted";
    return IL__EXIT_SIGNAL + sig;
}

static int
run_held(struct il__run_state *r)
{
    r->fence      = il_lease_fence(r->lease);
    r->message[0] = '\0'; /* whoever was in the way is so no more */
    il__run_publish_deadline(r, il_lease_deadline_ns(r->lease));
    atomic_store(&r->reaper.shared->fence, r->fence);
    /* Came while the store was busy: it was meant for us, and the command need not start. */
    int sig = il__run_signals_ending(r);
    if (sig != 0)
        return il__run_interrupted(r, sig);
    il__spool_begin(&r->spool, r->fence);
    if (r->hold->sink.add != NULL && !il__run_pump_start(&r->pump, &r->hold->sink, r)) {
        il__run_say("%s: there is no thread to pass the output on", r->opts->key);
        r->outcome = "failed";
        return IL__EXIT_OS;
    }
    struct il__reaper_report report = il__run_supervise(r);
    return il__run_conclude(r, &report);
}

static int
hold(struct il__run_state *r)
{
    const struct il__run_opts *o = r->opts;
    il_error                   error;

    il_status spooled = IL_OK;
    if (o->on_conflict == IL__RUN_JOIN)
        spooled = il__spool_create(&r->spool, o->open_opts != NULL ? o->open_opts->tenant : NULL,
                                   o->key, r->holder, &error);
    if (spooled != IL_OK && spooled != IL_HELD && !o->quiet) /* held: check_alone() says it */
        il__run_say("%s: others will not be able to join: %s", o->key, error.message);
    il__run_meta(o->argv, r->spool.fd >= 0 ? r->spool.path : NULL, r->meta);
    if (il_open(o->store_url, o->open_opts, &r->store, &error) != IL_OK)
        return il__run_give_up(r, &error);
    int status = r->hold->take(r);
    return status == IL__RUN_GO_ON ? run_held(r) : status;
}

/* What is still there is given back, in the order in which it depends on each other. */
static void
clean_up(struct il__run_state *r)
{
    il__run_pump_finish(&r->pump);
    il__spool_drop(&r->spool);
    r->hold->drop(r);
    il_close(r->store);
    il__reaper_finish(&r->reaper);
    il__free(r->path);
}

static void
print_json(const struct il__run_state *r, int status)
{
    int64_t ran_ms = r->began_ns != 0 ? (r->ended_ns - r->began_ns) / IL__NS_PER_MS : 0;
    json_t *fence  = r->fence != 0 ? json_integer((json_int_t)r->fence) : json_null();
    json_t *said   = il__cli_json_text(r->message[0] != '\0' ? r->message : NULL);
    json_t *object = json_pack("{s:s, s:s, s:o, s:s, s:i, s:I, s:o}", "key", r->opts->key, "holder",
                               r->holder, "fence", fence, "outcome", r->outcome, "exit_status",
                               status, "ran_ms", (json_int_t)ran_ms, "message", said);
    if (object != NULL && r->opts->kind == IL__RUN_RECORD)
        (void)json_object_set_new(object, "run", /* no memory: then without it */
                                  json_string(r->in_the_way[0] != '\0' ? r->in_the_way : r->id));
    char *text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;

    if (text != NULL) {
        il__run_write_stderr(text, strlen(text));
        il__run_write_stderr("\n", 1);
    }
    free(text);
    json_decref(object);
}

/*
 * Ctrl-C is to end the script around us as well. A shell decides that by our end: if its child has
 * died of the signal, it ends, too; if the child has exited, be it with 130, it goes on. While the
 * terminal was lent only the command got the signal, so the others of our group get it here.
 * A session leader has no script around it but a terminal, sshd or a container, and those prefer
 * the number.
 */
static void
die_as_interrupted(const struct il__run_state *r, int status)
{
    int  sig       = status - IL__EXIT_SIGNAL;
    bool by_signal = strcmp(r->outcome, "signalled") == 0 || strcmp(r->outcome, "interrupted") == 0;

    if (!by_signal || (sig != SIGINT && sig != SIGQUIT) || getsid(0) == getpid())
        return;
    /* Not when the shell has another job in the foreground by now. */
    if (r->reaper.shared != NULL && atomic_load(&r->reaper.shared->tty_lent) &&
        tcgetpgrp(r->tty.fd) == r->tty.home)
        (void)kill(-r->tty.home, sig); /* ourselves included */
    il__run_die_of(sig);
}

static const struct il__run_hold *
hold_of(const struct il__run_opts *o)
{
    switch (o->kind) {
    case IL__RUN_RECORD:
        return &il__run_hold_record;
    case IL__RUN_ONCE:
        return &il__run_hold_once;
    case IL__RUN_BUILD:
        return &il__run_hold_build;
    case IL__RUN_LEASE:
        break;
    }
    return o->on_conflict == IL__RUN_JOIN ? &il__run_hold_join : &il__run_hold_lease;
}

int
il__run(const struct il__run_opts *opts)
{
    static struct il__run_state r; /* static: a thread that hangs in a write outlives this call */

    r = (struct il__run_state){
        .opts    = opts,
        .hold    = hold_of(opts),
        .outcome = "failed",
        .sig_fd  = -1,
        .tty     = { .fd = -1 },
        .reaper  = { .ctl = -1 },
        .spool   = { .fd = -1 },
        .pump    = IL__RUN_PUMP_NONE,
    };

    int status = prepare(&r);
    if (status == IL__RUN_GO_ON)
        status = hold(&r);
    clean_up(&r);
    if (opts->json)
        print_json(&r, status);
    die_as_interrupted(&r, status);
    il__run_fd_close(&r.tty.fd);
    il__run_signals_close(&r);
    return status;
}
