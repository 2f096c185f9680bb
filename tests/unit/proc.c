/*
 * proc.c: what a server's command inherits (environment, folder, limits, descriptors, signals), how
 * its end is reported, and that it and all its descendants stop on request, on timeout, and before
 * the lease's deadline.
 */
#include "proc/proc.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/clock.h"
#include "harness/proc.h"
#include "harness/tmp.h"
#include "proc/hook.h"
#include "proc_help.h"

#define W(text) ((char *)(uintptr_t)(text))

/* A descendant that has left group and session and ignores TERM says its number, then one of the
 * group does. */
#define TREE                                                   \
    "setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 60' & " \
    "sh -c 'trap \"\" TERM; echo $$; exec sleep 60' & "

static struct proc_spawner *s;

/* ---- how it ends ----------------------------------------------------------------------------- */

U_TEST(exit_status)
{
    struct command c;

    c_start_sh(s, &c, "exit 0", NULL);
    c_exits(&c, 0);
    c_start_sh(s, &c, "exit 42", NULL);
    c_exits(&c, 42);
}

U_TEST(signalled)
{
    struct command c;

    c_start_sh(s, &c, "kill -SEGV $$", NULL);
    c_end(&c);
    T_EQ(c.report.end, PROC_END_EXITED);
    T_TRUE(WIFSIGNALED(c.report.wait_status));
    T_EQ(WTERMSIG(c.report.wait_status), SIGSEGV);
    il__proc_finish(&c.child);
}

static void
fails_with(char *const *argv, const char *cwd, int error)
{
    struct proc_spec spec = c_spec(argv);
    struct command   c;

    spec.cwd = cwd;
    c_start(s, &c, &spec);
    c_end(&c);
    T_EQ(c.report.end, PROC_END_FAILED);
    T_EQ(c.report.error, error);
    T_EQ(c.report.wait_status, -1);
    il__proc_finish(&c.child);
}

U_TEST(cannot_be_executed)
{
    char dir[T_PATH_BYTES];
    char path[T_PATH_BYTES];

    t_tmp_make_on_disk(dir);
    fails_with((char *[]){ W("no-such-command"), NULL }, "/", ENOENT);
    fails_with((char *[]){ W("/no/such/command"), NULL }, "/", ENOENT);
    fails_with((char *[]){ W("/etc/passwd"), NULL }, "/", EACCES);
    fails_with((char *[]){ W("true"), NULL }, "/no/such/folder", ENOENT);
    t_path(path, "%s/script", dir);
    t_file_write(path, "#!/no/such/interpreter\n", 23);
    T_EQ(chmod(path, 0755), 0);
    fails_with((char *[]){ path, NULL }, "/", ENOENT);
    t_tmp_remove(dir);
}

static char *
text_of(size_t n)
{
    char *text = il__alloc(n + 1);

    CHECK(text != NULL);
    memset(text, 'x', n);
    text[n] = '\0';
    return text;
}

U_TEST(bad_spec)
{
    struct proc_spec  spec = c_spec((char *[]){ NULL });
    struct proc_child c    = PROC_CHILD_NONE;
    il_error          err;
    char             *big = text_of(PROC_SPEC_BYTES_MAX);

    T_EQ(il__proc_start(s, &spec, &c, &err), IL_INVAL);
    char *const argv[] = { W("true"), big, NULL };
    spec.argv          = argv;
    T_EQ(il__proc_start(s, &spec, &c, &err), IL_INVAL);
    T_HAS(err.message, "true");
    T_EQ(c.ctl, -1);
    il__proc_finish(&c);
    il__proc_finish(&c);
    il__free(big);
}

/* The path of its command is long, and still the reason is told. */
U_TEST(hook_cannot_start)
{
    char                 *path = text_of(300), *big = text_of(PROC_SPEC_BYTES_MAX);
    char *const           argv[] = { path, big, NULL };
    struct il__hook_facts facts  = { .n = 0 };
    struct il__hook       h      = { .argv = argv, .facts = &facts, .served = true, .stop_fd = -1 };
    char                  why[IL__HOOK_WHY_BYTES];

    T_TRUE(!il__hook_run(&h, why));
    T_HAS(why, "x: arguments, environment and input exceed 4194304 bytes");
    il__free(path);
    il__free(big);
}

