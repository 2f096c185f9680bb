/*
 * tables.h: the tables of the toy app, in several versions, its statements, its invariants
 * and its pipeline.
 */
#ifndef T_TOY_TABLES_H
#define T_TOY_TABLES_H

#include "apps/common/invariant.h"
#include "apps/common/pipeline.h"
#include "apps/common/tables.h"

extern const struct app_tables t_toy;        /* version 1 */
extern const struct app_tables t_toy_next;   /* version 2, which version 1 can no longer use */
extern const struct app_tables t_toy_broken; /* version 2, whose step fails */
extern const struct app_tables t_toy_mixed;  /* tables that let tenants meet */
extern const struct app_tables t_other;      /* another app with the same tables */

extern const struct app_statement t_toy_course_add, t_toy_seats, t_toy_booking_add, t_toy_courses,
    t_toy_title, t_toy_engine, t_toy_endless;

/* One is SQL, one a function. */
#define T_TOY_INVARIANTS 2
extern const struct app_invariant t_toy_invariants[T_TOY_INVARIANTS];
#define T_TOY_PIPELINES 1
extern const struct app_pipeline t_toy_pipelines[T_TOY_PIPELINES];

#endif
