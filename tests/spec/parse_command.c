/*
 * parse_command.c: parses the commands of a step. The words are in two tables: verbs, and their
 * arguments.
 */
#include <stdio.h>

#include "spec/spec.h"

/* ---- verbs ----------------------------------------------------------------------------------- */

enum names {
    NO_NAME,
    ONE_NAME, /* of a key, a queue or a session */
    ONE_ID,   /* of a run, a job or a schedule */
    NAME_ID,  /* a key or queue, then the run's, job's or schedule's id */
    A_TIME    /* +DURATION or -DURATION */
};

static const struct verb_row {
    const char *word;
    const char *second; /* NULL = the verb is one word */
    enum verb   verb;
    il_op_type  type;
    uint32_t    flags;
    enum names  names;
} verb_rows[] = {
    { "acquire", NULL, VERB_OP, IL_OP_ACQUIRE, 0, ONE_NAME },
    { "renew", NULL, VERB_OP, IL_OP_RENEW, 0, ONE_NAME },
    { "release", NULL, VERB_OP, IL_OP_RELEASE, 0, ONE_NAME },
    { "check", NULL, VERB_OP, IL_OP_CHECK_FENCE, 0, ONE_NAME },
    { "break", NULL, VERB_OP, IL_OP_BREAK, 0, ONE_NAME },
    { "get", NULL, VERB_OP, IL_OP_GET, 0, ONE_NAME },
    { "list", NULL, VERB_OP, IL_OP_LIST, 0, NO_NAME },
    { "run", "start", VERB_OP, IL_OP_RUN_START, 0, NAME_ID },
    { "run", "stage", VERB_OP, IL_OP_RUN_STAGE, 0, ONE_ID },
    { "run", "finish", VERB_OP, IL_OP_RUN_FINISH, 0, ONE_ID },
    { "run", "cancel", VERB_OP, IL_OP_RUN_CANCEL, 0, ONE_ID },
    { "run", "get", VERB_OP, IL_OP_RUN_GET, 0, ONE_ID },
    { "once", "begin", VERB_OP, IL_OP_ONCE_BEGIN, 0, ONE_NAME },
    { "once", "finish", VERB_OP, IL_OP_ONCE_FINISH, 0, ONE_NAME },
    { "once", "abandon", VERB_OP, IL_OP_ONCE_ABANDON, 0, ONE_NAME },
    { "once", "get", VERB_OP, IL_OP_ONCE_GET, 0, ONE_NAME },
    { "push", NULL, VERB_OP, IL_OP_JOB_PUSH, 0, NAME_ID },
    { "parent", NULL, VERB_OP, IL_OP_JOB_PUSH, IL_PUSH_PARENT, NAME_ID },
    { "claim", NULL, VERB_OP, IL_OP_JOB_CLAIM, 0, ONE_NAME },
    { "heartbeat", NULL, VERB_OP, IL_OP_JOB_HEARTBEAT, 0, ONE_ID },
    { "finish", NULL, VERB_OP, IL_OP_JOB_FINISH, 0, ONE_ID },
    { "fail", NULL, VERB_OP, IL_OP_JOB_FAIL, 0, ONE_ID },
    { "snooze", NULL, VERB_OP, IL_OP_JOB_SNOOZE, 0, ONE_ID },
    { "cancel", NULL, VERB_OP, IL_OP_JOB_CANCEL, 0, ONE_ID },
    { "retry", NULL, VERB_OP, IL_OP_JOB_RETRY, 0, ONE_ID },
    { "seal", NULL, VERB_OP, IL_OP_JOB_SEAL, 0, ONE_ID },
    { "job", NULL, VERB_OP, IL_OP_JOB_GET, 0, ONE_ID },
    { "purge", NULL, VERB_OP, IL_OP_JOB_PURGE, 0, ONE_NAME },
    { "queue", NULL, VERB_OP, IL_OP_QUEUE_SET, 0, ONE_NAME },
    { "pause", NULL, VERB_OP, IL_OP_QUEUE_PAUSE, 0, ONE_NAME },
    { "resume", NULL, VERB_OP, IL_OP_QUEUE_PAUSE, IL_RESUME, ONE_NAME },
    { "cron", NULL, VERB_OP, IL_OP_CRON_SET, 0, NAME_ID },
    { "cache", "get", VERB_OP, IL_OP_CACHE_GET, 0, ONE_NAME },
    { "cache", "lookup", VERB_OP, IL_OP_CACHE_LOOKUP, 0, ONE_NAME },
    { "cache", "fill", VERB_OP, IL_OP_CACHE_FILL, 0, ONE_NAME },
    { "cache", "abandon", VERB_OP, IL_OP_CACHE_ABANDON, 0, ONE_NAME },
    { "cache", "drop", VERB_OP, IL_OP_CACHE_DROP, 0, ONE_NAME },
    { "clock", NULL, VERB_CLOCK, IL_OP_NONE, 0, A_TIME },
    { "jump", NULL, VERB_JUMP, IL_OP_NONE, 0, A_TIME },
    { "wall", NULL, VERB_WALL, IL_OP_NONE, 0, A_TIME },
    { "sweep", NULL, VERB_SWEEP, IL_OP_NONE, 0, NO_NAME },
    { "reopen", NULL, VERB_REOPEN, IL_OP_NONE, 0, NO_NAME },
    { "freeze", NULL, VERB_FREEZE, IL_OP_NONE, 0, ONE_NAME },
    { "thaw", NULL, VERB_THAW, IL_OP_NONE, 0, ONE_NAME },
};