/* ---- what it gets ---------------------------------------------------------------------------- */

U_TEST(environment)
{
    char *const env[] = { W("B=2"), W("A=1"), W("EMPTY="), W("PATH=/nowhere:/usr/bin:/bin"), NULL };
    char *const none[]    = { NULL };
    char *const argv[]    = { W("env"), NULL };
    struct proc_spec spec = c_spec(argv);
    struct command   c;

    spec.env = env;
    c_start(s, &c, &spec);
    c_exits(&c, 0);
    T_STREQ(c.out, "B=2\nA=1\nEMPTY=\nPATH=/nowhere:/usr/bin:/bin\n");
    spec.env = none; /* the PATH that execvp() takes then finds it all the same */
    c_start(s, &c, &spec);
    c_exits(&c, 0);
    T_STREQ(c.out, "");
}

/* What is above a command has nothing of the server's environment, for whoever can read it. */
U_TEST(environment_above)
{
    struct command       c;
    struct proc_spawner *other;

    T_EQ(setenv("CANARY", "4711", 1), 0);
    other = c_open();
    c_start_sh(other, &c,
               "spawner=$(sed 's/.*) . //; s/ .*//' /proc/$PPID/stat); "
               "cat /proc/$PPID/environ /proc/$spawner/environ | tr '\\0' '\\n' | grep ^CANARY",
               NULL);
    c_end(&c);
    T_STREQ(c.out, "");
    il__proc_finish(&c.child);
    il__proc_spawner_close(other);
    T_EQ(unsetenv("CANARY"), 0);
}

/* More than one packet takes. */
U_TEST(much_environment)
{
    enum {
        N     = 15, /* a quarter of the stack's limit is what the kernel takes: 2 MiB */
        BYTES = 100000
    };
    char            *env[N + 2];
    char *const      argv[] = { W("sh"), W("-c"), W("env | wc -c"), NULL };
    struct proc_spec spec   = c_spec(argv);
    struct command   c;

    for (int i = 0; i < N; i++) {
        env[i] = il__alloc(BYTES);
        CHECK(env[i] != NULL);
        memset(env[i], 'x', BYTES - 1);
        env[i][BYTES - 1] = '\0';
        char name[8];
        memcpy(env[i], name, (size_t)snprintf(name, sizeof name, "V%02d=", i));
    }
    env[N]     = W("PATH=/usr/bin:/bin");
    env[N + 1] = NULL;
    spec.env   = env;
    c_start(s, &c, &spec);
    /* The shell may add PWD or the like; a lot less than one more of ours. */
    T_EQ(c_number(&c) / BYTES, N);
    c_exits(&c, 0);
    for (int i = 0; i < N; i++)
        il__free(env[i]);
}

U_TEST(folder)
{
    char             dir[T_PATH_BYTES];
    char             path[T_PATH_BYTES];
    char             expected[T_PATH_BYTES];
    char *const      pwd[]    = { W("/bin/pwd"), NULL };
    char *const      script[] = { W("./script"), W("a b"), NULL };
    char *const      found[]  = { W("script"), W("c"), NULL };
    char *const      env[]    = { W("PATH=sub:/usr/bin:/bin"), NULL };
    struct proc_spec spec     = c_spec(pwd);
    struct command   c;

    t_tmp_make_on_disk(dir);
    spec.cwd = dir;
    c_start(s, &c, &spec);
    c_exits(&c, 0);
    (void)snprintf(expected, sizeof expected, "%.500s\n", dir);
    T_STREQ(c.out, expected);

    t_path(path, "%s/script", dir); /* without #!: as execvp(), by sh */
    t_file_write(path, "echo \"$0 $1\"\n", 13);
    T_EQ(chmod(path, 0755), 0);
    spec.argv = script;
    c_start(s, &c, &spec);
    c_exits(&c, 0);
    T_STREQ(c.out, "./script a b\n");

    t_path(path, "%s/sub", dir);
    T_EQ(mkdir(path, 0755), 0);
    t_path(path, "%s/sub/script", dir);
    t_file_write(path, "#!/bin/sh\necho \"$0 $1\"\n", 23);
    T_EQ(chmod(path, 0755), 0);
    spec.argv = found;
    spec.env  = env;
    c_start(s, &c, &spec);
    c_exits(&c, 0);
    T_STREQ(c.out, "sub/script c\n");
    t_tmp_remove(dir);
}

