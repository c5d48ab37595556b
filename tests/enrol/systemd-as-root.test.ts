// SPDX-License-Identifier: Apache-2.0
// The whole bootstrap under a real systemd, as root and as a user: the service runs, and it is the controller that says so.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, test } from "node:test";
import type { PairingCode } from "../../src/protocol/enrol-schema.ts";
import type { Ending } from "../kit/cleanup.ts";
import { bootSystemd, type Ran } from "../kit/systemd.ts";
import { until } from "../kit/until.ts";
import { agentWith, createFleet, realRuntime } from "./kit.ts";

/** A start beside other tests on two processors. */
const SLOW = { withinMs: 60_000 };

const file = { after };
const [fleet, system] = await Promise.all([createFleet(file, { runtime: realRuntime }), bootSystemd(file)]);

/** The command of the pairing, as root or as this account; the code in the environment. */
function enrol({ code, commands }: PairingCode, as?: string, before = ""): Promise<Ran> {
  const line = `${before}export HOLDFAST_PAIRING_CODE=${code}; ${commands?.run}`;
  return system.runBeside(["sh", "-c", line], as === undefined ? {} : { as });
}

const nodeOf = async (name: string) =>
  (await fleet.admin.call("nodeList", {})).items.find((node) => node.name === name);

test("as root: the controller itself sees it online before the script says so; a unit that is gone does not keep it from being uninstalled", async (t) => {
  const pairing = await fleet.pair("anna");
  const ran = await enrol(pairing);
  assert.equal(ran.code, 0, ran.stdout + ran.stderr);
  assert.match(ran.stdout, /==> prove\n {4}the controller sees it online, version 0\.1\.0\nDone\.\n$/);
  assert.equal((await nodeOf("anna"))?.online, true);
  const { phases } = await fleet.admin.call("pairingShow", { params: { pairingId: pairing.id } });
  const done = phases.filter(({ outcome }) => outcome === "done").map(({ phase }) => phase);
  assert.deepEqual(done, ["look", "plan", "fetch", "install", "pair", "start", "prove"]);
  const again = await system.runBeside(["sh", "/opt/holdfast/bootstrap.sh"]);
  assert.match(
    again.stdout,
    /the agent runs already[\s\S]*the controller sees it online[\s\S]*Everything was as it should be\.\n$/,
    again.stdout + again.stderr,
  );
  assert.equal(system.property("holdfast-agent", "NRestarts"), "0");
  const shown = system.run(["systemctl", "show", "holdfast-agent"], { as: "nobody" }).stdout;
  const secret = fs.readFileSync(path.join(system.root, "var/lib/holdfast/node/credential"), "utf8").trim();
  assert.ok(!shown.includes(secret) && !shown.includes(pairing.code), "D34: nobody sees a secret in the unit");

  const broken = await fleet.beside(t, { agent: brokenAgent(t), version: "9.9.9" });
  const script = await (await fetch(`${broken.url}/v1/bootstrap.sh`)).text();
  fs.writeFileSync(path.join(system.root, "root/broken.sh"), script);
  const failed = await system.runBeside(["sh", "/root/broken.sh", "--controller", broken.url]);
  assert.equal(failed.code, 1, failed.stdout + failed.stderr);
  assert.match(failed.stderr, /failed at start: 7 \(/);
  assert.match(failed.stdout, /put back: \/opt\/holdfast\/agent\n/);
  await until(
    "the old agent runs again",
    async () => (await nodeOf("anna"))?.online && system.run(["systemctl", "is-active", "holdfast-agent"]).code === 0,
    SLOW,
  );

  fs.rmSync(path.join(system.root, "etc/systemd/system/holdfast-agent.service"));
  const gone = await system.runBeside(["sh", "/opt/holdfast/bootstrap.sh", "--uninstall", "--yes", "--purge"]);
  assert.equal(gone.code, 0, gone.stderr);
  assert.notEqual(system.run(["systemctl", "is-active", "holdfast-agent"]).code, 0);
  assert.ok((await nodeOf("anna"))?.leftAt);
  // The machine of these tests has a checkout in /opt/holdfast, which is none of the script's.
  const left =
    "cd /opt/holdfast; ls -d agent agent.sha256 runtime bootstrap.sh .lock /var/lib/holdfast/node; find /etc -name '*holdfast*'; getent passwd holdfast holdfast-job";
  assert.equal(system.run(["sh", "-c", `{ ${left}; } 2>/dev/null`]).stdout, "", gone.stdout);
});

/** Pairs and writes units as it should, and ends with 7 as an agent. */
const brokenAgent = (t: Ending): string => agentWith(t, fleet.files.agent, "src/bin/agent.ts", "process.exit(7);\n");

test("D9: by su as a user without a manager of his own it says what an administrator does, and how to run the agent; with a manager it is a service of his", async () => {
  system.ok("useradd", "--create-home", "hf-alice");
  const alone = await enrol(await fleet.pair("alone"), "hf-alice", "export HOME=/home/hf-alice; ");
  assert.match(
    alone.stderr,
    /no systemd manager runs for hf-alice: an administrator can start one with: loginctl enable-linger hf-alice/,
    alone.stdout,
  );
  assert.equal(alone.code, 0, alone.stderr);
  assert.match(
    alone.stdout,
    /Nothing starts the agent here by itself\. Run it with:\n {2}sh \/home\/hf-alice\/.*bootstrap\.sh .* --foreground\n$/,
  );
  const uid = system.ok("id", "-u", "hf-alice").trim();
  system.ok("systemctl", "start", `user@${uid}`);
  const served = await system.runBeside(
    ["sh", "-c", "export HOME=/home/hf-alice; sh $HOME/.local/share/holdfast-agent/bootstrap.sh"],
    { as: "hf-alice" },
  );
  assert.equal(served.code, 0, served.stdout + served.stderr);
  assert.match(served.stdout, /the controller sees it online, version/);
  assert.equal((await nodeOf("alone"))?.online, true);
});
