// SPDX-License-Identifier: Apache-2.0
// The real script as root, on a machine that is thrown away: accounts, owners and modes, a proxy, IPv6, file systems that
// execute nothing, and that nothing is left when it fails or is taken away.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { after, test } from "node:test";
import { cleanupOf, type Ending } from "../kit/cleanup.ts";
import { newNodeKey, pairWith } from "../kit/node-double.ts";
import { until } from "../kit/until.ts";
import { createFleet, realRuntime, scratch } from "./kit.ts";
import { createMachine, type Machine } from "./machine.ts";

/** A start beside other tests on two processors. */
const SLOW = { withinMs: 60_000 };

const fleet = await createFleet({ after });

test("D3, D10, D13, D16, D35: as root under umask 000 with HOME, /tmp and TMPDIR that execute nothing, with the real runtime: owners and modes, SELinux labels, and taken away again without a trace", async (t) => {
  const machine = createMachine(t);
  for (const place of ["/root", "/tmp"]) await machine.run(`mount -t tmpfs -o noexec,mode=1777 tmpfs ${place}`);
  fs.writeFileSync(path.join(machine.root, "usr/sbin/restorecon"), '#!/bin/sh\necho "$*" >>/run/labelled\n', {
    mode: 0o755,
  });
  const before = machine.changes();
  const beside = await fleet.beside(t, { runtime: realRuntime });
  const pairing = await beside.pair("rooted");
  const env = { HOLDFAST_PAIRING_CODE: pairing.code, TMPDIR: "/tmp" };
  const ran = await machine.run(`umask 000; ${pairing.commands?.run}`, { env });
  assert.equal(ran.code, 0, ran.all);
  assert.deepEqual(machine.owners(...Object.keys(OWNERS)), OWNERS);
  const account = (await machine.run("id holdfast; id holdfast-job; grep ^holdfast /etc/passwd")).stdout;
  assert.match(
    account,
    /^uid=(\d+)\(holdfast\) gid=\d+\(holdfast\) groups=\d+\(holdfast\)\nuid=\d+\(holdfast-job\) gid=\d+\(holdfast-job\) groups=\d+\(holdfast-job\)\n/,
  );
  assert.match(account, /^holdfast:.*:\/var\/lib\/holdfast:\/usr\/sbin\/nologin$/m);
  assert.match(
    fs.readFileSync(path.join(machine.root, "run/labelled"), "utf8"),
    /-R \/opt\/holdfast \/var\/lib\/holdfast \/etc\/holdfast/,
  );
  const open = await machine.run("find /opt/holdfast /var/lib/holdfast /etc/holdfast ! -type l -perm /022");
  assert.equal(open.stdout, "", "nobody else may write any of it");
  const again = await machine.run("sh /opt/holdfast/bootstrap.sh");
  assert.match(again.stdout, /paired already, as rooted[\s\S]*Everything was as it should be\./, again.all);
  const gone = await machine.run("sh /opt/holdfast/bootstrap.sh --uninstall --yes --purge");
  assert.equal(gone.code, 0, gone.all);
  assert.deepEqual(machine.changes(), before);
  const { items } = await fleet.admin.call("nodeList", {});
  assert.ok(items.find(({ name }) => name === "rooted")?.leftAt);
});

const OWNERS: Readonly<Record<string, string>> = {
  "/opt/holdfast": "root:root 755",
  "/opt/holdfast/agent": "root:root 755",
  "/opt/holdfast/agent/src/bin/holdfast.js": "root:root 755",
  "/opt/holdfast/agent/src/bin/agent.ts": "root:root 644",
  "/opt/holdfast/agent.sha256": "root:root 644",
  "/opt/holdfast/bootstrap.sh": "root:root 755",
  "/opt/holdfast/runtime/node": "root:root 755",
  "/usr/local/bin/holdfast": "root:root 755",
  "/etc/holdfast": "root:root 755",
  "/etc/holdfast/agent.env": "root:root 600",
  "/var/lib/holdfast": "holdfast:holdfast 755",
  "/var/lib/holdfast/node": "holdfast:holdfast 700",
  "/var/lib/holdfast/node/agent.json": "holdfast:holdfast 600",
  "/var/lib/holdfast/node/credential": "holdfast:holdfast 600",
  "/var/lib/holdfast/node/node.key": "holdfast:holdfast 600",
  "/var/lib/holdfast/node/node.crt": "holdfast:holdfast 600",
  "/var/lib/holdfast/node/trust.pem": "holdfast:holdfast 600",
};

test("D3: a home that executes nothing is named, with what to do", async (t) => {
  const machine = createMachine(t);
  await machine.run("mount -t tmpfs -o noexec,mode=1777 tmpfs /tmp; mkdir -m 777 /tmp/home");
  const pairing = await fleet.pair("noexec");
  const env = { HOLDFAST_PAIRING_CODE: pairing.code, HOME: "/tmp/home" };
  const refused = await machine.run(pairing.commands?.run ?? "", { isNobody: true, env });
  assert.match(refused.stderr, /may not execute programs \(noexec\): export XDG_DATA_HOME with a place that may/);
  assert.equal((await machine.run("find /tmp/home -mindepth 1")).stdout, "");
});

