/*
 * routes_tables.c: what the runner's routes take and answer, as tables: parsing, printing and /openapi.json come from them.
 */
#include "apps/runner/routes.h"

#define F(text, member, kind_, flags_, help_)                                                    \
    {                                                                                            \
        .name = text, .kind = WIRE_##kind_, .flags = flags_, .offset = offsetof(STRUCT, member), \
        .help = help_                                                                            \
    }
#define BOUNDED(text, member, kind_, flags_, min_, max_, help_)                                  \
    {                                                                                            \
        .name = text, .kind = WIRE_##kind_, .flags = flags_, .offset = offsetof(STRUCT, member), \
        .min = min_, .max = max_, .help = help_                                                  \
    }
#define FLAG(text, member, bit_, help_)                                                     \
    {                                                                                       \
        .name = text, .kind = WIRE_BOOL, .offset = offsetof(STRUCT, member), .bit = (bit_), \
        .help = help_                                                                       \
    }
#define MANY(text, member, number, object_, help_)                               \
    {                                                                            \
        .name = text, .kind = WIRE_OBJECTS, .offset = offsetof(STRUCT, member),  \
        .offset2 = offsetof(STRUCT, number), .object = &(object_), .help = help_ \
    }
#define OBJECT(id, schema, fields_, flags_, help_)                  \
    const struct wire_object id = { .name     = schema,             \
                                    .fields   = fields_,            \
                                    .n_fields = ARRAY_LEN(fields_), \
                                    .help     = help_,              \
                                    .bytes    = sizeof(STRUCT),     \
                                    .flags    = flags_ }

static const char *const states[] = { "PENDING",   "RUNNING", "COMPLETED",   "FAILED",
                                      "CANCELLED", "TIMEOUT", "INTERRUPTED", NULL };
_Static_assert(ARRAY_LEN(states) == IL_RUN_STATE_COUNT,
               "one name for each state but NONE, and NULL");

/* COMPLETE is another word for COMPLETED (R1.14). */
static int
choose_state(const char *text)
{
    return strcmp(text, "COMPLETE") == 0 ? (int)IL_RUN_COMPLETED : 0;
}

/* ---- taken -------------------------------------------------------------------------------------------------------------------- */

#define STRUCT struct runner_trigger_in
static const struct wire_field trigger_in[] = {
    BOUNDED("trigger_by", by, TEXT, 0, 0, RUNNER_BY_BYTES_MAX, "who wants it, for people"),
};
OBJECT(runner_in_trigger, "PipelineTrigger", trigger_in, 0,
       "Who, and the parameters: every further field is one");
#undef STRUCT

#define STRUCT struct runner_page_in
#define PAGE                                                                 \
    BOUNDED("cursor", cursor, TEXT, 0, 0, 512, "`next` of the page before"), \
        BOUNDED("limit", limit, UINT32, 0, 1, RUNNER_PAGE_MAX, "items at most")
static const struct wire_field page_in[] = { PAGE };
OBJECT(runner_in_page, "PipelinePageQuery", page_in, 0, "Which page");
static const struct wire_field runs_in[] = {
    PAGE,
    BOUNDED("pipeline_id", pipeline, TEXT, 0, 1, PIPELINE_ID_BYTES_MAX, "only of this pipeline"),
    { .name    = "status",
      .kind    = WIRE_SET,
      .offset  = offsetof(STRUCT, states),
      .min     = 1,
      .choices = states,
      .choose  = choose_state,
      .help    = "only in these states; COMPLETE is COMPLETED" },
};
OBJECT(runner_in_runs, "PipelineRunsQuery", runs_in, 0, "Which runs; 20 unless limit says how many");
#undef STRUCT

#define STRUCT struct runner_run_in
static const struct wire_field run_in[] = { FLAG("output", output, 1,
                                                 "with the ends of what each step wrote") };
OBJECT(runner_in_run, "PipelineRunQuery", run_in, 0, "How much of it");
#undef STRUCT

#define STRUCT struct runner_output_in
static const struct wire_field output_in[] = {
    BOUNDED("attempt", attempt, UINT32, 0, 1, 1000, "of which attempt; else of the last"),
};
OBJECT(runner_in_output, "StepOutputQuery", output_in, 0, "Which attempt");
#undef STRUCT

#define STRUCT struct runner_cancel_in
static const struct wire_field cancel_in[] = {
    BOUNDED("reason", reason, TEXT, 0, 1, IL_PLACE_BYTES_MAX, "why; shown as its error_message"),
};
OBJECT(runner_in_cancel, "PipelineCancel", cancel_in, 0, "Why");
#undef STRUCT

/* ---- answered: triggers --------------------------------------------------------------------------------------------------------- */

