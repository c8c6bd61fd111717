/**
 * Bodies that may be larger than they should be.
 *
 * @module
 */

/**
 * Reads a body.
 *
 * @returns Its text; `undefined` if it has more than `maxBytes` bytes. The rest is not read then.
 */
export async function boundedText(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<string | undefined> {
  const decoder = new TextDecoder();
  const reader = body?.getReader();
  let text = "";
  let size = 0;
  for (;;) {
    const chunk = await reader?.read();
    if (chunk === undefined || chunk.done) return text + decoder.decode();
    size += chunk.value.byteLength;
    if (size > maxBytes) {
      reader?.releaseLock();
      return undefined;
    }
    text += decoder.decode(chunk.value, { stream: true });
  }
}
