// SPDX-License-Identifier: Apache-2.0
// unit controller | agent | job-socket | job: prints a systemd unit for this installation.

import fs from "node:fs/promises";
import path from "node:path";
import { type Command, Option } from "commander";
import { example, type Tree } from "./command.ts";
import type { UnitPart } from "./programs.ts";
import { fileFailure } from "../std/files.ts";
import { visible } from "./table.ts";

export function addUnitCommand(program: Command, { terminal, programs }: Tree): void {
  const unit = program.command("unit").description("systemd units for this installation");
  example(unit, "holdfast unit controller > /etc/systemd/system/holdfast-controller.service");
  const controller = unit
    .command("controller")
    .description("Print the unit of a controller; its first lines say how to install it")
    .option(
      "--embedded",
      "with its own PostgreSQL in /var/lib/holdfast; else DATABASE_URL of /etc/holdfast/controller.env",
    )
    .option("--account <name>", "the account that it runs as", "holdfast")
    .option("--listen <host:port>", "address of the controller", "127.0.0.1:7440")
    .action((options: { embedded?: boolean; account: string; listen: string }) => {
      terminal.stdout.write(programs.controllerUnit({ ...options, isEmbedded: options.embedded === true }));
    });
  example(controller, "holdfast unit controller --embedded --listen 10.0.0.5:7440");
  addNodeUnits(unit, { terminal, programs });
}

type NodeUnitOptions = {
  readonly layout: "system" | "user";
  readonly alone?: boolean;
  readonly account: string;
  readonly jobAccount: string;
  readonly root?: string;
  readonly into?: string;
};

/** The three of a node; their texts belong together, so --into writes all of them. */
const UNIT_FILES: readonly { readonly part: UnitPart; readonly file: string }[] = [
  { part: "agent", file: "holdfast-agent.service" },
  { part: "launch-socket", file: "holdfast-launch.socket" },
  { part: "launch", file: "holdfast-launch@.service" },
];

function addNodeUnits(unit: Command, { terminal, programs }: Pick<Tree, "terminal" | "programs">): void {
  const textOf = async (part: UnitPart, { alone, into: _, ...options }: NodeUnitOptions): Promise<string> => {
    const { text, warnings } = await programs.agentUnit({ part, ...options, isAlone: alone === true });
    for (const warning of warnings) terminal.stderr.write(`${visible(warning)}\n`);
    return text;
  };
  const add = (part: UnitPart, description: string): Command =>
    unit
      .command(part)
      .description(description)
      .addOption(
        new Option("--layout <layout>", "system: accounts of its own, by root; user: one account, without root")
          .choices(["system", "user"])
          .default("system"),
      )
      .option("--alone", "scenes only, without a controller and without jobs")
      .option("--account <name>", "the account that the agent and its models run as (system)", "holdfast")
      .option("--job-account <name>", "the account that jobs run as (system)", "holdfast-job")
      .action(async (options: NodeUnitOptions) => {
        if (options.into === undefined) return void terminal.stdout.write(await textOf(part, options));
        for (const { part: each, file } of UNIT_FILES)
          terminal.stdout.write(`${await writeUnit(options.into, file, await textOf(each, options))}\n`);
      });
  example(
    add("agent", "Print the unit of an agent; its first lines say how to install it")
      .option("--root <directory>", "the root that the unit names (default: /var/lib/holdfast, or the user's)")
      .option("--into <directory>", "write it and the two that it needs there, and print where"),
    "holdfast unit agent --into /etc/systemd/system",
    "holdfast unit agent --layout user --into ~/.config/systemd/user",
    "holdfast unit agent --alone --account llm --root /srv/llm",
  );
  example(
    add("launch-socket", "Print the unit of the socket by which an agent has systemd start jobs and models"),
    "holdfast unit launch-socket > /etc/systemd/system/holdfast-launch.socket",
  );
  example(
    add("launch", "Print the unit of what an agent starts: its accounts, groups and rights"),
    "holdfast unit launch > /etc/systemd/system/holdfast-launch@.service",
  );
}

/** Whole or not at all, and readable by everybody, as units are: whatever the umask is. */
async function writeUnit(directory: string, file: string, text: string): Promise<string> {
  const place = path.join(directory, file);
  try {
    await fs.mkdir(directory, { recursive: true });
    await fs.writeFile(`${place}.new`, text, { mode: 0o644 });
    await fs.chmod(`${place}.new`, 0o644);
    await fs.rename(`${place}.new`, place);
  } catch (error) {
    throw fileFailure(place, error);
  }
  return place;
}
