#include "state.h"

#include "image.h"
#include "outcome.h"
#include "platform.h"
#include "sidecar.h"

pthread_mutex_t plue_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t plue_changed;
bool plue_stopping;

static bool forked;

static void after_fork_in_child(void) {
    forked = true;
    plue_sidecar_abandon();
}

bool plue_is_forked(void) {
    return forked;
}

/* When the library is loaded, and so before any thread can use it. */
__attribute__((constructor)) static void initialise(void) {
    plue_condition_init(&plue_changed);
    plue_outcome_prepare();
    plue_image_prepare();
    pthread_atfork(NULL, NULL, after_fork_in_child);
}
