/*
 * routes_tables.c: JSON tables of the runner's request and response bodies, used for parsing,
 * printing and /openapi.json.
 */
#include "apps/runner/serve.h"
#include "core/names.h"
#include "wire/table.h"

/* COMPLETE is an alias of COMPLETED. */
static int
choose_state(const char *text)
{
    return strcmp(text, "COMPLETE") == 0 ? (int)IL_RUN_COMPLETED : 0;
}

/* ---- request bodies -------------------------------------------------------------------------- */

#define STRUCT struct runner_trigger_in
static const struct wire_field trigger_in[] = {
    BOUNDED("trigger_by", by, TEXT, 0, 0, RUNNER_BY_BYTES_MAX, "who triggers the pipeline"),
};
OBJECT(runner_in_trigger, "PipelineTrigger", trigger_in, 0,
       "Name of the caller; all other fields are parameters of the pipeline");
#undef STRUCT

#define STRUCT struct runner_page_in
#define PAGE                                                                   \
    BOUNDED("cursor", cursor, TEXT, 0, 0, 512, "`next` of the previous page"), \
        BOUNDED("limit", limit, UINT32, 0, 1, RUNNER_PAGE_MAX, "maximum number of items")
static const struct wire_field page_in[] = { PAGE };
OBJECT(runner_in_page, "PipelinePageQuery", page_in, 0, "Query of a page");
static const struct wire_field runs_in[] = {
    PAGE,
    BOUNDED("pipeline_id", pipeline, TEXT, 0, 1, PIPELINE_ID_BYTES_MAX,
            "only runs of this pipeline"),
    { .name    = "status",
      .kind    = WIRE_SET,
      .offset  = AT(states),
      .min     = 1,
      .choices = il__run_state_names + 1,
      .choose  = choose_state,
      .help    = "only these states; COMPLETE is accepted for COMPLETED" },
};
OBJECT(runner_in_runs, "PipelineRunsQuery", runs_in, 0, "Filter of the runs; 20 by default");
#undef STRUCT

#define STRUCT struct runner_run_in
static const struct wire_field run_in[] = { BOOL("output", 0, output, 1,
                                                 "include the end of each step's output") };
OBJECT(runner_in_run, "PipelineRunQuery", run_in, 0, "Options of a run");
#undef STRUCT

#define STRUCT struct runner_output_in
static const struct wire_field output_in[] = {
    BOUNDED("attempt", attempt, UINT32, 0, 1, 1000, "number of the attempt; default the last"),
};
OBJECT(runner_in_output, "StepOutputQuery", output_in, 0, "Attempt of a step");
#undef STRUCT

#define STRUCT struct runner_cancel_in
static const struct wire_field cancel_in[] = {
    BOUNDED("reason", reason, TEXT, 0, 1, IL_PLACE_BYTES_MAX, "reason, shown as error_message"),
};
OBJECT(runner_in_cancel, "PipelineCancel", cancel_in, 0, "Reason of a cancellation");
#undef STRUCT

/* ---- responses: triggers --------------------------------------------------------------------- */

#define STRUCT struct runner_triggered
static const struct wire_field triggered[] = {
    F("pipeline_logging_id", id, TEXT, WIRE_NOT_NULL, "id of the run"),
    F("pipeline_id", pipeline, TEXT, WIRE_NOT_NULL, "id of the pipeline"),
    F("tenant_id", tenant, TEXT, WIRE_NOT_NULL, "tenant that owns it"),
    F("status", status, TEXT, WIRE_NOT_NULL,
      "PENDING: a new run; RUNNING: the run that was already running"),
    F("message", message, TEXT, WIRE_NOT_NULL, "explanation of the status"),
};
OBJECT(runner_out_triggered, "PipelineTriggered", triggered, WIRE_ANSWER,
       "The new run, or the one that was already running");
#undef STRUCT

/* ---- runs ------------------------------------------------------------------------------------ */

#define STRUCT struct runner_attempt_out
static const struct wire_field attempt_out[] = {
    F("attempt", attempt, UINT32, WIRE_NOT_NULL, "number of the attempt, starting at 1"),
    F("status", status, TEXT, WIRE_NOT_NULL, "status of the attempt, as for steps"),
    F("start_time", started_at_ms, TIME, 0, "when it started"),
    F("end_time", ended_at_ms, TIME, 0, "when it ended"),
    F("duration_ms", duration_ms, INT64, WIRE_MINUS, "duration; so far if it is running"),
    F("exit_code", exit_code, INT64, WIRE_MINUS,
      "exit status of a command (128 + signal), or HTTP status"),
    F("error_message", error, TEXT, 0, "why it failed"),
};
static OBJECT(attempt_object, "PipelineAttempt", attempt_out, WIRE_ANSWER, "One attempt of a step");
#undef STRUCT

