/*
 * routes_tables.c: JSON of the bodies and answers of the campus, and the table of its operations.
 */
#include "apps/campus/serve.h"
#include "wire/table.h"

#define STRUCT struct campus_in
#define ID(field, member, flag, text) \
    BOUNDED(field, member, TEXT, flag, 1, CAMPUS_ID_BYTES_MAX, text)
#define NAME(field, member, flag, text) \
    BOUNDED(field, member, TEXT, flag, 1, CAMPUS_NAME_BYTES_MAX, text)
#define DOCUMENT(field, member, text) BOUNDED(field, member, TEXT, 0, 2, 65536, text)
#define IN(id, label, text, ...)                                    \
    static const struct wire_field id##_fields[] = { __VA_ARGS__ }; \
    OBJECT(campus_in_##id, label, id##_fields, 0, text)
#define OUT(id, label, text, ...)                                       \
    static const struct wire_field id##_out_fields[] = { __VA_ARGS__ }; \
    OBJECT(campus_out_##id, label, id##_out_fields, WIRE_ANSWER, text)

/* ---- inputs ---------------------------------------------------------------------------------- */

IN(user_create, "CampusUserCreate", "A new user",
   NAME("email", email, WIRE_REQUIRED, "email address, unique in the tenant"),
   BOUNDED("credits", credits, INT64, 0, 0, CAMPUS_AMOUNT_MAX, "initial credits"));
IN(license_create, "CampusLicenseCreate", "A new license",
   ID("specialization", specialization, 0, "default " CAMPUS_SPECIALIZATION),
   DOCUMENT("skills", skills, "JSON object: the baseline of each skill, 40 to 99"));
static const struct wire_field assess_fields[] = {
    BOUNDED("skill", skill, TEXT, WIRE_REQUIRED, 1, 64, "name of the skill"),
    { .name   = "value",
      .kind   = WIRE_DECIMAL,
      .flags  = WIRE_REQUIRED,
      .offset = AT(value_1),
      .min    = 400,
      .max    = 990,
      .digits = 1,
      .help   = "the new baseline, 40 to 99 with one decimal" },
};
OBJECT(campus_in_assess, "CampusAssess", assess_fields, 0, "An assessment");
IN(tournament_create, "CampusTournamentCreate", "A new tournament",
   ID("code", code, WIRE_REQUIRED, "code, unique in the tenant"),
   NAME("name", name, 0, "name; default the code"),
   ID("campus", campus, 0, "campus where it takes place; required before enrollment opens"),
   ID("specialization", specialization, 0,
      "specialization of its players; default " CAMPUS_SPECIALIZATION),
   BOUNDED("max_players", max_players, INT64, WIRE_REQUIRED, 1, CAMPUS_PLAYERS_MAX,
           "maximum number of players"),
   BOUNDED("cost", cost, INT64, 0, 0, CAMPUS_AMOUNT_MAX, "price of an enrollment in credits"),
   DOCUMENT("reward_config", reward_config, "JSON object: rewards by rank, instead of the default"),
   DOCUMENT("weights", weights, "JSON object: the weight of each skill, 0 to 10; default 1"));
IN(transition, "CampusTransition", "A change of state",
   ID("state", state, WIRE_REQUIRED, "the new state"));
IN(player, "CampusPlayer", "The user of a request",
   ID("user", user, WIRE_REQUIRED, "id of the user"));
IN(match_create, "CampusMatchCreate", "A new match",
   ID("home", home, WIRE_REQUIRED, "id of a player"),
   ID("away", away, WIRE_REQUIRED, "id of the other player"));
IN(match_finish, "CampusMatchFinish", "The result of a match",
   BOUNDED("home_goals", home_goals, INT64, WIRE_REQUIRED, 0, 1000, "goals of `home`"),
   BOUNDED("away_goals", away_goals, INT64, WIRE_REQUIRED, 0, 1000, "goals of `away`"));
IN(session_create, "CampusSessionCreate", "A new session",
   NAME("name", name, WIRE_REQUIRED, "name"),
   ID("tournament", tournament, 0, "tournament to which it belongs"),
   BOUNDED("capacity", capacity, INT64, WIRE_REQUIRED, 1, CAMPUS_CAPACITY_MAX, "number of places"),
   BOUNDED("price", price, INT64, 0, 0, CAMPUS_AMOUNT_MAX, "price of a booking in credits"),
   F("date_start", start_ms, TIME, WIRE_REQUIRED, "when it starts"),
   F("date_end", end_ms, TIME, WIRE_REQUIRED, "when it ends"));
IN(attendance, "CampusAttend", "Attendance",
   ID("status", attendance, 0, "PRESENT (default), ABSENT or LATE"));
IN(page, "CampusPageQuery", "Query of a page",
   BOUNDED("cursor", cursor, TEXT, 0, 1, CAMPUS_CURSOR_BYTES_MAX, "`next` of the previous page"),
   BOUNDED("limit", limit, UINT32, 0, 1, 1000, "maximum number of items; default 100"));
#undef STRUCT

/* ---- answers --------------------------------------------------------------------------------- */

#define TEXT_OUT(field, member, text) F(field, member, TEXT, WIRE_NOT_NULL, text)
#define NUMBER_OUT(field, member, text) F(field, member, INT64, WIRE_NOT_NULL, text)

#define STRUCT struct campus_user
OUT(user, "CampusUser", "A user", TEXT_OUT("id", id, "id of the user"),
    TEXT_OUT("email", email, "email address"),
    BOOL("is_active", 0, is, CAMPUS_IS_ACTIVE, "whether the user may enroll and book"),
    NUMBER_OUT("credit_balance", credits, "credits: the sum of the ledger"),
    NUMBER_OUT("xp_balance", xp, "XP: the sum of the ledger"),
    F("created_at", created_ms, TIME, 0, "when it was created"));
#undef STRUCT
#define STRUCT struct campus_badge_row
OUT(badge, "CampusBadge", "A badge", TEXT_OUT("id", id, "id of the badge"),
    TEXT_OUT("tournament", tournament, "tournament in which it was earned"),
    TEXT_OUT("type", type, "CHAMPION, RUNNER_UP, THIRD_PLACE, PODIUM_FINISH, …"),
    F("created_at", created_ms, TIME, 0, "when the tournament was completed"));
#undef STRUCT
#define STRUCT struct campus_license
OUT(license, "CampusLicense", "A license", TEXT_OUT("id", id, "id of the license"),
    TEXT_OUT("user", user, "id of its user"),
    TEXT_OUT("specialization", specialization, "specialization"),
    BOOL("is_active", 0, is, CAMPUS_IS_ACTIVE, "whether it is the user's current license"),
    F("football_skills", skills, META, WIRE_NOT_NULL,
      "the skills: `baseline`, `current_level`, `tournament_delta`, `total_delta`, "
      "`tournament_count` of each"));
#undef STRUCT
#define STRUCT struct campus_tournament
OUT(tournament, "CampusTournament", "A tournament", TEXT_OUT("id", id, "id of the tournament"),
    TEXT_OUT("code", code, "code"), TEXT_OUT("name", name, "name"),
    TEXT_OUT("state", state, "DRAFT, ENROLLMENT_OPEN, …"),
    F("campus", campus, TEXT, 0, "campus where it takes place"),
    TEXT_OUT("specialization", specialization, "specialization of its players"),
    NUMBER_OUT("max_players", max_players, "maximum number of players"),
    NUMBER_OUT("cost", cost, "price of an enrollment in credits"),
    NUMBER_OUT("enrolled", n_enrolled, "number of enrolled players"),
    F("reward_config", reward_config, META, 0, "rewards by rank; null: the default"),
    F("completed_at", completed_ms, TIME, 0, "when it was completed"),
    F("created_at", created_ms, TIME, 0, "when it was created"));
#undef STRUCT
#define STRUCT struct campus_enrollment
OUT(enrollment, "CampusEnrollment", "An enrollment", TEXT_OUT("id", id, "id of the enrollment"),
    TEXT_OUT("user", user, "id of the user"),
    TEXT_OUT("tournament", tournament, "id of the tournament"),
    TEXT_OUT("status", state, "APPROVED, WITHDRAWN or CANCELLED"),
    NUMBER_OUT("cost", cost, "credits that were charged"),
    NUMBER_OUT("refund", refund, "credits that were refunded"),
    F("created_at", created_ms, TIME, 0, "when the user enrolled"));
#undef STRUCT
#define STRUCT struct campus_result
OUT(result, "CampusResult", "Reward of a player", TEXT_OUT("user", user, "id of the user"),
    NUMBER_OUT("placement", place, "rank"), NUMBER_OUT("xp", xp, "XP"),
    NUMBER_OUT("credits", credits, "credits"));
#undef STRUCT
#define STRUCT struct campus_finalized
OUT(finalized, "CampusFinalized", "A finalized tournament",
    TEXT_OUT("tournament", tournament, "id of the tournament"),
    TEXT_OUT("state", state, "state of the tournament"),
    BOOL("repeated", 0, is, CAMPUS_IS_REPEATED, "whether it had already been finalized"),
    NUMBER_OUT("players", n_players, "number of its players"),
    NUMBER_OUT("paid", n_paid, "number of players paid by this call"),
    OBJECTS("items", 0, items, n, campus_out_result, "the players, ordered by rank"));
#undef STRUCT
#define STRUCT struct campus_match
OUT(match, "CampusMatch", "A match", TEXT_OUT("id", id, "id of the match"),
    TEXT_OUT("tournament", tournament, "id of the tournament"),
    TEXT_OUT("home", home, "id of a player"), TEXT_OUT("away", away, "id of the other player"),
    NUMBER_OUT("home_goals", home_goals, "goals of `home`"),
    NUMBER_OUT("away_goals", away_goals, "goals of `away`"),
    BOOL("finished", 0, is, CAMPUS_IS_FINISHED, "whether it has a result"));
#undef STRUCT
#define STRUCT struct campus_session
OUT(session, "CampusSession", "A session", TEXT_OUT("id", id, "id of the session"),
    F("tournament", tournament, TEXT, 0, "tournament to which it belongs"),
    TEXT_OUT("name", name, "name"), NUMBER_OUT("price", price, "price of a booking in credits"),
    NUMBER_OUT("capacity", capacity, "number of places"),
    NUMBER_OUT("available_spots", available, "number of free places"),
    F("date_start", start_ms, TIME, 0, "when it starts"),
    F("date_end", end_ms, TIME, 0, "when it ends"));
#undef STRUCT
#define STRUCT struct campus_booking
OUT(booking, "CampusBooking", "A booking", TEXT_OUT("id", id, "id of the booking"),
    TEXT_OUT("user", user, "id of the user"), TEXT_OUT("session", session, "id of the session"),
    TEXT_OUT("status", state, "CONFIRMED, WAITLISTED or CANCELLED"),
    F("waitlist_position", position, INT64, 0, "position in the waitlist; 1 is next"),
    NUMBER_OUT("price", price, "credits that were charged"),
    F("created_at", created_ms, TIME, 0, "when it was created"));
#undef STRUCT
#define STRUCT struct campus_attendance
OUT(attendance, "CampusAttendance", "Attendance", TEXT_OUT("id", id, "id of the row"),
    TEXT_OUT("booking", booking, "id of the booking"),
    TEXT_OUT("status", state, "PRESENT, ABSENT or LATE"),
    F("created_at", created_ms, TIME, 0, "when it was recorded"));
#undef STRUCT

/* ---- operations ------------------------------------------------------------------------------ */

const struct campus_operation campus_operations[CAMPUS_OP_COUNT] = {
#define OP(id_, method_, path_, permission, flags_, in_, out_, fn_, example, summary) \
    [CAMPUS_OP_##id_] = { .id      = "campus_" #id_,                                  \
                          .method  = method_,                                         \
                          .path    = path_,                                           \
                          .in      = CAMPUS_IN_##in_,                                 \
                          .out     = &campus_out_##out_,                              \
                          .fn      = fn_,                                             \
                          .is_page = ((flags_)&HTTP_PAGE) != 0 },
#include "apps/campus/operations.def"
#undef OP
};

const char **
campus_in_member(struct campus_in *in, const char *name, size_t n)
{
    const struct {
        const char  *name;
        const char **member;
    } members[] = {
        { "tournament", &in->tournament }, { "user", &in->user },       { "session", &in->session },
        { "booking", &in->booking },       { "license", &in->license }, { "match", &in->match },
    };

    size_t i = 0;

    while (i < ARRAY_LEN(members) &&
           (strlen(members[i].name) != n || memcmp(members[i].name, name, n) != 0))
        i++;
    CHECK(i < ARRAY_LEN(members)); /* a path names a member */
    return members[i].member;
}
