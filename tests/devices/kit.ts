// SPDX-License-Identifier: Apache-2.0
// A recorded machine as a directory: what its /sys, /proc, /dev and /etc showed, and its vendors' tools as scripts that answer
// what the real ones answered. Discovery runs on it for real: files are read, nodes opened, tools started.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import type { Opener } from "../../src/devices/access.ts";
import type { Device } from "../../src/devices/device.ts";
import { scanGpus, type Surroundings } from "../../src/devices/scan.ts";

export const opener: Opener = [
  process.execPath,
  fileURLToPath(new URL("../../src/bin/open-nodes.js", import.meta.url)),
];

export type Recorded = {
  /** Text by path, such as "sys/bus/pci/devices/0000:01:00.0/class". */
  readonly files?: Readonly<Record<string, string>>;
  /** Where links lead, relative to where they are. */
  readonly links?: Readonly<Record<string, string>>;
  /** Nodes below /dev; plain files, which open as nodes do. */
  readonly nodes?: readonly string[];
  /** What a tool does, in sh without any other program than those of /bin. */
  readonly tools?: Readonly<Record<string, string>>;
  readonly memoryKibibytes?: number;
};

/** A tool that prints this and ends well. */
export const prints = (text: string): string => `/bin/cat <<'END'\n${text}\nEND`;

export type Machine = { readonly directory: string; readonly around: Surroundings };

export function build(t: TestContext, recorded: Recorded): Machine {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "machine-"));
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }));
  fs.chmodSync(directory, 0o755);
  const put = (name: string, text: string, mode = 0o644): void => {
    const file = path.join(directory, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    // Renamed into place: a script that is still open for writing cannot be started.
    fs.writeFileSync(`${file}.new`, text, { mode });
    fs.renameSync(`${file}.new`, file);
  };
  const kibibytes = recorded.memoryKibibytes ?? 65_536_000;
  put("proc/meminfo", `MemTotal: ${kibibytes} kB\nMemAvailable: ${kibibytes - 4_000_000} kB\n`);
  fs.mkdirSync(path.join(directory, "bin"), { recursive: true });
  for (const [name, text] of Object.entries(recorded.files ?? {})) put(name, `${text}\n`);
  for (const node of recorded.nodes ?? []) put(`dev/${node}`, "");
  for (const [name, script] of Object.entries(recorded.tools ?? {}))
    put(`bin/${name}`, `#!/bin/sh\n${script}\n`, 0o755);
  for (const [name, target] of Object.entries(recorded.links ?? {})) {
    const link = path.join(directory, name);
    fs.mkdirSync(path.dirname(link), { recursive: true });
    fs.mkdirSync(path.resolve(path.dirname(link), target), { recursive: true });
    fs.symlinkSync(target, link);
  }
  const roots = {
    sys: path.join(directory, "sys"),
    proc: path.join(directory, "proc"),
    dev: path.join(directory, "dev"),
    etc: path.join(directory, "etc"),
  };
  const tools = { searchPath: path.join(directory, "bin"), deadlineMs: 20_000 };
  return { directory, around: { opener, account: "holdfast", roots, tools } };
}

/** What discovery finds on a recorded machine; deadlineMs: of the tools, for those that hang. */
export function scan(t: TestContext, recorded: Recorded, deadlineMs = 20_000): Promise<readonly Device[]> {
  const { around } = build(t, recorded);
  return scanGpus({ ...around, tools: { ...around.tools, deadlineMs } });
}

type Card = {
  readonly vendor: string;
  readonly device: string;
  readonly driver?: string;
  readonly files?: Readonly<Record<string, string>>;
};

/** A display adapter on PCI, as /sys shows it. */
export function pci(
  address: string,
  { vendor, device, driver, files = {} }: Card,
): Required<Pick<Recorded, "files" | "links">> {
  const place = `sys/bus/pci/devices/${address}`;
  const own = Object.entries(files).map(([name, text]) => [`${place}/${name}`, text] as const);
  return {
    files: {
      [`${place}/class`]: "0x030000",
      [`${place}/vendor`]: vendor,
      [`${place}/device`]: device,
      ...Object.fromEntries(own),
    },
    links: driver === undefined ? {} : { [`${place}/driver`]: `../../drivers/${driver}` },
  };
}

/** An NVIDIA card with its driver, its minor number in the driver's own order, and its node. */
export function nvidiaCard(
  address: string,
  model: string,
  minor: number,
): Required<Pick<Recorded, "files" | "links" | "nodes">> {
  const card = pci(address, { vendor: "0x10de", device: "0x2684", driver: "nvidia" });
  const information = `Model: \t\t ${model}\nIRQ:   \t\t 45\nGPU UUID: \t GPU-00000000-0000-0000-0000-00000000000${minor}\nDevice Minor: \t ${minor}`;
  return {
    files: { ...card.files, [`proc/driver/nvidia/gpus/${address}/information`]: information },
    links: card.links,
    nodes: [`nvidia${minor}`, "nvidiactl", "nvidia-uvm"],
  };
}

/** Several parts as one machine. */
export function together(...parts: readonly Recorded[]): Recorded {
  return {
    files: Object.fromEntries(parts.flatMap((part) => Object.entries(part.files ?? {}))),
    links: Object.fromEntries(parts.flatMap((part) => Object.entries(part.links ?? {}))),
    tools: Object.fromEntries(parts.flatMap((part) => Object.entries(part.tools ?? {}))),
    nodes: [...new Set(parts.flatMap((part) => part.nodes ?? []))],
    memoryKibibytes: parts.findLast((part) => part.memoryKibibytes !== undefined)?.memoryKibibytes ?? 65_536_000,
  };
}
