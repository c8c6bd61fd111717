/* Which program is the sidecar. */
#ifndef PLUE_PROGRAM_H
#define PLUE_PROGRAM_H

#include "path.h"

#include <stdbool.h>

struct plue_program {
    char *const *argv;
    char path[PATH_MAX]; /* of the file to run, from the root */
    char *default_argv[3];
    char default_text[PATH_MAX];
    const char *lack; /* what is said when it is not found */
};

/* Finds the program of `argv`, or the default one if that is NULL. Returns false when there is no such
 * file; `argv[0]` says what was looked for, `lack` where. */
bool plue_program_find(char *const *argv, struct plue_program *program);

#endif
