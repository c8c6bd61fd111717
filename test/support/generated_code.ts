/**
 * Watches the code that is generated from text, so that a test can tell whether a call ran it.
 *
 * @module
 */

/** What has happened since the watch began. */
export interface GeneratedCode {
  /** How many functions were made from text. */
  made: number;
  /** How often functions that they returned were called. */
  ran: number;
}

/** Watches while `work` runs, and whatever was made by it for ever. */
export function watchGeneratedCode(work: () => void): GeneratedCode {
  const seen: GeneratedCode = { made: 0, ran: 0 };
  const { Function: original } = globalThis;
  const count = <T>(inner: T): T =>
    typeof inner === "function"
      ? new Proxy(inner, {
        apply: (call, self, args) => (seen.ran++, Reflect.apply(call, self, args)),
      })
      : inner;
  globalThis.Function = new Proxy(original, {
    construct(target, args) {
      const outer = Reflect.construct(target, args);
      seen.made++;
      return new Proxy(outer, {
        apply: (call, self, given) => count(Reflect.apply(call, self, given)),
      });
    },
  });
  try {
    work();
  } finally {
    globalThis.Function = original;
  }
  return seen;
}

/** Whether code may be generated from text at this moment. */
export function mayGenerateCode(): boolean {
  try {
    return new Function("return true")() === true;
  } catch {
    return false;
  }
}
