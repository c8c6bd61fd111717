/* Where files are: paths that a host names, what lies beside this library, and which program is the
 * sidecar. */
#ifndef PLUE_PROGRAM_H
#define PLUE_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

/* Writes the current folder; "" if that is not known. */
void plue_path_current(char folder[PATH_MAX]);

/* The path on the heap, seen from `folder` if it is relative: a host may be somewhere else by the
 * time it is used. It stays relative where `folder` is "". NULL when out of memory. */
char *plue_path_from(const char *folder, const char *path);

/* The same of a module: a URL stays what it is. The tools side can read only UTF-8. */
char *plue_path_of_module(const char *folder, const char *module);

/* Notes which file this code was loaded from: libplue, or what it is linked into statically. Keeps
 * that loaded until the process ends, because threads end in it after its host has let go of it.
 * Once, while it is loaded: a host may change its current folder later. */
void plue_image_prepare(void);

/* The folder of that file, from the root and without a slash at the end; "" if that is not known. */
const char *plue_image_folder(void);

/* The folder that was the current one when it was loaded; "" if that is not known. */
const char *plue_image_start_folder(void);

struct plue_program {
    char *const *argv;
    char path[PATH_MAX]; /* of the file to run, from the root */
    char *default_argv[7];
    char default_text[PATH_MAX];
    char tsconfig[32 + PATH_MAX]; /* the option of Bun */
    const char *lack;             /* what is said when it is not found */
};

/* Finds the program of `argv`, or the default one if that is NULL, for the tools of `module`, which may
 * be NULL. Returns false when there is no such file; `argv[0]` says what was looked for, `lack` where. */
bool plue_program_find(char *const *argv, const char *module, struct plue_program *program);

#endif
