/*
 * wrap.c: the wrapper: from the options to the exit status.
 *
 *     prepare    nothing is held: find the command, block signals, fork the reaper
 *     hold       open the store, take what the command runs under (hold_*.c), or handle the
 *                conflict
 *     run_held   let the reaper start the command, supervise.c, conclude.c
 *
 * The reaper is forked before the store is opened: it must not inherit a descriptor of the store,
 * whose locks would outlive the wrapper, and forking is cheap while the process is small.
 */
#include "cli/wrap/wrap.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/out.h"
#include "cli/wrap/meta.h"
#include "cli/wrap/wrap_internal.h"
#include "proc/spawn.h"
#include "proc/sys.h"

int
wrap_give_up(struct wrap *r, const il_error *error)
{
    r->outcome = "failed";
    il__proc_say("%s", error->message);
    return il_status_exit(error->status);
}

/*
 * The holder: given, or generated. Within another `interlock run` it is PARENT/NEW, so that both
 * count as one in the deadlock detection: a nested run that waits for its own parent's key gets an
 * error. The detection uses the root, the part before the first slash; if the nesting is too deep
 * for all names, the holder is ROOT/NEW.
 */
static il_status
name_holder(struct wrap *r, il_error *reterr)
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
        return il__error_set(reterr, IL_STORE, "cannot read random bytes for the holder name");
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
check(struct wrap *r, il_error *reterr)
{
    const struct wrap_opts *o      = r->opts;
    il_status               status = il_check_key(o->key, reterr);

    r->ttl_ms   = o->ttl_ms != 0 ? o->ttl_ms : IL_TTL_MS_DEFAULT;
    r->grace_ms = MIN(MAX(o->grace_ms, 0), r->ttl_ms / 3);
    if (status != IL_OK)
        return status;
    if (r->ttl_ms < IL_TTL_MS_MIN || r->ttl_ms > IL_TTL_MS_MAX)
        return il__error_set(reterr, IL_INVAL,
                             "invalid TTL of %" PRId64 " ms: must be between 1s and 24h",
                             r->ttl_ms);
    return name_holder(r, reterr);
}

/*
 * Look for the command. A missing one is no error yet if it may turn out not to be needed: the key
 * is held, the answer or the value exists, or another run can be joined. It is an error at once
 * where the run would wait for its turn, or end other runs, only to fail then.
 */
static bool
find_command(struct wrap *r)
{
    const struct wrap_opts *o      = r->opts;
    bool                    holds  = o->kind == WRAP_LEASE || o->kind == WRAP_RECORD;
    bool                    queues = o->wait_ms != 0 || o->on_conflict >= WRAP_QUEUE;

    r->path_error = il__proc_find(o->argv[0], &r->path);
#ifdef IL_MUTANT_command_before_key
    return r->path != NULL;
#endif
    return r->path != NULL || !holds || !queues || o->on_conflict == WRAP_JOIN;
}

