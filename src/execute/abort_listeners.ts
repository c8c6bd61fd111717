/**
 * Listens to a signal for any number of calls with one listener. A signal that many calls share (a
 * server's shutdown, a model's batch) is otherwise searched through at every end of a call, and
 * Node warns of a leak from the eleventh listener on.
 *
 * @module
 */

/** Who is told of each signal. A signal is here while somebody is. */
const listeners = new WeakMap<AbortSignal, Listeners>();

interface Listeners {
  readonly callbacks: Set<() => void>;
  readonly tellAll: () => void;
}

/**
 * Calls `callback` when `signal` aborts.
 *
 * @param callback Must not throw. One function is called once, however often it was given.
 * @returns Stops listening.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let known = listeners.get(signal);
  if (known === undefined) {
    const callbacks = new Set<() => void>();
    const tellAll = (): void => {
      listeners.delete(signal);
      for (const tell of callbacks) tell();
    };
    listeners.set(signal, known = { callbacks, tellAll });
    signal.addEventListener("abort", tellAll, { once: true });
  }
  const { callbacks, tellAll } = known;
  callbacks.add(callback);
  return () => {
    callbacks.delete(callback);
    if (callbacks.size > 0 || listeners.get(signal)?.callbacks !== callbacks) return;
    listeners.delete(signal);
    signal.removeEventListener("abort", tellAll);
  };
}
