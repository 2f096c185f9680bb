/*
 * board.c: watchers of the board miss nothing, however many there are; the ring delivers messages
 * or reports a gap, whatever its file contains.
 */
#include "base/board.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ring.h"
#include "harness/event.h"
#include "harness/proc.h"
#include "harness/rng.h"
#include "harness/tmp.h"
#include "harness/unit.h"

#define LIMIT_MS 20000
/* longer than a test takes: what is missed is found out */
#define SLEEP_NS (60 * INT64_C(1000000000))

/* The board of a file, mapped once more: as another process does it. */
static void
map(struct il__board *b, const char *dir, size_t n_bytes)
{
    char path[T_PATH_BYTES];

    t_path(path, "%s/wake", dir);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0);
    CHECK(ftruncate(fd, (off_t)n_bytes) == 0);
    CHECK(il__board_init_file(b, fd, n_bytes));
    CHECK(close(fd) == 0);
}

/* ---- watchers -------------------------------------------------------------------------------- */

#define N_WATCHERS 3
#define N_WAKERS 3
#define N_ROUNDS 3000

struct watcher {
    struct il__board board;
    pthread_t        thread;
    atomic_bool      stop;
    _Atomic uint32_t seen[N_WAKERS]; /* the words as they were looked at last */
};

static void *
watcher_main(void *arg)
{
    struct watcher *w = arg;

    while (!atomic_load(&w->stop)) {
        uint32_t any = il__board_watch(&w->board);
        for (uint32_t i = 0; i < N_WAKERS; i++)
            atomic_store(&w->seen[i], il__board_read(&w->board, IL__BOARD_WAITER + i));
        (void)il__board_sleep(&w->board, IL__BOARD_ANY, any, SLEEP_NS);
    }
    return NULL;
}

struct waker {
    struct il__board board;
    pthread_t        thread;
    uint32_t         i;
    struct watcher  *watchers;
    struct t_event  *done;
    bool             missed;
};

/* Bump the word, and wait until every watcher has seen it; then again. */
static void *
waker_main(void *arg)
{
    struct waker *w = arg;

    for (uint32_t round = 1; round <= N_ROUNDS && !w->missed; round++) {
        int64_t until_ns = il__clock_boot_ns() + LIMIT_MS * (int64_t)IL__NS_PER_MS;
        il__board_wake(&w->board, IL__BOARD_WAITER + w->i);
        for (size_t k = 0; k < N_WATCHERS && !w->missed; k++) {
            while (atomic_load(&w->watchers[k].seen[w->i]) != round && !w->missed)
                w->missed = il__clock_boot_ns() > until_ns;
        }
    }
    t_event_add(w->done);
    return NULL;
}

U_TEST(no_change_is_missed)
{
    static struct watcher watchers[N_WATCHERS];
    struct waker          wakers[N_WAKERS];
    struct t_event        done;
    char                  dir[T_PATH_BYTES];

    t_tmp_make(dir);
    t_event_init(&done);
    for (size_t i = 0; i < N_WATCHERS; i++) {
        map(&watchers[i].board, dir, IL__BOARD_FILE_BYTES);
        CHECK(pthread_create(&watchers[i].thread, NULL, watcher_main, &watchers[i]) == 0);
    }
    for (uint32_t i = 0; i < N_WAKERS; i++) {
        wakers[i] = (struct waker){ .i = i, .watchers = watchers, .done = &done };
        map(&wakers[i].board, dir, IL__BOARD_FILE_BYTES);
        CHECK(pthread_create(&wakers[i].thread, NULL, waker_main, &wakers[i]) == 0);
    }
    T_WAIT(&done, N_WAKERS, 50000);
    for (size_t i = 0; i < N_WATCHERS; i++)
        atomic_store(&watchers[i].stop, true);
    il__board_poke(&wakers[0].board);
    for (size_t i = 0; i < N_WAKERS; i++) {
        CHECK(pthread_join(wakers[i].thread, NULL) == 0);
        T_TRUE(!wakers[i].missed);
    }
    for (size_t i = 0; i < N_WATCHERS; i++)
        CHECK(pthread_join(watchers[i].thread, NULL) == 0);
    for (size_t i = 0; i < N_WATCHERS; i++)
        il__board_release(&watchers[i].board);
    for (size_t i = 0; i < N_WAKERS; i++)
        il__board_release(&wakers[i].board);
    t_event_release(&done);
    t_tmp_remove(dir);
}