#define STRUCT struct runner_triggered
static const struct wire_field triggered[] = {
    F("pipeline_logging_id", id, TEXT, WIRE_NOT_NULL, "of the run"),
    F("pipeline_id", pipeline, TEXT, WIRE_NOT_NULL, "of the pipeline"),
    F("tenant_id", tenant, TEXT, WIRE_NOT_NULL, "whose it is"),
    F("status", status, TEXT, WIRE_NOT_NULL, "PENDING: a new run; RUNNING: one that was there already"),
    F("message", message, TEXT, WIRE_NOT_NULL, "the same in words"),
};
OBJECT(runner_out_triggered, "PipelineTriggered", triggered, WIRE_ANSWER,
       "The run that there is now, whoever started it");
#undef STRUCT

/* ---- runs ----------------------------------------------------------------------------------------------------------------------- */

#define STRUCT struct runner_attempt_out
static const struct wire_field attempt_out[] = {
    F("attempt", attempt, UINT32, WIRE_NOT_NULL, "its number, from 1"),
    F("status", status, TEXT, WIRE_NOT_NULL, "as the step's"),
    F("start_time", started_at_ms, TIME, 0, "when it began"),
    F("end_time", ended_at_ms, TIME, 0, "when it ended"),
    F("duration_ms", duration_ms, INT64, WIRE_MINUS, "between the two; so far, while it runs"),
    F("exit_code", exit_code, INT64, WIRE_MINUS,
      "of a command (128 + signal); the status of an HTTP step"),
    F("error_message", error, TEXT, 0, "why it failed"),
};
static OBJECT(attempt_object, "PipelineAttempt", attempt_out, WIRE_ANSWER, "One attempt of a step");
#undef STRUCT

#define STRUCT struct runner_step_out
#define STEP_FIELDS                                                                                                 \
    F("step_id", id, TEXT, WIRE_NOT_NULL, "of the step"),                                                           \
        F("type", type, TEXT, WIRE_NOT_NULL, "command, sql, http or check"),                                        \
        F("level", level, INT64, WIRE_NOT_NULL, "steps of one level run at once"),                                  \
        F("status", status, TEXT,                                                                                   \
          WIRE_NOT_NULL, "PENDING, RUNNING, COMPLETED, WARNING, FAILED, TIMEOUT, CANCELLED, INTERRUPTED, SKIPPED"), \
        F("attempt", attempt, UINT32, WIRE_NOT_NULL, "the last one; 0: it was not begun"),                          \
        F("start_time", started_at_ms, TIME, 0, "when the first attempt began"),                                    \
        F("end_time", ended_at_ms, TIME, 0, "when the last attempt ended"),                                         \
        F("duration_ms", duration_ms, INT64, WIRE_MINUS, "between the two; so far, while it runs"),                 \
        F("exit_code", exit_code, INT64, WIRE_MINUS, "of the last attempt"),                                        \
        F("error_message", error, TEXT, 0, "why the last attempt failed"),                                          \
        F("details", details, META, 0, "what the kind of step has to tell: check results, rows changed")
/* What was not asked for is not there. */
#define OUTPUT_FIELDS                                                                       \
    F("stdout", out, TEXT, WIRE_NOT_NULL | WIRE_HIDE, "the end of it, at most 64 KiB"),     \
        F("stderr", err, TEXT, WIRE_NOT_NULL | WIRE_HIDE, "the end of it, at most 64 KiB"), \
        F("stdout_bytes", out_bytes, INT64, WIRE_NOT_NULL, "written in all"),               \
        F("stderr_bytes", err_bytes, INT64, WIRE_NOT_NULL, "written in all")
static const struct wire_field step_out[] = {
    STEP_FIELDS,
    MANY("attempts", attempts, n_attempts, attempt_object, "each of them"),
    OUTPUT_FIELDS,
};
static OBJECT(step_object, "PipelineRunStep", step_out, WIRE_ANSWER, "A step of a run");
static const struct wire_field output_out[] = { STEP_FIELDS, OUTPUT_FIELDS };
OBJECT(runner_out_output, "PipelineStepOutput", output_out, WIRE_ANSWER, "What a step wrote");
#undef STRUCT

#define STRUCT struct runner_join_out
static const struct wire_field join_out[] = {
    F("at", at_ms, TIME, 0, "when"),
    F("trigger_by", by, TEXT, 0, "who wanted it, too"),
    F("trigger_type", trigger, TEXT, 0, "api, cli or schedule"),
    F("request_id", request_id, TEXT, 0, "X-Request-Id of the trigger"),
};
static OBJECT(join_object, "PipelineJoin", join_out, WIRE_ANSWER,
              "A trigger that was told the id of this run");
#undef STRUCT

