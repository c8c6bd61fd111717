#include "image.h"

#include "path.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/auxv.h>
#endif

static char folder[PATH_MAX];
static char start_folder[PATH_MAX];

static void keep_loaded(const char *file) {
    /* The handle is never closed. */
    if (dlopen(file, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE) == NULL) {
        dlerror(); /* not the host's concern */
    }
}

/* Says whether `image` is the running program, and not a library. */
static bool is_program(const Dl_info *image) {
#if defined(__linux__)
    Dl_info program;
    return dladdr((const void *)(uintptr_t)getauxval(AT_ENTRY), &program) != 0 &&
           program.dli_fbase == image->dli_fbase;
#else
    (void)image;
    return false;
#endif
}

/* Writes the path of the running program: what the loader calls it is whatever its caller chose. */
static bool find_program(char path[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = '\0';
    return length > 0;
}

/* Cuts the name off the path. Where the file is a link, the folder is the link's: what lies beside
 * it was put there on purpose. */
static void find_folder(char *path) {
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        strcpy(folder, start_folder);
        return;
    }
    *slash = '\0';
    char resolved[PATH_MAX];
    if (realpath(*path == '\0' ? "/" : path, resolved) != NULL) {
        strcpy(folder, resolved);
    }
}

void plue_image_prepare(void) {
    plue_path_current(start_folder);
    Dl_info image;
    char path[PATH_MAX];
    /* Not by a function of plue.h: that could be the one of another libplue in this process. In a
     * program without any shared library there is nobody to ask. */
    bool known = dladdr(folder, &image) != 0 && image.dli_fname != NULL;
    if ((!known || is_program(&image)) && find_program(path)) {
        find_folder(path);
    } else if (known && strlen(image.dli_fname) < sizeof path) {
        keep_loaded(image.dli_fname);
        strcpy(path, image.dli_fname);
        find_folder(path);
    }
}

const char *plue_image_folder(void) {
    return folder;
}

const char *plue_image_start_folder(void) {
    return start_folder;
}
