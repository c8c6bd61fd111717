# workerd serve examples/edge/workerd.capnp
# The bundle: bun build examples/edge/worker.ts --conditions=workerd --external=cloudflare:workers --minify --outfile=examples/edge/dist/worker.js

using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .edge),
    (name = "disk", disk = (path = "examples/edge/dist", writable = true)),
  ],
  sockets = [ (name = "http", address = "127.0.0.1:8787", http = (), service = "main") ],
);

const edge :Workerd.Worker = (
  modules = [ (name = "worker", esModule = embed "dist/worker.js") ],
  bindings = [
    (name = "PLUE_TOKEN", fromEnvironment = "PLUE_TOKEN"),
    (name = "CALLS", durableObjectNamespace = "Calls"),
  ],
  durableObjectNamespaces = [ (className = "Calls", uniqueKey = "plue-calls", enableSql = true) ],
  durableObjectStorage = (localDisk = "disk"),
  compatibilityDate = "2026-05-01",
);
