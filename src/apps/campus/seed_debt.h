/*
 * seed_debt.h: LEGACY-DEBT-001, the known debt that `campus seed` plants: 8 licenses whose 29
 * skills are plain numbers (232), and 14 levels under 40. It is the baseline of the invariants that
 * would report it; finalization and `campus normalise-skills` pay it off.
 */
#ifndef IL_APPS_CAMPUS_SEED_DEBT_H
#define IL_APPS_CAMPUS_SEED_DEBT_H

#define CAMPUS_DEBT_LICENSES 8
#define CAMPUS_DEBT_LEVELS 14

/* Keys of offenders, NULL-terminated: licenses, and LICENSE/SKILL. */
extern const char *const campus_debt_licenses[CAMPUS_DEBT_LICENSES + 1];
extern const char *const campus_debt_levels[CAMPUS_DEBT_LEVELS + 1];

#endif