U_TEST(limits)
{
    char *const      argv[] = { W("cat"), W("/proc/self/limits"), NULL };
    struct proc_spec spec   = c_spec(argv);
    struct command   c;
    char             ours[OUT_BYTES] = "";
    FILE            *file            = fopen("/proc/self/limits", "re");

    CHECK(file != NULL && fread(ours, 1, sizeof ours - 1, file) > 0);
    CHECK(fclose(file) == 0);

    c_start(s, &c, &spec);
    c_exits(&c, 0);
    T_STREQ(c.out, ours); /* also the open files, of which the spawner has more */

    spec.limits = (struct proc_limits){
        .cpu_s = 77, .memory_bytes = INT64_C(1) << 33, .open_files = 99, .processes = 1234
    };
    c_start(s, &c, &spec);
    c_exits(&c, 0);
    T_HAS(c.out, "Max cpu time              77                   77 ");
    T_HAS(c.out, "Max address space         8589934592           8589934592 ");
    T_HAS(c.out, "Max open files            99                   99 ");
    T_HAS(c.out, "Max processes             1234                 1234 ");

    spec.limits = (struct proc_limits){ .cpu_s = 1 };
    c_start_sh(s, &c, "while :; do :; done", &spec);
    c_end(&c);
    T_EQ(c.report.end, PROC_END_EXITED);
    T_TRUE(WIFSIGNALED(c.report.wait_status)); /* XCPU, and KILL as hard = soft */
    il__proc_finish(&c.child);
}

U_TEST(outputs_apart)
{
    struct command c;

    c_start_sh(s, &c, "echo to-out; echo to-err >&2; readlink /proc/self/fd/0", NULL);
    c_end(&c);
    T_STREQ(c.out, "to-out\n/dev/null\n");
    T_STREQ(c.err, "to-err\n");
    il__proc_finish(&c.child);
}

/* Nothing of server, spawner or reaper: descriptors, signal mask, ignored signals, session. */
U_TEST(nothing_inherited)
{
    int            leaked = dup(0); /* a library of the server has forgotten close-on-exec */
    sigset_t       some;
    struct command c;

    CHECK(leaked > 2);
    CHECK(sigemptyset(&some) == 0);
    CHECK(sigaddset(&some, SIGUSR1) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &some, NULL) == 0);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    struct proc_spawner *fresh = c_open();

    c_start_sh(fresh, &c,
               "for fd in /proc/$$/fd/*; do readlink $fd; done; grep -E '^Sig(Blk|Ign)' "
               "/proc/self/status | tr -d '0\\t\\n'",
               NULL);
    c_exits(&c, 0);
    int lines = 0;
    int pipes = 0; /* the folder that the shell lists is closed by then, and has no name */
    for (const char *p = c.out; (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    for (const char *p = c.out; (p = strstr(p, "pipe:")) != NULL; p++)
        pipes++;
    T_EQ(lines, 3);
    T_EQ(pipes, 2);
    T_HAS(c.out, "/dev/null\n");
    T_HAS(c.out, "SigBlk:SigIgn:");
    c_start_sh(fresh, &c, "test -t 0 || : >/dev/tty", NULL); /* no terminal to be had */
    c_end(&c);
    T_TRUE(WIFEXITED(c.report.wait_status) && WEXITSTATUS(c.report.wait_status) != 0);
    il__proc_finish(&c.child);

    il__proc_spawner_close(fresh);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGHUP, SIG_DFL);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &some, NULL) == 0);
    CHECK(close(leaked) == 0);
}

