/*
 * banned.h: bans unsafe C functions. Using one fails to compile and names the replacement.
 */
#ifndef IL_BASE_BANNED_H
#define IL_BASE_BANNED_H

/* Included first, so that the macros below do not break their declarations. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#undef strcpy
#define strcpy(d, s) BANNED_use_il__buf_adds
#undef strcat
#define strcat(d, s) BANNED_use_il__buf_adds
#undef strncpy
#define strncpy(d, s, n) BANNED_use_snprintf
#undef strncat
#define strncat(d, s, n) BANNED_use_il__buf_add
#undef sprintf
#define sprintf(...) BANNED_use_snprintf
#undef vsprintf
#define vsprintf(...) BANNED_use_vsnprintf
#undef gets
#define gets(s) BANNED_use_fgets
#undef atoi
#define atoi(s) BANNED_use_il__parse_u64
#undef atol
#define atol(s) BANNED_use_il__parse_u64
#undef strtok
#define strtok(s, d) BANNED_use_strchr
#undef gmtime
#define gmtime(t) BANNED_use_gmtime_r
#undef localtime
#define localtime(t) BANNED_use_localtime_r

#endif
