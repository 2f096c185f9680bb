/*
 * pipeline.c: pipeline files: every key, every range at its bounds, every fault with its line.
 */
#include "unit/pipeline.h"

#include "core/limits.h"

#define STEP "steps:\n- {step_id: a, type: command, run: [\"true\"]}\n"
#define HEAD "pipeline_id: p\n"

/* ---- what a file says ------------------------------------------------------------------------ */

U_TEST(smallest)
{
    struct pipeline *p = t_good(HEAD STEP);

    T_STREQ(p->id, "p");
    T_STREQ(p->tenant, "acme");
    T_STREQ(p->path, "f.yml");
    T_STREQ(p->key, "pipeline:p");
    T_STREQ(p->description, "");
    T_STREQ(p->version, "");
    T_TRUE(p->schedule_text == NULL);
    T_EQ(il__pipeline_next_tick(p, 0), IL__NEVER);
    T_EQ(p->timeout_ms, 30 * 60000);
    T_EQ(p->lock_timeout_ms, 0);
    T_EQ(p->on_conflict, IL_POLICY_JOIN);
    T_EQ(p->queue_max, 0);
    T_EQ(p->lock_retries, 3);
    T_EQ(p->lock_retry_delay_ms, 5000);
    T_TRUE(p->lock_metrics);
    T_EQ(p->preflight, PIPELINE_NO_PROBE);
    T_EQ(p->n_parameters, 0);
    T_EQ(p->n_steps, 1);
    T_EQ(p->n_levels, 1);
    T_EQ(p->catch_up_ms, 60000);
    const struct pipeline_step *s = &p->steps[0];
    T_STREQ(s->id, "a");
    T_EQ(s->type, PIPELINE_COMMAND);
    T_EQ(s->line, 3);
    T_EQ(s->timeout_ms, 600000);
    T_EQ(s->retries, 0);
    T_EQ(s->retry_delay_ms, 1000);
    T_EQ(s->on_failure, PIPELINE_STOP);
    T_EQ(s->command.n_argv, 1);
    T_STREQ(s->command.argv[0].text, "true");
    T_TRUE(s->command.script == NULL);
    il__pipeline_unref(p);
}

static const char everything[] =
    "pipeline_id: Nightly_Load-2\n"
    "description: |\n"
    "  Loads what came in.\n"
    "  Every night.\n"
    "version: 1.10\n"
    "schedule: {cron: \"0 3 * * *\", zone: Europe/Berlin, catch_up: 2h}\n"
    "parameters:\n"
    "  date: null\n"
    "  region: eu\n"
    "  limit: {default: 100, description: rows at most}\n"
    "  bucket: {description: must be given}\n"
    "timeout_minutes: 90\n"
    "lock_timeout_seconds: 7200\n"
    "on_conflict: replace_pending\n"
    "retry_attempts: 2\n"
    "retry_delay: 3s\n"
    "lock_metrics_enabled: false\n"
    "preflight: {type: http, url: \"https://h/x?d={date}\", timeout: 2s}\n"
    "steps:\n"
    "- step_id: extract\n"
    "  type: command\n"
    "  run: [./extract, --date, \"{date}\", \"--to={region}\"]\n"
    "  env: {LEVEL: debug, DAY: \"{date}\", EMPTY: }\n"
    "  limits: {cpu_seconds: 10, memory_mb: 64, open_files: 32, processes: 4}\n"
    "  timeout: 45s\n"
    "- step_id: script\n"
    "  type: command\n"
    "  shell: true\n"
    "  run: |\n"
    "    awk '{print}' < \"${HOME}/x\" | head -n \"$INTERLOCK_PARAM_limit\"\n"
    "- step_id: load\n"
    "  type: sql\n"
    "  description: into the table\n"
    "  connection: warehouse\n"
    "  sql:\n"
    "  - DELETE FROM t WHERE day = {date}\n"
    "  - INSERT INTO t VALUES ({date}, '{x}')\n"
    "  depends_on: [extract, script]\n"
    "  timeout_minutes: 20\n"
    "  retries: 0\n"
    "- step_id: tell\n"
    "  type: http\n"
    "  method: PUT\n"
    "  url: https://example.org/{region}/done\n"
    "  headers: {X-Run: \"{run_id}\"}\n"
    "  body: {date: \"{date}\", n: 1, deep: {ok: true, no: null, l: [1.5, x]}}\n"
    "  expect: 200..204\n"
    "  depends_on: load\n"
    "  on_failure: alert\n"
    "- step_id: check\n"
    "  type: check\n"
    "  connection: warehouse\n"
    "  table: public.t\n"
    "  expectations:\n"
    "  - {kind: row_count, min: 1, max: 1000}\n"
    "  - {kind: column_exists, column: day}\n"
    "  - {kind: not_null, column: day}\n"
    "  - {kind: value_between, column: n, min: -1.5, max: 10}\n"
    "  - {kind: unique, column: id}\n"
    "  - {kind: sql, sql: \"SELECT * FROM t WHERE day > {date}\", max: 0}\n"
    "  depends_on: [load]\n"
    "  on_failure: continue\n";

U_TEST(every_key)
{
    struct pipeline *p = t_good(everything);

    T_STREQ(p->id, "Nightly_Load-2");
    T_STREQ(p->description, "Loads what came in.\nEvery night.\n");
    T_STREQ(p->version, "1.10");
    T_STREQ(p->schedule_text, "0 3 * * *");
    T_STREQ(p->zone->name, "Europe/Berlin");
    T_EQ(p->catch_up_ms, 7200000);
    T_EQ(p->n_parameters, 4);
    T_STREQ(p->parameters[0].name, "date");
    T_TRUE(p->parameters[0].fallback == NULL);
    T_STREQ(p->parameters[1].fallback, "eu");
    T_STREQ(p->parameters[2].fallback, "100");
    T_TRUE(p->parameters[3].fallback == NULL);
    T_EQ(p->timeout_ms, 90 * 60000);
    T_EQ(p->lock_timeout_ms, 7200000);
    T_EQ(p->on_conflict, IL_POLICY_REPLACE_PENDING);
    T_TRUE(!p->lock_metrics);
    T_EQ(p->preflight, PIPELINE_PROBE_HTTP);
    T_EQ(p->preflight_timeout_ms, 2000);
    T_STREQ(p->probe_http.method, "GET");
    T_STREQ(p->probe_http.url.text, "https://h/x?d={date}");
    T_EQ(p->n_steps, 5);
    T_EQ(p->n_levels, 3);
    il__pipeline_unref(p);
}

