export declare function mastraTool(
  sample: {
    readonly parameters: { readonly properties?: unknown };
    execute(params: Readonly<Record<string, string>>): unknown;
  },
): (params: unknown, signal: AbortSignal) => unknown;
