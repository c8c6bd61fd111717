#include "cancellation.h"
#include "guest.h"
#include "plue.h"
#include "settings.h"
#include "sidecar.h"
#include "state.h"

static void shut_down(void) {
    struct plue_wake wake = {0};
    pthread_mutex_lock(&plue_lock);
    if (plue_stopping) {
        while (plue_stopping) {
            pthread_cond_wait(&plue_changed, &plue_lock);
        }
        pthread_mutex_unlock(&plue_lock);
        return;
    }
    plue_stopping = true;
    pthread_cond_broadcast(&plue_changed);
    plue_guest_shutdown(&wake);
    struct plue_sidecar *sidecar = plue_sidecar_begin_shutdown();
    /* Before the sidecar's end is waited for: a guest, too, is told at once. */
    plue_guest_wake_and_relock(&wake);
    if (sidecar != NULL) {
        pthread_mutex_unlock(&plue_lock);
        plue_sidecar_join(sidecar);
        pthread_mutex_lock(&plue_lock);
    }
    plue_sidecar_end_shutdown();
    plue_settings_reset();
    /* What a guest was asked to offer is forgotten, too. */
    plue_guest_configure(&wake);
    plue_stopping = false;
    pthread_cond_broadcast(&plue_changed);
    pthread_mutex_unlock(&plue_lock);
    plue_guest_wake(&wake);
    if (sidecar != NULL) {
        plue_sidecar_unhold(sidecar);
    }
}

void plue_shutdown(void) {
    if (plue_is_forked()) {
        return;
    }
    int cancellation = plue_cancellation_off();
    shut_down();
    plue_cancellation_restore(cancellation);
}

uint32_t plue_abi_version(void) {
    return PLUE_ABI_VERSION;
}

const char *plue_get_version(void) {
    return PLUE_VERSION;
}