U_TEST(every_key_of_commands)
{
    struct pipeline            *p = t_good(everything);
    const struct pipeline_step *s = &p->steps[0];

    T_EQ(s->line, 20);
    T_EQ(s->command.n_argv, 4);
    T_STREQ(s->command.argv[3].text, "--to={region}");
    T_EQ(s->command.n_env, 3);
    T_STREQ(s->command.env[1].name, "DAY");
    T_STREQ(s->command.env[1].value.text, "{date}");
    T_STREQ(s->command.env[2].value.text, "");
    T_EQ(s->command.limits.cpu_s, 10);
    T_EQ(s->command.limits.memory_bytes, 64 << 20);
    T_EQ(s->command.limits.open_files, 32);
    T_EQ(s->command.limits.processes, 4);
    T_EQ(s->timeout_ms, 45000);
    T_EQ(s->retries, 2);
    T_EQ(s->retry_delay_ms, 3000);
    s = &p->steps[1];
    T_EQ(s->command.n_argv, 0);
    T_STREQ(s->command.script,
            "awk '{print}' < \"${HOME}/x\" | head -n \"$INTERLOCK_PARAM_limit\"\n");
    T_EQ(s->level, 1);
    il__pipeline_unref(p);
}

U_TEST(every_key_of_the_others)
{
    struct pipeline            *p = t_good(everything);
    const struct pipeline_step *s = &p->steps[2];

    T_EQ(s->type, PIPELINE_SQL);
    T_STREQ(s->connection, "warehouse");
    T_EQ(s->n_sql, 2);
    T_STREQ(s->sql[0].text, "DELETE FROM t WHERE day = {date}");
    T_EQ(s->n_needs, 2);
    T_EQ(s->needs[1], 1);
    T_EQ(s->level, 2);
    T_EQ(s->retries, 0);
    T_EQ(s->timeout_ms, 20 * 60000);
    s = &p->steps[3];
    T_EQ(s->type, PIPELINE_HTTP);
    T_STREQ(s->http.method, "PUT");
    T_STREQ(s->http.headers[0].name, "X-Run");
    T_STREQ(s->http.body.text,
            "{\"date\":\"{date}\",\"n\":1,\"deep\":{\"ok\":true,\"no\":null,\"l\":[1.5,\"x\"]}}");
    T_EQ(s->http.body_escape, PIPELINE_JSON);
    T_EQ(s->http.expect_from, 200);
    T_EQ(s->http.expect_to, 204);
    T_EQ(s->on_failure, PIPELINE_ALERT);
    T_EQ(s->level, 3);
    s = &p->steps[4];
    T_EQ(s->type, PIPELINE_CHECK);
    T_STREQ(s->table, "public.t");
    T_EQ(s->n_expectations, 6);
    for (size_t i = 0; i < 6; i++)
        T_EQ(s->expectations[i].kind, (int)i);
    T_STREQ(s->expectations[0].min, "1");
    T_STREQ(s->expectations[0].max, "1000");
    T_STREQ(s->expectations[3].min, "-1.5");
    T_STREQ(s->expectations[5].sql.text, "SELECT * FROM t WHERE day > {date}");
    T_EQ(s->on_failure, PIPELINE_CONTINUE);
    il__pipeline_unref(p);
}

U_TEST(policies)
{
    for (int i = 0; i < IL_POLICY_COUNT; i++) {
        char text[200];
        char name[40];
        for (int dashes = 0; dashes < 2; dashes++) {
            (void)snprintf(name, sizeof name, "%s", il_policy_name((il_policy)i));
            for (char *c = name; *c != '\0'; c++)
                *c = *c == '-' && dashes == 0 ? '_' : *c;
            (void)snprintf(text, sizeof text, HEAD "on_conflict: %s\n" STEP, name);
            struct pipeline *p = t_good(text);
            T_EQ(p->on_conflict, i);
            il__pipeline_unref(p);
        }
    }
    t_bad(HEAD "on_conflict: jion\n" STEP,
          "error 2 on_conflict: 'jion' is not one of join, reject, skip, queue, "
          "replace-pending, cancel-running (did you mean 'join'?)");
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* `key: value` at the top (step false) or in a step: the borders are in, what lies beyond is
 * out. */
static void
range(bool step, const char *key, const char *min, const char *max, const char *below,
      const char *above)
{
    const char *values[] = { min, max, below, above, "x", "", "[1]", "-1", "1e3" };

    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        char text[400];
        char line[100];
        if (values[i] == NULL)
            continue;
        (void)snprintf(text, sizeof text,
                       step ? HEAD "steps:\n- step_id: a\n  type: command\n  run: [x]\n  %s: %s\n"
                            : HEAD "%s: %s\n" STEP,
                       key, values[i]);
        (void)snprintf(line, sizeof line, step ? "error 6 steps[0].%s: " : "error 2 %s: ", key);
        if (i < 2)
            il__pipeline_unref(t_good(text));
        else
            t_bad(text, line);
    }
}

U_TEST(ranges)
{
    range(false, "timeout_minutes", "1", "1440", "0", "1441");
    range(false, "timeout", "1s", "24h", "999ms", "1441m");
    range(false, "lock_timeout_seconds", "60", "86400", "59", "86401");
    range(false, "stall_timeout_seconds", "1", "86400", "0", "86401");
    range(false, "retry_attempts", "0", "10", NULL, "11");
    range(false, "retry_delay", "0", "5m", NULL, "301s");
    range(false, "queue_max", "1", "10000", "0", "10001");
    range(false, "lock_acquisition_retries", "0", "100", NULL, "101");
    range(false, "lock_acquisition_retry_delay_seconds", "0", "3600", NULL, "3601");
    range(false, "lock_metrics_enabled", "true", "false", "yes", "1");
    range(true, "timeout_minutes", "1", "120", "0", "121");
    range(true, "timeout", "250ms", "2h", "249ms", "121m");
    range(true, "retries", "0", "10", NULL, "11");
    range(true, "retry_delay", "0", "5m", NULL, "301s");
    range(true, "on_failure", "stop", "alert", "ignore", "halt");
    range(true, "shell", "false", "false", "yes", "0");
}

