/* The options of plue_init(), copied, with the defaults filled in. */
#pragma once

#include "plue.h"
#include "state.h"

struct plue_settings {
    bool in_use; /* true after the first call or plue_init() */
    unsigned users; /* calls of plue_init() minus calls of plue_shutdown() */
    int mode;
    char *tools_module;
    char *config_json;
    char **sidecar_argv;
    char *sidecar_cwd;
    uint32_t start_timeout_ms;
    uint32_t abort_grace_ms;
    uint32_t call_timeout_ms; /* 0: no limit */
    size_t max_bytes_in_flight;
};

extern struct plue_settings plue_settings PLUE_GUARDED;

/* Resets all options to their defaults. */
void plue_settings_reset(void) PLUE_LOCKED;
