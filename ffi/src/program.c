#include "program.h"

#include "plue.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes the path of a file in the folder of this library (in that of the program that it is
 * linked into, if it is linked statically). */
static bool find_beside_library(const char *name, char *path) {
    Dl_info info;
    /* A function as a data pointer: POSIX allows it, and dladdr() wants it. */
    if (dladdr((const void *)(uintptr_t)plue_get_version, &info) == 0 || info.dli_fname == NULL) {
        return false;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    int folder = slash == NULL ? 0 : (int)(slash - info.dli_fname + 1);
    int length = snprintf(path, PATH_MAX, "%.*s%s", folder, info.dli_fname, name);
    return length < PATH_MAX && access(path, R_OK) == 0;
}

/* Looks `name` up in $PATH. */
static bool find_in_path(const char *name, char *path) {
    const char *folders = getenv("PATH");
    while (folders != NULL && *folders != '\0') {
        size_t length = strcspn(folders, ":");
        int written = snprintf(path, PATH_MAX, "%.*s/%s", (int)length, folders, name);
        if (length > 0 && written < PATH_MAX && access(path, X_OK) == 0) {
            return true;
        }
        folders += length;
        folders += *folders == ':';
    }
    return false;
}

static void use_default(struct plue_program *program) {
    static char bun[] = "bun";
    static char sidecar[] = "plue-sidecar";
    program->argv = program->default_argv;
    program->default_argv[0] = sidecar;
    program->default_argv[1] = NULL;
    program->default_argv[2] = NULL;
    const char *given = getenv("PLUE_SIDECAR");
    if (given != NULL && *given != '\0') {
        snprintf(program->default_text, PATH_MAX, "%s", given);
        program->default_argv[0] = program->default_text;
    } else if (find_beside_library("plue-sidecar", program->default_text)) {
        program->default_argv[0] = program->default_text;
    } else if (find_beside_library("plue-sidecar.js", program->default_text)) {
        program->default_argv[0] = bun;
        program->default_argv[1] = program->default_text;
    }
}

bool plue_program_find(char *const *argv, struct plue_program *program) {
    program->argv = argv;
    if (argv == NULL) {
        use_default(program);
    }
    const char *name = program->argv[0];
    if (strchr(name, '/') == NULL) {
        return find_in_path(name, program->path);
    }
    return snprintf(program->path, PATH_MAX, "%s", name) < PATH_MAX;
}
