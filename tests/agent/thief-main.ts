// SPDX-License-Identifier: Apache-2.0
// A job that tries to get at the agent: what it reached, as JSON on standard output. Nothing is what it should reach.
// Arguments: pid of the agent, root of the node, socket of launches.

import fs from "node:fs";
import net from "node:net";
import path from "node:path";

const [, , agent = "", root = "", socket = ""] = process.argv;
const reached: string[] = [];

function attempt(what: string, act: () => unknown): void {
  try {
    act();
    reached.push(what);
  } catch {
    // As it should be.
  }
}

for (const [name, pid] of [
  ["agent", agent],
  ["shim", String(process.ppid)],
] as const) {
  for (const file of ["environ", "mem", "maps", "auxv"])
    attempt(`${file} of the ${name}`, () => {
      const text = fs.readFileSync(`/proc/${pid}/${file}`);
      if (text.length === 0) throw new Error("empty");
    });
  attempt(`descriptors of the ${name}`, () => fs.readdirSync(`/proc/${pid}/fd`));
  attempt(`root of the ${name}`, () => fs.readdirSync(`/proc/${pid}/root/`));
  attempt(`a signal to the ${name}`, () => process.kill(Number(pid), 0));
}
for (const file of ["credential", "node.key", "agent.json", "credential.next", "agent.lock"])
  attempt(`the file ${file}`, () => fs.readFileSync(path.join(root, "node", file)));
for (const directory of ["node", "node/locker", "node/launches"])
  attempt(`a list of ${directory}`, () => fs.readdirSync(path.join(root, directory)));
attempt("a file beside its own", () => fs.writeFileSync(path.join(process.cwd(), "..", "exit"), "{}"));
attempt("its own spec", () => fs.readFileSync(path.join(process.cwd(), "..", "spec.json")));
attempt("credentials of systemd", () => {
  if (fs.readdirSync("/run/credentials", { recursive: true }).length === 0) throw new Error("empty");
});
attempt("a user bus", () => {
  if (process.env["DBUS_SESSION_BUS_ADDRESS"] === undefined) fs.accessSync("/run/user/0/bus");
});
for (const id of [0, fs.statSync(root).uid]) attempt(`the account ${id}`, () => process.setuid?.(id));
const status = fs.readFileSync("/proc/self/status", "latin1");
if (!/^CapPrm:\t0+$/m.test(status) || !/^CapAmb:\t0+$/m.test(status)) reached.push("a capability");
if (!/^NoNewPrivs:\t1$/m.test(status)) reached.push("what set-uid programs give");

const gate = net.connect(socket);
gate.once("error", () => end());
gate.once("connect", () => {
  reached.push("the socket of launches");
  end();
});

function end(): void {
  gate.destroy();
  process.stdout.write(`${JSON.stringify({ uid: process.getuid?.(), groups: process.getgroups?.(), reached })}\n`);
}
