/** The part of the platform's module that the tests use. */
declare module "cloudflare:workers" {
  export const env: Readonly<Record<string, unknown>>;
  export abstract class DurableObject<Env = unknown> {
    protected readonly ctx: {
      readonly storage: { readonly sql: { exec(query: string): unknown } };
    };
    protected readonly env: Env;
    constructor(ctx: unknown, env: Env);
  }
}
