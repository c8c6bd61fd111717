#include "settings.h"

#include "frame.h"
#include "outcome.h"
#include "program.h"
#include "text.h"

enum {
    DEFAULT_START_TIMEOUT_MS = 10000,
    DEFAULT_ABORT_GRACE_MS = 1000,
    DEFAULT_BYTES_IN_FLIGHT = PLUE_FRAME_MAX,
};

#define DEFAULTS \
    {.start_timeout_ms = DEFAULT_START_TIMEOUT_MS, .abort_grace_ms = DEFAULT_ABORT_GRACE_MS, \
     .max_bytes_in_flight = DEFAULT_BYTES_IN_FLIGHT}

struct plue_settings plue_settings = DEFAULTS;

static void free_strings(char **strings) {
    if (strings == NULL) {
        return;
    }
    for (char **at = strings; *at != NULL; at++) {
        free(*at);
    }
    free(strings);
}

static void free_settings(struct plue_settings *settings) {
    free(settings->tools_module);
    free(settings->config_json);
    free(settings->sidecar_cwd);
    free_strings(settings->sidecar_argv);
}

void plue_settings_reset(void) {
    free_settings(&plue_settings);
    plue_settings = (struct plue_settings)DEFAULTS;
}

/* Copies a string that may be NULL. Returns false when out of memory. */
static bool copy_string(char **copy, const char *string) {
    *copy = string == NULL ? NULL : plue_text_copy(string, strlen(string));
    return string == NULL || *copy != NULL;
}

/* Copies a path, resolved against `folder` if relative. Returns false when out of memory. */
static bool copy_path(char **copy, const char *folder, const char *path) {
    *copy = path == NULL ? NULL : plue_path_from(folder, path);
    return path == NULL || *copy != NULL;
}

/* Copies a command. Its program is a path if it contains a slash. */
static bool copy_argv(char ***copy, const char *folder, const char *const *argv) {
    *copy = NULL;
    if (argv == NULL) {
        return true;
    }
    size_t count = 0;
    while (argv[count] != NULL) {
        count++;
    }
    *copy = calloc(count + 1, sizeof **copy);
    if (*copy == NULL) {
        return false;
    }
    bool is_path = strchr(argv[0], '/') != NULL;
    bool copied = copy_path(&(*copy)[0], is_path ? folder : "", argv[0]);
    for (size_t i = 1; i < count && copied; i++) {
        copied = copy_string(&(*copy)[i], argv[i]);
    }
    return copied;
}

/* Copies the fields of the caller's version of the struct. All versions consist of whole words. */
static plue_options_t read_options(const plue_options_t *given) {
    plue_options_t options;
    size_t size = given->struct_size < sizeof options ? given->struct_size : sizeof options;
    memset(&options, 0, sizeof options);
    memcpy(&options, given, size - size % sizeof(void *));
    return options;
}

/* Returns the message for invalid options, or NULL. */
static const char *find_fault(const plue_options_t *options) {
    if (options->mode < PLUE_MODE_AUTO || options->mode > PLUE_MODE_SIDECAR) {
        return "Cannot initialise: mode is none of PLUE_MODE_...";
    }
    const char *const *argv = options->sidecar_argv;
    if (argv != NULL && (argv[0] == NULL || *argv[0] == '\0')) {
        return "Cannot initialise: sidecar_argv is empty, or its first string is";
    }
    if (options->sidecar_cwd != NULL && *options->sidecar_cwd == '\0') {
        return "Cannot initialise: sidecar_cwd is empty";
    }
    const char *texts[] = {options->tools_module, options->config_json};
    size_t size = 0;
    for (size_t i = 0; i < 2; i++) {
        size_t length = texts[i] == NULL ? 0 : strlen(texts[i]);
        size += length;
        if (length > 0 && !plue_text_is_utf8(texts[i], length)) {
            return "Cannot initialise: tools_module and config_json must be UTF-8";
        }
    }
    if (size > PLUE_FRAME_MAX / 2) {
        return "Cannot initialise: config_json is larger than 128 MiB";
    }
    return NULL;
}

