// SPDX-License-Identifier: Apache-2.0
// scenes.yaml: every fault at once, each with file, line and column; what is right becomes decided values.

import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { Failure } from "../std/errors.ts";
import { parseRegistry, readRegistry, type Registry } from "./registry.ts";

const env = { HOME: "/home/me", GPU: "0" };

function directoryOf(t: TestContext): string {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "registry-"));
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  return directory;
}

const parse = (text: string, directory = "/root"): Registry =>
  parseRegistry(text, path.join(directory, "scenes.yaml"), { env });

/** "line:column problem" of every fault. */
function faultsOf(text: string, directory = "/root"): readonly string[] {
  try {
    parse(text, directory);
  } catch (error) {
    assert.ok(error instanceof Failure && error.code === "scenes_invalid");
    return error.details.map(({ place, problem }) => `${place.replace(/^.*scenes\.yaml:?/, "")} ${problem}`);
  }
  return [];
}

const MODELS = `version: 1
models:
  red: { argv: [sleep, "1"], port: 9001, marker: red }
  blue: { argv: [sleep, "1"], port: 9002, marker: blue }
`;

test("all faults of a file are told at once, each with its line and column", () => {
  const faults = faultsOf(`version: 1
color: red
gateways:
  main: { listen: 9001 }
models:
  red: { argv: [], port: 70000, marker: red, start_timeout: soon }
  blue: { argv: [sleep], marker: blue, colour: 1 }
scenes:
  one: { models: [red, red] }
`);
  const expected = [
    /^2:1 "color" is not known here/,
    /^4:11 listen must be string/,
    /^6:10 argv must NOT have fewer than 1 items/,
    /^6:20 port must be <= 65535/,
    /^6:46 "soon" is not what start_timeout takes: such as 500ms, 90s, 10m/,
    /^7:3 blue lacks port/,
    /^7:40 "colour" is not known here/,
    /^9:10 models must NOT have duplicate items/,
  ];
  for (const pattern of expected)
    assert.ok(
      faults.some((fault) => pattern.test(fault)),
      `${pattern} in ${faults.join("\n")}`,
    );
  assert.equal(faults.length, expected.length, faults.join("\n"));
});

test("a missing model, a port twice, a gateway that is none and a marker that two models share are refused", () => {
  const faults = faultsOf(`version: 1
gateways:
  main: { listen: "127.0.0.1:9003" }
  again: { listen: "[::1]:9003" }
models:
  red: { argv: [sleep], port: 9001, marker: same }
  blue: { argv: [sleep], port: 9001, host: "::1", marker: same }
  green: { argv: [sleep], port: 9003, host: localhost, marker: green }
scenes:
  one: { models: [red, blue] }
  two: { models: [red, black], gateways: { side: red, main: green } }
`);
  assert.deepEqual(faults, [
    "7:51 blue has the marker of red: nobody could tell which of both answers",
    "10:24 blue has port 9001, which red has in the same scene",
    "11:24 there is no model black",
    "11:44 there is no gateway side",
    "11:55 scene two has no model green",
    "4:12 again has port 9003, which gateway main has",
    "8:27 9003 is the port of gateway again",
  ]);
});

test("tabs, keys twice, no mapping, a bomb of anchors and 10 MB are refused", (t) => {
  assert.match(faultsOf("version: 1\nmodels:\n\tred: {}\n")[0] ?? "", /^3:1 is not YAML: /);
  assert.match(
    faultsOf(`${MODELS}scenes:\n  a: { models: [red] }\n  a: { models: [blue] }\n`)[0] ?? "",
    /^7:3 is not YAML: Map keys must be unique/,
  );
  assert.deepEqual(faultsOf("- one"), ["1:1 the file must be object"]);
  assert.deepEqual(faultsOf(""), ["1:1 the file must be object"]);
  const bomb = ["a: &a [x,x,x,x,x,x,x,x,x]"];
  for (let index = 1; index < 9; index++)
    bomb.push(
      `a${index}: &a${index} [${Array(9)
        .fill(`*a${index === 1 ? "" : index - 1}`)
        .join()}]`,
    );
  assert.match(faultsOf(bomb.join("\n"))[0] ?? "", /cannot be read: .*alias/i);
  const directory = directoryOf(t);
  fs.writeFileSync(path.join(directory, "scenes.yaml"), "#".repeat(10_000_000));
  assert.throws(() => readRegistry(directory, { env }), { code: "scenes_invalid" });
  assert.throws(() => readRegistry(path.join(directory, "none"), { env }), { code: "scenes_missing" });
});