/* Everything that can fail before anything is taken, then the reaper. */
static int
prepare(struct wrap *r)
{
    const struct wrap_opts *o = r->opts;
    il_error                error;

    CHECK(o->argv[0] != NULL);
    il__proc_fds_ensure();
    if (check(r, &error) != IL_OK)
        return wrap_give_up(r, &error);
    if (!find_command(r))
        return il__proc_exec_failed(o->argv[0], NULL, r->path_error); /* the outcome is "failed" */
    if (o->kind == WRAP_RECORD &&
        (il_uuid(r->id) != IL_OK || setenv("INTERLOCK_RUN", r->id, 1) != 0)) {
        il__error_set(&error, IL_STORE,
                      "cannot create a run id: out of memory, or cannot read random bytes");
        return wrap_give_up(r, &error);
    }
    il__proc_tty_open(&r->tty);
    /* A subreaper as well: if the reaper is killed, its descendants become our children. */
    if (!wrap_signals_open(r) || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 ||
        (r->hold->sink.add != NULL && !wrap_pump_init(&r->pump))) {
        il__error_set(&error, IL_NOMEM, "cannot start the run: %s", strerror(errno));
        return wrap_give_up(r, &error);
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
        return wrap_give_up(r, &error);
    wrap_pump_forked(&r->pump);
    return WRAP_GO_ON;
}

void
wrap_publish_deadline(struct wrap *r, int64_t deadline_ns)
{
    int64_t known_ns = atomic_load(&r->reaper.shared->deadline_ns);

    while (known_ns < deadline_ns &&
           !atomic_compare_exchange_weak(&r->reaper.shared->deadline_ns, &known_ns, deadline_ns))
        continue;
}

int
wrap_interrupted(struct wrap *r, int sig)
{
    r->outcome = "interrupted";
    return IL__EXIT_SIGNAL + sig;
}

static int
run_held(struct wrap *r)
{
    r->fence      = il_lease_fence(r->lease);
    r->message[0] = '\0'; /* the conflict is over */
    wrap_publish_deadline(r, il_lease_deadline_ns(r->lease));
    atomic_store(&r->reaper.shared->fence, r->fence);
    /* A signal that came while the store was busy: it was meant for us, so do not start the
     * command. */
    int sig = wrap_signals_ending(r);
    if (sig != 0)
        return wrap_interrupted(r, sig);
    il__spool_begin(&r->spool, r->fence);
    if (r->path == NULL) { /* it is needed after all */
        struct il__reaper_report missing = {
            .wait_status = -1, .end = IL__END_FAILED, .error = r->path_error, .is_exec = true
        };
        return wrap_conclude(r, &missing);
    }
    if (r->hold->sink.add != NULL && !wrap_pump_start(&r->pump, &r->hold->sink, r)) {
        il__proc_say("%s: cannot start the output thread", r->opts->key);
        r->outcome = "failed";
        return IL__EXIT_OS;
    }
    struct il__reaper_report report = wrap_supervise(r);
    return wrap_conclude(r, &report);
}

static int
hold(struct wrap *r)
{
    const struct wrap_opts *o = r->opts;
    il_error                error;

    il_status spooled = IL_OK;
    if (o->on_conflict == WRAP_JOIN)
        spooled = il__spool_create(&r->spool, o->open_opts != NULL ? o->open_opts->tenant : NULL,
                                   o->key, r->holder, &error);
    if (spooled != IL_OK && spooled != IL_HELD && !o->quiet) /* IL_HELD: check_alone() reports it */
        il__proc_say("%s: other runs cannot join this one: %s", o->key, error.message);
    wrap_meta(o->argv, r->spool.fd >= 0 ? r->spool.path : NULL, r->meta);
    if (il_open(o->store_url, o->open_opts, &r->store, &error) != IL_OK)
        return wrap_give_up(r, &error);
    int status = r->hold->take(r);
    return status == WRAP_GO_ON ? run_held(r) : status;
}

static il_status
close_now(struct wrap *r, void *cookie UNUSED, il_error *reterr UNUSED)
{
    r->hold->drop(r);
    il_close(r->store);
    return IL_OK;
}

/* Give back what is still held, in order of dependency. */
static void
clean_up(struct wrap *r)
{
    il_error error;

    wrap_pump_finish(&r->pump);
    il__spool_drop(&r->spool);
    (void)wrap_bounded_call(r, close_now, NULL, &error);
    if (r->stuck) {
        il__reaper_reap(&r->reaper); /* the rest is in use */
        return;
    }
    il__reaper_finish(&r->reaper);
    il__free(r->path);
}

static void
print_json(const struct wrap *r, int status)
{
    int64_t ran_ms = r->began_ns != 0 ? (r->ended_ns - r->began_ns) / IL__NS_PER_MS : 0;
    json_t *fence  = r->fence != 0 ? json_integer((json_int_t)r->fence) : json_null();
    json_t *said   = il__cli_json_text(r->message[0] != '\0' ? r->message : NULL);
    json_t *object = json_pack("{s:s, s:s, s:o, s:s, s:i, s:I, s:o}", "key", r->opts->key, "holder",
                               r->holder, "fence", fence, "outcome", r->outcome, "exit_status",
                               status, "ran_ms", (json_int_t)ran_ms, "message", said);
    if (object != NULL && r->hook_failed)
        (void)json_object_set_new(object, "hook_failed", json_true()); /* out of memory: omitted */
    if (object != NULL && r->opts->kind == WRAP_RECORD)
        (void)json_object_set_new(object, "run", /* out of memory: omitted */
                                  json_string(r->in_the_way[0] != '\0' ? r->in_the_way : r->id));
    char *text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;

    if (text != NULL) {
        il__proc_write_stderr(text, strlen(text));
        il__proc_write_stderr("\n", 1);
    }
    free(text);
    json_decref(object);
}

/*
 * Ctrl-C should end the script around us as well. A shell decides that by how we end: if its child
 * died of the signal, it exits too; if the child exited, even with 130, it continues. While the
 * terminal was lent only the command got the signal, so the rest of our group gets it here. A
 * session leader has no script around it but a terminal, sshd or a container, which prefer the exit
 * status.
 */
static void
die_as_interrupted(const struct wrap *r, int status)
{
    int  sig       = status - IL__EXIT_SIGNAL;
    bool by_signal = strcmp(r->outcome, "signalled") == 0 || strcmp(r->outcome, "interrupted") == 0;

    if (!by_signal || (sig != SIGINT && sig != SIGQUIT) || getsid(0) == getpid())
        return;
    /* Not if the shell has another job in the foreground by now. */
    if (r->reaper.shared != NULL && atomic_load(&r->reaper.shared->tty_lent) &&
        tcgetpgrp(r->tty.fd) == r->tty.home)
        (void)kill(-r->tty.home, sig); /* ourselves included */
    il__proc_die_of(sig);
}

static const struct wrap_hold *
hold_of(const struct wrap_opts *o)
{
    switch (o->kind) {
    case WRAP_RECORD:
        return &wrap_hold_record;
    case WRAP_ONCE:
        return &wrap_hold_once;
    case WRAP_BUILD:
        return &wrap_hold_build;
    case WRAP_LEASE:
        break;
    }
    return o->on_conflict == WRAP_JOIN ? &wrap_hold_join : &wrap_hold_lease;
}

int
wrap_command(const struct wrap_opts *opts)
{
    static struct wrap r; /* static: a thread that hangs in a write outlives this call */

    r = (struct wrap){
        .opts    = opts,
        .hold    = hold_of(opts),
        .outcome = "failed",
        .sig_fd  = -1,
        .tty     = { .fd = -1 },
        .reaper  = { .ctl = -1 },
        .spool   = { .fd = -1 },
        .pump    = WRAP_PUMP_NONE,
    };

    int status = prepare(&r);
    if (status == WRAP_GO_ON)
        status = hold(&r);
    clean_up(&r);
    wrap_hook(&r, status);
    if (opts->json)
        print_json(&r, status);
    die_as_interrupted(&r, status);
    if (r.stuck)
        _exit(status); /* without exit handlers, which would free what the thread uses */
    il__proc_fd_close(&r.tty.fd);
    wrap_signals_close(&r);
    return status;
}
