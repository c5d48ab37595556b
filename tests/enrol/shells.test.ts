// SPDX-License-Identifier: Apache-2.0
// The real script without root, as a person runs it: from a real controller, through a pipe, by six shells, and what becomes of
// each of those machines afterwards: run again, edited, damaged, updated, uninstalled.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import type { PairingCode } from "../../src/protocol/enrol-schema.ts";
import { cleanupOf, type Ending } from "../kit/cleanup.ts";
import { createHome, type Finished, type Home, type RunOptions } from "./home.ts";
import { hostilePath, whereIs } from "./hostile-path.ts";
import { createFleet } from "./kit.ts";

const fleet = await createFleet({ after });

/** What a run leaves, apart from the agent's own tree. */
const LEFT: Readonly<Record<string, string>> = {
  ".config": "d700",
  ".config/holdfast": "d700",
  ".config/holdfast/agent.env": "-600",
  ".local": "d700",
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

function assertLeft(home: Home): void {
  const seen = [...home.look()];
  const own = seen.filter(([file]) => !isOfTree(file)).map(([file, look]) => [file, look.split(" ")[0]] as const);
  assert.deepEqual(Object.fromEntries(own.toSorted()), LEFT);
  const odd = seen.filter(([file, look]) => isOfTree(file) && !/^(d755|-644|-755) /.test(look));
  assert.deepEqual(odd, [], "the agent is for everybody to read, and for nobody to write");
}

type Enrolled = { readonly home: Home; readonly pairing: PairingCode; readonly ran: Finished };

/** By this shell, with the tools of POSIX alone, each of which reads standard input where it may. */
async function enrolBy(t: Ending, shell: string, options: RunOptions = {}): Promise<Enrolled> {
  const home = createHome(t);
  const pairing = await fleet.pair(`by-${shell}`);
  const [program = "", ...applet] = shell.split("-");
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "tools-"));
  fs.chmodSync(directory, 0o755);
  cleanupOf(t).defer(() => fs.rmSync(directory, { recursive: true }));
  const tools = hostilePath(path.join(directory, "bin"));
  const by = ["env", `PATH=${tools}`, whereIs(program), ...applet].join(" ");
  const ran = await home.run(pairing, { ...options, shell: by });
  assert.equal(ran.code, 0, ran.all);
  assert.equal(ran.stderr, "");
  assert.match(ran.stdout, new RegExp(`paired as by-${shell} \\(node_`));
  assertLeft(home);
  return { home, pairing, ran };
}

test("D1, D4, D13: dash under umask 000; run again it changes nothing, and what was edited by hand survives (D8)", async (t) => {
  const { home, pairing } = await enrolBy(t, "dash", { before: "umask 000" });
  const settings = path.join(home.directory, ".config/holdfast/agent.env");
  const edited = '# mine\nHOLDFAST_LOG_LEVEL=debug\nNO_PROXY=10.0.0.0/8, $(touch /tmp/holdfast-was-run) box.lan\n"\n';
  fs.writeFileSync(settings, edited);
  const before = home.look();
  const again = await home.command(`umask 000; sh ${home.prefix}/bootstrap.sh </dev/null`, {
    HOLDFAST_PAIRING_CODE: pairing.code,
    no_proxy: "other.lan",
  });
  assert.equal(again.code, 0, again.all);
  assert.match(again.stdout, /paired already, as by-dash[\s\S]*Everything was as it should be\./);
  assert.deepEqual(home.look(), before);
  assert.equal(fs.existsSync("/tmp/holdfast-was-run"), false, "settings are read, never run");
});

test("D1, D4, D13: bash under umask 022; a newer agent replaces the old one, says so, and the pairing stays", async (t) => {
  const { home } = await enrolBy(t, "bash", { before: "umask 022" });
  const newer = await fleet.beside(t, { agent: newerAgent(t), version: "9.9.9" });
  const credential = fs.readFileSync(path.join(home.root, "node/credential"));
  const script = path.join(home.directory, "newer.sh");
  fs.writeFileSync(script, await textOf(`${newer.url}/v1/bootstrap.sh`));
  const updated = await home.command(`sh ${script} --controller ${newer.url}`);
  assert.equal(updated.code, 0, updated.all);
  assert.match(updated.stdout, /agent 9\.9\.9 in [\s\S]*paired already, as by-bash[\s\S]*Done\./);
  assert.doesNotMatch(updated.stdout, /runtime in/);
  assert.ok(fs.existsSync(path.join(home.prefix, "agent/NEWER")));
  assert.deepEqual(fs.readFileSync(path.join(home.root, "node/credential")), credential);
  assert.match(fs.readFileSync(path.join(home.root, "node/agent.json"), "utf8"), new RegExp(newer.url));
});

