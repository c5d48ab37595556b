// SPDX-License-Identifier: Apache-2.0
// The protection of devices on a real systemd with a real udevd and real events of the kernel. Every check is proved by a
// mutation: what it would have to notice is done, and it notices. The tests are a story: each goes on where the last one ended.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import type { DevicesSeen } from "../../src/cli/programs.ts";
import type { Guarded } from "../../src/devices/protection.ts";
import { protectionFiles } from "../../src/devices/protection-text.ts";
import type { Check } from "../../src/protocol/access-schema.ts";
import { until } from "../kit/until.ts";
import { bootGpuMachine, type GpuMachine, NODES } from "./gpu-machine.ts";

let machine: GpuMachine;
const endings: (() => Promise<void> | void)[] = [];
before(async () => {
  machine = await bootGpuMachine({ after: (end) => void endings.push(end) });
});
after(async () => {
  for (const end of endings) await end();
});
const holdfast: GpuMachine["holdfast"] = (argv, as) => machine.holdfast(argv, as);
const rights = (node: string): string => machine.rights(node);
const inside = (file: string): string => path.join(machine.system.root, file);
const RULES = "/etc/udev/rules.d/72-holdfast-devices.rules";
const HEAL = "holdfast-devices-heal.path";
const HEALERS = [HEAL, "holdfast-devices-heal.timer"];
const SHUT = "660 root:video";

const devices = (...argv: readonly string[]): ReturnType<typeof holdfast> => holdfast(["devices", ...argv]);
const protect = (...argv: readonly string[]): string => {
  const { code, stdout, stderr } = devices("protect", ...argv);
  assert.equal(code, 0, stderr);
  return stdout;
};
/** What the check finds wrong, a line each. */
const faults = (wish: Readonly<Record<string, readonly string[]>> = {}): readonly string[] =>
  (machine.look("check", wish) as readonly Check[])
    .filter(({ state }) => state === "fault")
    .map(({ name, text }) => `${name}: ${text}`);
const status = (as?: string): DevicesSeen => machine.look("status", {}, as) as DevicesSeen;
const all = (): readonly string[] => NODES.map((node) => rights(node));
/** The watch would mend what a test breaks. */
const unwatched = (work: () => void): void => {
  // The service as well: after it healed something it looks again for some seconds.
  machine.system.ok("systemctl", "stop", ...HEALERS, "holdfast-devices-heal.service");
  try {
    work();
  } finally {
    machine.system.ok("systemctl", "start", ...HEALERS);
  }
};

