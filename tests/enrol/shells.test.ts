// SPDX-License-Identifier: Apache-2.0
// The real script without root, as a person runs it: from a real controller, through a pipe, by six shells, and what becomes of
// each of those machines afterwards: run again, edited, damaged, updated, uninstalled.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, test } from "node:test";
import type { PairingCode } from "../../src/protocol/enrol-schema.ts";
import type { Ending } from "../kit/cleanup.ts";
import { createHome, type Home } from "./home.ts";
import { hostilePath, whereIs } from "./hostile-path.ts";
import { agentWith, createFleet, lightFiles, scratch } from "./kit.ts";

const file = { after };
const fleet = await createFleet(file);
/** What is about shells needs no real agent. */
const light = await fleet.beside(file, lightFiles(file));

/** What a run leaves, apart from the agent's own tree. */
const LEFT: Readonly<Record<string, string>> = {
  ".config": "d700",
  ".config/holdfast": "d700",
  ".config/holdfast/agent.env": "-600",
  ".local": "d700",
  ".local/bin": "d700",
  ".local/bin/holdfast": "-755",
  ".local/share": "d700",
  ".local/share/holdfast": "d755",
  ".local/share/holdfast-agent": "d755",
  ".local/share/holdfast-agent/agent": "d755",
  ".local/share/holdfast-agent/agent.sha256": "-644",
  ".local/share/holdfast-agent/bootstrap.sh": "-755",
  ".local/share/holdfast-agent/runtime": "d755",
  ".local/share/holdfast-agent/runtime/node": "-755",
  ".local/share/holdfast/node": "d700",
  ".local/share/holdfast/node/agent.json": "-600",
  ".local/share/holdfast/node/authority.pem": "-600",
  ".local/share/holdfast/node/credential": "-600",
  ".local/share/holdfast/node/node.crt": "-600",
  ".local/share/holdfast/node/node.key": "-600",
  ".local/share/holdfast/node/trust.pem": "-600",
};

const isOfTree = (file: string): boolean => file.includes("holdfast-agent/agent/");

function modesOf(home: Home): Readonly<Record<string, string>> {
  const own = [...home.look()].filter(([file]) => !isOfTree(file));
  return Object.fromEntries(own.map(([file, look]) => [file, look.split(" ")[0] ?? ""] as const).toSorted());
}

function assertLeft(home: Home): void {
  assert.deepEqual(modesOf(home), LEFT);
  const odd = [...home.look()].filter(([file, look]) => isOfTree(file) && !/^(d755|-644|-755) /.test(look));
  assert.deepEqual(odd, [], "the agent is for everybody to read, and for nobody to write");
}

/** In a home of its own, with the real agent. */
async function enrolled(t: Ending, name: string): Promise<{ readonly home: Home; readonly pairing: PairingCode }> {
  const home = createHome(t);
  const pairing = await fleet.pair(name);
  const ran = await home.run(pairing);
  assert.match(ran.stdout, new RegExp(`paired as ${name} \\(node_`), ran.all);
  return { home, pairing };
}

const shells = {
  dash: "000",
  bash: "022",
  "busybox ash": "027",
  mksh: "077",
  yash: "022",
  ksh93: "000",
};

for (const [shell, umask] of Object.entries(shells)) {
  const name = `D1, D4, D13: by ${shell} under umask ${umask}, with the tools of POSIX alone, which read standard input where they may: the same files with the same modes, and taken away again`;
  test(name, async (t) => {
    const home = createHome(t);
    const [program = "", ...applet] = shell.split(" ");
    const tools = hostilePath(path.join(scratch(t), "bin"));
    const by = ["env", `PATH=${tools}`, whereIs(program), ...applet].join(" ");
    const ran = await home.run(await light.pair("light"), { shell: by, before: `umask ${umask}` });
    assert.equal(ran.code, 0, ran.all);
    assert.equal(ran.stderr, "");
    assert.match(ran.stdout, /paired as light \(node_0\)/);
    const modes = modesOf(home);
    const paired = Object.entries(LEFT).filter(([file]) => !/node\/(?!trust)/.test(file.replace("runtime/node", "")));
    assert.deepEqual(modes, Object.fromEntries(paired));
    const gone = await home.command(`umask ${umask}; ${by} ${home.prefix}/bootstrap.sh --uninstall --yes --purge <&-`);
    assert.equal(gone.code, 0, gone.all);
    assert.deepEqual([...home.look().keys()].toSorted(), [".config", ".local", ".local/bin", ".local/share"]);
  });
}

