/** Users and certificates for servers of tests. */

import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { nkeys } from "@nats-io/nats-core";

type KeyPair = ReturnType<typeof nkeys.createUser>;

const base64 = (text: string | Uint8Array): string => Buffer.from(text).toString("base64url");
const seedOf = (key: KeyPair): string => new TextDecoder().decode(key.getSeed());

/** A JWT in the form of NATS, signed with an NKey. */
function jwt(issuer: KeyPair, subject: KeyPair, nats: object, more: object = {}): string {
  const names = { iss: issuer.getPublicKey(), sub: subject.getPublicKey() };
  const claims = { jti: base64(crypto.getRandomValues(new Uint8Array(16))), iat: 1_700_000_000 };
  const head = [{ typ: "JWT", alg: "ed25519-nkey" }, { ...claims, ...names, ...more, nats }]
    .map((part) => base64(JSON.stringify(part))).join(".");
  return `${head}.${base64(issuer.sign(new TextEncoder().encode(head)))}`;
}

const credentials = (token: string, key: KeyPair): string =>
  `-----BEGIN NATS USER JWT-----\n${token}\n------END NATS USER JWT------\n\n` +
  `-----BEGIN USER NKEY SEED-----\n${seedOf(key)}\n------END USER NKEY SEED------\n`;

/** A server whose users have JWTs, with a valid and invalid files of credentials. */
export function decentralised() {
  const operator = nkeys.createOperator();
  const [account, system, stranger] = [0, 1, 2].map(() => nkeys.createAccount());
  const [user, other] = [nkeys.createUser(), nkeys.createUser()];
  if (!account || !system || !stranger) throw new Error("No keys");
  const all = Object.fromEntries(
    ["subs", "data", "payload", "imports", "exports", "conn", "leaf", "streams", "consumer"]
      .map((name) => [name, -1]),
  );
  const accounts = [[account, -1], [system, 0]] as const;
  const preload = accounts.map(([key, storage]) => {
    const limits = { ...all, wildcards: true, mem_storage: storage, disk_storage: storage };
    const token = jwt(operator, key, { type: "account", version: 2, limits });
    return `${key.getPublicKey()}: ${token}`;
  });
  const claims = { type: "user", version: 2, subs: -1, data: -1, payload: -1 };
  const right = credentials(jwt(account, user, claims), user);
  return {
    lines: `operator: ${jwt(operator, operator, { type: "operator", version: 2 })}
      system_account: ${system.getPublicKey()}
      resolver: MEMORY
      resolver_preload { ${preload.join("\n")} }`,
    files: {
      right,
      expired: credentials(jwt(account, user, claims, { exp: 1_700_000_001 }), user),
      otherAccount: credentials(jwt(stranger, user, claims), user),
      otherSeed: credentials(jwt(account, user, claims), other),
      wrongSeed: right.replace(/\nSU\w{4}/, "\nSUAAAA"),
    },
  };
}

/** A server with a user who has a key, the seed of that key, and the seed of another key. */
export function withKeys() {
  const [user, other] = [nkeys.createUser(), nkeys.createUser()];
  return {
    lines: `authorization { users: [{ nkey: ${user.getPublicKey()} }] }`,
    right: seedOf(user),
    other: seedOf(other),
  };
}

/** The reason why no certificates can be created, or `undefined`. */
export const noCertificates: string | undefined = spawnSync("openssl", ["version"]).status === 0
  ? undefined
  : "openssl is not installed";

/**
 * Makes an authority and, by it, a server's certificate.
 *
 * @param name The names of the server: `IP:127.0.0.1,DNS:localhost`. Some clients need a DNS name.
 */
export function certificates(folder: string, name: string) {
  const path = (file: string): string => join(folder, `${name.replaceAll(/\W/g, "_")}_${file}`);
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const [ca, cert] = [path("ca.pem"), path("cert.pem")];
  writeFileSync(path("ext"), `subjectAltName=${name}`);
  for (
    const args of [
      [
        ...["req", "-x509", ...key, "-keyout", path("ca.key"), "-out", ca],
        ...["-days", "2", "-subj", "/CN=ca"],
      ],
      ["req", ...key, "-keyout", path("key"), "-out", path("csr"), "-subj", "/CN=server"],
      [
        ...["x509", "-req", "-in", path("csr"), "-CA", ca, "-CAkey", path("ca.key")],
        ...["-CAcreateserial", "-days", "2", "-out", cert, "-extfile", path("ext")],
      ],
    ]
  ) {
    const { status, stderr } = spawnSync("openssl", args, { encoding: "utf8" });
    if (status !== 0) throw new Error(stderr);
  }
  return { ca, lines: `tls { cert_file: "${cert}", key_file: "${path("key")}" }` };
}
