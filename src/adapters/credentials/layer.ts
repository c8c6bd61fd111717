/** The layer that gets the credentials of a call, and requests permission for missing ones. */

import { tenantOf } from "../../execute/durable/mod.ts";
import { type Call, CallFailure, type Layer } from "../../execute/mod.ts";
import { redactWith } from "../../execute/layers/mod.ts";
import * as check from "../../tool/mod.ts";
import { fail, type Tool, type ToolCredential } from "../../tool/mod.ts";
import { withoutSecrets } from "../http/redact.ts";
import {
  checkAnswer,
  type CredentialSource,
  type GivenCredential,
  type NeededAuthorization,
} from "./source.ts";

/** The number of URLs that a person gets in one call. Other permissions of the person cause new ones. */
const MAX_ROUNDS = 10;
/** The time that a call waits for a person at a URL: the lifetime of the URL, in milliseconds. */
const WAIT_MS = 600_000;

/**
 * Creates the layer for the option `credentials` of `ToolDispatcher`. Before a tool with
 * `credentials` runs, and after all decisions about the call, it gets each of them from the first
 * source that has it, for `context.credential`. If a person must give permission first, the layer
 * asks the caller with a question of the kind `authorization`. After the permission, the call
 * continues by itself, or by its ticket. Calls of other tools cost nothing. Stage `run`.
 *
 * The tokens of a call are removed from everything that leaves its tool: results, failures,
 * metadata, progress, output, questions, the results of steps, and errors for `onError`. See
 * {@linkcode fromContext} for an example.
 *
 * @param sources The sources, in the order in which they are tried.
 * @throws {TypeError} If a source is invalid, or there is none.
 */
export function credentials(...sources: readonly CredentialSource[]): Layer {
  const action = "make a layer of credentials";
  // Without sources, the first one is undefined, and is rejected.
  for (const source of [sources[0], ...sources]) {
    check.checkFunction(action, Object(source).get, "get of each source");
  }
  const given: WeakMap<Call, readonly ToolCredential[]> = new WeakMap();
  return {
    ...{ name: "credentials", stage: "run", meets: "credentials" },
    context: {
      credential: (call) => (wanted: string) =>
        given.get(call)?.find(({ name }) => name === wanted) ?? fail(
          `use the credential ${check.describe(wanted)}`,
          `"${call.tool.id}" must declare it in "credentials", and use it in execute`,
        ),
    },
    for: (tool) =>
      tool.credentials && (async (call, next) => {
        const own = await obtain(call, readNeeds(tool), sources);
        redactWith(call, (value) => withoutSecrets(value, own.map(({ token }) => token)));
        given.set(call, own);
        return await next(call);
      }),
  };
}

interface Need {
  readonly name: string;
  readonly scopes: readonly string[];
}

/** A credential that its caller must permit first. */
type Missing = Need & NeededAuthorization;

async function obtain(
  call: Call,
  needs: readonly Need[],
  sources: readonly CredentialSource[],
): Promise<readonly ToolCredential[]> {
  for (let round = 1;; round++) {
    const pending = Promise.all(needs.map((need) => get(call, need, sources)));
    const doing = "waiting for its credentials";
    const found = await call.wait(doing, pending);
    const missing = found.filter((one) => "url" in one);
    if (missing.length === 0) return found.filter((one) => "token" in one);
    if (round > MAX_ROUNDS) break;
    // The person may have denied permission before the call resumes, or the URL may have expired. The
    // call then must not wait.
    const step = () => ({
      at: Date.now(),
      ids: found.map((one) => "url" in one && one.after || ""),
    });
    const [{ at, ids }, isAccepted] = await call.wait(
      doing,
      async () =>
        [
          await call.context.step(`credential.${round}`, step),
          await askCaller(call, missing, round),
        ] as const,
    );
    if (!isAccepted) break;
    const left = AbortSignal.timeout(Math.max(at + WAIT_MS - Date.now(), 0));
    const signal = AbortSignal.any([call.deadline.signal, left]);
    const arrived = () =>
      Promise.all(
        found.map((one, index) => "url" in one && one.arrived(signal, ids[index])),
      ).catch(check.noop);
    // The limit pauses the call's timeout. The signal ends the wait before it.
    await call.wait(doing, arrived, 2 * WAIT_MS);
  }
  throw new CallFailure("denied", "no permission was given");
}

async function get(
  call: Call,
  need: Need,
  sources: readonly CredentialSource[],
): Promise<ToolCredential | Missing> {
  const { name, scopes } = need;
  const { options: { principal, context }, deadline: { signal } } = call;
  const { services } = call.context;
  try {
    const request = { principal, tenant: tenantOf(context), scopes, signal, context, services };
    for (const source of sources) {
      const answer = checkAnswer(`use the credential "${name}"`, await source.get(name, request));
      if (answer === undefined) continue;
      return "url" in answer ? { ...answer, ...need } : credentialOf(name, answer);
    }
  } catch (error) {
    if (error instanceof CallFailure) throw error;
    call.report("credential", error);
    const why = `its credential "${name}" cannot be fetched now; try again`;
    // If a server rejects the caller's own token, another attempt is of no use.
    if (!Object(error).isRefused) throw new CallFailure("unavailable", why);
  }
  throw new CallFailure("denied", `its caller has no credential "${name}"`);
}

/** Asks the caller to open the URLs. Returns false if the caller declines one. */
async function askCaller(call: Call, missing: readonly Missing[], round: number): Promise<boolean> {
  const answers = await Promise.all(missing.map(({ name, scopes, url }) => {
    const rights = scopes.length === 0 ? "" : ` (${check.clip(scopes.join(", "), 1_000)})`;
    const message = `Allow "${call.tool.id}" to act as you at ${name}${rights}`;
    const question = { kind: "authorization", message, url, resumes: true } as const;
    return call.context.ask(`credential.${name}.${round}`, question);
  }));
  return answers.every(({ action }) => action === "accept");
}

/** Neither JSON, a copy nor a log of the object contains the token, which is not enumerable. */
function credentialOf(name: string, given: GivenCredential): ToolCredential {
  // Read once: a getter may return another token later, and only this one is removed from results.
  const { token, scopes, expiresAt } = given;
  return Object.defineProperties({ name, scopes, expiresAt } as ToolCredential, {
    token: { get: () => token },
    authorization: { get: () => `Bearer ${token}` },
    reject: { value: async () => void await given.reject?.() },
    toJSON: { value: () => `[credential ${name}]` },
  });
}

/** @throws {TypeError} If a credential that the tool declares is invalid. */
function readNeeds({ id, credentials = {} }: Tool): readonly Need[] {
  const action = `use the credentials of "${id}"`;
  return Object.entries(credentials).map(([name, need]) => {
    const { scopes = [] } = check.readFields(action, need, { scopes: check.checkTexts });
    // The name is a part of the key of a question.
    const isValid = /^[\w-]{1,40}$/.test(name) && scopes.every((scope) => /^\S+$/.test(scope));
    return isValid
      ? { name, scopes }
      : fail(action, `"${name}" must be 1 to 40 letters or digits, and its scopes words`);
  });
}
