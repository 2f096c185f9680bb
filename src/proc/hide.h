/*
 * hide.h: keeps other processes from reading the environment of this one.
 *
 * /proc/PID/environ shows the initial environment memory of a process for as long as it lives, to
 * root and to processes of the same user, such as the commands of a server's pipelines. Passwords
 * are passed in the environment, so this memory is overwritten first.
 */
#ifndef IL_PROC_HIDE_H
#define IL_PROC_HIDE_H

#include "base/base.h"

/*
 * Move the environment to the heap, where getenv() still finds it and executed commands still
 * inherit it, and overwrite the strings that /proc/PID/environ shows. Call it at the start of
 * main(): pointers returned by getenv() before are dangling afterwards. False: out of memory,
 * nothing changed.
 */
bool il__proc_hide_environment(void);

/*
 * Afterwards a process of the same user cannot read our memory, our descriptors or
 * /proc/PID/environ, cannot trace us, and we leave no core file. execve() resets this.
 */
void il__proc_hide_memory(void);

#endif
