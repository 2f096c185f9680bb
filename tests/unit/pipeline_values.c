/*
 * pipeline_values.c: parameters substituted for {name} in a file: as whole values, escaped for
 * their context, bound in SQL.
 */
#include "unit/pipeline.h"

#include "apps/runner/template.h"

static struct pipeline_values
some(void)
{
    struct pipeline_values v = { 0 };

    v.items[v.n].name    = "date";
    v.items[v.n++].value = "2026-11-15";
    v.items[v.n].name    = "evil";
    v.items[v.n++].value = "'; DROP TABLE t; -- \"{date}\" $(rm) \n\x7f é&=?/";
    v.items[v.n].name    = "empty";
    v.items[v.n++].value = "";
    return v;
}

static void
expands(const char *text, enum pipeline_escape escape, const char *expected)
{
    AUTO_BUF struct il__buf out = { 0 };
    struct pipeline_values  v   = some();
    il_error                err = { 0 };

    il__buf_init(&out, 4096);
    if (il__pipeline_expand(&(struct pipeline_text){ text }, &v, escape, &out, &err) != IL_OK)
        T_FAIL("'%s': %s", text, err.message);
    T_STREQ(il__buf_str(&out), expected);
}

U_TEST(expand)
{
    expands("", PIPELINE_PLAIN, "");
    expands("x", PIPELINE_PLAIN, "x");
    expands("{date}", PIPELINE_PLAIN, "2026-11-15");
    expands("--d={date}/{date}{empty}.", PIPELINE_PLAIN, "--d=2026-11-15/2026-11-15.");
    expands("{{date}}", PIPELINE_PLAIN, "{date}");
    expands("{{{date}}}", PIPELINE_PLAIN, "{{date}}");
    expands("{", PIPELINE_PLAIN, "{");
    expands("{}", PIPELINE_PLAIN, "{}");
    expands("{date", PIPELINE_PLAIN, "{date");
    expands("date}", PIPELINE_PLAIN, "date}");
    expands("{ date }", PIPELINE_PLAIN, "{ date }");
    expands("{x y}{1a}{a-b}", PIPELINE_PLAIN, "{x y}{1a}{a-b}");
    expands("{{}}", PIPELINE_PLAIN, "{{}}");
    expands("{\"a\":{\"b\":{}}}", PIPELINE_JSON, "{\"a\":{\"b\":{}}}");
    /* a value is not looked at again */
    expands("{evil}", PIPELINE_PLAIN, "'; DROP TABLE t; -- \"{date}\" $(rm) \n\x7f é&=?/");
}

U_TEST(escapes)
{
    expands("https://h/{evil}?a=b&c={date}", PIPELINE_URL,
            "https://h/"
            "%27%3B%20DROP%20TABLE%20t%3B%20--%20%22%7Bdate%7D%22%20%24%28rm%29%20%0A%7F%20%C3%A9%"
            "26%3D%3F%2F?a=b&c=2026-11-15");
    expands("{\"x\":\"{evil}\"}", PIPELINE_JSON,
            "{\"x\":\"'; DROP TABLE t; -- \\\"{date}\\\" $(rm) \\u000a\\u007f é&=?/\"}");
}

U_TEST(no_value)
{
    AUTO_BUF struct il__buf out = { 0 };
    struct pipeline_values  v   = some();
    il_error                err = { 0 };

    il__buf_init(&out, 8);
    T_EQ(il__pipeline_expand(&(struct pipeline_text){ "a {nope}" }, &v, PIPELINE_PLAIN, &out, &err),
         IL_INVAL);
    T_HAS(err.message, "'nope' has no value");
    T_EQ(il__pipeline_expand(&(struct pipeline_text){ "{date}" }, &v, PIPELINE_PLAIN, &out, &err),
         IL_INVAL);
    T_HAS(err.message, "exceeds 8 bytes");
    T_TRUE(il__pipeline_value(&v, "nope") == NULL);
    T_STREQ(il__pipeline_value(&v, "empty"), "");
}

U_TEST(names)
{
    char name[TEMPLATE_NAME_BYTES_MAX + 2];

    T_TRUE(il__pipeline_parameter_ok("a"));
    T_TRUE(il__pipeline_parameter_ok("_A9"));
    T_TRUE(!il__pipeline_parameter_ok(""));
    T_TRUE(!il__pipeline_parameter_ok("9a"));
    T_TRUE(!il__pipeline_parameter_ok("a-b"));
    T_TRUE(!il__pipeline_parameter_ok("ä"));
    T_TRUE(!il__pipeline_parameter_ok("run_id"));
    T_TRUE(!il__pipeline_parameter_ok("tenant"));
    T_TRUE(!il__pipeline_parameter_ok("attempt"));
    memset(name, 'x', sizeof name);
    name[TEMPLATE_NAME_BYTES_MAX + 1] = '\0';
    T_TRUE(!il__pipeline_parameter_ok(name));
    name[TEMPLATE_NAME_BYTES_MAX] = '\0';
    T_TRUE(il__pipeline_parameter_ok(name));
}

