/** Observes code generated from text, so that a test can check whether a call ran it. */

/** The counts since the observation began. */
export interface GeneratedCode {
  /** The number of functions created from text. */
  made: number;
  /** The number of calls of these functions. */
  ran: number;
}

/** Observes the code that `work` generates, and all later calls of that code. */
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
        apply: (call, self, args) => count(Reflect.apply(call, self, args)),
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

/** True if code generation is currently allowed. */
export function mayGenerateCode(): boolean {
  try {
    return new Function("return true")() === true;
  } catch {
    return false;
  }
}

/** A tool whose schemas are compiled. */
export const days = (name: string) => ({
  name,
  description: "Counts days.",
  parameters: { type: "object", properties: { n: { type: "integer", minimum: 1 } } },
  returns: { type: "integer" },
  execute: ({ n = 1 }) => n,
} as const);
