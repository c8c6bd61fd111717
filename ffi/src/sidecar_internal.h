/* What sidecar.c and sidecar_thread.c share. */
#ifndef PLUE_SIDECAR_INTERNAL_H
#define PLUE_SIDECAR_INTERNAL_H

#include "outbox.h"
#include "sidecar.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

struct plue_sidecar {
    /* Guarded by plue_lock. */
    struct plue_peer peer;
    bool ended;                 /* its thread is about to return */
    uint64_t start_deadline_ms; /* for the answer to CONFIG */
    uint64_t exit_deadline_ms;  /* 0: it need not end */

    atomic_int references; /* one is for being the current one */

    /* Set before there is more than one thread, or used by the sidecar's thread alone. */
    struct plue_sidecar *predecessor; /* has ended; the thread joins its thread; NULL: none */
    pthread_t thread;
    int socket;
    int child_socket; /* the other end, until the process has it */
    int poke[2];      /* a pipe that wakes the thread */
    pid_t process;

    struct plue_outbox outbox; /* into the socket; has a lock of its own */
};

/* The thread's whole life; `argument` is the sidecar. */
void *plue_sidecar_run(void *argument);

/* Wakes the thread, to look at the deadlines and at what is outgoing. */
void plue_sidecar_poke(struct plue_sidecar *sidecar);

/* Notes that the process is gone, and fails its calls. The thread's last act. */
void plue_sidecar_ended(struct plue_sidecar *sidecar, const char *why);

#endif