/* ---- how it is ended ------------------------------------------------------------------------- */

U_TEST(timeout_takes_all)
{
    struct proc_spec spec = c_spec(NULL);
    struct command   c;

    spec.timeout_ms = 2500;
    c_start_sh(s, &c, TREE "trap '' TERM; exec sleep 60", &spec);
    pid_t one = c_number(&c);
    pid_t two = c_number(&c);
    c_end(&c);
    T_EQ(c.report.end, PROC_END_TIMEOUT);
    T_TRUE(WIFSIGNALED(c.report.wait_status));
    T_TRUE(kill(one, 0) != 0 && errno == ESRCH); /* they were gone before the report came */
    T_TRUE(kill(two, 0) != 0 && errno == ESRCH);
    il__proc_finish(&c.child);
}

U_TEST(stop_is_polite_first)
{
    struct proc_spec spec = c_spec(NULL);
    struct command   c;

    spec.grace_ms = LIMIT_MS;
    c_start_sh(s, &c, "trap 'echo cleaned; exit 3' TERM; echo $$; while :; do sleep 0.05; done",
               &spec);
    (void)c_number(&c);
    il__proc_stop(&c.child);
    il__proc_stop(&c.child);
    c_end(&c);
    T_EQ(c.report.end, PROC_END_STOPPED);
    T_TRUE(WIFEXITED(c.report.wait_status));
    T_EQ(WEXITSTATUS(c.report.wait_status), 3);
    T_HAS(c.out, "cleaned");
    il__proc_stop(&c.child); /* too late, and harmless */
    il__proc_finish(&c.child);
}

U_TEST(stop_takes_all)
{
    struct command c;

    c_start_sh(s, &c, TREE "trap '' TERM; exec sleep 60", NULL);
    pid_t one = c_number(&c);
    pid_t two = c_number(&c);
    il__proc_stop(&c.child);
    c_end(&c);
    T_EQ(c.report.end, PROC_END_STOPPED);
    T_TRUE(kill(one, 0) != 0 && errno == ESRCH);
    T_TRUE(kill(two, 0) != 0 && errno == ESRCH);
    il__proc_finish(&c.child);
}

/* Stopped before it was even started; and finished without a word. */
U_TEST(stop_at_once)
{
    struct command c;

    c_start_sh(s, &c, "sleep 60", NULL);
    il__proc_stop(&c.child);
    c_end(&c);
    T_EQ(c.report.end, PROC_END_STOPPED);
    il__proc_finish(&c.child);

    c_start_sh(s, &c, TREE "wait", NULL);
    pid_t one = c_number(&c);
    il__proc_finish(&c.child);
    T_TRUE(kill(one, 0) != 0 && errno == ESRCH);
}

U_TEST(leftovers_end_with_it)
{
    char             dir[T_PATH_BYTES];
    struct proc_spec spec = c_spec(NULL);
    struct command   c;

    t_tmp_make(dir);
    spec.cwd = dir;
    c_start_sh(s, &c,
               "setsid sh -c 'trap \"\" TERM; echo $$; : >one; exec sleep 60' & "
               "sh -c 'trap \"\" TERM; echo $$; : >two; exec sleep 60' & "
               "until [ -e one ] && [ -e two ]; do sleep 0.02; done",
               &spec);
    pid_t one = c_number(&c);
    pid_t two = c_number(&c);
    c_exits(&c, 0);
    T_TRUE(kill(one, 0) != 0 && errno == ESRCH);
    T_TRUE(kill(two, 0) != 0 && errno == ESRCH);
    t_tmp_remove(dir);
}