#define STRUCT struct runner_run_out
#define RUN_FIELDS                                                                                  \
    F("pipeline_logging_id", id, TEXT, WIRE_NOT_NULL, "of the run"),                                \
        F("pipeline_id", pipeline, TEXT, WIRE_NOT_NULL, "of the pipeline"),                         \
        F("tenant_id", tenant, TEXT, WIRE_NOT_NULL, "whose it is"),                                 \
        { .name    = "status",                                                                      \
          .kind    = WIRE_CHOICE,                                                                   \
          .offset  = offsetof(STRUCT, status),                                                      \
          .min     = 1,                                                                             \
          .choices = states,                                                                        \
          .help    = "PENDING and RUNNING are live" },                                                 \
        F("trigger_type", trigger, TEXT, 0, "api, cli or schedule"),                                \
        F("trigger_by", by, TEXT, 0, "who wanted it"),                                              \
        F("created_at", created_at_ms, TIME, 0, "when it was triggered"),                           \
        F("start_time", started_at_ms, TIME, 0, "when it began to run"),                            \
        F("end_time", ended_at_ms, TIME, 0, "when it ended"),                                       \
        F("duration_ms", duration_ms, INT64, WIRE_MINUS, "between the two; so far, while it runs"), \
        F("stage", stage, TEXT, 0, "the steps that run"),                                           \
        F("progress", progress, INT32, WIRE_MINUS, "percent of the steps"),                         \
        F("error_message", error, TEXT, 0, "why it failed or was cancelled; or why it is to stop"), \
        F("fence", fence, UINT64, 0, "of its lease"),                                               \
        F("parameters", parameters, META, 0, "as they were given"),                                 \
        F("version", version, TEXT, 0, "of the pipeline when it was triggered"),                    \
        F("position", position, UINT32, 0, "PENDING: place in the pipeline's queue, 1 = next"),     \
        FLAG("cancelling", cancelling, 1, "it was asked to stop, and has not yet"),                 \
        F("joins", joins, UINT32, WIRE_NOT_NULL, "triggers that were told this run's id"),          \
        F("log_bytes", log_bytes, UINT64, WIRE_NOT_NULL, "of output so far")
static const struct wire_field run_out[] = { RUN_FIELDS };
OBJECT(runner_out_run, "PipelineRun", run_out, WIRE_ANSWER, "A run of a pipeline");
static const struct wire_field run_full_out[] = {
    RUN_FIELDS,
    F("node", node, TEXT, 0, "the server that executes it: host:pid"),
    F("renewals", renewals, INT64, WIRE_NOT_NULL, "of its lease so far"),
    F("renewed_at", renewed_at_ms, TIME, 0, "the last of them"),
    MANY("joined", joined, n_joined, join_object, "the newest triggers that were told its id"),
    MANY("steps", steps, n_steps, step_object, "in the order of the file"),
};
OBJECT(runner_out_run_full, "PipelineRunFull", run_full_out, WIRE_ANSWER,
       "A run of a pipeline with its steps");
#undef STRUCT

/* ---- locks ---------------------------------------------------------------------------------------------------------------------- */

#define STRUCT struct runner_lock_out
static const struct wire_field lock_out[] = {
    F("pipeline_logging_id", id, TEXT, 0, "of the run that has it"),
    F("pipeline_id", pipeline, TEXT, WIRE_NOT_NULL, "of the pipeline"),
    F("tenant_id", tenant, TEXT, WIRE_NOT_NULL, "whose it is"),
    F("locked_at", locked_at_ms, TIME, 0, "since when"),
    F("locked_by", by, TEXT, 0, "who triggered the run"),
    F("expires_at", expires_at_ms, TIME, 0, "unless it is renewed"),
    F("fence", fence, UINT64, WIRE_NOT_NULL, "of the lease"),
    F("holder", holder, TEXT, WIRE_NOT_NULL, "of the lease: the run's id, or somebody else's name"),
    F("state", state, TEXT, WIRE_NOT_NULL,
      "held, or closing: it was broken and its holder has not let go"),
    F("age_ms", age_ms, INT64, WIRE_NOT_NULL, "since it was taken"),
    F("ttl_ms", ttl_ms, INT64, WIRE_NOT_NULL, "it ends that long after its last renewal"),
    F("renewed_ms", renewed_ms, INT64, WIRE_NOT_NULL, "since its last renewal"),
    F("remaining_ms", remaining_ms, INT64, WIRE_NOT_NULL, "until it ends"),
    F("ttl_used", ttl_used, META, WIRE_NOT_NULL,
      "share of the TTL that has passed since the last renewal: 0.33"),
    FLAG("expiring", expiring, 1, "that share is above lock_expiration_alert_threshold"),
};
OBJECT(runner_out_lock, "PipelineLock", lock_out, WIRE_ANSWER, "The lock of a pipeline that runs");
#undef STRUCT

