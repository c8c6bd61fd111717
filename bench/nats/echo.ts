/** Answers requests of NATS on the subject `echo`, for the comparison in `speed.ts`. */

import process from "node:process";
import { connect } from "@nats-io/transport-node";

const connection = await connect({ servers: process.argv[2] ?? "" });
connection.subscribe("echo", { callback: (_, message) => void message.respond(message.data) });
await connection.flush();
console.log("ready");