static const struct verb_row *
find_verb(const struct parser *p, char **text)
{
    const char *word   = parse_word(text);
    const char *second = NULL;

    for (size_t i = 0; i < ARRAY_LEN(verb_rows); i++) {
        const struct verb_row *row = &verb_rows[i];
        if (strcmp(row->word, word) != 0)
            continue;
        if (row->second == NULL)
            return row;
        if (second == NULL && (second = parse_word(text)) == NULL)
            break;
        if (strcmp(row->second, second) == 0)
            return row;
    }
    parse_bad(p, "unknown command '%s%s%s'", word, second != NULL ? " " : "",
              second != NULL ? second : "");
}

/* ---- options --------------------------------------------------------------------------------- */

enum option_kind {
    DURATION,
    NUMBER,
    NAME
};

static const struct option_row {
    const char      *word;
    enum option_kind kind;
    size_t           offset;
} option_rows[] = {
#define O(word, kind, field)                        \
    {                                               \
        word, kind, offsetof(struct command, field) \
    }
    O("ttl", DURATION, ttl_ms),
    O("wait", DURATION, wait_ms),
    O("settle", DURATION, settle_ms),
    O("keep", DURATION, keep_ms),
    O("delay", DURATION, delay_ms),
    O("lease", DURATION, lease_ms),
    O("grace", DURATION, grace_ms),
    O("rate-time", DURATION, rate_ms),
    O("period", DURATION, period_ms),
    O("permits", NUMBER, permits),
    O("limit", NUMBER, limit),
    O("priority", NUMBER, priority),
    O("children", NUMBER, children),
    O("attempts", NUMBER, attempts),
    O("progress", NUMBER, progress),
    O("code", NUMBER, code),
    O("rate", NUMBER, rate),
    O("group-limit", NUMBER, group_limit),
    O("live-max", NUMBER, live_max),
    O("day-max", NUMBER, day_max),
    O("chance", NUMBER, chance),
    O("holder", NAME, holder),
    O("place", NAME, place),
    O("value", NAME, value),
    O("meta", NAME, meta),
    O("print", NAME, print),
    O("policy", NAME, policy),
    O("state", NAME, state),
    O("group", NAME, group),
    O("unique", NAME, unique),
    O("parent", NAME, parent),
    O("schedule", NAME, schedule),
    O("missed", NAME, missed),
    O("strategy", NAME, strategy),
#undef O
};

/* Words without a value: a flag of the ops that know it. */
static const struct flag_row {
    const char *word;
    il_op_type  type;
    uint32_t    flag;
} flag_rows[] = {
    { "now", IL_OP_BREAK, IL_BREAK_NOW },
    { "now", IL_OP_JOB_CANCEL, IL_CANCEL_NOW },
    { "slot", IL_OP_RUN_START, IL_RUN_SLOT },
    { "silent", IL_OP_JOB_CLAIM, IL_CLAIM_SILENT },
    { "final", IL_OP_JOB_FAIL, IL_FAIL_FINAL },
    { "negative", IL_OP_CACHE_FILL, IL_CACHE_NEGATIVE },
    { "stale", IL_OP_CACHE_DROP, IL_DROP_STALE },
};

static int64_t
duration(const struct parser *p, const char *text)
{
    il_error err;
    int64_t  ms;

    if (il_parse_duration(text, &ms, &err) != IL_OK)
        parse_bad(p, "%s", err.message);
    return ms;
}

/* `+5s` or `-1d`. */
static int64_t
step_of_time(const struct parser *p, const char *text)
{
    if (text == NULL || (text[0] != '+' && text[0] != '-'))
        parse_bad(p, "a step of time is +DURATION or -DURATION");
    int64_t ms = duration(p, text + 1);
    return text[0] == '-' ? -ms : ms;
}

static void
parse_flag(const struct parser *p, struct command *c, const char *word)
{
    if (strcmp(word, "shared") == 0) {
        c->mode = IL_MODE_SHARED;
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(flag_rows); i++) {
        if (strcmp(flag_rows[i].word, word) == 0 && flag_rows[i].type == c->type) {
            c->flags |= flag_rows[i].flag;
            return;
        }
    }
    parse_bad(p, "unknown word '%s'", word);
}

static void
parse_option(const struct parser *p, struct command *c, char *word)
{
    char *value = strchr(word, '=');

    if (value == NULL) {
        parse_flag(p, c, word);
        return;
    }
    *value++ = '\0';
    for (size_t i = 0; i < ARRAY_LEN(option_rows); i++) {
        const struct option_row *row = &option_rows[i];
        if (strcmp(row->word, word) != 0)
            continue;
        void *field = (char *)c + row->offset;
        if (row->kind == NAME)
            parse_name(p, field, value);
        else
            *(int64_t *)field =
                row->kind == DURATION ? duration(p, value) : strtoll(value, NULL, 10);
        return;
    }
    parse_bad(p, "unknown option '%s'", word);
}

void
parse_command(const struct parser *p, struct command *c, char *text)
{
    const struct verb_row *row = find_verb(p, &text);

    *c = (struct command){ .verb = row->verb, .type = row->type, .flags = row->flags };
    if (row->names == ONE_NAME || row->names == NAME_ID)
        parse_name(p, c->name, parse_word(&text));
    if (row->names == ONE_ID || row->names == NAME_ID)
        parse_name(p, c->id, parse_word(&text));
    if (row->names == A_TIME)
        c->ms = step_of_time(p, parse_word(&text));
    for (char *option = parse_word(&text); option != NULL; option = parse_word(&text))
        parse_option(p, c, option);
    if (c->permits > 0)
        c->mode = IL_MODE_PERMIT;
}
