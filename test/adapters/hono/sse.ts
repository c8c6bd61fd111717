/** Reads server-sent events strictly by the specification, for the tests. */

export type SseEvent = { readonly id: string; readonly event: string; readonly data: unknown };

/** An entry of a stream: an event or a comment. */
export type SseItem = SseEvent | "comment";

/** Reads a response's events, comments included. */
export async function* sseItems(response: Response): AsyncGenerator<SseItem, undefined> {
  if (response.body === null) throw new Error("There is no body");
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        if (text !== "") throw new Error(`The stream ends within an event: ${text}`);
        return undefined;
      }
      text += decoder.decode(value, { stream: true });
      for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
        yield itemOf(text.slice(0, end));
        text = text.slice(end + 2);
      }
    }
  } finally {
    await reader.cancel();
  }
}

/** Reads a response's events. */
export async function* sseEvents(response: Response): AsyncGenerator<SseEvent, undefined> {
  for await (const item of sseItems(response)) if (item !== "comment") yield item;
}

/** All events of a response, to its end. */
export async function allEvents(response: Response): Promise<readonly SseEvent[]> {
  const events: SseEvent[] = [];
  for await (const event of sseEvents(response)) events.push(event);
  return events;
}

function itemOf(block: string): SseItem {
  if (block.startsWith(":")) return "comment";
  const fields = new Map(
    block.split("\n").map((line) => {
      const colon = line.indexOf(": ");
      return [line.slice(0, colon), line.slice(colon + 2)];
    }),
  );
  return {
    id: fields.get("id") ?? "",
    event: fields.get("event") ?? "",
    data: JSON.parse(fields.get("data") ?? "null"),
  };
}
