/**
 * Headers for answers that were made without them.
 *
 * @module
 */

/** A header. */
export type Header = readonly [name: string, value: string];

/** Puts headers on an answer, in place of those it has; what it varies by is added to. */
export function withHeaders(response: Response, headers: readonly Header[]): Response {
  if (headers.length === 0) return response;
  try {
    write(response.headers, headers);
    return response;
  } catch {
    // What another handler answered may come from a fetch: its headers cannot be changed.
    const copy = copyOf(response);
    write(copy.headers, headers);
    return copy;
  }
}

/** A response with headers of its own, in place of one that is somebody else's. */
export function copyOf({ body, status, statusText, headers }: Response): Response {
  return new Response(body, { status, statusText, headers });
}

function write(own: Headers, headers: readonly Header[]): void {
  for (const [name, value] of headers) {
    if (name !== "vary") own.set(name, value);
    else if (!names(own.get(name)).includes(value)) own.append(name, value);
  }
}

function names(list: string | null): readonly string[] {
  return list?.split(",").map((name) => name.trim().toLowerCase()) ?? [];
}
