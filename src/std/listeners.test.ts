// SPDX-License-Identifier: Apache-2.0
// Whose socket a connection reaches, with real sockets.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import net from "node:net";
import { test, type TestContext } from "node:test";
import { addressBytes, describeProcess, ownerOf, parseListeners, processTree, reachedBy } from "./listeners.ts";

async function listen(t: TestContext, host: string, port = 0): Promise<number> {
  const server = net.createServer().listen({ host, port, reusePort: true });
  t.after(() => server.close());
  await once(server, "listening");
  return (server.address() as net.AddressInfo).port;
}

test("a port is ours when every socket that a connection reaches belongs to our processes", async (t) => {
  const port = await listen(t, "127.0.0.1");
  assert.deepEqual(ownerOf("127.0.0.1", port, processTree(process.pid)), { kind: "ours" });
  assert.deepEqual(ownerOf("127.0.0.1", port, [1]), { kind: "other", pid: process.pid });
  assert.deepEqual(ownerOf("127.0.0.2", port, [process.pid]), { kind: "nobody" });
  assert.deepEqual(ownerOf("::1", port, [process.pid]), { kind: "nobody" });
});

test("a listener on all addresses is reached by each; one on the very address goes before it", async (t) => {
  const script =
    "const s=require('net').createServer().listen({port:0,host:'0.0.0.0',reusePort:true},()=>console.log(s.address().port));process.stdin.resume()";
  const child = spawn(process.execPath, ["-e", script], { stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const port = Number(String((await once(child.stdout, "data"))[0]));
  assert.deepEqual(ownerOf("127.0.0.1", port, [process.pid]), { kind: "other", pid: child.pid });
  assert.deepEqual(ownerOf("127.0.0.1", port, processTree(process.pid)), { kind: "ours" });
  await listen(t, "127.0.0.1", port);
  assert.deepEqual(ownerOf("127.0.0.1", port, [process.pid]), { kind: "ours" });
  assert.deepEqual(ownerOf("127.0.0.1", port, [child.pid ?? 0]), { kind: "other", pid: process.pid });
  assert.match(describeProcess(child.pid ?? 0), new RegExp(`^\\S+ \\(pid ${child.pid}, started 20.*Z\\): .*node`));
});

test("addresses of both families, mapped ones too", () => {
  assert.equal(addressBytes("127.0.0.1"), "7f000001");
  assert.equal(addressBytes("::1"), `${"0".repeat(31)}1`);
  assert.equal(addressBytes("fe80::1:2"), "fe800000000000000000000000010002");
  for (const wrong of ["localhost", "256.1.1.1", "", "::1::", "12345"])
    assert.equal(addressBytes(wrong), undefined, wrong);
  const mapped = { address: `${"0".repeat(20)}ffff7f000001`, port: 80, inode: "1" };
  const any = { address: "0".repeat(32), port: 80, inode: "2" };
  assert.deepEqual(reachedBy([any, mapped], "127.0.0.1", 80), [mapped]);
  assert.deepEqual(reachedBy([any, mapped], "10.0.0.1", 80), [any]);
  const line =
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0 100";
  assert.deepEqual(parseListeners(`  sl  local_address\n${line}\n${line.replace(" 0A ", " 01 ")}`), [
    { address: "7f000001", port: 8080, inode: "4242" },
  ]);
});
