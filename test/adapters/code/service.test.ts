import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { describe, it } from "bun:test";
import { assertEquals } from "@std/assert";
import { createCodeService } from "../../../examples/code.ts";
import { IS_WORKERS } from "../../../src/adapters/http/mod.ts";
import { accept, URL_OF_MCP } from "../mcp/support.ts";
import { allExecutors } from "./support.ts";

const KEY = new Uint8Array(32).fill(7);

// MCP shows at most 20,000 characters of arguments. The questions show those of the program's calls.
const PROGRAM =
  `const late = (await tools.crm.invoices()).filter(({ overdueDays }) => overdueDays > 198);
return await Promise.all(late.map(({ id }) => tools.crm.remind({ id })));`.padEnd(21_000);
const REMINDED = { value: ["reminded i199", "reminded i399"] };

for (const [name, executor] of Object.entries(await allExecutors())) {
  const service = () => createCodeService(executor, KEY);

  describe(`the example of code mode with ${name}`, () => {
    it("returns the result over HTTP after approvals, even in another process", async () => {
      const send = async (path: string, body: unknown) => {
        const response = await service().request(path, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        });
        return { status: response.status, body: await response.json() };
      };
      const call = { callId: "c1", arguments: { code: PROGRAM } };
      const first = await send("/tools/run_code/execute", call);
      assertEquals([first.status, first.body.questions.length], [202, 2]);
      const questions: readonly { readonly key: string }[] = first.body.questions;
      const answers = Object.fromEntries(questions.map(({ key }) => [key, { action: "accept" }]));
      const ended = await send("/calls/c1", { ticket: first.body.ticket, answers });
      assertEquals([ended.status, ended.body.content], [200, REMINDED]);
    });

    // Questions to older clients need an open stream, which Workers do not keep.
    for (const mode of IS_WORKERS ? ["auto"] as const : ["auto", "legacy"] as const) {
      it(`answers the official MCP client in the mode ${mode}, which approves`, async () => {
        const client = new Client({ name: "test", version: "1.0.0" }, {
          capabilities: { elicitation: { form: {} } },
          versionNegotiation: { mode },
        });
        const questions: string[] = [];
        client.setRequestHandler("elicitation/create", ({ params }) => {
          questions.push(params.message);
          return accept({}) as never;
        });
        const app = service();
        await client.connect(
          new StreamableHTTPClientTransport(new URL(URL_OF_MCP), {
            fetch: async (url, init) => await app.fetch(new Request(url, init)),
          }),
        );
        const { tools } = await client.listTools();
        assertEquals(tools.map(({ name }) => name), ["run_code", "search_tools"]);
        const { content } = await client.callTool({
          name: "run_code",
          arguments: { code: PROGRAM },
        });
        assertEquals(content, [{ type: "text", text: JSON.stringify(REMINDED) }]);
        assertEquals(questions.length, 2);
        await client.close();
      });
    }
  });
}