U_TEST(ranges_of_limits)
{
    static const struct {
        const char *key;
        int64_t     min, max;
    } rows[] = { { "cpu_seconds", 1, 86400 },
                 { "memory_mb", 1, 1 << 20 },
                 { "open_files", 8, 1 << 20 },
                 { "processes", 1, 1 << 20 } };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (int64_t at = 0; at < 4; at++) {
            char    text[300];
            int64_t value = at < 2 ? rows[i].min - (at == 1) : rows[i].max + (at == 3);
            (void)snprintf(
                text, sizeof text,
                HEAD "steps:\n- step_id: a\n  type: command\n  run: [x]\n  limits: {%s: %lld}\n",
                rows[i].key, (long long)value);
            if (at % 2 == 0)
                il__pipeline_unref(t_good(text));
            else
                t_bad(text, "error 6 steps[0].limits.");
        }
    }
    t_bad(HEAD "steps:\n- step_id: a\n  type: command\n  run: [x]\n  limits: {memory: 1}\n",
          "error 6 steps[0].limits: unknown key 'memory' (did you mean 'memory_mb'?)");
}

U_TEST(number_of_steps)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, 1 << 20);
    il__buf_adds(&b, HEAD "steps:\n");
    for (int i = 0; i < PIPELINE_STEPS_MAX; i++)
        il__buf_addf(&b, "- {step_id: s%d, type: command, run: [x]%s%.0d}\n", i,
                     i > 0 ? ", depends_on: [s0]" : "", 0);
    struct pipeline *p = t_good(il__buf_str(&b));
    T_EQ(p->n_steps, PIPELINE_STEPS_MAX);
    T_EQ(p->n_levels, 2);
    il__pipeline_unref(p);
    il__buf_adds(&b, "- {step_id: more, type: command, run: [x]}\n");
    t_bad(il__buf_str(&b), "error 3 steps: must be a list of 1 to 100 steps");
    t_bad(HEAD, "error 1 steps: must be a list of 1 to 100 steps");
    t_bad(HEAD "steps: []\n", "error 2 steps: must be a list of 1 to 100 steps");
    t_bad(HEAD "steps: {a: 1}\n", "error 2 steps: must be a list");
}

/* ---- faults ---------------------------------------------------------------------------------- */

U_TEST(ids)
{
    char text[400];
    char id[PIPELINE_ID_BYTES_MAX + 2];

    t_bad(STEP, "error 1 pipeline_id: missing");
    t_bad("pipeline_id: a b\n" STEP,
          "error 1 pipeline_id: 'a b' may contain only letters, digits, '_' and '-'");
    t_bad("pipeline_id: \"\"\n" STEP, "error 1 pipeline_id: must not be empty");
    t_bad("pipeline_id: a/b\n" STEP, "error 1 pipeline_id: 'a/b' may contain");
    t_bad("pipeline_id: ü\n" STEP, "error 1 pipeline_id: ");
    t_bad("pipeline_id: [a]\n" STEP, "error 1 pipeline_id: must be a string, not a list");
    t_bad("pipeline_id: run\n" STEP, "error 1 pipeline_id: 'run' is reserved");
    t_bad("pipeline_id: runs\n" STEP, "'runs' is reserved");
    t_bad("pipeline_id: locks\n" STEP, "'locks' is reserved");
    t_bad("pipeline_id: reload\n" STEP, "'reload' is reserved");
    memset(id, 'x', sizeof id);
    id[PIPELINE_ID_BYTES_MAX] = '\0';
    (void)snprintf(text, sizeof text, "pipeline_id: %s\n" STEP, id);
    il__pipeline_unref(t_good(text));
    (void)snprintf(text, sizeof text, "pipeline_id: %sx\n" STEP, id);
    t_bad(text, "error 1 pipeline_id: longer than 128 bytes");
}

U_TEST(unknown_keys)
{
    t_bad(HEAD "shedule: x\n" STEP, "error 2 unknown key 'shedule' (did you mean 'schedule'?)");
    t_bad(HEAD "zzz: x\n" STEP, "error 2 unknown key 'zzz'\n");
    t_bad(HEAD "steps:\n- step_id: a\n  type: command\n  run: [x]\n  dependson: []\n",
          "error 6 steps[0]: unknown key 'dependson' (did you mean 'depends_on'?)");
    t_bad(HEAD "steps:\n- step_id: a\n  type: command\n  run: [x]\n  sql: SELECT 1\n",
          "error 6 steps[0]: unknown key 'sql'");
    t_bad(HEAD "steps:\n- step_id: a\n  type: comand\n",
          "error 4 steps[0].type: 'comand' is not one of command, sql, "
          "http, check (did you mean 'command'?)");
    t_bad(HEAD "steps:\n- step_id: a\n  run: [x]\n",
          "error 3 steps[0].type: missing; must be one of");
    t_bad(HEAD "steps:\n- true\n", "error 3 steps[0]: must be a mapping");
    t_bad(HEAD "schedule: {cron: \"* * * * *\", tz: UTC}\n" STEP,
          "error 2 schedule: unknown key 'tz'");
    t_bad(HEAD "parameters: {a: {defualt: 1}}\n" STEP,
          "error 2 parameters.a: unknown key 'defualt' (did you mean 'default'?)");
    t_bad(HEAD "preflight: {type: command, urll: x, run: [x]}\n" STEP,
          "error 2 preflight: unknown key 'urll'");
}

