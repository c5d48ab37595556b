// SPDX-License-Identifier: Apache-2.0
// launch list | show | stop: what was started on this machine, from its launch directories, without agent or controller.

import { type Command, Option } from "commander";
import { Failure } from "../std/errors.ts";
import { example, printing, type Tree } from "./command.ts";
import type { LaunchView } from "./programs.ts";
import { ago, commandLine, fields, table, visible } from "./table.ts";
import { printJson, type Terminal } from "./terminal.ts";

type Options = { readonly root?: string; readonly json?: boolean; readonly grace?: number };

const root = () => new Option("--root <directory>", "the root whose node is meant (default: HOLDFAST_ROOT)");

export function addLaunchCommands(program: Command, { terminal, programs }: Tree): void {
  const launch = program.command("launch").description("What was started on this machine");
  example(launch, "holdfast launch list");

  const list = printing(launch.command("list"))
    .description("List every launch that has a directory, running or not")
    .addOption(root())
    .action(async ({ json, ...options }: Options) => {
      const launches = await programs.launchList(options);
      if (json === true) return printJson(terminal, launches);
      terminal.stdout.write(launches.length === 0 ? "No launch on this machine.\n" : launchTable(terminal, launches));
    });
  example(list, "holdfast launch list", "holdfast launch list --json");

  const show = printing(launch.command("show"))
    .argument("<launch>", "id, as launch list shows it")
    .description("Show one launch: what ran, its limits and cgroup, how it ended, what still runs")
    .addOption(root())
    .action(async (launchId: string, { json, ...options }: Options) => {
      const found = await programs.launchShow({ ...options, launchId });
      if (json === true) return printJson(terminal, found);
      terminal.stdout.write(fields(rowsOf(found)));
    });
  example(show, "holdfast launch show attempt-job_01jqz8m3v5w6x7y8z9a0b1c2d3-1");

  const stop = printing(launch.command("stop"))
    .argument("<launch>", "id, as launch list shows it")
    .description("Stop one launch, and say so only when nothing of it runs any more")
    .addOption(root())
    .option("--grace <seconds>", "between SIGTERM and SIGKILL (default: 5)", seconds)
    .action(async (launchId: string, { json, grace, ...options }: Options) => {
      const graceMs = grace === undefined ? {} : { graceMs: grace * 1000 };
      const stopped = await programs.launchStop({ ...options, ...graceMs, launchId });
      if (json === true) return printJson(terminal, stopped);
      terminal.stdout.write(`${stopped.launchId}: ${stopped.text}\n`);
    });
  example(stop, "holdfast launch stop attempt-job_01jqz8m3v5w6x7y8z9a0b1c2d3-1 --grace 30");
}

function seconds(text: string): number {
  if (!/^\d{1,5}(\.\d{1,3})?$/.test(text)) throw new Failure("usage", `--grace takes seconds, not ${text}`);
  return Number(text);
}

function launchTable(terminal: Terminal, launches: readonly LaunchView[]): string {
  const now = terminal.clock.now();
  return table(
    ["LAUNCH", "STATE", "PID", "SINCE", "END", "FOR"],
    launches.map(({ launchId, state, pid, since, end, purpose }) => [
      launchId,
      state,
      pid === null ? "" : String(pid),
      since === null ? "" : ago(since, now),
      visible(end ?? ""),
      visible(purpose ?? ""),
    ]),
  );
}

function rowsOf(launch: LaunchView): readonly (readonly [string, string | null])[] {
  const { limits, exit, survivors } = launch;
  const bytes = exit === null ? null : `${exit.stdoutBytes} and ${exit.stderrBytes} bytes`;
  return [
    ["launch", launch.launchId],
    ["for", launch.purpose],
    ["state", launch.state],
    ["since", launch.since],
    ["end", launch.end === null ? null : visible(launch.end)],
    ["problem", launch.problem],
    ["shim", launch.pid === null ? null : `pid ${launch.pid}`],
    ["still runs", survivors.map(({ pid, name }) => `${visible(name)} (pid ${pid})`).join(", ")],
    ["command", launch.argv === null ? null : visible(commandLine(launch.argv))],
    ["in", launch.workingDirectory === null ? null : visible(launch.workingDirectory)],
    [
      "limits",
      Object.entries(limits ?? {})
        .map(([name, limit]) => `${name} ${limit}`)
        .join(", "),
    ],
    ["cgroup", launch.cgroup],
    ["output", bytes],
    ["stdout sha256", exit?.stdoutSha256 ?? null],
    ["stderr sha256", exit?.stderrSha256 ?? null],
    ["directory", launch.directory],
  ];
}
