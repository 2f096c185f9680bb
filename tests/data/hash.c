/*
 * hash.c: the key hash is HMAC-SHA-256 (test vectors of RFC 4231), and it is fast: every request to
 * a server computes one.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "data/place.h"
#include "harness/unit.h"

static void
hash_is(const char *pepper, size_t n_pepper, const char *text, const char *expected)
{
    struct t_place       p;
    char                 file[T_PATH_BYTES], hex[2 * DATA_HASH_BYTES + 1];
    unsigned char        hash[DATA_HASH_BYTES];
    struct il__data     *d = NULL;
    struct il__data_open o = { .store_url = "memory:", .pepper_file = file };
    il_error             err;

    t_tmp_make(p.dir);
    t_path(file, "%s/pepper", p.dir);
    t_file_write(file, pepper, n_pepper);
    T_EQ(chmod(file, 0600), 0);
    T_EQ(il__data_open(&o, &d, &err), IL_OK);
    for (unsigned again = 0; again < 2; again++) {
        il__data_key_hash(d, text, strlen(text), hash);
        for (size_t i = 0; i < sizeof hash; i++)
            (void)snprintf(hex + 2 * i, 3, "%02x", hash[i]);
        T_STREQ(hex, expected);
    }
    il__data_close(d);
    t_tmp_remove(p.dir);
}

U_TEST(known_vectors)
{
    char pepper[131];

    memset(pepper, 0x0b, sizeof pepper);
    hash_is(pepper, 20, "Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    memset(pepper, 0xaa, sizeof pepper);
    hash_is(pepper, 131, "Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

#define N_HASHES 100000

static int64_t
cpu_ns(void)
{
    struct timespec t;

    T_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* A bound that a sanitizer keeps, of the CPU's time, so that others do not count; the number is
 * printed for people. */
U_TEST(it_is_fast)
{
    static const char    key[] = "sk_default_0123456789012345678901234567890123456789012";
    struct il__data_open o     = { .store_url = "memory:" };
    struct il__data     *d     = NULL;
    unsigned char        hash[DATA_HASH_BYTES];
    il_error             err;

    T_EQ(il__data_open(&o, &d, &err), IL_OK);
    int64_t from_ns = cpu_ns();
    for (unsigned i = 0; i < N_HASHES; i++)
        il__data_key_hash(d, key, sizeof key - 1, hash);
    int64_t took_ns = cpu_ns() - from_ns;
    print_message("# %lld ns per hash\n", (long long)(took_ns / N_HASHES));
    T_TRUE(took_ns / N_HASHES < 50000);
    il__data_close(d);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(known_vectors), U_ROW(it_is_fast) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
