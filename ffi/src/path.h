/* Paths that a host names. */
#ifndef PLUE_PATH_H
#define PLUE_PATH_H

#include <limits.h>

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

#endif
