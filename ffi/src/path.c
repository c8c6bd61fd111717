#include "path.h"

#include "text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void plue_path_current(char folder[PATH_MAX]) {
    /* Linux calls a folder that cannot be reached from the root "(unreachable)...". */
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

/* Says whether it begins with a scheme. */
static bool is_url(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char others[] = "0123456789+-.";
    size_t length = strspn(text, letters);
    while (length > 0 && text[length] != '\0' &&
           (strchr(letters, text[length]) != NULL || strchr(others, text[length]) != NULL)) {
        length++;
    }
    return length > 0 && text[length] == ':';
}

char *plue_path_of_module(const char *folder, const char *module) {
    bool stays = is_url(module) || !plue_text_is_utf8(folder, strlen(folder));
    return plue_path_from(stays ? "" : folder, module);
}