/* All of them at once, in the order of lines. */
U_TEST(all_faults_at_once)
{
    AUTO_BUF struct il__buf said = { 0 };

    T_TRUE(t_parse("pipeline_id: p q\n"
                   "timeout_minutes: 0\n"
                   "parameters: {1x: 1}\n"
                   "steps:\n"
                   "- step_id: a\n"
                   "  type: command\n"
                   "  run: [x, \"{nope}\"]\n"
                   "  retries: many\n"
                   "- step_id: a\n"
                   "  type: http\n"
                   "- step_id: c\n"
                   "  type: sql\n"
                   "  connection: w\n"
                   "  sql: SELECT 1\n"
                   "  depends_on: [b]\n"
                   "unknown: 1\n",
                   &said) == NULL);
    T_STREQ(il__buf_str(&said),
            "error 1 pipeline_id: 'p q' may contain only letters, digits, '_' and '-'\n"
            "error 2 timeout_minutes: must be a whole number from 1 to 1440, not '0'\n"
            "error 3 parameters: '1x' is not a name (letters, digits, '_'; at most 64)\n"
            "error 7 steps[0].run[1]: no such parameter: 'nope'; write {{nope}} for "
            "the literal text\n"
            "error 8 steps[0].retries: must be a whole number from 0 to 10, not 'many'\n"
            "error 9 steps[1].url: missing\n"
            "error 9 steps[1].step_id: 'a' is already the id of another step (line 5)\n"
            "error 15 steps[2].depends_on: no such step: 'b'\n"
            "error 16 unknown key 'unknown'\n");
}

U_TEST(many_faults)
{
    AUTO_BUF struct il__buf b    = { 0 };
    AUTO_BUF struct il__buf said = { 0 };
    size_t                  n    = 0;

    il__buf_init(&b, 1 << 20);
    for (int i = 0; i < 500; i++)
        il__buf_addf(&b, "k%d: 1\n", i);
    T_TRUE(t_parse(il__buf_str(&b), &said) == NULL);
    for (const char *s = il__buf_str(&said); (s = strchr(s, '\n')) != NULL; s++)
        n++;
    T_EQ(n, 100);
}

U_TEST(not_yaml)
{
    t_bad("", "error 1 the file is empty");
    t_bad("# nothing\n", "error 1 the file is empty");
    t_bad("just a text\n", "error 1 must be a mapping");
    t_bad("- a\n", "error 1 must be a mapping");
    t_bad(HEAD "\tsteps: 1\n", "error 2 invalid YAML: ");
    t_bad(HEAD "a: [1\n", "invalid YAML: ");
    t_bad(HEAD "a: \"x\n", "invalid YAML: ");
    t_bad(HEAD STEP "---\n" HEAD STEP, "error 4 expected a single document");
    t_bad(HEAD HEAD STEP, "error 2 'pipeline_id' is set twice (first on line 1)");
    t_bad(HEAD "env: &a {x: 1}\n" STEP, "error 2 anchors (&name) are not supported");
    t_bad(HEAD "env: *a\n" STEP, "error 2 aliases (*name) are not supported");
    t_bad(HEAD "<<: {x: 1}\n" STEP, "error 2 merge keys (<<) are not supported");
    t_bad(HEAD "version: !!str 1\n" STEP, "error 2 tags (!name) are not supported");
    t_bad(HEAD "? [a]\n: 1\n" STEP, "error 2 expected a key");
    t_bad(HEAD "version: \"a\\0b\"\n" STEP, "error 2 text must not contain a NUL character");
    t_bad(HEAD "version: \"a\\x01b\"\n" STEP,
          "error 2 version: must not contain control characters");
    t_bad(HEAD "version: \xff\xfe\n" STEP, "error 2 invalid YAML: not UTF-8");
    t_bad(HEAD "version: a\001\n" STEP, "error 2 invalid YAML: ");
}

U_TEST(large_files)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, 4 << 20);
    for (int i = 0; i < 17; i++)
        il__buf_adds(&b, "[");
    t_bad(il__buf_str(&b), "error 1 lists and mappings are nested too deeply");
    il__buf_clear(&b);
    il__buf_adds(&b, "a:\n");
    for (int i = 0; i < 20001; i++)
        il__buf_adds(&b, "- 1\n");
    t_bad(il__buf_str(&b), "the file has too many values");
    il__buf_clear(&b);
    for (int i = 0; i < 1001; i++)
        il__buf_addf(&b, "k%d: 1\n", i);
    t_bad(il__buf_str(&b), "error 1001 the mapping has too many keys");
    il__buf_clear(&b);
    il__buf_adds(&b, HEAD STEP "# ");
    while (b.n_bytes < PIPELINE_FILE_BYTES_MAX)
        il__buf_addc(&b, 'x');
    il__pipeline_unref(t_good(il__buf_str(&b)));
    il__buf_addc(&b, 'x');
    t_bad(il__buf_str(&b), "error 0 file too large (maximum 1048576 bytes)");
}

/* ---- steps ----------------------------------------------------------------------------------- */

#define CMD(...) HEAD "parameters: {date: 1}\nsteps:\n- step_id: a\n  type: command\n" __VA_ARGS__

U_TEST(commands)
{
    t_bad(CMD(""), "error 4 steps[0].run: missing");
    t_bad(CMD("  run: ls -l\n"),
          "error 6 steps[0].run: must be a list of arguments such as [python3, "
          "job.py]; or add shell: true");
    t_bad(CMD("  run: []\n"), "error 6 steps[0].run: must be a list of 1 to 1000");
    t_bad(CMD("  run: [ls, {date}]\n"), "error 6 steps[0].run[1]: write \"{date}\" in quotes");
    t_bad(CMD("  run: [ls, [x]]\n"), "error 6 steps[0].run[1]: must be a string, not a list");
    t_bad(CMD("  run: [ls, null]\n"), "error 6 steps[0].run[1]: no value");
    t_bad(CMD("  run: [\"{date}\"]\n"), "error 6 steps[0].run[0]: the program name");
    t_bad(CMD("  run: [\"\"]\n"), "error 6 steps[0].run[0]: the program name");
    t_bad(CMD("  run: [ls]\n  env: {INTERLOCK_X: 1}\n"),
          "error 7 steps[0].env: 'INTERLOCK_X': names that start");
    t_bad(CMD("  run: [ls]\n  env: {A-B: 1}\n"),
          "error 7 steps[0].env: 'A-B' is not a variable name");
    t_bad(CMD("  run: [ls]\n  env: {A: \"{dat}\"}\n"),
          "error 7 steps[0].env.A: no such parameter: 'dat' (did you mean 'date'?)");
    t_bad(CMD("  run: [ls]\n  env: [a]\n"), "error 7 steps[0].env: must be a mapping");
    il__pipeline_unref(
        t_good(CMD("  run: [ls, \"{{date}}\", \"{x y}\", \"{}\", \"}{\", \"{run_id}\"]\n")));
}

