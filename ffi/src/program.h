/* Paths of files: paths that a host passes, files next to this library, and the program of the
 * sidecar. */
#pragma once

#include "std.h"

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

/* Writes the current folder; "" if that is not known. */
void plue_path_current(char folder[PATH_MAX]);

/* Returns the path on the heap, resolved against `folder` if it is relative, because the host may
 * change its folder. It stays relative if `folder` is "". Returns NULL when out of memory. */
char *plue_path_from(const char *folder, const char *path);

/* Like plue_path_from() for a module: URLs stay unchanged. The tools side reads only UTF-8. */
char *plue_path_of_module(const char *folder, const char *module);

/* Finds the file that contains this code: libplue, or the program into which it is linked
 * statically. Keeps that file loaded until the process ends, because threads outlive its unloading.
 * Called once, while the file is loaded, because a host may change its current folder later. */
void plue_image_prepare(void);

/* Returns the absolute path of that file's folder, without a final slash; "" if unknown. */
const char *plue_image_folder(void);

/* Returns the folder that was the current folder when the file was loaded; "" if unknown. */
const char *plue_image_start_folder(void);

struct plue_program {
    char *const *argv;
    char path[PATH_MAX]; /* the absolute path of the file to execute */
    char *default_argv[7];
    char default_text[PATH_MAX];
    char tsconfig[32 + PATH_MAX]; /* Bun's option for the file */
    const char *lack;             /* the searched paths, for the error message */
};

/* Finds the program of `argv`, or the default one for NULL, for the tools of `module` (may be
 * NULL). Returns false if none is found: `argv[0]` is then its name, `lack` the searched paths. */
bool plue_program_find(char *const *argv, const char *module, struct plue_program *program);
