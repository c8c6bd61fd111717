#include "program.h"

#include "image.h"
#include "platform.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char not_in_path[] = "there is no such program in PATH";

static bool is_file(const char *path, int mode) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, mode) == 0;
}

/* Writes the path of a file in the folder of this library (in that of the program that it is
 * linked into, if it is linked statically). */
static bool find_beside_library(const char *name, char *path) {
    const char *folder = plue_image_folder();
    int length = snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return *folder != '\0' && length < PATH_MAX && is_file(path, R_OK);
}

/* Looks `name` up in $PATH. */
static bool find_in_path(const char *name, char *path) {
    const char *folders = plue_environment("PATH");
    char here[PATH_MAX];
    plue_path_current(here);
    while (folders != NULL && *folders != '\0') {
        size_t length = strcspn(folders, ":");
        const char *base = *folders == '/' ? "" : here;
        const char *slash = *base == '\0' ? "" : "/";
        int written =
            snprintf(path, PATH_MAX, "%s%s%.*s/%s", base, slash, (int)length, folders, name);
        if (length > 0 && written < PATH_MAX && is_file(path, X_OK)) {
            return true;
        }
        folders += length;
        folders += *folders == ':';
    }
    return false;
}

/* Uses the program that the environment names. */
static void use_given(struct plue_program *program, const char *given) {
    program->lack = not_in_path;
    bool is_path = strchr(given, '/') != NULL;
    const char *folder = is_path && *given != '/' ? plue_image_start_folder() : "";
    snprintf(program->default_text, PATH_MAX, "%s%s%s", folder, *folder == '\0' ? "" : "/", given);
    program->default_argv[0] = program->default_text;
}

static void use_default(struct plue_program *program) {
    static char bun[] = "bun";
    static char sidecar[] = "plue-sidecar";
    program->argv = program->default_argv;
    program->default_argv[0] = sidecar;
    program->default_argv[1] = NULL;
    program->default_argv[2] = NULL;
    program->lack = "it is neither beside libplue nor in PATH; PLUE_SIDECAR can name another";
    const char *given = plue_environment("PLUE_SIDECAR");
    if (given != NULL && *given != '\0') {
        use_given(program, given);
    } else if (find_beside_library("plue-sidecar", program->default_text)) {
        program->default_argv[0] = program->default_text;
    } else if (find_beside_library("plue-sidecar.js", program->default_text)) {
        program->lack = "plue-sidecar.js beside libplue needs it, and it is not in PATH";
        program->default_argv[0] = bun;
        program->default_argv[1] = program->default_text;
    }
}

bool plue_program_find(char *const *argv, struct plue_program *program) {
    program->argv = argv;
    program->lack = not_in_path;
    if (argv == NULL) {
        use_default(program);
    }
    const char *name = program->argv[0];
    if (strchr(name, '/') == NULL) {
        return find_in_path(name, program->path);
    }
    return snprintf(program->path, PATH_MAX, "%s", name) < PATH_MAX;
}