/* Never pasted into a shell. */
U_TEST(shells)
{
    t_bad(CMD("  shell: true\n  run: echo {date}\n"),
          "error 7 steps[0].run: {date} is not substituted in a shell script, for safety; use "
          "\"$INTERLOCK_PARAM_date\"");
    t_bad(CMD("  shell: true\n  run: [echo]\n"),
          "error 7 steps[0].run: must be a string if shell is true");
    t_bad(CMD("  shell: true\n  run: \"\"\n"),
          "error 7 steps[0].run: must be a string if shell is true");
    t_bad(CMD("  run: [sh, -c, \"echo {date}\"]\n"),
          "error 6 steps[0].run: a parameter would be interpreted by the shell");
    t_bad(CMD("  run: [/bin/bash, -euc, \"echo {date}\"]\n"),
          "error 6 steps[0].run: a parameter would be interpreted");
    t_bad(CMD("  run: [env, dash, -c, \"echo {date}\"]\n"),
          "error 6 steps[0].run: a parameter would be interpreted");
    /* Options before and behind the -c, and where the script stands then. */
    static const char *const scripts[] = {
        CMD("  run: [sh, -ce, \"echo {date}\"]\n"),
        CMD("  run: [bash, -c, -e, \"echo {date}\"]\n"),
        CMD("  run: [sh, -c, --, \"echo {date}\"]\n"),
        CMD("  run: [bash, -c, -o, pipefail, \"echo {date}\"]\n"),
        CMD("  run: [bash, -o, pipefail, -ec, \"echo {date}\"]\n"),
        CMD("  run: [bash, \"-c{date}\"]\n"),
        CMD("  run: [sh, -c, 'echo \"$1\"', sh, \"{date}\"]\n"),
        CMD("  run: [env, A=b, sh, -c, \"echo {date}\"]\n"),
        CMD("  run: [/bin/busybox, sh, -c, \"echo {date}\"]\n"),
        CMD("  run: [timeout, 5, ksh93, -c, \"echo {date}\"]\n"),
        CMD("  run: [nice, bash-5.2, -c, \"echo {date}\"]\n"),
        CMD("  run: [fish, --command, \"echo {date}\"]\n"),
        CMD("  run: [fish, \"--command=echo {date}\"]\n"),
    };
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++)
        t_bad(scripts[i], "error 6 steps[0].run: a parameter would be interpreted by the shell");
    il__pipeline_unref(t_good(CMD("  run: [bash, load.sh, \"{date}\"]\n")));
    il__pipeline_unref(t_good(CMD("  run: [bash, load.sh, --check, \"{date}\"]\n")));
    il__pipeline_unref(t_good(CMD("  run: [sh, -c, 'echo \"$INTERLOCK_PARAM_date\"']\n")));
    t_advised(CMD("  shell: true\n  run: echo ${date}\n"),
              "advice 7 steps[0].run: use $INTERLOCK_PARAM_date in the script, not ${date}");
}

/* Other programs that read an argument as code: advised, not refused. */
U_TEST(interpreters)
{
    static const char *const code[] = {
        CMD("  run: [python3, -c, \"print('{date}')\"]\n"),
        CMD("  run: [/usr/bin/python3.11, -uc, \"print('{date}')\"]\n"),
        CMD("  run: [python, \"-cprint('{date}')\"]\n"),
        CMD("  run: [env, A=b, perl, -wne, \"print '{date}'\"]\n"),
        CMD("  run: [perl, -E, \"say '{date}'\"]\n"),
        CMD("  run: [ruby, -e, \"puts '{date}'\"]\n"),
        CMD("  run: [node, -p, \"'{date}'\"]\n"),
        CMD("  run: [psql, -c, \"SELECT '{date}'\"]\n"),
        CMD("  run: [flock, x, -c, \"echo {date}\"]\n"),
        CMD("  run: [ssh, host, load, \"{date}\"]\n"),
        CMD("  run: [env, -S, \"sh -c {date}\"]\n"),
    };
    static const char *const plain[] = {
        CMD("  run: [python3, load.py, \"{date}\"]\n"),
        CMD("  run: [python3, -c, \"import sys; print(sys.argv[1])\", \"{date}\"]\n"),
        CMD("  run: [perl, -e, 'print $ARGV[0]', \"{date}\"]\n"),
        CMD("  run: [env, \"A={date}\", load]\n"),
        CMD("  run: [timeout, 5, load, \"{date}\"]\n"),
    };

    for (size_t i = 0; i < ARRAY_LEN(code); i++)
        t_advised(code[i], "advice 6 steps[0].run: a parameter would be interpreted as code by ");
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
        AUTO_BUF struct il__buf said = { 0 };
        struct pipeline        *p    = t_parse(plain[i], &said);
        if (p == NULL || strstr(il__buf_str(&said), "as code by") != NULL)
            T_FAIL("was told:\n%s\n%s", il__buf_str(&said), plain[i]);
        il__pipeline_unref(p);
    }
}

#define SQL(...) HEAD "parameters: {date: 1}\nsteps:\n- step_id: a\n  type: sql\n" __VA_ARGS__

