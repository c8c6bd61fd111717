#include "cancellation.h"

#include <pthread.h>

int plue_cancellation_off(void) {
    int state = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

void plue_cancellation_restore(int state) {
    int ignored;
    pthread_setcancelstate(state, &ignored);
}
