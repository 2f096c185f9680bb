/*
 * url.c: URLs of PostgreSQL stores: our own options are removed, libpq gets the rest, and no secret
 * is shown.
 */
#include "harness/unit.h"
#include "store/postgres/postgres_internal.h"

static const char *
value(const PQconninfoOption *o, const char *keyword)
{
    for (; o != NULL && o->keyword != NULL; o++) {
        if (strcmp(o->keyword, keyword) == 0)
            return o->val != NULL ? o->val : "";
    }
    return "?";
}

static il_status
parse(const char *url, struct pg_url *u, il_error *err)
{
    *u   = (struct pg_url){ 0 };
    *err = (il_error){ 0 };
    T_EQ(il__pg_libpq_load(err), IL_OK);
    return il__pg_url_parse(u, url, err);
}

U_TEST(options)
{
    struct pg_url u;
    il_error      err;

    T_EQ(parse("postgres://me:sesame@db.example.com:5433/"
               "app?schema=x1&sslmode=require&clock=test&application_name=y&listen=no",
               &u, &err),
         IL_OK);
    T_STREQ(value(u.server, "host"), "db.example.com");
    T_STREQ(value(u.server, "port"), "5433");
    T_STREQ(value(u.server, "dbname"), "app");
    T_STREQ(value(u.server, "password"), "sesame");
    T_STREQ(value(u.server, "sslmode"), "require");
    T_STREQ(value(u.server, "application_name"), "y");
    T_STREQ(u.schema, "x1");
    T_STREQ(u.channel, "interlock_x1");
    T_TRUE(u.no_listen);
    T_STREQ(u.shown, "postgres://db.example.com:5433/app");
    il__pg_url_release(&u);

    T_EQ(parse("postgres://me%40work:p%40ss%2Fw@h1:1,h2:2/a%40b?passfile=/x@y", &u, &err), IL_OK);
    T_STREQ(value(u.server, "user"), "me@work");
    T_STREQ(value(u.server, "password"), "p@ss/w");
    T_STREQ(value(u.server, "host"), "h1,h2");
    T_STREQ(value(u.server, "port"), "1,2");
    T_STREQ(value(u.server, "dbname"), "a@b");
    il__pg_url_release(&u);

    T_EQ(parse("postgresql://", &u, &err), IL_OK);
    T_STREQ(u.schema, "interlock");
    T_TRUE(!u.no_listen && u.listen == NULL);
    il__pg_url_release(&u);

    T_EQ(parse(
             "postgres:///app?host=/run/"
             "postgresql&listen=postgres%3a%2F%2Fyou%3Apw%40direct%3A5434%2Fapp%3Fsslmode%3Dprefer",
             &u, &err),
         IL_OK);
    T_STREQ(value(u.server, "host"), "/run/postgresql");
    T_STREQ(value(u.listen, "host"), "direct");
    T_STREQ(value(u.listen, "port"), "5434");
    T_STREQ(value(u.listen, "sslmode"), "prefer");
    il__pg_url_release(&u);
}

U_TEST(refused)
{
    static const char *const bad[] = {
        "postgres:db",
        "postgres:/db",
        "postgres://me:sesame@h/db?nonsense=1",
        "postgres://me:sesame@[::1/db",
        "postgres://me:sesame@h:port/db?x",
        "postgres://me:sesame@h:port/db",
        "postgres://me:sesame@h:1,h:x/db",
        "postgres://me:ses@sesame@h/db", /* what libpq takes for a host, a port or a database */
        "postgres://me:sesame/x@h/db",
        "postgres://me:12/sesame@h/db",
        "postgres://me:sesame/ses@me@h/db",
        "postgres://me:@sesame@h/db",
        "postgres://h/db?listen=postgres%3A%2F%2Fme%3A12%2Fsesame%40h%2Fdb",
        "postgres://me:sesame@h/db?schema=",
        "postgres://me:sesame@h/db?schema=Upper",
        "postgres://me:sesame@h/db?schema=1x",
        "postgres://me:sesame@h/db?schema=pg_catalog",
        "postgres://me:sesame@h/db?schema=a\"b",
        "postgres://me:sesame@h/db?schema=a2345678901234567890123456789012345678901234567890",
        "postgres://me:sesame@h/db?clock=real",
        "postgres://me:sesame@h/db?listen=",
        "postgres://me:sesame@h/db?listen=yes",
        "postgres://me:sesame@h/db?listen=redis%3A%2F%2Fh",
        "postgres://me:sesame@h/db?listen=postgres%3A%2F%2Fme%3Asesame%40%5Bh",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct pg_url u;
        il_error      err;
        if (parse(bad[i], &u, &err) != IL_INVAL)
            T_FAIL("accepted: %s", bad[i]);
        T_TRUE(err.message[0] != '\0');
        T_TRUE(strstr(err.message, "sesame") == NULL);
        il__pg_url_release(&u);
    }
}

U_TEST(sqlstates)
{
    T_EQ(il__pg_map("53100"), IL_FULL);
    T_EQ(il__pg_map("XX001"), IL_CORRUPT);
    T_EQ(il__pg_map("57014"), IL_STORE);
    T_EQ(il__pg_map(""), IL_STORE);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = { U_ROW(options), U_ROW(refused), U_ROW(sqlstates) };

    return cmocka_run_group_tests_name("postgres-url", tests, NULL, NULL);
}