test("before a protection everybody gets in, and the check fails with a code of its own", () => {
  assert.deepEqual(
    all(),
    NODES.map(() => "666 root:root"),
  );
  const { code, stdout } = devices("check");
  assert.equal(code, 116);
  assert.match(stdout, /✗ protection +this machine's devices are not protected/);
});

test("a dry run prints every file whole and each command, and changes nothing", () => {
  const { code, stdout } = devices("protect", "--dry-run");
  assert.equal(code, 0);
  for (const part of [
    "#!/bin/sh",
    `ACTION=="bind", SUBSYSTEM=="pci", KERNEL=="${machine.address}", ATTR{vendor}=="0x10de"`,
    "options nvidia NVreg_ModifyDeviceFiles=1 NVreg_DeviceFileUID=0 NVreg_DeviceFileGID=44 NVreg_DeviceFileMode=0660",
    "PathChanged=/dev/nvidia-uvm",
    "usermod -aG video holdfast",
    "systemctl enable",
    "Nothing was changed.",
  ])
    assert.ok(stdout.includes(part), part);
  assert.equal(fs.existsSync(inside(RULES)), false);
  assert.equal(fs.existsSync(inside("/etc/holdfast")), false);
  assert.deepEqual(
    all(),
    NODES.map(() => "666 root:root"),
  );
  assert.equal(machine.system.ok("id", "-nG", "holdfast").trim(), "holdfast");
});

test("what would let in or lock out somebody who was not named is refused as a whole, with every reason", () => {
  machine.system.ok("usermod", "-aG", "video", "stranger");
  machine.system.ok(
    "sh",
    "-c",
    "mkdir -p /run/systemd/sessions; printf 'USER=bob\\nCLASS=user\\nTYPE=wayland\\nSEAT=seat0\\n' >/run/systemd/sessions/9",
  );
  const { code, stderr } = devices("protect", "--account", "holdfast", "--account", "carol", "--deny-unit", "no unit");
  assert.equal(code, 114);
  for (const reason of [
    /--account carol: there is no such account/,
    /group video: stranger is in it and was not declared/,
    /bob sits at this machine's desktop/,
    /--deny-unit no unit/,
  ])
    assert.match(stderr, reason);
  assert.equal(fs.existsSync(inside("/etc/holdfast")), false);
  machine.system.ok("gpasswd", "-d", "stranger", "video");
  machine.system.ok("rm", "/run/systemd/sessions/9");
  machine.system.ok("sh", "-c", `mkdir -p ${path.dirname(RULES)}; echo '# mine' >${RULES}`);
  const foreign = devices("protect");
  assert.equal(foreign.code, 114);
  assert.match(foreign.stderr, new RegExp(`${RULES}: it was not written by Holdfast`));
  assert.equal(fs.readFileSync(inside(RULES), "utf8"), "# mine\n");
  machine.system.ok("rm", RULES);
});

test("a protection gives every node to the group, says what it changed, and holds; a second one changes nothing", () => {
  const said = protect();
  for (const part of ["puts holdfast into video", `wrote ${RULES}`, "/dev/nvidia0 is 660 0:44, was 666 0:0"])
    assert.ok(said.includes(part), said);
  assert.deepEqual(
    all(),
    NODES.map(() => SHUT),
  );
  assert.deepEqual(faults(), []);
  const shown = devices("check").stdout;
  for (const line of [
    /account holdfast +opens 4 nodes/,
    /account holdfast +has no other group than video/,
    /denied nobody +is refused at 4 nodes/,
  ])
    assert.match(shown, line);
  assert.match(protect(), /Nothing had to be changed/);
  assert.equal(status().protection, "whole");
});

test("udev and systemd take what is written, also for cards of other makers", () => {
  const others: readonly Guarded[] = [
    { address: "0000:03:00.0", vendor: "amd", nodes: ["kfd", "dri/renderD128"], isJetson: false },
    { address: "0000:00:02.0", vendor: "intel", nodes: ["dri/renderD129"], isJetson: false },
  ];
  const wanted = { group: "render", devices: others, deniedUnits: ["web.service"], isDesktopLocked: true };
  const rules = protectionFiles(wanted, 108).find((file) => file.path === RULES)?.text ?? "";
  fs.writeFileSync(inside("/etc/udev/rules.d/73-others.rules"), rules);
  const { stderr } = machine.system.run(["udevadm", "test", `/sys/bus/pci/devices/${machine.address}`]);
  assert.match(stderr, /Reading rules file: \/etc\/udev\/rules\.d\/73-others\.rules/);
  assert.doesNotMatch(stderr, /7[23]-(others|holdfast-devices)\.rules:\d+/, "udev names a line that it does not take");
  machine.system.ok("rm", "/etc/udev/rules.d/73-others.rules");
  const names = ["service", "heal.service", "heal.path", "heal.timer"];
  const units = names.map((name) => `/etc/systemd/system/holdfast-devices${name === "service" ? "." : "-"}${name}`);
  const verified = machine.system.run(["systemd-analyze", "verify", ...units]);
  assert.equal(verified.code, 0);
  assert.doesNotMatch(verified.stderr, /holdfast-devices/);
});

test("only the bind event of the driver, and nothing else of udev, brings the rights back; without the rule they stay open", () => {
  unwatched(() => {
    machine.resetNodes();
    machine.system.ok("udevadm", "trigger", "--action=add", `/sys/bus/pci/devices/${machine.address}`);
    machine.system.ok("udevadm", "settle");
    assert.deepEqual(
      all(),
      NODES.map(() => "666 root:root"),
      "an add event is not what is hooked",
    );
    machine.bind();
    assert.deepEqual(
      all(),
      NODES.map(() => SHUT),
    );
    machine.system.ok("sh", "-c", `mv ${RULES} /run/rules; udevadm control --reload`);
    machine.resetNodes();
    machine.bind();
    assert.deepEqual(
      all(),
      NODES.map(() => "666 root:root"),
      "the rule does it",
    );
    assert.match(faults().join("\n"), new RegExp(`files: ${RULES} is missing`));
    machine.system.ok("sh", "-c", `mv /run/rules ${RULES}; udevadm control --reload`);
    machine.bind();
  });
  assert.deepEqual(faults(), []);
});

test("a rule that was changed by hand is a fault, and the next protection mends it", () => {
  machine.system.ok("sed", "-i", "s/0x10de/0x1002/", RULES);
  assert.match(faults().join("\n"), /72-holdfast-devices.rules is not what this machine's devices need/);
  assert.match(protect(), new RegExp(`wrote ${RULES}`));
  assert.match(machine.system.ok("cat", RULES), /0x10de/);
});

test("an account that runs the setuid nvidia-modprobe opens the nodes to all; the watch heals and counts it", async () => {
  const before = status().healed;
  assert.equal(machine.system.run(["nvidia-modprobe", "-c", "0", "-u"], { as: "stranger" }).code, 0);
  await until("the nodes are the group's again", () => all().every((one) => one === SHUT));
  await until("it is counted", () => status().healed > before);
  assert.match(devices("status").stdout, /healed +\d+ times since boot/);
  unwatched(() => {
    machine.system.ok("nvidia-modprobe", "-c", "0");
    const found = faults().join("\n");
    assert.match(found, new RegExp(`watch: ${HEAL} is inactive`));
    assert.match(found, /denied nobody: gets to \/dev\/nvidia0/);
    assert.match(found, /nodes: \/dev\/nvidia0 is 666 0:0, not 660 0:44/);
    machine.system.ok("systemctl", "start", "holdfast-devices.service");
    assert.equal(rights("/dev/nvidia0"), SHUT, "boot and wake-up run the same hook");
  });
  assert.match(
    machine.system.property("holdfast-devices.service", "WantedBy"),
    /multi-user\.target.*suspend\.target|suspend\.target.*multi-user\.target/,
  );
});

test("D45: nodes that are missing after boot are told, made by the hook with the right mode, and then ok", () => {
  unwatched(() => {
    machine.system.ok("rm", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools");
    const [device] = status("holdfast").devices;
    assert.equal(device?.state, "node-missing");
    assert.match(String(device?.reason), /\/dev\/nvidia-uvm does not exist/);
    assert.match(faults().join("\n"), /nodes: \/dev\/nvidia-uvm does not exist/);
    machine.bind();
    assert.deepEqual(
      all(),
      NODES.map(() => SHUT),
    );
  });
  assert.deepEqual(faults(), []);
});

test("slices of MIG become the group's; what configures them stays root's alone", () => {
  machine.system.ok(
    "sh",
    "-euc",
    "mkdir /dev/nvidia-caps; mknod -m 400 /dev/nvidia-caps/nvidia-cap1 c 1 3; mknod -m 444 /dev/nvidia-caps/nvidia-cap12 c 1 3",
  );
  machine.bind();
  assert.deepEqual(
    [rights("/dev/nvidia-caps/nvidia-cap1"), rights("/dev/nvidia-caps/nvidia-cap12")],
    ["400 root:root", "440 root:video"],
  );
});

test("D43: an account that lacks the group reads which node, and exactly which group is missing", () => {
  const [device] = status("stranger").devices;
  assert.equal(device?.state, "unreadable");
  assert.match(
    String(device?.reason),
    /^stranger may not open \/dev\/nvidia0 \(mode 0660, group video\): it lacks the group video; usermod -aG video stranger/,
  );
  const [own] = status("holdfast").devices;
  assert.equal(own?.state, "tool-missing", "the nodes open, and there is no nvidia-smi here");
  machine.system.ok("chmod", "600", "/dev/nvidiactl");
  const filtered = ["systemd-run", "--quiet", "--pipe", "--wait", "-p", "User=holdfast", "-p", "DevicePolicy=closed"];
  const inFilter = machine.system.ok(...filtered, ...machine.lookAt("status"));
  assert.match(inFilter, /holdfast may not open \/dev\/nvidia0: the service it runs in forbids devices/);
  unwatched(() => {
    machine.system.ok("chmod", "600", "/dev/nvidiactl");
    assert.match(
      String(status("holdfast").devices[0]?.reason),
      /\/dev\/nvidiactl \(mode 0600, group video\): no group may/,
    );
    machine.system.ok("chmod", "660", "/dev/nvidiactl");
  });
});

test("D46: access by an ACL alone is access", () => {
  machine.system.ok("setfacl", "-m", "u:stranger:rw", ...NODES);
  assert.equal(status("stranger").devices[0]?.state, "tool-missing");
  assert.match(faults({ denied: ["stranger"] }).join("\n"), /denied stranger: gets to \/dev\/nvidia0/);
  machine.system.ok("setfacl", "-b", ...NODES);
  assert.deepEqual(faults({ denied: ["stranger"] }), []);
});

test("somebody who was put into the group, an agent with another group, and an account that is not there are faults", () => {
  machine.system.ok("usermod", "-aG", "video", "stranger");
  machine.system.ok("usermod", "-aG", "render", "holdfast");
  const declared = faults();
  assert.deepEqual(declared, [
    "group: stranger is in video and was not declared",
    "account holdfast: is in render as well, which it does not need",
  ]);
  machine.system.ok("gpasswd", "-d", "stranger", "video");
  machine.system.ok("gpasswd", "-d", "holdfast", "render");
  const wrong = faults({ accounts: ["server", "nemo"], denied: ["nemo", "holdfast"] }).join("\n");
  assert.match(wrong, /account server: may not open \/dev\/nvidia0 \(EACCES\)/);
  assert.match(wrong, /account nemo: there is no such account/);
  assert.match(wrong, /denied nemo: there is no such account, so nothing is proved/);
  assert.match(wrong, /denied holdfast: is declared/);
  const asAlice = holdfast(["devices", "check"], "stranger");
  assert.equal(asAlice.code, 64, "as anybody else than root it proves nothing");
});

test("the account of the controller is refused; where it is the agent's own, its unit gets no devices", () => {
  const unit = (text: string): void =>
    void machine.system.ok(
      "sh",
      "-c",
      `printf '[Service]\\nExecStart=/bin/true\\n${text}' >/etc/systemd/system/holdfast-controller.service; systemctl daemon-reload`,
    );
  unit("User=holdfast\\n");
  assert.match(faults().join("\n"), /denied holdfast: is declared: it cannot be refused/);
  unit("User=holdfast\\nPrivateDevices=yes\\n");
  assert.deepEqual(faults(), []);
  unit("User=stranger\\n");
  assert.match(devices("check").stdout, /denied stranger +is refused at 4 nodes/);
});

test("D44: a service with an open filter keeps its device over reloads of systemd; a denied one has none even at 0666", () => {
  const loop =
    "while :; do for node in /dev/nvidia0 /dev/nvidia-uvm; do if (exec 3<>$node) 2>/dev/null; then echo open >>/run/$1/seen; else echo shut >>/run/$1/seen; fi; done; sleep 0.05; done";
  const service = (name: string, text: string): void =>
    fs.writeFileSync(
      inside(`/etc/systemd/system/${name}.service`),
      `[Service]\nRuntimeDirectory=${name}\nExecStart=/bin/sh -c '${loop}' sh ${name}\n${text}`,
    );
  service(
    "served",
    "User=holdfast\nSupplementaryGroups=video\nDevicePolicy=closed\nDeviceAllow=/dev/nvidia0 rw\nDeviceAllow=/dev/nvidia-uvm rw\n",
  );
  service("web", "");
  assert.match(
    protect("--deny-unit", "web.service"),
    /wrote \/etc\/systemd\/system\/web.service.d\/50-holdfast-devices.conf/,
  );
  machine.system.ok("systemctl", "start", "served", "web");
  const seen = (name: string): readonly string[] =>
    machine.system
      .run(["cat", `/run/${name}/seen`])
      .stdout.trim()
      .split("\n");
  unwatched(() => {
    // Not made anew: for a moment they would not be there.
    machine.system.ok("chmod", "666", ...NODES);
    for (let round = 0; round < 10; round++) machine.system.ok("systemctl", "daemon-reload");
    machine.bind();
  });
  return until("both looked often", () => seen("served").length > 20 && seen("web").length > 20).then(() => {
    assert.deepEqual([...new Set(seen("served"))], ["open"]);
    assert.deepEqual([...new Set(seen("web"))], ["shut"]);
    machine.system.ok("systemctl", "stop", "served", "web");
  });
});

test("with nvidia-modprobe locked nobody else runs it; that, too, is taken back", () => {
  assert.match(devices("check").stdout, /! nvidia-modprobe +everybody may run/);
  protect("--lock-modprobe", "--account", "holdfast", "--account", "server");
  assert.equal(rights("/usr/bin/nvidia-modprobe"), "4750 root:video");
  // By a shell: setpriv itself still has root's capabilities when it starts a program.
  const { code, stderr } = machine.system.run(["sh", "-c", "exec nvidia-modprobe -u"], { as: "stranger" });
  assert.notEqual(code, 0);
  assert.match(stderr, /not found|[Pp]ermission denied/);
  assert.match(machine.system.ok("dpkg-statoverride", "--list", "/usr/bin/nvidia-modprobe"), /root video 4750/);
  assert.deepEqual(faults(), []);
  assert.match(devices("check").stdout, /account server +opens 4 nodes/);
});

test("a protection that is killed in the middle is told, completed by the next one, and undone by unprotect", () => {
  const killer = "/usr/local/bin/systemctl";
  fs.writeFileSync(inside(killer), '#!/bin/sh\n[ "$1" = enable ] && kill -9 "$PPID"\nexec /usr/bin/systemctl "$@"\n');
  const kill = (unit: string): void => {
    machine.system.ok("chmod", "755", killer);
    const { code, stdout } = devices("protect", "--deny-unit", unit);
    assert.notEqual(code, 0);
    assert.equal(stdout, "");
    machine.system.ok("chmod", "644", killer);
  };
  kill("one.service");
  assert.match(devices("status").stdout, /cut off before its end/);
  assert.match(faults().join("\n"), /protection: it was cut off before its end/);
  protect();
  assert.deepEqual(faults(), []);
  kill("two.service");
  assert.equal(status().protection, "half-done");
  const dropIn = (name: string): boolean => fs.existsSync(inside(`/etc/systemd/system/${name}.service.d`));
  assert.deepEqual([dropIn("one"), dropIn("two"), dropIn("web")], [false, true, false]);
  fs.writeFileSync(inside("/etc/udev/rules.d/71-mine.rules"), "# mine\n");
  const { code, stdout } = devices("unprotect");
  assert.equal(code, 0);
  assert.match(stdout, /The protection is taken back/);
  assert.deepEqual(
    all(),
    NODES.map(() => "666 root:root"),
  );
  assert.equal(rights("/usr/bin/nvidia-modprobe"), "4755 root:root");
  for (const account of ["holdfast", "server"]) assert.equal(machine.system.ok("id", "-nG", account).trim(), account);
  const left = machine.system.run(["grep", "-rl", "Written by: holdfast", "/etc", "/usr/local/lib"]).stdout;
  assert.equal(left, "");
  assert.equal(fs.existsSync(inside("/etc/holdfast")), false);
  assert.equal(fs.existsSync(inside("/etc/udev/rules.d/71-mine.rules")), true);
  assert.notEqual(machine.system.run(["systemctl", "is-active", HEAL]).code, 0);
  assert.match(devices("unprotect").stdout, /There was no protection/);
});

test("a group that is not there is made, and goes with the protection", () => {
  protect("--group", "holdfast-gpu");
  assert.equal(rights("/dev/nvidia0"), "660 root:holdfast-gpu");
  assert.match(fs.readFileSync(inside("/etc/modprobe.d/holdfast-devices.conf"), "utf8"), /NVreg_DeviceFileGID=\d+ /);
  assert.deepEqual(faults(), []);
  assert.equal(devices("protect", "--group", "video").code, 114, "another group needs an unprotect first");
  assert.match(devices("unprotect").stdout, /removed the group holdfast-gpu/);
});