test("programs, directories and weights that are not there are told before anything starts", (t) => {
  const directory = directoryOf(t);
  fs.writeFileSync(path.join(directory, "empty.gguf"), "");
  fs.writeFileSync(path.join(directory, "wrong.gguf"), "hello");
  fs.writeFileSync(path.join(directory, "right.gguf"), "GGUF....");
  fs.writeFileSync(path.join(directory, "llama-server"), "", { mode: 0o755 });
  const faults = faultsOf(
    `version: 1
models:
  a: { argv: [no-such-program], port: 9001, marker: a }
  b: { argv: [sleep, "${directory}/none.gguf", "--x=${directory}/empty.gguf", "${directory}/wrong.gguf"], port: 9002, marker: b }
  c: { argv: [./llama-server, --port, "1"], cwd: ., port: 9003, marker: c }
  d: { argv: [./llama-server, -m, right.gguf], cwd: ., port: 9004, marker: d }
  e: { argv: [sleep], cwd: nowhere, port: 9005, marker: e }
scenes:
  one: { models: [a] }
`,
    directory,
  );
  const problems = faults.map((fault) => fault.replaceAll(directory, "DIR"));
  assert.deepEqual(
    problems.map((problem) => problem.replace(/ in \/.*/, "")),
    [
      "3:15 no program no-such-program",
      "4:22 DIR/none.gguf cannot be read",
      "4:${".slice(0, 2) + `${faults[2]?.split(":")[1]?.split(" ")[0]} DIR/empty.gguf is empty`,
      problems[3] ?? "",
      "5:8 llama-server is given no model (-m FILE or -hf REPO)",
      "7:23 DIR/nowhere is not a directory",
    ],
  );
  assert.match(problems[3] ?? "", /wrong\.gguf is no GGUF file/);
});

test("variables expand by stated rules, secrets reach the environment only, and what two models differ in shows in their spec", (t) => {
  const directory = directoryOf(t);
  const secret = path.join(directory, "secrets.env");
  fs.writeFileSync(secret, "# keys\nexport TOKEN='t 1'\nOTHER=2\n", { mode: 0o600 });
  const text = (port: number, more = "") => `version: 1
env_file: secrets.env
models:
  red: { argv: [sleep, "\${PORT}", "$$\${MODEL}", ~/x, "\${GPU}"], env: { A: "\${TOKEN}-\${GPU}" }, secrets: [TOKEN], port: ${port}, marker: red ${more}}
scenes:
  one: { models: [red] }
`;
  const red = parse(text(9001), directory).models.get("red");
  assert.deepEqual(red?.argv, ["sleep", "9001", "$red", "/home/me/x", "0"]);
  assert.deepEqual(red.environment, { A: "t 1-0", TOKEN: "t 1" });
  assert.equal(parse(text(9001), directory).models.get("red")?.spec, red.spec);
  for (const other of [text(9002), text(9001, ", health: /x"), text(9001).replace("$$", "")])
    assert.notEqual(parse(other, directory).models.get("red")?.spec, red.spec);
  assert.equal(parse(text(9001, ", memory: 3GiB, stop_grace: 1s"), directory).models.get("red")?.spec, red.spec);
  assert.match(faultsOf(text(9001).replace("~/x", '"${OTHER}"'), directory)[0] ?? "", /OTHER is a secret of env_file/);
  assert.match(faultsOf(text(9001).replace("~/x", '"${NOPE}"'), directory)[0] ?? "", /\$\{NOPE\} is not set/);
  assert.match(faultsOf(text(9001).replace("[TOKEN]", "[NONE]"), directory)[0] ?? "", /env_file has no NONE/);
  fs.chmodSync(secret, 0o644);
  assert.match(faultsOf(text(9001), directory)[0] ?? "", /^2:1 .*can be read by others \(mode 644\): chmod 600/);
});

test("the only model of a scene is behind the only gateway unless the file says otherwise", () => {
  const text = `${MODELS}gateways: { main: { listen: "127.0.0.1:8011" } }\nscenes:\n  one: { models: [red] }\n  two: { models: [red, blue] }\n`;
  const { scenes } = parse(text);
  assert.deepEqual([...(scenes.get("one")?.gateways ?? [])], [["main", "red"]]);
  assert.deepEqual([...(scenes.get("two")?.gateways ?? [])], []);
});
