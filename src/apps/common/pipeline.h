/*
 * pipeline.h: a pipeline that an app registers (http_app.pipelines): the rows that it locks, the
 * constraints that it relies on, the invariants that watch it, and its answers to the guard
 * checklist. `interlock doctor --checklist` shows them, with what the database says.
 */
#ifndef IL_APPS_COMMON_PIPELINE_H
#define IL_APPS_COMMON_PIPELINE_H

#include <stddef.h>

/* The questions, as in checklist.def: CHECKLIST_row_lock and so on. */
enum checklist_item {
#define X(id, name, question) CHECKLIST_##id,
#include "apps/common/checklist.def"
#undef X
    CHECKLIST_COUNT
};

enum pipeline_answer {
    PIPELINE_NOT_ANSWERED,
    PIPELINE_YES,
    PIPELINE_NO,
    PIPELINE_NOT_APPLICABLE,
    PIPELINE_ANSWER_COUNT
};

/*
 *     static const struct app_pipeline pipelines[] = {
 *         { .name        = "enrollment",
 *           .summary     = "enrolls users in semesters",
 *           .entities    = (const char *const[]){ "Semester", "User", NULL },
 *           .constraints = enrollment_constraints,
 *           .n_constraints = ARRAY_LEN(enrollment_constraints),
 *           .invariants  = (const char *const[]){ "duplicate_enrollment", NULL },
 *           .checklist   = { [CHECKLIST_row_lock] = { PIPELINE_YES, "tests/campus/enrollment.c" },
 *                            [CHECKLIST_claim]    = { PIPELINE_NOT_APPLICABLE, "no queue" } } },
 *     };
 */
struct app_pipeline {
    const char *name; /* unique within the app */
    const char *summary;
    /* Classes of the rows that it locks, in the order of their ranks, each with a rank in
     * app->tables; NULL-terminated. */
    const char *const *entities;
    /* Constraints and unique indexes, by their names in both engines. */
    const struct app_constraint {
        const char *table, *name;
    } * constraints;
    size_t             n_constraints;
    const char *const *invariants; /* names of app->invariants; NULL-terminated */
    struct {
        enum pipeline_answer answer;
        const char          *evidence; /* a test, a file, or the reason; may be NULL */
    } checklist[CHECKLIST_COUNT];
};

#endif