test("D1, D4, D13, D16: busybox under umask 027; uninstalled twice: what is ours goes, what is not stays, and the controller shows it", async (t) => {
  const { home } = await enrolBy(t, "busybox-ash", { before: "umask 027" });
  fs.writeFileSync(path.join(home.directory, ".config/mine"), "mine");
  fs.writeFileSync(path.join(home.root, "scenes.yaml"), "mine too");
  const planned = await home.again("--uninstall", "--dry-run");
  assert.match(planned.stdout, /To be removed: .*\nNothing was changed\./);
  assert.equal((await home.again("--uninstall")).code, 1, "there is no terminal to ask on");
  const script = fs.readFileSync(`${home.prefix}/bootstrap.sh`, "utf8");
  const first = await home.again("--uninstall", "--yes", "--purge");
  assert.equal(first.code, 0, first.all);
  const left = [
    ".config",
    ".config/mine",
    ".local",
    ".local/share",
    ".local/share/holdfast",
    ".local/share/holdfast/scenes.yaml",
  ];
  assert.deepEqual([...home.look().keys()].toSorted(), left);
  assert.match(
    first.stdout,
    /the controller was told that by-busybox-ash is uninstalled[\s\S]*holds more than a node's data and stays/,
  );
  const { items } = await fleet.admin.call("nodeList", {});
  const node = items.find(({ name }) => name === "by-busybox-ash");
  assert.ok(node?.leftAt, "the controller knows when it left");
  fs.writeFileSync(path.join(home.directory, "b.sh"), script);
  const second = await home.command("sh $HOME/b.sh --uninstall --yes --purge");
  assert.equal(second.code, 0, second.all);
});

test("D1, D4, D13, D31, D32: mksh under umask 077: no argv and no environment of any process that it starts holds a secret, and no file is born open", async (t) => {
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
  for (const file of filesOf(home.directory).filter((file) => file !== trace))
    for (const secret of secrets)
      if (fs.readFileSync(file, "latin1").includes(secret)) assert.equal(fs.statSync(file).mode & 0o077, 0, file);
});

test("D1, D4, D13, D18: yash under umask 022; with every file of ours damaged the command mends them, with a code as the pairing is gone, and uninstalling works", async (t) => {
  const { home } = await enrolBy(t, "yash", { before: "umask 022" });
  fs.chmodSync(`${home.prefix}/agent/package.json`, 0);
  for (const file of ["runtime/node", "bootstrap.sh", "agent/src/bin/holdfast.ts"])
    fs.writeFileSync(path.join(home.prefix, file), "damaged");
  for (const file of ["trust.pem", "agent.json", "credential"])
    fs.writeFileSync(path.join(home.root, "node", file), "damaged");
  const refused = await home.run(await fleet.pair("another"), { withCode: false });
  assert.equal(refused.code, 1, "its credential is gone, and there is no code");
  const mended = await home.run(await fleet.pair("by-yash", { takeOver: true }));
  assert.match(mended.stdout, /agent 0\S* in [\s\S]*runtime in [\s\S]*paired as by-yash/, mended.all);
  assertLeft(home);
  for (const file of filesOf(home.directory)) if (!isOfTree(file)) fs.writeFileSync(file, "damaged");
  const script = path.join(home.directory, "b.sh");
  fs.writeFileSync(script, await textOf(`${fleet.url}/v1/bootstrap.sh`));
  const gone = await home.command(`sh ${script} --uninstall --yes --purge`);
  assert.equal(gone.code, 0, gone.all);
  assert.deepEqual(filesOf(home.directory), [script]);
});

test("D1, D4, D13, D26: ksh93 under umask 000; a node that was retired meanwhile is told so within seconds, and nothing changes", async (t) => {
  const { home } = await enrolBy(t, "ksh93", { before: "umask 000" });
  const { items } = await fleet.admin.call("nodeList", {});
  const node = items.find(({ name }) => name === "by-ksh93");
  assert.ok(node);
  await fleet.admin.call("nodeRetire", { params: { nodeId: node.id } });
  const before = home.look();
  const refused = await home.again();
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /the credential is unknown, expired or revoked/);
  assert.deepEqual(home.look(), before);
});

function filesOf(directory: string): readonly string[] {
  return fs
    .readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
}

async function textOf(url: string): Promise<string> {
  return (await fetch(url)).text();
}

/** The same agent with one file more. */
function newerAgent(t: Ending): string {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "newer-"));
  cleanupOf(t).defer(() => fs.rmSync(directory, { recursive: true }));
  fs.mkdirSync(path.join(directory, "holdfast"));
  fs.writeFileSync(path.join(directory, "holdfast/NEWER"), "");
  const pack = 'gzip -dc "$1" > agent.tar && tar -rf agent.tar holdfast/NEWER && gzip -1 agent.tar';
  execFileSync("sh", ["-c", pack, "sh", fleet.files.agent], { cwd: directory });
  return path.join(directory, "agent.tar.gz");
}