U_TEST(sql)
{
    t_bad(SQL("  sql: SELECT 1\n"), "error 4 steps[0].connection: missing");
    t_bad(SQL("  connection: w\n"), "error 4 steps[0].sql: missing");
    t_bad(SQL("  connection: w\n  sql: []\n"),
          "error 7 steps[0].sql: must have 1 to 100 statements");
    t_bad(SQL("  connection: w\n  sql: \" ;\"\n"), "error 7 steps[0].sql: must be a statement");
    t_bad(SQL("  connection: w\n  sql: SELECT {day}\n"),
          "error 7 steps[0].sql: no such parameter: 'day'");
    t_bad(SQL("  connection: w\n  sql: [SELECT 1, SELECT $1]\n"),
          "error 7 steps[0].sql[1]: invalid placeholder $1; use {name}");
    t_bad(SQL("  connection: postgres://x\n  sql: SELECT 1\n"), "error 6 steps[0].connection: ");
    t_advised(SQL("  connection: w\n  sql: SELECT '{date}'\n"),
              "advice 7 steps[0].sql: {date} in quotes is text, not a parameter");
}

#define HTTP(...) HEAD "parameters: {date: 1}\nsteps:\n- step_id: a\n  type: http\n" __VA_ARGS__

U_TEST(http)
{
    struct pipeline *p = t_good(HTTP("  url: https://h/{date}\n"));

    T_STREQ(p->steps[0].http.method, "GET");
    T_EQ(p->steps[0].http.expect_from, 200);
    T_EQ(p->steps[0].http.expect_to, 299);
    T_TRUE(p->steps[0].http.body.text == NULL);
    il__pipeline_unref(p);
    p = t_good(HTTP("  url: https://h\n  body: plain {date}\n  expect: 404\n"));
    T_STREQ(p->steps[0].http.method, "POST");
    T_EQ(p->steps[0].http.body_escape, PIPELINE_PLAIN);
    T_EQ(p->steps[0].http.expect_from, 404);
    T_EQ(p->steps[0].http.expect_to, 404);
    il__pipeline_unref(p);
    p = t_good(HTTP("  url: https://h\n  body: a={date}\n  headers: {content-type: "
                    "application/x-www-form-urlencoded}\n"));
    T_EQ(p->steps[0].http.body_escape, PIPELINE_URL);
    il__pipeline_unref(p);
    p = t_good(HTTP("  url: https://h\n  body: ' {\"d\": {\"x\": \"{date}\"}}'\n"));
    T_EQ(p->steps[0].http.body_escape, PIPELINE_JSON);
    il__pipeline_unref(p);
}

U_TEST(http_faults)
{
    t_bad(HTTP("  url: ftp://h\n"), "error 6 steps[0].url: must be an https:// or http:// URL");
    t_bad(HTTP("  url: https:///x\n"), "error 6 steps[0].url: must be an https:// or http:// URL");
    t_bad(HTTP("  url: https://h/a b\n"),
          "error 6 steps[0].url: must be an https:// or http:// URL");
    t_bad(HTTP("  url: https://{date}/x\n"),
          "error 6 steps[0].url: a parameter cannot be part of the host");
    t_bad(HTTP("  url: https://h\n  method: FETCH\n"),
          "error 7 steps[0].method: 'FETCH' is not one of GET");
    t_bad(HTTP("  url: https://h\n  expect: ok\n"),
          "error 7 steps[0].expect: must be a status from 100 to 599");
    t_bad(HTTP("  url: https://h\n  expect: 99\n"), "error 7 steps[0].expect: ");
    t_bad(HTTP("  url: https://h\n  expect: 600\n"), "error 7 steps[0].expect: ");
    t_bad(HTTP("  url: https://h\n  expect: 300..200\n"), "error 7 steps[0].expect: ");
    t_bad(HTTP("  url: https://h\n  headers: {A b: 1}\n"),
          "error 7 steps[0].headers: 'A b' is not a header name");
    t_bad(HTTP("  url: https://h\n  headers: {A: \"a\\nb\"}\n"),
          "error 7 steps[0].headers.A: a header must be a single line");
    t_bad(HTTP("  url: https://h\n  body: '{\"d\": {date}}'\n"),
          "error 7 steps[0].body: a {name} in JSON must be inside a string");
    t_bad(HTTP("  url: https://h\n  body: '{\"d\\\\\": {date}}'\n"),
          "error 7 steps[0].body: a {name} in JSON");
    il__pipeline_unref(t_good(HTTP("  url: https://h\n  body: '{\"d\": \"\\\"{date}\"}'\n")));
}

#define CHK(...) HEAD "steps:\n- step_id: a\n  type: check\n  connection: w\n" __VA_ARGS__

U_TEST(checks)
{
    t_bad(CHK("  table: t\n"),
          "error 3 steps[0].expectations: must be a list of 1 to 100 expectations");
    t_bad(CHK("  expectations: [{kind: row_count}]\n"), "error 3 steps[0].table: missing");
    t_bad(CHK("  table: 'a\"b'\n  expectations: [{kind: row_count}]\n"),
          "error 6 steps[0].table: invalid name 'a\"b'");
    t_bad(CHK("  table: \"{tenant}\"\n  expectations: [{kind: row_count}]\n"),
          "error 6 steps[0].table: ");
    t_bad(CHK("  table: t\n  expectations:\n  - {column: a}\n"),
          "error 8 steps[0].expectations[0].kind: missing");
    t_bad(CHK("  table: t\n  expectations:\n  - {kind: not_null}\n"),
          "error 8 steps[0].expectations[0].column: missing");
    t_bad(CHK("  table: t\n  expectations:\n  - {kind: row_count, min: -1}\n"),
          "error 8 steps[0].expectations[0].min: must be a number of rows, not '-1'");
    t_bad(CHK("  table: t\n  expectations:\n  - {kind: row_count, min: 2, max: 1}\n"),
          "error 8 steps[0].expectations[0].max: min 2 is greater than max 1");
    t_bad(CHK("  table: t\n  expectations:\n  - {kind: value_between, column: a}\n"),
          "error 8 steps[0].expectations[0].min: value_between needs min, max or both");
    t_bad(CHK("  table: t\n  expectations:\n  - {kind: sql}\n"),
          "error 8 steps[0].expectations[0].sql: missing");
    t_bad(CHK("  table: t\n  expectations:\n  - {kind: row_count, mix: 1}\n"),
          "unknown key 'mix' (did you mean");
    /* fails when it runs; here it is only advice */
    t_advised(
        CHK("  table: t\n  expectations:\n  - {kind: not_nul, column: a}\n"),
        "advice 8 steps[0].expectations[0].kind: unknown expectation 'not_nul', which always fails "
        "(did you mean 'not_null'?)");
}