/* Words that no call waits for do not wake watchers; and where nobody watches, nobody is woken. */
U_TEST(watchers_are_left_alone)
{
    struct il__board b = { 0 };

    CHECK(il__board_init_private(&b));
    il__board_wake(&b, IL__BOARD_WAITER);
    T_EQ(il__board_read(&b, IL__BOARD_ANY), 0);
    uint32_t any = il__board_watch(&b);
    il__board_wake(&b, IL__BOARD_LOCK_FREED);
    il__board_wake(&b, IL__BOARD_BREAK);
    T_EQ(il__board_read(&b, IL__BOARD_ANY), any);
    il__board_bump(&b, IL__BOARD_WAITER + 7);
    il__board_bump(&b, IL__BOARD_WAITER + 8); /* told already */
    T_EQ(il__board_read(&b, IL__BOARD_ANY), any + 1);
    il__board_release(&b);
}

/* ---- a file that is cut or replaced ---------------------------------------------------------- */

#define N_SLEEPERS 2 /* a watcher, and a waiter */

struct sleeper {
    struct il__board *board;
    uint32_t          slot;
    pthread_t         thread;
    atomic_bool       stop;
    _Atomic pid_t     tid;
    _Atomic unsigned  n_turns;
};

static void *
sleeper_main(void *arg)
{
    struct sleeper *s = arg;

    atomic_store(&s->tid, gettid());
    while (!atomic_load(&s->stop)) {
        uint32_t seen = il__board_read(s->board, s->slot);
        atomic_fetch_add(&s->n_turns, 1);
        (void)il__board_sleep(s->board, s->slot, seen, SLEEP_NS);
    }
    return NULL;
}

struct beds {
    struct il__board board;
    struct sleeper   sleepers[N_SLEEPERS];
    char             dir[T_PATH_BYTES];
    char             path[T_PATH_BYTES];
};

static void
beds_init(struct beds *beds)
{
    *beds = (struct beds){ 0 };
    t_tmp_make(beds->dir);
    t_path(beds->path, "%s/wake", beds->dir);
    map(&beds->board, beds->dir, IL__BOARD_FILE_BYTES);
    for (size_t i = 0; i < N_SLEEPERS; i++) {
        struct sleeper *s = &beds->sleepers[i];
        s->board          = &beds->board;
        s->slot           = i == 0 ? IL__BOARD_ANY : IL__BOARD_WORDS - 1;
        CHECK(pthread_create(&s->thread, NULL, sleeper_main, s) == 0);
    }
}

static void
all_asleep(struct beds *beds)
{
    int64_t until_ns = il__clock_boot_ns() + LIMIT_MS * (int64_t)IL__NS_PER_MS;

    while (atomic_load(&beds->board.n_sleepers) < N_SLEEPERS)
        T_TRUE(il__clock_boot_ns() < until_ns);
    for (size_t i = 0; i < N_SLEEPERS; i++)
        T_TRUE(t_pid_in_state(atomic_load(&beds->sleepers[i].tid), 'S', LIMIT_MS));
}

/* Wait until each has had another turn since it had n_turns[i]. */
static void
all_woken(struct beds *beds, const unsigned n_turns[N_SLEEPERS])
{
    int64_t until_ns = il__clock_boot_ns() + LIMIT_MS * (int64_t)IL__NS_PER_MS;

    for (size_t i = 0; i < N_SLEEPERS; i++) {
        while (atomic_load(&beds->sleepers[i].n_turns) == n_turns[i])
            T_TRUE(il__clock_boot_ns() < until_ns);
    }
}

static void
map_again(struct beds *beds)
{
    unsigned n_turns[N_SLEEPERS];
    int      fd = open(beds->path, O_RDWR | O_CREAT, 0600);

    CHECK(fd >= 0 && ftruncate(fd, IL__BOARD_FILE_BYTES) == 0);
    for (size_t i = 0; i < N_SLEEPERS; i++)
        n_turns[i] = atomic_load(&beds->sleepers[i].n_turns);
    T_TRUE(il__board_map_again(&beds->board, fd, IL__BOARD_FILE_BYTES));
    CHECK(close(fd) == 0);
    all_woken(beds, n_turns);
}

static void
beds_release(struct beds *beds)
{
    for (size_t i = 0; i < N_SLEEPERS; i++)
        atomic_store(&beds->sleepers[i].stop, true);
    for (size_t i = 0; i < N_SLEEPERS; i++) {
        il__board_wake(&beds->board, beds->sleepers[i].slot);
        CHECK(pthread_join(beds->sleepers[i].thread, NULL) == 0);
    }
    il__board_release(&beds->board);
    t_tmp_remove(beds->dir);
}

