/** The parts that all protocols over HTTP share, and the parts of a handler. */

export * from "./bearer_auth.ts";
export * from "./body.ts";
export * from "./calls.ts";
export * from "./event_stream.ts";
export * from "./execute_tool.ts";
export * from "./handler.ts";
export * from "./identity.ts";
export * from "./journal.ts";
export * from "./jwt_auth.ts";
export * from "./listing.ts";
export * from "./observe.ts";
export * from "./options.ts";
export * from "./origins.ts";
export * from "./pages.ts";
export * from "./rate_limit.ts";
export * from "./request.ts";
export * from "./request_counts.ts";
export * from "./responses.ts";
export * from "./running_calls.ts";
export * from "./runtime.ts";