test("D8, D18: run again it changes nothing; what was edited by hand survives; what is damaged is mended, also by a newer agent", async (t) => {
  const { home, pairing } = await enrolled(t, "anna");
  assertLeft(home);
  const settings = path.join(home.directory, ".config/holdfast/agent.env");
  fs.writeFileSync(settings, '# mine\nNO_PROXY=10.0.0.0/8, $(touch /tmp/holdfast-was-run) box.lan\n"\n');
  const before = home.look();
  const again = await home.command(`umask 000; sh ${home.prefix}/bootstrap.sh`, {
    HOLDFAST_PAIRING_CODE: pairing.code,
    no_proxy: "other.lan",
  });
  assert.match(again.stdout, /paired already, as anna[\s\S]*Everything was as it should be\./, again.all);
  assert.deepEqual(home.look(), before);
  assert.equal(fs.existsSync("/tmp/holdfast-was-run"), false, "settings are read, never run");

  for (const file of ["bootstrap.sh", "agent.sha256", "agent/src/bin/holdfast.ts"])
    fs.writeFileSync(path.join(home.prefix, file), "damaged");
  const newer = await fleet.beside(t, { agent: agentWith(t, fleet.files.agent, "NEWER", ""), version: "9.9.9" });
  const mended = await home.run(await newer.pair("unused"), { withCode: false });
  assert.match(mended.stdout, /agent 9\.9\.9 in [\s\S]*paired already, as anna[\s\S]*Done\./, mended.all);
  assert.doesNotMatch(mended.stdout, /runtime in/);
  assert.ok(fs.existsSync(path.join(home.prefix, "agent/NEWER")));
  const kept = (looked: ReadonlyMap<string, string>) =>
    ["credential", "node.key"].map((file) => looked.get(`.local/share/holdfast/node/${file}`));
  assert.deepEqual(kept(home.look()), kept(before), "the pairing stays");
  assert.match(fs.readFileSync(path.join(home.root, "node/agent.json"), "utf8"), new RegExp(newer.url));
});

test("D18, D19: with the pairing damaged, too, it says so; a code that takes the node over mends it, and uninstalling works with all of it damaged", async (t) => {
  const { home } = await enrolled(t, "berta");
  fs.chmodSync(`${home.prefix}/agent/package.json`, 0);
  fs.writeFileSync(path.join(home.prefix, "runtime/node"), "damaged");
  for (const file of ["trust.pem", "agent.json", "credential"])
    fs.writeFileSync(path.join(home.root, "node", file), "damaged");
  const refused = await home.run(await fleet.pair("another"), { withCode: false });
  assert.equal(refused.code, 1, "its credential is gone, and there is no code");
  const mended = await home.run(await fleet.pair("berta", { takeOver: true }));
  assert.match(mended.stdout, /agent 0\S* in [\s\S]*runtime in [\s\S]*paired as berta/, mended.all);
  assertLeft(home);
  // A command in bin/ that does not say any more that it is ours would be taken for somebody else's.
  const isCommand = (file: string): boolean => file.endsWith(".local/bin/holdfast");
  for (const file of filesOf(home.directory))
    if (!isOfTree(file) && !isCommand(file)) fs.writeFileSync(file, "damaged");
  const script = path.join(home.directory, "b.sh");
  fs.writeFileSync(script, await (await fetch(`${fleet.url}/v1/bootstrap.sh`)).text());
  const gone = await home.command(`sh ${script} --uninstall --yes --purge`);
  assert.equal(gone.code, 0, gone.all);
  assert.deepEqual(filesOf(home.directory), [script]);
});