/* Asleep, or about to be: a new file in the place of theirs has them look again. */
U_TEST(a_new_file_wakes_everybody)
{
    struct beds beds;

    beds_init(&beds);
    for (unsigned round = 0; round < 100; round++) {
        if (round % 4 == 0)
            all_asleep(&beds);
        if (round % 8 == 0) /* the file of those who sleep has no pages when it goes */
            T_EQ(truncate(beds.path, 0), 0);
        T_EQ(unlink(beds.path), 0);
        map_again(&beds);
    }
    beds_release(&beds);
}

/*
 * ThreadSanitizer carries out our atomics itself, under a lock of its own. A fault happens there,
 * and the handler's own atomics wait for that lock: cut files cannot be tried under it.
 */
static void
skip_under_tsan(void)
{
#if defined(__SANITIZE_THREAD__)
    skip();
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
    skip();
#endif
#endif
}

/* Whoever slept on a file before it was cut is woken by the next wake-up. */
U_TEST(a_cut_file_wakes_sleepers)
{
    struct beds beds;

    skip_under_tsan();
    beds_init(&beds);
    for (unsigned round = 0; round < 10; round++) {
        unsigned n_turns[N_SLEEPERS];
        all_asleep(&beds);
        for (size_t i = 0; i < N_SLEEPERS; i++)
            n_turns[i] = atomic_load(&beds.sleepers[i].n_turns);
        T_EQ(truncate(beds.path, 0), 0);
        for (size_t i = 0; i < N_SLEEPERS; i++)
            il__board_wake(&beds.board, beds.sleepers[i].slot);
        T_TRUE(il__board_is_cut(&beds.board));
        all_woken(&beds, n_turns);
        map_again(&beds);
        T_TRUE(!il__board_is_cut(&beds.board));
    }
    beds_release(&beds);
}

/* The file was cut and cannot be extended: some sleep on the file, some on what is in its place. */
U_TEST(spare_memory_wakes_sleepers)
{
    struct beds   beds;
    struct rlimit before, none;

    skip_under_tsan();
    beds_init(&beds);
    all_asleep(&beds);
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
    CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
    T_EQ(truncate(beds.path, 0), 0);
    il__board_bump(&beds.board, IL__BOARD_LOCK_FREED);
    T_TRUE(il__board_is_cut(&beds.board));
    struct sleeper third = { .board = &beds.board, .slot = IL__BOARD_BREAK };
    CHECK(pthread_create(&third.thread, NULL, sleeper_main, &third) == 0);
    while (atomic_load(&beds.board.n_sleepers) < N_SLEEPERS + 1)
        ;
    T_TRUE(t_pid_in_state(atomic_load(&third.tid), 'S', LIMIT_MS));
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    atomic_store(&third.stop, true);
    T_EQ(unlink(beds.path), 0);
    map_again(&beds);
    CHECK(pthread_join(third.thread, NULL) == 0);
    beds_release(&beds);
}

/* ---- the ring -------------------------------------------------------------------------------- */

static enum il__ring_read
read_at(struct il__ring_reader *r, const struct il__board *b, int64_t now_ns, const char *expected)
{
    char               text[IL__RING_TEXT_BYTES_MAX + 1];
    enum il__ring_read got = il__ring_read(r, b, now_ns, text);

    if (got == IL__RING_TEXT)
        T_STREQ(text, expected);
    return got;
}

U_TEST(said_and_heard)
{
    struct il__board       b = { 0 };
    struct il__ring_reader r;
    char                   longest[IL__RING_TEXT_BYTES_MAX + 2] = { 0 };

    CHECK(il__board_init_private(&b));
    il__ring_reader_init(&r, &b);
    il__ring_say(&b, "nobody"); /* there is no ring yet */
    T_EQ(read_at(&r, &b, 1, ""), IL__RING_NONE);
    T_TRUE(il__ring_open(&b));
    T_TRUE(il__ring_open(&b));
    il__ring_say(&b, "one");
    il__ring_say(&b, NULL);
    memset(longest, 'x', IL__RING_TEXT_BYTES_MAX);
    il__ring_say(&b, longest);
    T_EQ(read_at(&r, &b, 1, "one"), IL__RING_TEXT);
    T_EQ(read_at(&r, &b, 1, ""), IL__RING_GAP);
    T_EQ(read_at(&r, &b, 1, longest), IL__RING_TEXT);
    longest[IL__RING_TEXT_BYTES_MAX] = 'x';
    il__ring_say(&b, longest);
    il__ring_say(&b, "");
    il__ring_say(&b, "a\nb");
    il__ring_say(&b, "\x7f");
    T_EQ(read_at(&r, &b, 1, ""), IL__RING_NONE);
    for (int i = 0; i < 32; i++)
        il__ring_say(&b, "many");
    for (int i = 0; i < 32; i++)
        T_EQ(read_at(&r, &b, 1, "many"), IL__RING_TEXT);
    for (int i = 0; i < 33; i++)
        il__ring_say(&b, "too many");
    T_EQ(read_at(&r, &b, 1, ""), IL__RING_GAP);
    T_EQ(read_at(&r, &b, 1, ""), IL__RING_NONE);
    il__ring_say(&b, "again");
    T_EQ(read_at(&r, &b, 1, "again"), IL__RING_TEXT);
    il__board_release(&b);
}

