/* Calls that no thread waits for: plue_events_dispatch() delivers their ends. */
#ifndef PLUE_SUBMIT_H
#define PLUE_SUBMIT_H

#include "state.h"

#include <stdbool.h>
#include <stdint.h>

/* Has the calls looked at whose time is over. Returns when the next one's is. */
uint64_t plue_submissions_expire(uint64_t now_ms) PLUE_LOCKED;

/* A peer, the sidecar or a shutdown has changed its state: calls may wait for that to begin. */
void plue_submissions_runtime_changed(void) PLUE_LOCKED;

/* Returns true if there are any. */
bool plue_submissions_are_open(void) PLUE_LOCKED;

#endif
