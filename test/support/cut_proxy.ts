/** A proxy that loses the answers of a server. */

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class CutProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets: Set<Socket> = new Set();
  #cuts = 0;
  /** The number of lost answers. */
  lost = 0;

  private constructor(port: number) {
    this.#server = createServer((client) => this.#pass(client, connect(port, "127.0.0.1")));
  }

  /** Starts a proxy in front of a port of this machine. */
  static async start(port: number): Promise<CutProxy> {
    const proxy = new CutProxy(port);
    await once(proxy.#server.listen(0, "127.0.0.1"), "listening");
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /**
   * Forwards the next data of a client, and closes the connection instead of forwarding the answer.
   */
  cut(): void {
    this.#cuts++;
  }

  #pass(client: Socket, server: Socket): void {
    let isCut = false;
    client.on("data", (chunk) => {
      if (!isCut && this.#cuts > 0) {
        this.#cuts--;
        isCut = true;
      }
      server.write(chunk);
    });
    server.on("data", (chunk) => {
      if (!isCut) return void client.write(chunk);
      this.lost++;
      client.destroy();
      server.destroy();
    });
    for (const [one, other] of [[client, server], [server, client]] as const) {
      this.#sockets.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        this.#sockets.delete(one);
        other.destroy();
      });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }
}
