/*
 * buf.c: growable strings with a maximum.
 */
#include "base/buf.h"

#include "harness/unit.h"

U_TEST(an_empty_buffer_is_a_string)
{
    struct il__buf b;

    il__buf_init(&b, 10);
    T_STREQ(il__buf_str(&b), "");
    char *taken = il__buf_take(&b);
    T_STREQ(taken, "");
    il__free(taken);
}

U_TEST(adding)
{
    struct il__buf AUTO_BUF b = { .n_bytes_max = 100 };

    il__buf_adds(&b, "ab");
    il__buf_addc(&b, 'c');
    il__buf_add(&b, "de\0f", 4);
    il__buf_addf(&b, "-%d-%s", 7, "x");
    T_EQ(b.n_bytes, 11);
    T_TRUE(memcmp(b.data, "abcde\0f-7-x", 12) == 0); /* with its NUL */
    T_EQ(b.failed, false);
    il__buf_clear(&b);
    T_STREQ(il__buf_str(&b), "");
    il__buf_add(&b, "", 0);
    T_EQ(b.n_bytes, 0);
}

U_TEST(the_maximum_is_reached_but_not_passed)
{
    struct il__buf AUTO_BUF b = { .n_bytes_max = 5 };

    il__buf_adds(&b, "12345");
    T_EQ(b.failed, false);
    il__buf_addc(&b, '6');
    T_EQ(b.failed, true);
    T_STREQ(il__buf_str(&b), "12345"); /* keeps what it had */
    il__buf_adds(&b, "");
    T_STREQ(il__buf_str(&b), "12345");
    T_TRUE(il__buf_take(&b) == NULL);
    T_EQ(b.failed, false); /* empty and usable again */
    il__buf_addf(&b, "%s", "123456");
    T_EQ(b.failed, true);
    il__buf_clear(&b);
    il__buf_addf(&b, "%s", "12345");
    T_STREQ(il__buf_str(&b), "12345");
}

U_TEST(growing)
{
    struct il__buf AUTO_BUF b = { .n_bytes_max = 100000 };

    for (unsigned i = 0; i < 100000; i++)
        il__buf_addc(&b, (char)('a' + i % 26));
    T_EQ(b.n_bytes, 100000);
    T_EQ(b.failed, false);
    T_EQ(strlen(il__buf_str(&b)), 100000);
    T_EQ(b.data[99999], 'a' + 99999 % 26);
    il__buf_addc(&b, 'x');
    T_EQ(b.failed, true);
}

U_TEST(taking_moves)
{
    struct il__buf b = { .n_bytes_max = 100 };

    il__buf_adds(&b, "mine");
    char *taken = il__buf_take(&b);
    T_STREQ(taken, "mine");
    T_STREQ(il__buf_str(&b), "");
    il__buf_adds(&b, "again");
    T_STREQ(taken, "mine");
    il__free(taken);
    il__buf_release(&b);
    il__buf_release(&b);
}

static void *
no_alloc(void *cookie UNUSED, size_t n_bytes UNUSED)
{
    return NULL;
}

static void *
no_realloc(void *cookie UNUSED, void *p UNUSED, size_t n_bytes UNUSED)
{
    return NULL;
}

static void
plain_free(void *cookie UNUSED, void *p)
{
    free(p);
}

U_TEST(without_memory_it_fails_quietly)
{
    static const il_allocator none = { no_alloc, no_realloc, plain_free, NULL };
    struct il__buf            b    = { .n_bytes_max = 1000 };

    il__buf_adds(&b, "kept");
    il_set_allocator(&none);
    for (unsigned i = 0; i < 100; i++)
        il__buf_adds(&b, "more");
    il_set_allocator(NULL);
    T_EQ(b.failed, true);
    T_TRUE(strncmp(il__buf_str(&b), "keptmore", 8) == 0);
    il__buf_release(&b);
}

U_TEST(room_to_write_by_hand)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, 10);
    il__buf_adds(&b, "ab");
    char *at = il__buf_room(&b, 8);
    T_TRUE(at != NULL);
    memcpy(at, "cdefghij", 9);
    b.n_bytes += 8;
    T_STREQ(il__buf_str(&b), "abcdefghij");
    T_TRUE(il__buf_room(&b, 0) != NULL);
    T_TRUE(il__buf_room(&b, 1) == NULL);
    T_TRUE(b.failed);
    T_STREQ(il__buf_str(&b), "abcdefghij");
}

U_TEST(part_of_a_url)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, 100);
    il__buf_addc(&b, '/');
    il__buf_add_url(&b, "azAZ09-._~");
    il__buf_add_url(&b, "/ %?\x7f\xc3\xa4");
    T_STREQ(il__buf_str(&b), "/azAZ09-._~%2F%20%25%3F%7F%C3%A4");
    il__buf_clear(&b);
    il__buf_add_url(&b, "");
    T_STREQ(il__buf_str(&b), "");
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(an_empty_buffer_is_a_string),
        U_ROW(adding),
        U_ROW(the_maximum_is_reached_but_not_passed),
        U_ROW(growing),
        U_ROW(taking_moves),
        U_ROW(without_memory_it_fails_quietly),
        U_ROW(room_to_write_by_hand),
        U_ROW(part_of_a_url),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
