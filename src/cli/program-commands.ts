// SPDX-License-Identifier: Apache-2.0
// up, controller, agent: the programs that stay. Only their options are read here.

import { type Command, Option } from "commander";
import { example, type Tree } from "./command.ts";
import type { Programs } from "./programs.ts";
import { parseDuration, parseEach, parseSize, parseWhole } from "./units.ts";

type OptionsOf<Name extends "up" | "controller" | "agent"> = Parameters<Programs[Name]>[0];

const root = () => new Option("--root <directory>", "where everything of this machine lives (default: HOLDFAST_ROOT)");
const listen = () =>
  new Option("--listen <host:port>", "address of the controller (default: HOLDFAST_LISTEN, else 127.0.0.1:7440)");

const tls = () =>
  new Option(
    "--tls <how>",
    "fleet: a certificate of the fleet's own authority; CERTIFICATE,KEY: given files; off (default: fleet, and off where only this machine can connect)",
  );
const url = () =>
  new Option("--url <url>", "address that nodes are told (default: HOLDFAST_PUBLIC_URL, else this machine's name)");

const jobAccount = () =>
  new Option("--job-account <name>", "run jobs as this account, which systemd starts (holdfast unit launch)");
const launchSocket = () =>
  new Option(
    "--launch-socket <file>",
    "have systemd start jobs and models by this socket, outside of the agent's sandbox",
  );

export function addProgramCommands(program: Command, tree: Tree): void {
  addUp(program, tree);
  addController(program, tree);
  addAgent(program, tree);
}

function addUp(program: Command, { programs, setExitCode }: Tree): void {
  const up = program
    .command("up")
    .description("Start database, controller and agent on this machine and run a first job")
    .option("--once", "end after the first job")
    .addOption(listen())
    .addOption(tls())
    .addOption(url())
    .addOption(root())
    .action(async (options: OptionsOf<"up">) => setExitCode(await programs.up(options)));
  example(up, "holdfast up", "holdfast up --once", "holdfast up --listen 10.0.0.5:7440");
}

function addController(program: Command, { programs, setExitCode }: Tree): void {
  const controller = program
    .command("controller")
    .description("Start a controller on the PostgreSQL of DATABASE_URL")
    .option("--embedded", "bring a private PostgreSQL instead, in HOLDFAST_ROOT")
    .option("--no-migrate", "refuse an older schema instead of migrating it")
    .addOption(listen())
    .addOption(tls())
    .addOption(url())
    .addOption(root())
    .action(async (options: OptionsOf<"controller">) => setExitCode(await programs.controller(options)));
  example(
    controller,
    "DATABASE_URL=postgres://holdfast@db/holdfast holdfast controller --listen 0.0.0.0:7440",
    "holdfast controller --embedded",
  );
}

function addAgent(program: Command, { programs, setExitCode }: Tree): void {
  const agent = program
    .command("agent")
    .description("Run this machine as a node")
    .option(
      "--join <url>",
      "pair with this controller first if need be; the code comes from HOLDFAST_PAIRING_CODE or standard input",
    )
    .option("--slots <n>", "jobs at once (default: half of the processors)", parseWhole(1, 4096))
    .addOption(
      new Option("--on-stop <what>", "what becomes of running jobs when the agent is stopped")
        .choices(["release", "finish", "leave"])
        .default("release"),
    )
    .option(
      "--stop-grace <duration>",
      "between SIGTERM and SIGKILL when jobs are stopped (default: 1500ms)",
      parseDuration,
    )
    .option("--output-limit <size>", "stop a job whose output files grow beyond this (default: 1GiB)", parseSize)
    .option("--stop-file <file>", "stop when this file appears (default: ROOT/node/stop)")
    .option("--locker-slot <directory>", "where the locker lies; repeat it with a directory on another disk", parseEach)
    .option(
      "--floor <size>",
      "memory that stays available; a bare number is GiB (default: floor in scenes.yaml)",
      (text) => parseSize(/^\d+(\.\d+)?$/.test(text) ? `${text}GiB` : text),
    )
    .option("--alone", "keep the scenes of this machine without a controller, and run no jobs")
    .addOption(
      new Option(
        "--self-upgrade",
        "take the release that the controller hands out; one that is not online within 60 s is left again",
      ).env("HOLDFAST_SELF_UPGRADE"),
    )
    .option("--node-key-stdin", "read the node's key from standard input")
    .addOption(root())
    .addOption(jobAccount())
    .addOption(launchSocket())
    .addOption(new Option("--lifeline").hideHelp())
    .addOption(new Option("--die-after-claim").hideHelp())
    .action(
      async ({
        stopGrace,
        outputLimit,
        lockerSlot,
        floor,
        ...options
      }: OptionsOf<"agent"> & {
        stopGrace?: number;
        outputLimit?: number;
        lockerSlot?: readonly string[];
        floor?: number;
      }) =>
        setExitCode(
          await programs.agent({
            ...options,
            ...(floor === undefined ? {} : { floorBytes: floor }),
            ...(lockerSlot === undefined ? {} : { lockerSlots: lockerSlot }),
            ...(stopGrace === undefined ? {} : { stopGraceMs: stopGrace }),
            ...(outputLimit === undefined ? {} : { outputBytesMax: outputLimit }),
          }),
        ),
    );
  example(
    agent,
    "holdfast agent --join http://10.0.0.5:7440 < pairing-code",
    "holdfast agent --slots 2 --on-stop leave",
    "holdfast agent --job-account holdfast-job",
  );
}