test("D16, D26: a retired node is told so; uninstalled twice: what is ours goes, what is not stays, and the controller shows it", async (t) => {
  const { home } = await enrolled(t, "carla");
  fs.writeFileSync(path.join(home.directory, ".config/mine"), "mine");
  fs.writeFileSync(path.join(home.root, "scenes.yaml"), "mine too");
  const planned = await home.again("--uninstall", "--dry-run");
  assert.match(planned.stdout, /To be removed: .*\nNothing was changed\./);
  assert.match((await home.again("--uninstall")).stderr, /There is no terminal to ask on: say --yes/);
  const script = fs.readFileSync(`${home.prefix}/bootstrap.sh`, "utf8");
  const first = await home.again("--uninstall", "--yes");
  assert.match(
    first.stdout,
    /the controller was told that carla is uninstalled[\s\S]*the node's data stays/,
    first.all,
  );
  assert.equal(fs.existsSync(home.prefix), false);
  const node = (await fleet.admin.call("nodeList", {})).items.find(({ name }) => name === "carla");
  assert.ok(node?.leftAt, "the controller knows when it left");
  fs.writeFileSync(path.join(home.directory, "b.sh"), script);
  await fleet.admin.call("nodeRetire", { params: { nodeId: node.id } });
  const retired = await home.command("sh $HOME/b.sh --no-start");
  assert.match(retired.stderr, /the credential is unknown, expired or revoked/);
  const second = await home.command("sh $HOME/b.sh --uninstall --yes --purge");
  assert.equal(second.code, 0, second.all);
  const left = [
    ".config",
    ".config/mine",
    ".local",
    ".local/bin",
    ".local/share",
    ".local/share/holdfast",
    ".local/share/holdfast/scenes.yaml",
    "b.sh",
  ];
  assert.deepEqual([...home.look().keys()].toSorted(), left);
});

test("D31, D32, D36: by mksh, no argv and no environment of any process that it starts holds a secret, nor the debug log of the controller, and no file of one is born open", async (t) => {
  const home = createHome(t);
  const pairing = await fleet.pair("by-mksh");
  const trace = path.join(home.directory, "trace");
  const calls = "trace=execve,open,openat,creat,mkdir,mkdirat";
  const ran = await home.run(pairing, {
    shell: `strace -f -v -s 4096 -e signal=none -e ${calls} -o ${trace} mksh`,
    before: "umask 077",
  });
  assert.equal(ran.code, 0, ran.all);
  const lines = fs.readFileSync(trace, "utf8").split("\n");
  const secrets = [pairing.code, fs.readFileSync(path.join(home.root, "node/credential"), "utf8").trim()];
  const started = lines.filter((line) => line.includes("execve("));
  assert.ok(started.length > 50, "each start is seen");
  const [first = "", ...others] = started;
  assert.ok(
    first.includes(pairing.code),
    "the shell itself was given the code, so a code in the environment would be seen",
  );
  for (const secret of secrets)
    assert.deepEqual(
      others.filter((line) => line.includes(secret)),
      [],
    );
  const born = lines.filter(
    (line) =>
      /node\/(pairing-|credential|node\.key|trust|agent\.json)|agent\.env/.test(line) && line.includes("O_CREAT"),
  );
  assert.ok(born.length >= 6, born.join("\n"));
  assert.deepEqual(
    born.filter((line) => !/0[67]00\)|0666\)/.test(line)),
    [],
  );
  const log = fleet.log.lines.join("\n");
  assert.match(log, /by-mksh|\/v1\/node\/pair/, "the controller logs at level debug");
  for (const secret of secrets)
    for (const form of [
      secret.slice(4, 12),
      Buffer.from(secret).toString("base64").slice(0, 16),
      Buffer.from(secret).toString("hex"),
    ])
      assert.ok(!log.includes(form), "no secret is in the controller's log, in no form");
  for (const file of filesOf(home.directory).filter((file) => file !== trace))
    for (const secret of secrets)
      if (fs.readFileSync(file, "latin1").includes(secret)) assert.equal(fs.statSync(file).mode & 0o077, 0, file);
});

function filesOf(directory: string): readonly string[] {
  return fs
    .readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
}
