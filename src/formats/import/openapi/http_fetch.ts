/**
 * The port through which imported operations reach the network. The global `fetch` of every runtime
 * fits; tests hand in a function.
 *
 * @module
 */

/** A request, as `fetch` takes it. */
export interface HttpRequest {
  readonly method: string;
  readonly headers: { readonly [name: string]: string };
  readonly body?: string;
  readonly signal: AbortSignal;
  /** A redirect could lead to another host, and the credentials with it: none is followed. */
  readonly redirect: "manual";
}

/** As much of a response as is used. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: {
    getReader(): {
      read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
      cancel(reason?: unknown): Promise<void>;
    };
  } | null;
}

/** Performs a request. */
export type HttpFetch = (url: string, request: HttpRequest) => Promise<HttpResponse>;