#define STRUCT struct runner_step_out
#define STEP_FIELDS                                                                            \
    F("step_id", id, TEXT, WIRE_NOT_NULL, "id of the step"),                                   \
        F("type", type, TEXT, WIRE_NOT_NULL, "command, sql, http or check"),                   \
        F("level", level, INT64, WIRE_NOT_NULL,                                                \
          "level, starting at 1; steps of one level run in parallel"),                         \
        F("status", status, TEXT, WIRE_NOT_NULL,                                               \
          "PENDING, RUNNING, COMPLETED, WARNING, FAILED, TIMEOUT, CANCELLED, INTERRUPTED, "    \
          "SKIPPED"),                                                                          \
        F("attempt", attempt, UINT32, WIRE_NOT_NULL,                                           \
          "number of the last attempt; 0: not started"),                                       \
        F("start_time", started_at_ms, TIME, 0, "when the first attempt started"),             \
        F("end_time", ended_at_ms, TIME, 0, "when the last attempt ended"),                    \
        F("duration_ms", duration_ms, INT64, WIRE_MINUS, "duration; so far if it is running"), \
        F("exit_code", exit_code, INT64, WIRE_MINUS, "exit code of the last attempt"),         \
        F("error_message", error, TEXT, 0, "why the last attempt failed"),                     \
        F("details", details, META, 0, "details by type of step: check results, rows changed")
/* Fields that were not requested are absent. */
#define OUTPUT_FIELDS                                                                           \
    F("stdout", out, TEXT, WIRE_NOT_NULL | WIRE_HIDE, "end of the output, at most 64 KiB"),     \
        F("stderr", err, TEXT, WIRE_NOT_NULL | WIRE_HIDE, "end of the output, at most 64 KiB"), \
        F("stdout_bytes", out_bytes, INT64, WIRE_NOT_NULL, "total number of bytes written"),    \
        F("stderr_bytes", err_bytes, INT64, WIRE_NOT_NULL, "total number of bytes written")
static const struct wire_field step_out[] = {
    STEP_FIELDS,
    OBJECTS("attempts", 0, attempts, n_attempts, attempt_object, "the attempts"),
    OUTPUT_FIELDS,
};
static OBJECT(step_object, "PipelineRunStep", step_out, WIRE_ANSWER, "A step of a run");
static const struct wire_field output_out[] = { STEP_FIELDS, OUTPUT_FIELDS };
OBJECT(runner_out_output, "PipelineStepOutput", output_out, WIRE_ANSWER, "Output of a step");
#undef STRUCT

#define STRUCT struct runner_join_out
static const struct wire_field join_out[] = {
    F("at", at_ms, TIME, 0, "time of the trigger"),
    F("trigger_by", by, TEXT, 0, "who triggered it"),
    F("trigger_type", trigger, TEXT, 0, "api, cli or schedule"),
    F("request_id", request_id, TEXT, 0, "X-Request-Id of the trigger"),
};
static OBJECT(join_object, "PipelineJoin", join_out, WIRE_ANSWER, "A trigger that joined this run");
#undef STRUCT

#define STRUCT struct runner_run_out
#define RUN_FIELDS                                                                                 \
    F("pipeline_logging_id", id, TEXT, WIRE_NOT_NULL, "id of the run"),                            \
        F("pipeline_id", pipeline, TEXT, WIRE_NOT_NULL, "id of the pipeline"),                     \
        F("tenant_id", tenant, TEXT, WIRE_NOT_NULL, "tenant that owns it"),                        \
        CHOICE("status", 0, status, il__run_state_names + 1, 1, "PENDING and RUNNING are live"),   \
        F("trigger_type", trigger, TEXT, 0, "api, cli or schedule"),                               \
        F("trigger_by", by, TEXT, 0, "who triggered it"),                                          \
        F("created_at", created_at_ms, TIME, 0, "when it was triggered"),                          \
        F("start_time", started_at_ms, TIME, 0, "when it started"),                                \
        F("end_time", ended_at_ms, TIME, 0, "when it ended"),                                      \
        F("duration_ms", duration_ms, INT64, WIRE_MINUS, "duration; so far if it is running"),     \
        F("stage", stage, TEXT, 0, "the running steps"),                                           \
        F("progress", progress, INT32, WIRE_MINUS, "percentage of finished steps"),                \
        F("error_message", error, TEXT, 0, "why it failed, was cancelled or should stop"),         \
        F("fence", fence, UINT64, 0, "fence of its lease"),                                        \
        F("parameters", parameters, META, 0, "parameters of the trigger"),                         \
        F("version", version, TEXT, 0, "version of the pipeline when it was triggered"),           \
        F("position", position, UINT32, 0, "PENDING: position in the pipeline's queue, 1 = next"), \
        BOOL("cancelling", 0, cancelling, 1, "it was asked to stop but has not stopped yet"),      \
        F("joins", joins, UINT32, WIRE_NOT_NULL, "number of triggers that joined this run"),       \
        F("log_bytes", log_bytes, UINT64, WIRE_NOT_NULL, "bytes of output so far")