/* It ends within its grace, and that is before the deadline. */
U_TEST(deadline)
{
    struct proc_spec spec = c_spec(NULL);
    struct command   c;

    spec.grace_ms    = 2000;
    spec.deadline_ns = il__clock_boot_ns() + INT64_C(5000) * IL__NS_PER_MS;
    c_start_sh(s, &c, "echo $$; exec sleep 60", &spec);
    pid_t one = c_number(&c);
    c_end(&c);
    T_LESS(il__clock_boot_ns(), spec.deadline_ns);
    T_EQ(c.report.end, PROC_END_DEADLINE);
    T_TRUE(WIFSIGNALED(c.report.wait_status));
    T_TRUE(kill(one, 0) != 0 && errno == ESRCH);
    il__proc_finish(&c.child);

    /* One that has passed already starts nothing. */
    spec.deadline_ns = il__clock_boot_ns();
    c_start_sh(s, &c, "echo started", &spec);
    c_end(&c);
    T_EQ(c.report.end, PROC_END_DEADLINE);
    T_STREQ(c.out, "");
    il__proc_finish(&c.child);
}

/* What ignores the TERM is killed 20 ms before; how soon it is dead then, the machine's load
 * decides. */
U_TEST(deadline_takes_all)
{
    struct proc_spec spec = c_spec(NULL);
    struct command   c;

    spec.grace_ms    = 500;
    spec.deadline_ns = il__clock_boot_ns() + INT64_C(4000) * IL__NS_PER_MS;
    c_start_sh(s, &c, TREE "trap '' TERM; exec sleep 60", &spec);
    pid_t one = c_number(&c);
    pid_t two = c_number(&c);
    c_end(&c);
    T_LESS(il__clock_boot_ns(), spec.deadline_ns + INT64_C(900) * IL__NS_PER_MS);
    T_EQ(c.report.end, PROC_END_DEADLINE);
    T_TRUE(kill(one, 0) != 0 && errno == ESRCH);
    T_TRUE(kill(two, 0) != 0 && errno == ESRCH);
    il__proc_finish(&c.child);
}

U_TEST(deadline_moves)
{
    struct proc_spec spec = c_spec(NULL);
    struct command   c;
    int64_t          began_ns = il__clock_boot_ns();

    spec.deadline_ns = began_ns + INT64_C(3000) * IL__NS_PER_MS;
    c_start_sh(s, &c, "echo $$; sleep 3.2", &spec);
    (void)c_number(&c);
    il__proc_extend(&c.child, began_ns + LIMIT_MS * INT64_C(1000000));
    il__proc_extend(&c.child, began_ns + 1); /* it only grows */
    c_exits(&c, 0);

    /* And where there was none. */
    spec.deadline_ns = 0;
    c_start_sh(s, &c, "echo $$; exec sleep 60", &spec);
    (void)c_number(&c);
    il__proc_extend(&c.child, il__clock_boot_ns() + 300 * IL__NS_PER_MS);
    c_end(&c);
    T_EQ(c.report.end, PROC_END_DEADLINE);
    il__proc_finish(&c.child);
}

static int
open_spawner(void **state UNUSED)
{
    s = c_open();
    return 0;
}

static int
close_spawner(void **state UNUSED)
{
    il__proc_spawner_close(s);
    return 0;
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(exit_status),
        U_ROW(signalled),
        U_ROW(cannot_be_executed),
        U_ROW(bad_spec),
        U_ROW(hook_cannot_start),
        U_ROW(environment),
        U_ROW(environment_above),
        U_ROW(much_environment),
        U_ROW(folder),
        U_ROW(limits),
        U_ROW(outputs_apart),
        U_ROW(nothing_inherited),
        U_ROW(timeout_takes_all),
        U_ROW(stop_is_polite_first),
        U_ROW(stop_takes_all),
        U_ROW(stop_at_once),
        U_ROW(leftovers_end_with_it),
        U_ROW(deadline),
        U_ROW(deadline_takes_all),
        U_ROW(deadline_moves),
    };
    int status = c_main(argc, argv);

    return status >= 0 ? status : cmocka_run_group_tests(tests, open_spawner, close_spawner);
}
