/* Abort signals, and the calls that carry them. plue_lock is held throughout. */
#ifndef PLUE_ABORT_H
#define PLUE_ABORT_H

#include "call.h"
#include "outcome.h"

#include <stdbool.h>

/* Says whether the pointer is a signal that is alive. Does not follow the pointer. */
bool plue_abort_is_signal(const void *pointer);

/* Ties a call to a live signal, which lives until the call is untied, whatever the host releases.
 * If it is aborted already, the call is too. */
void plue_abort_tie(plue_abort_signal_t *signal, struct plue_call *call);

/* Undoes plue_abort_tie(). */
void plue_abort_untie(struct plue_call *call);

/* What a call gets that is aborted before its tool was asked. */
struct plue_outcome plue_abort_outcome(const struct plue_call *call);

/* The text that was given as the reason; may be empty. */
const char *plue_abort_reason(const struct plue_call *call);

#endif