/* ---- SQL ------------------------------------------------------------------------------------- */

static void
binds(const char *sql, const char *expected, size_t n_expected)
{
    AUTO_BUF struct il__buf out = { 0 };
    struct pipeline_values  v   = some();
    const char             *values[8];
    size_t                  n   = 99;
    il_error                err = { 0 };

    il__buf_init(&out, 4096);
    if (il__pipeline_bind(&(struct pipeline_text){ sql }, &v, &out, values, ARRAY_LEN(values), &n,
                          &err) != IL_OK)
        T_FAIL("'%s': %s", sql, err.message);
    T_STREQ(il__buf_str(&out), expected);
    T_EQ(n, n_expected);
    for (size_t i = 0; i < n; i++)
        T_TRUE(values[i] == v.items[0].value || values[i] == v.items[1].value);
}

U_TEST(bind)
{
    binds("SELECT 1", "SELECT 1", 0);
    binds("DELETE FROM t WHERE d = {date}", "DELETE FROM t WHERE d = $1", 1);
    binds("{evil},{date},{evil}", "$1,$2,$3", 3);
    binds("a={date}::date", "a=$1 ::date", 1);
    binds("x{date}y", "x $1 y", 1);
    binds("{date}{date}", "$1 $2", 2);
    binds("f({date})", "f( $1)", 1);
    binds("{{date}} {x y} {}", "{date} {x y} {}", 0);
}

U_TEST(bind_in_quotes)
{
    binds("'{date}' {date}", "'{date}' $1", 1);
    binds("'it''s {date}' {date}", "'it''s {date}' $1", 1);
    binds("'a\\' {date}", "'a\\' $1", 1);                 /* a backslash is nothing special … */
    binds("E'a\\'{date}' {date}", "E'a\\'{date}' $1", 1); /* … but here */
    binds("name'a\\' {date}", "name'a\\' $1", 1);
    binds("\"{date}\" {date}", "\"{date}\" $1", 1);
    binds("\"a\"\"{date}\" `{date}` {date}", "\"a\"\"{date}\" `{date}` $1", 1);
    binds("'{date}", "'{date}", 0); /* without an end: for the database to refuse */
    binds("'a''", "'a''", 0);
}

U_TEST(bind_in_comments)
{
    binds("-- {date}\n{date}", "-- {date}\n$1", 1);
    binds("a - {date} -- '\n{date}", "a - $1 -- '\n$2", 2);
    binds("/* {date} ' */ {date}", "/* {date} ' */ $1", 1);
    binds("/* /* {date} */ {date} */ {date}", "/* /* {date} */ {date} */ $1", 1);
    binds("a / {date} /* x", "a / $1 /* x", 1);
    binds("--", "--", 0);
    binds("/*", "/*", 0);
}

U_TEST(bind_in_dollars)
{
    binds("$$ {date} $$ {date}", "$$ {date} $$ $1", 1);
    binds("$x$ {date} $$ {date} $x$ {date}", "$x$ {date} $$ {date} $x$ $1", 1);
    binds("$x$ {date} $y$", "$x$ {date} $y$", 0);
    binds("a$b$ {date} $b$", "a$b$ $1 $b$", 1); /* the name a$b$ */
    binds("$ {date}", "$ $1", 1);
}

U_TEST(bind_faults)
{
    AUTO_BUF struct il__buf out = { 0 };
    struct pipeline_values  v   = some();
    const char             *values[2];
    size_t                  n;
    il_error                err = { 0 };

    il__buf_init(&out, 4096);
    T_EQ(il__pipeline_bind(&(struct pipeline_text){ "{nope}" }, &v, &out, values, 2, &n, &err),
         IL_INVAL);
    T_HAS(err.message, "'nope'");
    T_EQ(il__pipeline_bind(&(struct pipeline_text){ "{date}{date}{date}" }, &v, &out, values, 2, &n,
                           &err),
         IL_INVAL);
    T_HAS(err.message, "more than 2 parameters");
    T_EQ(il__pipeline_bind(&(struct pipeline_text){ "x = $12" }, &v, &out, values, 2, &n, &err),
         IL_INVAL);
    T_HAS(err.message, "$12");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        U_ROW(expand),      U_ROW(escapes),        U_ROW(no_value),         U_ROW(names),
        U_ROW(bind),        U_ROW(bind_in_quotes), U_ROW(bind_in_comments), U_ROW(bind_in_dollars),
        U_ROW(bind_faults),
    };

    return cmocka_run_group_tests_name("pipeline_values", tests, NULL, NULL);
}
