import { assertEquals } from "@std/assert";
import { describe, it } from "bun:test";
import { ProviderClient } from "../../../src/adapters/credentials/provider.ts";
import { serve } from "../../runtime/serve.ts";

describe("ProviderClient", () => {
  it("asks a person again only if the server refuses the grant, whatever the status of its answer", async () => {
    const answers = [
      [400, "invalid_grant", "GrantRefused"],
      [200, "bad_refresh_token", "GrantRefused"],
      [400, "invalid_client", "Error"],
      [200, "incorrect_client_credentials", "Error"],
      [400, "server_error", "Error"],
      [429, "too_many_requests", "Error"],
    ] as const;
    for (const [status, error, wanted] of answers) {
      const served = await serve(() => Response.json({ error }, { status }));
      const tokenEndpoint = `${served.url}/token`;
      const client = new ProviderClient("test", "hub", { tokenEndpoint, clientId: "plue" });
      const failed = await client.grant("refresh_token", {}).catch((thrown: Error) => thrown);
      assertEquals((failed as Error).name, wanted, error);
      await served.stop();
    }
  });

  it("uses a token with the lifetime 0 until a service rejects it", async () => {
    const answer = { access_token: "token", token_type: "bearer", expires_in: 0 };
    const served = await serve(() => Response.json(answer));
    const tokenEndpoint = `${served.url}/token`;
    const client = new ProviderClient("test", "hub", { tokenEndpoint, clientId: "plue" });
    assertEquals((await client.grant("refresh_token", {})).staleAt, undefined);
    await served.stop();
  });
});