/* ---- pipelines ------------------------------------------------------------------------------------------------------------------ */

#define STRUCT struct runner_parameter_out
static const struct wire_field parameter_out[] = {
    F("name", name, TEXT, WIRE_NOT_NULL, "of the field in a trigger"),
    F("default", fallback, TEXT, 0, "when it is not given"),
    FLAG("required", required, 1, "it has no default"),
};
static OBJECT(parameter_object, "PipelineParameter", parameter_out, WIRE_ANSWER, "A parameter");
#undef STRUCT

#define STRUCT struct runner_step_about
static const struct wire_field step_about[] = {
    F("step_id", id, TEXT, WIRE_NOT_NULL, "of the step"),
    F("type", type, TEXT, WIRE_NOT_NULL, "command, sql, http or check"),
    F("level", level, UINT32, WIRE_NOT_NULL, "steps of one level run at once"),
    F("depends_on", needs, META, WIRE_NOT_NULL, "steps that must have ended well before"),
    F("timeout_ms", timeout_ms, INT64, WIRE_NOT_NULL, "of an attempt"),
    F("retries", retries, UINT32, WIRE_NOT_NULL, "after the first attempt"),
    F("on_failure", on_failure, TEXT, WIRE_NOT_NULL, "stop, continue or alert"),
};
static OBJECT(about_object, "PipelineStep", step_about, WIRE_ANSWER, "A step, as the file says");
#undef STRUCT

#define STRUCT struct runner_pipeline_out
#define PIPELINE_FIELDS                                                                              \
    F("pipeline_id", id, TEXT, WIRE_NOT_NULL, "of the pipeline"),                                    \
        F("tenant_id", tenant, TEXT, WIRE_NOT_NULL, "whose it is"),                                  \
        F("description", description, TEXT, 0, "for people"),                                        \
        F("version", version, TEXT, 0, "as its file says"),                                          \
        F("schedule", schedule, TEXT, 0, "cron expression; null: only when it is triggered"),        \
        F("timezone", zone, TEXT, 0, "of the schedule"),                                             \
        F("next_run_at", next_at_ms, TIME, 0, "by the schedule"),                                    \
        F("on_conflict", on_conflict, TEXT, WIRE_NOT_NULL, "what a trigger does while it runs"),     \
        F("timeout_ms", timeout_ms, INT64, WIRE_NOT_NULL, "of a run"),                               \
        F("lock_timeout_ms", lock_timeout_ms, INT64, 0, "its own, if it has one"),                   \
        FLAG("preflight", has, RUNNER_HAS_PREFLIGHT, "an outside system is asked before it starts"), \
    {                                                                                                \
        .name = "last_run", .kind = WIRE_OBJECT, .offset = offsetof(STRUCT, last),                   \
        .offset2 = offsetof(STRUCT, has), .bit = RUNNER_HAS_LAST, .object = &runner_out_run,         \
        .help = "the newest one; null: none is known"                                                \
    }
static const struct wire_field pipeline_out[] = { PIPELINE_FIELDS };
OBJECT(runner_out_pipeline, "Pipeline", pipeline_out, WIRE_ANSWER, "A pipeline");
static const struct wire_field pipeline_full_out[] = {
    PIPELINE_FIELDS,
    MANY("parameters", parameters, n_parameters, parameter_object, "that a trigger may give"),
    MANY("steps", steps, n_steps, about_object, "in the order of the file"),
};
OBJECT(runner_out_pipeline_full, "PipelineFull", pipeline_full_out, WIRE_ANSWER,
       "A pipeline with its parameters and steps");
#undef STRUCT

#define STRUCT struct runner_problem
static const struct wire_field problem_out[] = {
    F("message", text, TEXT, WIRE_NOT_NULL, "FILE:LINE: field: reason"),
};
static OBJECT(problem_object, "PipelineProblem", problem_out, WIRE_ANSWER, "A file that was refused");
#undef STRUCT

#define STRUCT struct runner_loaded_out
static const struct wire_field loaded_out[] = {
    F("pipelines", pipelines, UINT64, WIRE_NOT_NULL, "that there are now"),
    F("tenants", tenants, UINT64, WIRE_NOT_NULL, "that have any"),
    F("changed", changed, UINT64, WIRE_NOT_NULL, "pipelines that are new, gone, or different"),
    F("bad_files", bad, UINT64, WIRE_NOT_NULL, "that were refused"),
    F("kept", kept, UINT64, WIRE_NOT_NULL, "of those: whose last good version goes on"),
    MANY("problems", problems, n_problems, problem_object,
         "what is wrong with files of the caller's tenant; admins see all"),
};
OBJECT(runner_out_loaded, "PipelinesLoaded", loaded_out, WIRE_ANSWER, "What reading the files brought");
