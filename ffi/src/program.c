#include "program.h"

#include "platform.h"
#include "text.h"

#include <ctype.h>
#include <dlfcn.h>
#include <sys/stat.h>

#if defined(__linux__)
#include <sys/auxv.h>
#endif

void plue_path_current(char folder[PATH_MAX]) {
    /* If the folder cannot be reached from the root, Linux calls it "(unreachable)...". */
    if (getcwd(folder, PATH_MAX) == NULL || *folder != '/') {
        *folder = '\0';
    }
}

char *plue_path_from(const char *folder, const char *path) {
    if (*path == '/' || *path == '\0' || *folder == '\0') {
        return plue_text_copy(path, strlen(path));
    }
    size_t size = strlen(folder) + 1 + strlen(path) + 1;
    char *whole = malloc(size);
    if (whole != NULL) {
        snprintf(whole, size, "%s/%s", folder, path);
    }
    return whole;
}

/* Returns true if the text begins with a scheme. */
static bool is_url(const char *text) {
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return strspn(text, LETTERS) > 0 && text[strspn(text, LETTERS "0123456789+-.")] == ':';
}

char *plue_path_of_module(const char *folder, const char *module) {
    bool stays = is_url(module) || !plue_text_is_utf8(folder, strlen(folder));
    return plue_path_from(stays ? "" : folder, module);
}

static char image_folder[PATH_MAX];
static char start_folder[PATH_MAX];

static void keep_loaded(const char *file) {
    /* The handle is never closed, so the file stays loaded. */
    if (dlopen(file, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE) == NULL) {
        dlerror(); /* clears the error, which the host must not see */
    }
}

/* Returns true if `image` is the running program, and not a library. */
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

/* Writes the path of the running program. A name from the loader could be the caller's choice. */
static bool find_program(char path[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = '\0';
    return length > 0;
}

/* Removes the name from the path. If the file is a link, the folder is the link's: the files next
 * to the link were put there on purpose. */
static void find_folder(char *path) {
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        strcpy(image_folder, start_folder);
        return;
    }
    *slash = '\0';
    char resolved[PATH_MAX];
    if (realpath(*path == '\0' ? "/" : path, resolved) != NULL) {
        strcpy(image_folder, resolved);
    }
}

void plue_image_prepare(void) {
    plue_path_current(start_folder);
    Dl_info image;
    char path[PATH_MAX];
    /* Looks up a variable of this file, because a function of plue.h could belong to another
     * libplue in this process. A program without shared libraries has no loader to query. */
    bool known = dladdr(image_folder, &image) != 0 && image.dli_fname != NULL;
    if ((!known || is_program(&image)) && find_program(path)) {
        find_folder(path);
    } else if (known && strlen(image.dli_fname) < sizeof path) {
        keep_loaded(image.dli_fname);
        strcpy(path, image.dli_fname);
        find_folder(path);
    }
}

const char *plue_image_folder(void) {
    return image_folder;
}

const char *plue_image_start_folder(void) {
    return start_folder;
}

static const char not_in_path[] = "there is no such program in PATH";

static bool is_file(const char *path, int mode) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, mode) == 0;
}

static bool find_in(const char *folder, const char *way, const char *name, char *path) {
    int length = snprintf(path, PATH_MAX, "%s%s/%s", folder, way, name);
    return *folder != '\0' && length < PATH_MAX && is_file(path, R_OK);
}

/* Writes the path of a file in the folder of this library (or of the program into which it is
 * linked statically), or in the folder where `make install` puts sidecars. */
static bool find_installed(const char *name, char *path) {
#if !defined(PLUE_LIBEXECDIR)
#define PLUE_LIBEXECDIR ""
#endif
#if !defined(PLUE_WAY_TO_LIBEXECDIR) /* "/../libexec": what is installed may be moved as a whole */
#define PLUE_WAY_TO_LIBEXECDIR ""
#endif
    const char *here = plue_image_folder();
    return find_in(here, "", name, path) || find_in(here, PLUE_WAY_TO_LIBEXECDIR, name, path) ||
           find_in(PLUE_LIBEXECDIR, "", name, path);
}

/* Searches $PATH for `name`. */
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

static bool is_script(const char *path) {
    size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".js") == 0;
}

