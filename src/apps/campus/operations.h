/*
 * operations.h: the operations of the campus as a table (operations.def), for routes and commands.
 */
#ifndef IL_APPS_CAMPUS_OPERATIONS_H
#define IL_APPS_CAMPUS_OPERATIONS_H

#include "apps/campus/campus.h"
#include "wire/wire.h"

enum campus_operation_id {
#define OP(id, ...) CAMPUS_OP_##id,
#include "apps/campus/operations.def"
#undef OP
    CAMPUS_OP_COUNT
};

struct campus_operation {
    const char               *id, *method, *path; /* path below /api/v1 */
    const struct wire_object *in, *out;           /* in NULL: none */
    campus_fn                *fn;
    bool                      is_page; /* it fills a page of `out` */
};
extern const struct campus_operation campus_operations[CAMPUS_OP_COUNT];

/* Any answer. */
union campus_out {
    struct campus_user       user;
    struct campus_page       page;
    struct campus_license    license;
    struct campus_tournament tournament;
    struct campus_enrollment enrollment;
    struct campus_finalized  finalized;
    struct campus_match      match;
    struct campus_session    session;
    struct campus_booking    booking;
    struct campus_attendance attendance;
};

/* The member of *in that an argument of a path fills: its name, of n bytes. */
const char **campus_in_member(struct campus_in *in, const char *name, size_t n);

#define OP(id, method, path, permission, flags, in, out, ...) \
    extern const struct wire_object campus_out_##out;
#include "apps/campus/operations.def"
#undef OP
extern const struct wire_object campus_in_user_create, campus_in_license_create, campus_in_assess,
    campus_in_tournament_create, campus_in_transition, campus_in_player, campus_in_match_create,
    campus_in_match_finish, campus_in_session_create, campus_in_attendance;
extern const struct wire_object campus_in_page;
/* &campus_in_##in of a row, or NULL for NONE. */
#define CAMPUS_IN_NONE NULL
#define CAMPUS_IN_user_create &campus_in_user_create
#define CAMPUS_IN_license_create &campus_in_license_create
#define CAMPUS_IN_assess &campus_in_assess
#define CAMPUS_IN_tournament_create &campus_in_tournament_create
#define CAMPUS_IN_transition &campus_in_transition
#define CAMPUS_IN_player &campus_in_player
#define CAMPUS_IN_match_create &campus_in_match_create
#define CAMPUS_IN_match_finish &campus_in_match_finish
#define CAMPUS_IN_session_create &campus_in_session_create
#define CAMPUS_IN_attendance &campus_in_attendance

#endif