static const struct wire_field run_out[] = { RUN_FIELDS };
OBJECT(runner_out_run, "PipelineRun", run_out, WIRE_ANSWER, "A run of a pipeline");
static const struct wire_field run_full_out[] = {
    RUN_FIELDS,
    F("node", node, TEXT, 0, "server that executes it, as host:pid"),
    F("renewals", renewals, INT64, WIRE_NOT_NULL, "number of renewals of its lease"),
    F("renewed_at", renewed_at_ms, TIME, 0, "time of the last renewal"),
    OBJECTS("joined", 0, joined, n_joined, join_object, "the latest triggers that joined it"),
    OBJECTS("steps", 0, steps, n_steps, step_object, "steps in file order"),
};
OBJECT(runner_out_run_full, "PipelineRunFull", run_full_out, WIRE_ANSWER,
       "A run of a pipeline with its steps");
#undef STRUCT

/* ---- locks ----------------------------------------------------------------------------------- */

#define STRUCT struct runner_lock_out
static const struct wire_field lock_out[] = {
    F("pipeline_logging_id", id, TEXT, 0, "id of the run that holds it"),
    F("pipeline_id", pipeline, TEXT, WIRE_NOT_NULL, "id of the pipeline"),
    F("tenant_id", tenant, TEXT, WIRE_NOT_NULL, "tenant that owns it"),
    F("locked_at", locked_at_ms, TIME, 0, "when it was acquired"),
    F("locked_by", by, TEXT, 0, "who triggered the run"),
    F("expires_at", expires_at_ms, TIME, 0, "when it expires unless it is renewed"),
    F("fence", fence, UINT64, WIRE_NOT_NULL, "fence of the lease"),
    F("holder", holder, TEXT, WIRE_NOT_NULL,
      "holder of the lease: the run's id, or the name of another holder"),
    F("state", state, TEXT, WIRE_NOT_NULL,
      "held, or closing: broken, but the holder has not let go yet"),
    F("age_ms", age_ms, INT64, WIRE_NOT_NULL, "time since it was acquired"),
    F("ttl_ms", ttl_ms, INT64, WIRE_NOT_NULL, "it expires this long after its last renewal"),
    F("renewed_ms", renewed_ms, INT64, WIRE_NOT_NULL, "time since its last renewal"),
    F("remaining_ms", remaining_ms, INT64, WIRE_NOT_NULL, "time until it expires"),
    F("lock_timeout_ms", timeout_ms, INT64, WIRE_NOT_NULL, "how long a run is expected to hold it"),
    F("ttl_used", timeout_used, META, WIRE_NOT_NULL,
      "share of lock_timeout_ms used so far, such as 0.33"),
    BOOL("expiring", 0, expiring, 1, "ttl_used is above lock_expiration_alert_threshold"),
    BOOL("not_renewed", 0, unrenewed, 1, "not renewed for 0.8 of its TTL"),
};
OBJECT(runner_out_lock, "PipelineLock", lock_out, WIRE_ANSWER, "The lock of a running pipeline");
#undef STRUCT

/* ---- pipelines ------------------------------------------------------------------------------- */

#define STRUCT struct runner_parameter_out
static const struct wire_field parameter_out[] = {
    F("name", name, TEXT, WIRE_NOT_NULL, "name of the field in a trigger"),
    F("default", fallback, TEXT, 0, "default value"),
    BOOL("required", 0, required, 1, "whether it must be given"),
};
static OBJECT(parameter_object, "PipelineParameter", parameter_out, WIRE_ANSWER, "A parameter");
#undef STRUCT