/* Somebody was killed before he had written his message: a gap, after a while. */
U_TEST(half_written)
{
    struct il__board       b = { 0 };
    struct il__ring_reader r;

    CHECK(il__board_init_private(&b));
    T_TRUE(il__ring_open(&b));
    il__ring_reader_init(&r, &b);
    il__board_bump(&b, IL__BOARD_SAID);
    il__ring_say(&b, "next");
    T_EQ(read_at(&r, &b, 1000000000, ""), IL__RING_NONE);
    T_EQ(read_at(&r, &b, 1500000000, ""), IL__RING_NONE);
    T_EQ(read_at(&r, &b, 2000000000, ""), IL__RING_GAP);
    T_EQ(read_at(&r, &b, 2000000000, "next"), IL__RING_TEXT);
    il__board_release(&b);
}

/* A file that ends behind the words: there is nothing to hear, and everything else works. */
U_TEST(short_file)
{
    struct il__board       b = { 0 };
    struct il__ring_reader r;
    char                   dir[T_PATH_BYTES];

    t_tmp_make(dir);
    map(&b, dir, IL__BOARD_BYTES);
    T_TRUE(!il__ring_open(&b));
    il__ring_reader_init(&r, &b);
    il__ring_say(&b, "nobody");
    T_EQ(read_at(&r, &b, 1, ""), IL__RING_NONE);
    il__board_wake(&b, IL__BOARD_WORDS - 1);
    T_EQ(il__board_read(&b, IL__BOARD_WORDS - 1), 1);
    il__board_release(&b);
    t_tmp_remove(dir);
}

/* Whatever is in the file: texts are what somebody has said, or there is a gap. */
U_TEST(damaged_file)
{
    struct il__board       writer = { 0 }, reader = { 0 };
    struct il__ring_reader r;
    struct t_rng           rng;
    char                   dir[T_PATH_BYTES], path[T_PATH_BYTES];
    unsigned               n_texts = 0, n_gaps = 0;

    t_tmp_make(dir);
    t_rng_init(&rng, 1);
    map(&writer, dir, IL__BOARD_FILE_BYTES);
    map(&reader, dir, IL__BOARD_FILE_BYTES);
    t_path(path, "%s/wake", dir);
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    il__ring_reader_init(&r, &reader);
    for (int i = 0; i < 20000; i++) {
        enum il__ring_read got;
        il__ring_say(&writer, "something that was said");
        for (unsigned k = t_rng_below(&rng, 3); k > 0; k--) {
            uint64_t junk = t_rng_next(&rng);
            uint64_t at   = t_rng_below(&rng, IL__BOARD_FILE_BYTES - 8);

            if (t_rng_below(&rng, 4) > 0) /* mostly what the reader looks at next */
                at = IL__BOARD_BYTES + r.next % 32 * 4096 + t_rng_below(&rng, 40);
            CHECK(pwrite(fd, &junk, 1 + t_rng_below(&rng, 8), (off_t)at) > 0);
        }
        int64_t now_ns = (i + 1) * INT64_C(2000000000);
        do {
            got = read_at(&r, &reader, now_ns, "something that was said");
            n_texts += got == IL__RING_TEXT;
            n_gaps += got == IL__RING_GAP;
        } while (got != IL__RING_NONE);
    }
    print_message("# %u texts, %u gaps\n", n_texts, n_gaps);
    T_TRUE(n_texts > 0 && n_gaps > 0);
    CHECK(close(fd) == 0);
    il__board_release(&writer);
    il__board_release(&reader);
    t_tmp_remove(dir);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(no_change_is_missed),
        U_ROW(watchers_are_left_alone),
        U_ROW(a_new_file_wakes_everybody),
        U_ROW(a_cut_file_wakes_sleepers),
        U_ROW(spare_memory_wakes_sleepers),
        U_ROW(said_and_heard),
        U_ROW(half_written),
        U_ROW(short_file),
        U_ROW(damaged_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
