// SPDX-License-Identifier: Apache-2.0
// boundary show | verify | reset, on a node: what it remembers of what it started, and whether that can be trusted.

import type { Command } from "commander";
import { Failure } from "../std/errors.ts";
import { example, printing, type Tree } from "./command.ts";
import type { BoundarySeen } from "./programs.ts";
import { fields, table, visible } from "./table.ts";
import { colours, printJson, type Terminal } from "./terminal.ts";

type Options = { readonly root?: string; readonly json?: boolean };

const rootOf = ({ root }: Options): { root?: string } => (root === undefined ? {} : { root });
const ROOT = ["--root <directory>", "where everything of this machine lives (default: HOLDFAST_ROOT)"] as const;

export function addBoundaryCommands(program: Command, { terminal, programs, setExitCode }: Tree): void {
  const boundary = program.command("boundary").description("What this node remembers of what it started");
  example(boundary, "holdfast boundary show");

  const show = printing(boundary.command("show"))
    .description("Show its state, its slots and the attempts that are open")
    .option(...ROOT)
    .action(async (options: Options) => {
      const seen = await programs.showBoundary(rootOf(options));
      if (options.json === true) return printJson(terminal, seen);
      printBoundary(terminal, seen);
    });
  example(show, "holdfast boundary show", "holdfast boundary show --json");

  const verify = printing(boundary.command("verify"))
    .description("Read every slot and say whether this node may run jobs; exit code 1 when not")
    .option(...ROOT)
    .action(async (options: Options) => {
      const seen = await programs.showBoundary(rootOf(options));
      if (options.json === true) printJson(terminal, seen);
      else terminal.stdout.write(`${verdictOf(seen)}\n`);
      if (seen.state !== "trusted") setExitCode(1);
    });
  example(verify, "holdfast boundary verify");

  const reset = boundary
    .command("reset")
    .description("Forget what was started here, so that an untrusted node takes jobs again; the agent must be stopped")
    .option("--i-know-jobs-may-repeat", "that a job that was started here before may be started once more is accepted")
    .option(...ROOT)
    .action(async (options: Options & { iKnowJobsMayRepeat?: boolean }) => {
      if (options.iKnowJobsMayRepeat !== true)
        throw new Failure(
          "usage",
          "a job that was started here before could be started once more: add --i-know-jobs-may-repeat if that is accepted",
        );
      await programs.resetBoundary(rootOf(options));
      terminal.stdout.write("The boundary begins anew. Start the agent: holdfast agent\n");
    });
  example(reset, "holdfast boundary reset --i-know-jobs-may-repeat");
}

function verdictOf({ state, why, slots }: BoundarySeen): string {
  if (state === "trusted") return `trusted: ${slots.length} ${slots.length === 1 ? "slot agrees" : "slots agree"}`;
  return `${state}: ${visible(why ?? "")}`;
}

function printBoundary(terminal: Terminal, seen: BoundarySeen): void {
  const colour = colours(terminal);
  const state = seen.state === "trusted" ? colour.green(seen.state) : colour.red(seen.state);
  terminal.stdout.write(
    fields([
      ["boundary", state],
      ["why", visible(seen.why ?? "")],
      ["do", adviceFor(seen.state)],
      ["lineage", seen.lineage],
      ["sequence", seen.sequence],
      ["agent", seen.agent === null ? "not running" : `pid ${seen.agent}`],
      ["sessions", seen.sessions === 0 ? null : String(seen.sessions)],
    ]),
  );
  terminal.stdout.write("\n");
  terminal.stdout.write(
    table(
      ["SLOT", "SEQUENCE", "STATE"],
      seen.slots.map(({ place, sequence, text }) => [place, sequence ?? "none", visible(text)]),
    ),
  );
  if (seen.attempts.length === 0) return;
  terminal.stdout.write("\n");
  terminal.stdout.write(
    table(
      ["JOB", "EPOCH", "PID", "STAGE"],
      seen.attempts.map((attempt) => [
        attempt.jobId,
        attempt.epoch,
        String(attempt.pid ?? "?"),
        attempt.outcome === "" ? attempt.stage : `${attempt.stage}: ${visible(attempt.outcome)}`,
      ]),
    ),
  );
}

function adviceFor(state: BoundarySeen["state"]): string | null {
  if (state === "trusted") return null;
  if (state === "future") return "Update this Holdfast; do not reset.";
  return "Have the disk that is named looked at, stop the agent, then: holdfast boundary reset --i-know-jobs-may-repeat";
}