/* Writes the absolute path of a module; "" if the module has no file. */
static void find_module(const char *module, char path[PATH_MAX]) {
    static const char file[] = "file://";
    bool is_file_url = strncmp(module, file, sizeof file - 1) == 0;
    const char *from = is_file_url ? module + sizeof file - 1 : module;
    char text[PATH_MAX];
    size_t length = 0;
    for (; *from != '\0' && length < sizeof text - 1; from++) {
        unsigned byte = (unsigned char)*from;
        if (is_file_url && byte == '%' && isxdigit((unsigned char)from[1]) &&
            isxdigit((unsigned char)from[2])) {
            sscanf(from + 1, "%2x", &byte);
            from += 2;
        }
        text[length++] = (char)byte;
    }
    text[length] = '\0';
    if (*text != '/' || realpath(text, path) == NULL) {
        *path = '\0';
    }
}

/* Writes the option with the tsconfig.json that Bun uses: the file in the module's folder, or else
 * in the nearest folder above, where Bun itself would find it. */
static void find_tsconfig(const char *module, struct plue_program *program) {
    static const char option[] = "--tsconfig-override=";
    char *path = program->tsconfig + sizeof option - 1;
    char folder[PATH_MAX];
    strcpy(program->tsconfig, option);
    find_module(module == NULL ? "" : module, folder);
    for (char *slash; (slash = strrchr(folder, '/')) != NULL;) {
        *slash = '\0';
        if (find_in(*folder == '\0' ? "/" : folder, "", "tsconfig.json", path) ||
            find_in(*folder == '\0' ? "/" : folder, "", "jsconfig.json", path)) {
            return;
        }
    }
    strcpy(path, "/dev/null");
}

/* Runs the script with the first runtime in PATH. */
static void use_script(struct plue_program *program, const char *module) {
    /* Files in the host's folder, which may be a clone of a foreign repository, must not affect the
     * sidecar: bunfig.toml and tsconfig.json, in this folder or above it, can name code that runs
     * when the sidecar or a Worker starts, and .env sets variables of the tools. A package that is
     * not installed is an error, and is not fetched from a registry. */
    static char *const bun[] = {"bun", "--config=/dev/null", "--env-file=/dev/null", "--no-install"};
    static char node[] = "node";
    program->lack = "plue-sidecar.js needs Bun or Node, and neither is in PATH";
    if (!find_in_path("bun", program->path) && find_in_path(node, program->path)) {
        program->default_argv[0] = node;
        program->default_argv[1] = program->default_text;
    } else {
        memcpy(program->default_argv, bun, sizeof bun);
        find_tsconfig(module, program);
        program->default_argv[4] = program->tsconfig;
        program->default_argv[5] = program->default_text;
    }
}

/* Uses the program or script of the environment variable. */
static void use_given(struct plue_program *program, const char *given, const char *module) {
    program->lack = not_in_path;
    bool is_path = strchr(given, '/') != NULL || is_script(given);
    const char *folder = is_path && *given != '/' ? plue_image_start_folder() : "";
    int length = snprintf(program->default_text, PATH_MAX, "%s%s%s", folder,
                          *folder == '\0' ? "" : "/", given);
    if (length >= PATH_MAX) {
        program->default_text[0] = '\0'; /* the path is too long, so no such file exists */
    }
    program->default_argv[0] = program->default_text;
    if (is_script(program->default_text)) {
        use_script(program, module);
    }
}

static void use_default(struct plue_program *program, const char *module) {
    static char sidecar[] = "plue-sidecar";
    program->argv = program->default_argv;
    memset(program->default_argv, 0, sizeof program->default_argv);
    program->default_argv[0] = sidecar;
    program->lack = "it is neither beside libplue (where that is linked statically: beside the "
                    "program), nor where \"make install\" puts it, nor in PATH; put it or "
                    "plue-sidecar.js there, or name it in PLUE_SIDECAR; \"bun build --compile "
                    "my-sidecar.ts --outfile plue-sidecar\" makes one";
    const char *given = plue_environment("PLUE_SIDECAR");
    if (given != NULL && *given != '\0') {
        use_given(program, given, module);
    } else if (find_installed(sidecar, program->default_text)) {
        program->default_argv[0] = program->default_text;
    } else if (find_installed("plue-sidecar.js", program->default_text)) {
        use_script(program, module);
    }
}

bool plue_program_find(char *const *argv, const char *module, struct plue_program *program) {
    program->argv = argv;
    program->lack = not_in_path;
    if (argv == NULL) {
        use_default(program, module);
    }
    const char *name = program->argv[0];
    if (strchr(name, '/') == NULL) {
        return find_in_path(name, program->path);
    }
    return snprintf(program->path, PATH_MAX, "%s", name) < PATH_MAX;
}