U_TEST(parameters)
{
    t_bad(HEAD "parameters: [a]\n" STEP,
          "error 2 parameters: must be a mapping of at most 64 names");
    t_bad(HEAD "parameters: {run_id: 1}\n" STEP,
          "error 2 parameters: 'run_id' is reserved for the runner");
    t_bad(HEAD "parameters: {a b: 1}\n" STEP, "error 2 parameters: 'a b' is not a name");
    t_bad(HEAD "parameters: {a: [1]}\n" STEP, "error 2 parameters.a: must be a default");
    t_bad(HEAD "parameters: {a: {default: [1]}}\n" STEP, "error 2 parameters.a: must be a default");
    il__pipeline_unref(t_good(HEAD "parameters:\n" STEP));
    AUTO_BUF struct il__buf b = { 0 };
    il__buf_init(&b, 1 << 20);
    il__buf_adds(&b, HEAD STEP "parameters:\n");
    for (int i = 0; i < PIPELINE_PARAMETERS_MAX; i++)
        il__buf_addf(&b, "  p%d: 1\n", i);
    struct pipeline *p = t_good(il__buf_str(&b));
    T_EQ(p->n_parameters, PIPELINE_PARAMETERS_MAX);
    il__pipeline_unref(p);
    il__buf_adds(&b, "  more: 1\n");
    t_bad(il__buf_str(&b), "parameters: must be a mapping of at most 64");
}

U_TEST(schedules)
{
    struct pipeline *p = t_good(HEAD "schedule: \"30 2 * * *\"\n" STEP);

    T_STREQ(p->zone->name, "UTC");
    T_EQ(il__pipeline_next_tick(p, 0), (2 * 60 + 30) * 60000);
    il__pipeline_unref(p);
    p = t_good(HEAD "schedule: '@daily'\ntimezone: Europe/Berlin\n" STEP);
    T_STREQ(p->zone->name, "Europe/Berlin");
    il__pipeline_unref(p);
    il__pipeline_unref(t_good(HEAD "schedule:\n" STEP));
    t_bad(HEAD "schedule: 1 2 3\n" STEP,
          "error 2 schedule: the schedule has 3 fields, expected five");
    t_bad(HEAD "schedule: {zone: UTC}\n" STEP, "error 2 schedule.cron: missing");
    t_bad(HEAD "schedule:\n  cron: 61 * * * *\n" STEP,
          "error 3 schedule.cron: the schedule's minute '61' is out of range");
    t_bad(HEAD "schedule: '@daily'\ntimezone: Europe/Berln\n" STEP,
          "error 3 timezone: unknown time zone 'Europe/Berln'");
    t_bad(HEAD "schedule: {cron: '@daily', zone: ../../etc/passwd}\n" STEP,
          "error 2 schedule.zone: '../../etc/passwd' is not a time zone name");
    t_bad(HEAD "schedule: {cron: '@daily', zone: UTC}\ntimezone: UTC\n" STEP,
          "error 2 schedule.zone: cannot be combined with timezone");
    t_bad(HEAD "schedule: {cron: '@daily', catch_up: 25h}\n" STEP,
          "error 2 schedule.catch_up: must be a duration from 0 to 1d");
    t_bad(HEAD "timeout: 1m\ntimeout_minutes: 1\n" STEP,
          "error 2 timeout: cannot be combined with timeout_minutes");
}

U_TEST(preflight)
{
    struct pipeline *p = t_good(HEAD "parameters: {d: 1}\npreflight: {type: command, run: [./ask, "
                                     "\"{d}\", \"{run_id}\"]}\n" STEP);

    T_EQ(p->preflight, PIPELINE_PROBE_COMMAND);
    T_EQ(p->preflight_timeout_ms, 10000);
    T_EQ(p->probe_command.n_argv, 3);
    il__pipeline_unref(p);
    t_bad(HEAD "preflight: [x]\n" STEP,
          "error 2 preflight: must be a mapping with type command and run, or type http and url");
    t_bad(HEAD "preflight: {run: [x]}\n" STEP,
          "error 2 preflight.type: missing; must be one of command, http");
    t_bad(HEAD "preflight: {type: command}\n" STEP, "error 2 preflight.run: missing");
    t_bad(HEAD "preflight: {type: http}\n" STEP, "error 2 preflight.url: missing");
    t_bad(HEAD "preflight: {type: command, run: [x, \"{fence}\"]}\n" STEP,
          "error 2 preflight.run[1]: {fence} is not available before the run starts");
    t_bad(HEAD "preflight: {type: command, run: [x], timeout: 99ms}\n" STEP,
          "error 2 preflight.timeout: must be a duration from 100ms to 1m");
    t_bad(HEAD "preflight: {type: command, run: [x], timeout: 61s}\n" STEP,
          "error 2 preflight.timeout: ");
    t_bad(HEAD "preflight: {type: http, url: 'https://h', expect: 200}\n" STEP,
          "error 2 preflight: unknown key 'expect'");
}

/* ---- the graph ------------------------------------------------------------------------------- */

/* "a: b c" lines: a needs b and c. */
static void
graph_text(struct il__buf *b, const char *const *rows)
{
    il__buf_init(b, 1 << 20);
    il__buf_adds(b, HEAD "steps:\n");
    for (; *rows != NULL; rows++) {
        int n = (int)strcspn(*rows, ":");
        il__buf_addf(b, "- {step_id: %.*s, type: command, run: [x], depends_on: [%s]}\n", n, *rows,
                     *rows + n + 1);
    }
}

