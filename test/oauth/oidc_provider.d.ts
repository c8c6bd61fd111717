/** The parts of `oidc-provider` that the tests use. The package has no types. */

declare module "oidc-provider" {
  import type { IncomingMessage, ServerResponse } from "node:http";

  interface Details {
    readonly prompt: { readonly name: string };
    readonly params: { readonly client_id: string; readonly scope?: string };
    readonly session?: { readonly accountId?: string };
  }

  interface StoredToken {
    readonly accountId?: string;
    readonly clientId?: string;
    readonly scope?: string;
    readonly jti: string;
    readonly expiration: number;
    readonly isValid: boolean;
    save(): Promise<string>;
    destroy(): Promise<void>;
  }

  interface GrantContext {
    body: unknown;
    readonly oidc: {
      readonly client: object;
      readonly params: Readonly<Record<string, string>>;
    };
  }

  export default class Provider {
    constructor(issuer: string, configuration: object);
    readonly Grant: new (fields: object) => {
      addOIDCScope(scope: string): void;
      save(): Promise<string>;
    };
    readonly AccessToken: {
      new (fields: object): StoredToken;
      find(token: string): Promise<StoredToken | undefined>;
    };
    callback(): (request: IncomingMessage, response: ServerResponse) => void;
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Details>;
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: object,
      options: object,
    ): Promise<void>;
    registerGrantType(
      name: string,
      handler: (context: GrantContext) => Promise<void>,
      params: readonly string[],
    ): void;
    on(event: string, heard: (token: StoredToken) => void): void;
  }
}