test("as root, too, a run that fails leaves nothing: no account, no directory, no key", async (t) => {
  const machine = createMachine(t);
  const pairing = await fleet.pair("twice");
  await pairWith(fleet.url, (await fleet.pair("twice")).code, newNodeKey());
  const refused = await machine.run(pairing.commands?.run ?? "", { env: { HOLDFAST_PAIRING_CODE: pairing.code } });
  assert.equal(refused.code, 1);
  assert.match(refused.stdout, /removed: account holdfast\n/, refused.all);
  assert.deepEqual(machine.changes(), []);
});

test("D7, D8: a controller behind a proxy: the script, the pairing and the agent all go through it, and the next run, too", async (t) => {
  const machine = createMachine(t);
  const proxy = await startProxy(t);
  const beside = await fleet.beside(t, { name: "controller.test" });
  const pairing = await beside.pair("proxied");
  const env = { HOLDFAST_PAIRING_CODE: pairing.code, HTTPS_PROXY: proxy.url, no_proxy: "10.0.0.0/8" };
  const ran = await machine.run(pairing.commands?.run ?? "", { env });
  assert.equal(ran.code, 0, ran.all);
  assert.match(ran.stderr, /NO_PROXY names a network/);
  const settings = fs.readFileSync(path.join(machine.root, "etc/holdfast/agent.env"), "utf8");
  assert.equal(settings, `HTTPS_PROXY=${proxy.url}\nNO_PROXY=10.0.0.0/8\nNODE_USE_ENV_PROXY=1\n`);
  const again = await machine.run("sh /opt/holdfast/bootstrap.sh");
  assert.match(again.stdout, /Everything was as it should be\./, again.all);
  const foreground = machine.run("exec sh /opt/holdfast/bootstrap.sh --foreground");
  const { items } = await until(
    "the node is online through the proxy",
    async () => {
      const list = await fleet.admin.call("nodeList", {});
      return list.items.some(({ name, online }) => name === "proxied" && online) ? list : undefined;
    },
    SLOW,
  );
  assert.ok(items.length > 0);
  stopAgents(machine);
  assert.equal((await foreground).code, 0);
  assert.ok(proxy.passed() > 0);
});

/** The agents of this machine, which run as its account and not as root. */
function stopAgents(machine: Machine): void {
  const { stdout } = spawnSync("pgrep", ["-f", "^/opt/holdfast/runtime/node .* agent "], { encoding: "utf8" });
  const pids = stdout.split("\n").filter((pid) => pid !== "" && fs.readlinkSync(`/proc/${pid}/root`) === machine.root);
  assert.equal(pids.length, 1, "one agent runs");
  for (const pid of pids) {
    assert.notEqual(fs.statSync(`/proc/${pid}`).uid, 0);
    process.kill(Number(pid), "SIGTERM");
  }
}

/** Only the proxy knows where controller.test is. */
async function startProxy(t: Ending): Promise<{ readonly url: string; readonly passed: () => number }> {
  const directory = scratch(t);
  const at = (name: string): string => path.join(directory, name);
  const port = 20_000 + (process.pid % 20_000);
  fs.writeFileSync(at("hosts"), "127.0.0.1 localhost controller.test\n");
  fs.writeFileSync(
    at("conf"),
    `Port ${port}\nListen 127.0.0.1\nTimeout 600\nMaxClients 50\nLogFile "${at("log")}"\nLogLevel Connect\nAllow 127.0.0.1\n`,
  );
  const child = spawn(
    "unshare",
    ["-m", "sh", "-c", `mount --bind ${at("hosts")} /etc/hosts; exec tinyproxy -d -c ${at("conf")}`],
    { stdio: "ignore" },
  );
  cleanupOf(t).defer(() => void child.kill("SIGKILL"));
  const log = (): string => (fs.existsSync(at("log")) ? fs.readFileSync(at("log"), "utf8") : "");
  await until("the proxy listens", () => answersAt(port), SLOW);
  return { url: `http://127.0.0.1:${port}`, passed: () => log().split("CONNECT").length - 1 };
}

function answersAt(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

test("D15: by an IPv6 address in brackets, and by a name whose IPv6 address is dead", async (t) => {
  const machine = createMachine(t);
  const six = await fleet.beside(t, { host: "::1" });
  const pairing = await six.pair("six");
  assert.match(pairing.commands?.run ?? "", /--controller https:\/\/\[::1\]:\d+ /);
  const env = { HOLDFAST_PAIRING_CODE: pairing.code };
  const ran = await machine.run(pairing.commands?.run ?? "", { env });
  assert.equal(ran.code, 0, ran.all);
  fs.writeFileSync(path.join(machine.root, "etc/hosts"), "100::1 controller.test\n127.0.0.1 controller.test\n");
  const named = await fleet.beside(t, { name: "controller.test" });
  const moved = await machine.run(`${(await named.pair("unused")).commands?.run}`);
  assert.equal(moved.code, 0, moved.all);
  assert.match(moved.stdout, /paired already, as six/);
});