#define STRUCT struct runner_step_about
static const struct wire_field step_about[] = {
    F("step_id", id, TEXT, WIRE_NOT_NULL, "id of the step"),
    F("type", type, TEXT, WIRE_NOT_NULL, "command, sql, http or check"),
    F("level", level, UINT32, WIRE_NOT_NULL,
      "level, starting at 1; steps of one level run in parallel"),
    F("depends_on", needs, META, WIRE_NOT_NULL, "steps that must succeed first"),
    F("timeout_ms", timeout_ms, INT64, WIRE_NOT_NULL, "timeout of an attempt"),
    F("retries", retries, UINT32, WIRE_NOT_NULL, "number of retries"),
    F("on_failure", on_failure, TEXT, WIRE_NOT_NULL, "stop, continue or alert"),
};
static OBJECT(about_object, "PipelineStep", step_about, WIRE_ANSWER, "A step as configured");
#undef STRUCT

#define STRUCT struct runner_pipeline_out
#define PIPELINE_FIELDS                                                                         \
    F("pipeline_id", id, TEXT, WIRE_NOT_NULL, "id of the pipeline"),                            \
        F("tenant_id", tenant, TEXT, WIRE_NOT_NULL, "tenant that owns it"),                     \
        F("description", description, TEXT, 0, "description"),                                  \
        F("version", version, TEXT, 0, "version given in the file"),                            \
        F("schedule", schedule, TEXT, 0, "cron expression; null: not scheduled"),               \
        F("timezone", zone, TEXT, 0, "time zone of the schedule"),                              \
        F("next_run_at", next_at_ms, TIME, 0, "next scheduled run"),                            \
        F("on_conflict", on_conflict, TEXT, WIRE_NOT_NULL,                                      \
          "what a trigger does while it is running"),                                           \
        F("timeout_ms", timeout_ms, INT64, WIRE_NOT_NULL, "timeout of a run"),                  \
        F("lock_timeout_ms", lock_timeout_ms, INT64, 0,                                         \
          "lock timeout of the pipeline, if it sets one"),                                      \
        BOOL("preflight", 0, has, RUNNER_HAS_PREFLIGHT,                                         \
             "whether a preflight probe runs before it starts"),                                \
    {                                                                                           \
        .name = "last_run", .kind = WIRE_OBJECT, .offset = AT(last), .offset2 = AT(has),        \
        .bit = RUNNER_HAS_LAST, .object = &runner_out_run, .help = "the latest run; null: none" \
    }
static const struct wire_field pipeline_out[] = { PIPELINE_FIELDS };
OBJECT(runner_out_pipeline, "Pipeline", pipeline_out, WIRE_ANSWER, "A pipeline");
static const struct wire_field pipeline_full_out[] = {
    PIPELINE_FIELDS,
    OBJECTS("parameters", 0, parameters, n_parameters, parameter_object,
            "parameters a trigger may set"),
    OBJECTS("steps", 0, steps, n_steps, about_object, "steps in file order"),
};
OBJECT(runner_out_pipeline_full, "PipelineFull", pipeline_full_out, WIRE_ANSWER,
       "A pipeline with its parameters and steps");
#undef STRUCT

#define STRUCT struct runner_problem
static const struct wire_field problem_out[] = {
    F("message", text, TEXT, WIRE_NOT_NULL, "FILE:LINE: field: reason"),
};
static OBJECT(problem_object, "PipelineProblem", problem_out, WIRE_ANSWER, "An invalid file");
#undef STRUCT

#define STRUCT struct runner_loaded_out
static const struct wire_field loaded_out[] = {
    F("pipelines", pipelines, UINT64, WIRE_NOT_NULL, "number of pipelines"),
    F("tenants", tenants, UINT64, WIRE_NOT_NULL, "number of tenants with pipelines"),
    F("changed", changed, UINT64, WIRE_NOT_NULL, "number of pipelines added, removed or changed"),
    F("bad_files", bad, UINT64, WIRE_NOT_NULL, "number of invalid files"),
    F("kept", kept, UINT64, WIRE_NOT_NULL,
      "number of invalid files whose last valid version stays in use"),
    OBJECTS("problems", 0, problems, n_problems, problem_object,
            "invalid files of the caller's tenant; admins see all"),
};
OBJECT(runner_out_loaded, "PipelinesLoaded", loaded_out, WIRE_ANSWER,
       "Result of loading the pipeline files");