U_TEST(levels)
{
    /* The order of the file does not matter */
    static const char *const rows[] = { "e: c, d", "a:", "c: a", "d: b, a", "b:", "f: a", NULL };
    static const uint32_t    expected[] = { 3, 1, 2, 2, 1, 2 };
    AUTO_BUF struct il__buf  b          = { 0 };
    AUTO_BUF struct il__buf  out        = { 0 };

    graph_text(&b, rows);
    struct pipeline *p = t_good(il__buf_str(&b));
    for (size_t i = 0; i < ARRAY_LEN(expected); i++)
        T_EQ(p->steps[i].level, expected[i]);
    T_EQ(p->n_levels, 3);
    il__buf_init(&out, 4096);
    T_TRUE(il__pipeline_graph(p, &out));
    T_STREQ(il__buf_str(&out), "p: 6 steps, 3 levels\n"
                               "level 1 (at once)\n"
                               "  a  command\n"
                               "  b  command\n"
                               "level 2 (at once)\n"
                               "  c  command  ← a\n"
                               "  d  command  ← b, a\n"
                               "  f  command  ← a\n"
                               "level 3\n"
                               "  e  command  ← c, d\n");
    il__pipeline_unref(p);
}

static void
cycle(const char *const *rows, const char *expected)
{
    AUTO_BUF struct il__buf b = { 0 };

    graph_text(&b, rows);
    t_bad(il__buf_str(&b), expected);
}

U_TEST(cycles)
{
    cycle((const char *const[]){ "a: a", NULL },
          "error 3 steps.depends_on: dependency cycle: a → a\n");
    cycle((const char *const[]){ "a: b", "b: a", NULL }, "dependency cycle: a → b → a\n");
    cycle((const char *const[]){ "x: a", "a: b", "b: c", "c: a", NULL },
          "error 4 steps.depends_on: dependency cycle: a → b → c → a\n");
    cycle((const char *const[]){ "a: a, a", NULL }, "steps[0].depends_on: 'a' is listed twice");
    cycle((const char *const[]){ "extract:", "b: extrat", NULL },
          "error 4 steps[1].depends_on: no such step: 'extrat' (did you mean 'extract'?)");
}

/* ---- advice ---------------------------------------------------------------------------------- */

U_TEST(advice)
{
    AUTO_BUF struct il__buf said = { 0 };

    t_advised(HEAD "timeout_minutes: 4\n" STEP,
              "advice 2 lock_timeout_seconds: recommended: 600 for a timeout of under 5 minutes");
    t_advised(HEAD "timeout_minutes: 5\nlock_timeout_seconds: 60\n" STEP,
              "advice 3 lock_timeout_seconds: recommended: 3600 for a timeout of 5 to 30 minutes");
    t_advised(HEAD "timeout_minutes: 31\n" STEP,
              "recommended: 7200 for a timeout of over 30 minutes");
    t_advised(
        HEAD
        "timeout_minutes: 6\nsteps:\n- {step_id: a, type: command, run: [x], timeout_minutes: 4}\n"
        "- {step_id: b, type: command, run: [x], timeout_minutes: 3, depends_on: a}\n",
        "advice 2 timeout_minutes: the steps may take 7m in sequence, but the pipeline "
        "times out after 6m");
    t_advised(HEAD "steps:\n- {step_id: a, type: http, url: 'http://h/x'}\n",
              "advice 3 steps[0].url: uses http; values");
    t_advised(HEAD "timeout: 10m\nschedule: '*/5 * * * *'\n" STEP,
              "advice 3 schedule: scheduled every 5m, but a run may take 10m");
    t_advised(HEAD "queue_max: 3\n" STEP,
              "advice 2 queue_max: has no effect unless on_conflict is queue");
    t_advised(HEAD "lock_acquisition_retries: 3\n" STEP,
              "advice 2 lock_acquisition_retries: has no effect unless on_conflict is reject");
    t_advised(HEAD "timezone: UTC\n" STEP, "advice 2 timezone: has no effect without `schedule`");
    struct pipeline *p =
        t_parse(HEAD "timeout_minutes: 30\nlock_timeout_seconds: 3600\nschedule: '@daily'\n"
                     "steps:\n- {step_id: a, type: http, url: 'http://localhost:80/x'}\n",
                &said);
    T_TRUE(p != NULL);
    T_STREQ(il__buf_str(&said), "");
    il__pipeline_unref(p);
}

/* The N-th allocation fails, N = 1, 2, 3 … until none is left to fail. */
static void
without_memory(const char *text, il_status expected)
{
    size_t n_failed = 0;

    il_set_allocator(&t_failing);
    for (t_fail_at = 1;; t_fail_at++) {
        struct pipeline *p   = NULL;
        il_error         err = { 0 };
        t_n_allocations      = 0;
        il_status st = il__pipeline_parse("acme", "f.yml", text, strlen(text), &t_defaults, NULL,
                                          NULL, &p, &err);
        il__pipeline_unref(p);
        if (t_n_allocations < t_fail_at) {
            T_EQ(st, expected);
            break;
        }
        T_EQ(st, IL_NOMEM);
        n_failed++;
    }
    il_set_allocator(NULL);
    T_TRUE(n_failed >= 3);
}

U_TEST(no_memory)
{
    without_memory(everything, IL_OK);
    without_memory(HEAD HEAD, IL_INVAL);
    without_memory("pipeline_id: p q\nx: 1\nsteps:\n- {step_id: a, type: http, url: "
                   "'https://{x}'}\n- {step_id: a, type: command, run: []}\n",
                   IL_INVAL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        U_ROW(smallest),
        U_ROW(every_key),
        U_ROW(every_key_of_commands),
        U_ROW(every_key_of_the_others),
        U_ROW(policies),
        U_ROW(ranges),
        U_ROW(ranges_of_limits),
        U_ROW(number_of_steps),
        U_ROW(ids),
        U_ROW(unknown_keys),
        U_ROW(all_faults_at_once),
        U_ROW(many_faults),
        U_ROW(not_yaml),
        U_ROW(large_files),
        U_ROW(commands),
        U_ROW(shells),
        U_ROW(interpreters),
        U_ROW(sql),
        U_ROW(http),
        U_ROW(http_faults),
        U_ROW(checks),
        U_ROW(parameters),
        U_ROW(schedules),
        U_ROW(preflight),
        U_ROW(levels),
        U_ROW(cycles),
        U_ROW(advice),
        U_ROW(no_memory),
    };

    return cmocka_run_group_tests_name("pipeline", tests, NULL, NULL);
}
