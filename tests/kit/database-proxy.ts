// SPDX-License-Identifier: Apache-2.0
// The way between a program and a real PostgreSQL, as a unix socket that forwards to the server's own. It can lose an answer
// on its way, and it can freeze connections: half-open, so that neither data nor a close gets through.

import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";
import type { ConnectionOptions } from "../../src/db/pool.ts";
import { cleanupOf } from "./cleanup.ts";

const FILE = ".s.PGSQL.5432";

export type Way = "toServer" | "toClient";

export type ProxyConnection = {
  /** All that was sent to the server on it, the end of it at least. */
  sent: string;
  freeze: () => void;
  cut: () => void;
};

export type DatabaseProxy = {
  /** The same database, by way of this proxy. */
  readonly through: (connection: ConnectionOptions) => ConnectionOptions;
  /** Looks at each piece before it is passed on; one for which it returns true is lost, and its connection with it. */
  watch: (way: Way, piece: string, connection: ProxyConnection) => boolean;
  readonly connections: () => readonly ProxyConnection[];
  /** Refuses new connections, or takes them again. */
  isOpen: boolean;
};

/** Patterns may lie across two pieces; none that a test looks for is longer. */
const KEPT = 100_000;

export async function startDatabaseProxy(t: TestContext, to: ConnectionOptions): Promise<DatabaseProxy> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "way-"));
  const connections = new Set<ProxyConnection>();
  const proxy: DatabaseProxy = {
    through: (connection) => ({ ...connection, host: directory, port: 5432 }),
    watch: () => false,
    connections: () => [...connections],
    isOpen: true,
  };
  const server = net.createServer({ allowHalfOpen: true }, (client) => {
    if (!proxy.isOpen) return void client.destroy();
    const upstream = net.connect({ path: path.join(String(to.host), FILE), allowHalfOpen: true });
    let isFrozen = false;
    const connection: ProxyConnection = {
      sent: "",
      freeze: () => {
        isFrozen = true;
        client.pause();
        upstream.pause();
      },
      cut: () => {
        client.destroy();
        upstream.destroy();
        connections.delete(connection);
      },
    };
    connections.add(connection);
    const forward = (from: net.Socket, into: net.Socket, way: Way): void => {
      from.on("data", (piece: Buffer) => {
        if (isFrozen) return;
        const text = piece.toString("latin1");
        if (way === "toServer") connection.sent = (connection.sent + text).slice(-KEPT);
        if (proxy.watch(way, text, connection)) connection.cut();
        else into.write(piece);
      });
      from.on("error", () => {});
      from.on("end", () => isFrozen || into.end());
      from.on("close", () => isFrozen || connection.cut());
    };
    forward(client, upstream, "toServer");
    forward(upstream, client, "toClient");
  });
  await new Promise<void>((resolve) => server.listen(path.join(directory, FILE), resolve));
  cleanupOf(t).defer(async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const connection of connections) connection.cut();
    await closed;
    fs.rmSync(directory, { recursive: true, force: true });
  });
  return proxy;
}