static bool copy_options(struct plue_settings *settings, const plue_options_t *options) {
    *settings = (struct plue_settings){
        .in_use = true,
        .users = 1,
        .mode = options->mode,
        .start_timeout_ms =
            options->start_timeout_ms == 0 ? DEFAULT_START_TIMEOUT_MS : options->start_timeout_ms,
        .abort_grace_ms =
            options->abort_grace_ms == 0 ? DEFAULT_ABORT_GRACE_MS : options->abort_grace_ms,
        .call_timeout_ms = options->call_timeout_ms,
        .max_bytes_in_flight = options->max_bytes_in_flight == 0 ? DEFAULT_BYTES_IN_FLIGHT
                                                                 : options->max_bytes_in_flight,
    };
    char here[PATH_MAX];
    plue_path_current(here);
    bool copied = true;
    if (options->tools_module != NULL) {
        settings->tools_module = plue_path_of_module(here, options->tools_module);
        copied = settings->tools_module != NULL;
    }
    copied = copy_string(&settings->config_json, options->config_json) && copied;
    copied = copy_path(&settings->sidecar_cwd, here, options->sidecar_cwd) && copied;
    return copy_argv(&settings->sidecar_argv, here, options->sidecar_argv) && copied;
}

static bool are_equal_strings(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool are_equal_lists(char *const *a, char *const *b) {
    if (a == NULL || b == NULL) {
        return a == b;
    }
    while (*a != NULL && *b != NULL && strcmp(*a, *b) == 0) {
        a++;
        b++;
    }
    return *a == *b; /* both are NULL */
}

/* Returns true if the options are equal: two plugins of one host may both call plue_init(). */
static bool are_equal(const struct plue_settings *a, const struct plue_settings *b) {
    return a->mode == b->mode && are_equal_strings(a->tools_module, b->tools_module) &&
           are_equal_strings(a->config_json, b->config_json) &&
           are_equal_lists(a->sidecar_argv, b->sidecar_argv) &&
           are_equal_strings(a->sidecar_cwd, b->sidecar_cwd) &&
           a->start_timeout_ms == b->start_timeout_ms && a->abort_grace_ms == b->abort_grace_ms &&
           a->call_timeout_ms == b->call_timeout_ms &&
           a->max_bytes_in_flight == b->max_bytes_in_flight;
}

static int fail_with(const char *message) {
    return plue_outcome_fail(plue_outcome_failure("invalid_argument", message));
}

int plue_init_with_options(const plue_options_t *given) {
    if (plue_is_forked()) {
        return plue_outcome_fail(plue_forked_failure());
    }
    if (given == NULL || given->struct_size < offsetof(plue_options_t, tools_module)) {
        return fail_with("Cannot initialise: options is NULL or has no struct_size");
    }
    plue_options_t options = read_options(given);
    const char *fault = find_fault(&options);
    if (fault != NULL) {
        return fail_with(fault);
    }
    struct plue_settings settings;
    if (!copy_options(&settings, &options)) {
        free_settings(&settings);
        return plue_outcome_fail(plue_outcome_out_of_memory());
    }
    plue_lock();
    bool is_new = !plue_settings.in_use && !plue_stopping;
    bool is_same = !plue_stopping && are_equal(&plue_settings, &settings);
    if (is_same) {
        plue_settings.users++;
    }
    if (is_new) {
        plue_settings = settings;
        plue_above.configured();
    }
    plue_unlock();
    if (!is_new) {
        free_settings(&settings);
    }
    if (!is_new && !is_same) {
        return fail_with("Cannot initialise: the library is in use with other options; call "
                         "plue_shutdown() first");
    }
    plue_outcome_clear();
    return 0;
}

int plue_init(const char *config_json) {
    plue_options_t options = {.struct_size = sizeof options, .config_json = config_json};
    return plue_init_with_options(&options);
}
