// SPDX-License-Identifier: Apache-2.0
// model add | list | show | retire and project add | list | retire: what jobs refer to by name.

import type { Command } from "commander";
import type { Client } from "../client/client.ts";
import { needsText } from "../protocol/placement.ts";
import type { Model } from "../protocol/registry-schema.ts";
import { Failure } from "../std/errors.ts";
import { example, printing, type Tree } from "./command.ts";
import { addNeedOptions, type NeedOptions, needsOf } from "./need-options.ts";
import { ago, fields, table, visible } from "./table.ts";
import { connect, printJson, type Terminal } from "./terminal.ts";

export function addRegistryCommands(program: Command, tree: Tree): void {
  addModelCommands(program, tree);
  addProjectCommands(program, tree);
}

function saidNeeds({ needs }: Model): string {
  return needsText(needs) || "nothing said";
}

type AddModel = NeedOptions & {
  readonly marker?: string;
  readonly description?: string;
  readonly json?: boolean;
};

function addModelCommands(program: Command, { terminal }: Tree): void {
  const model = program.command("model").description("Registered models: what each needs");
  example(model, "holdfast model add qwen3-8b --memory 12GiB", "holdfast job submit --model qwen3-8b -- ./ask.sh");
  const add = addNeedOptions(printing(model.command("add")))
    .argument("<name>")
    .description("Register a model; a job that asks for it gets its needs")
    .option("--marker <text>", "what only this model's server answers")
    .option("--description <text>", "what it is for")
    .action(async (name: string, { marker, description, json, ...options }: AddModel) => {
      const { needs, faults } = needsOf(options);
      if (faults.length > 0)
        throw new Failure("usage", `${faults.length} option${faults.length > 1 ? "s are" : " is"} not right`, {
          details: faults,
        });
      const rest = {
        ...(marker === undefined ? {} : { marker }),
        ...(description === undefined ? {} : { description }),
      };
      const made = await connect(terminal).call("modelAdd", { body: { name, needs, ...rest } });
      if (json === true) return printJson(terminal, made);
      terminal.stdout.write(`Registered ${made.name} (${saidNeeds(made)}).\n`);
    });
  example(
    add,
    "holdfast model add qwen3-8b --memory 12GiB --marker qwen3-8b-q4",
    "holdfast model add qwen3-70b --gpu-memory 44GiB --host-part 20GiB --gpus 2",
  );
  addModelLooks(model, terminal);
}

function addModelLooks(model: Command, terminal: Terminal): void {
  const list = printing(model.command("list"))
    .description("List models")
    .action(async ({ json }) => {
      const { items } = await connect(terminal).call("modelList", {});
      if (json === true) return printJson(terminal, items);
      if (items.length === 0)
        return void terminal.stdout.write("No model yet: holdfast model add NAME --memory 8GiB\n");
      const now = terminal.clock.now();
      terminal.stdout.write(
        table(
          ["NAME", "NEEDS", "MARKER", "STATE", "DESCRIPTION"],
          items.map((item) => [
            item.name,
            saidNeeds(item),
            visible(item.marker ?? "none"),
            item.retiredAt === null ? "in use" : `retired ${ago(item.retiredAt, now)}`,
            visible(item.description),
          ]),
        ),
      );
    });
  example(list, "holdfast model list");

  const show = printing(model.command("show"))
    .argument("<model>", "name or id")
    .description("Show one model")
    .action(async (wanted: string, { json }) => {
      const found = await findModel(connect(terminal), wanted);
      if (json === true) return printJson(terminal, found);
      terminal.stdout.write(
        fields([
          ["model", found.name],
          ["id", found.id],
          ["needs", saidNeeds(found)],
          ["marker", visible(found.marker ?? "none")],
          ["description", visible(found.description)],
          ["created", found.createdAt],
          ["retired", found.retiredAt],
        ]),
      );
    });
  example(show, "holdfast model show qwen3-8b");

  const retire = printing(model.command("retire"))
    .argument("<model>", "name or id")
    .description("Take no new job that asks for it; its name is free again")
    .action(async (wanted: string, { json }) => {
      const client = connect(terminal);
      const { id } = await findModel(client, wanted);
      const retired = await client.call("modelRetire", { params: { modelId: id } });
      if (json === true) return printJson(terminal, retired);
      terminal.stdout.write(`${retired.name} is retired.\n`);
    });
  example(retire, "holdfast model retire qwen3-8b");
}

/** By id, or by name, where one that is in use comes before a retired one. */
async function findModel(client: Client, wanted: string): Promise<Model> {
  const { items } = await client.call("modelList", {});
  const found = items.find((item) => item.id === wanted || item.name === wanted);
  if (found === undefined) throw new Failure("not_found", `there is no model ${wanted}; see: holdfast model list`);
  return found;
}

function addProjectCommands(program: Command, { terminal }: Tree): void {
  const project = program.command("project").description("Registered projects: what jobs are grouped by");
  example(project, "holdfast project add speech", "holdfast job list --project speech");
  const add = printing(project.command("add"))
    .argument("<name>")
    .description("Register a project")
    .option("--description <text>", "what it is for")
    .action(async (name: string, { description, json }: { description?: string; json?: boolean }) => {
      const body = { name, ...(description === undefined ? {} : { description }) };
      const made = await connect(terminal).call("projectAdd", { body });
      if (json === true) return printJson(terminal, made);
      terminal.stdout.write(`Registered ${made.name}.\n`);
    });
  example(add, "holdfast project add speech");

  const list = printing(project.command("list"))
    .description("List projects")
    .action(async ({ json }) => {
      const { items } = await connect(terminal).call("projectList", {});
      if (json === true) return printJson(terminal, items);
      if (items.length === 0) return void terminal.stdout.write("No project yet: holdfast project add NAME\n");
      const now = terminal.clock.now();
      terminal.stdout.write(
        table(
          ["NAME", "OPEN JOBS", "STATE", "DESCRIPTION"],
          items.map((item) => [
            item.name,
            String(item.openJobs),
            item.retiredAt === null ? "in use" : `retired ${ago(item.retiredAt, now)}`,
            visible(item.description),
          ]),
        ),
      );
    });
  example(list, "holdfast project list");

  const retire = printing(project.command("retire"))
    .argument("<project>", "name or id")
    .description("Take no new job of it; its name is free again")
    .action(async (wanted: string, { json }) => {
      const client = connect(terminal);
      const { items } = await client.call("projectList", {});
      const found = items.find((item) => item.id === wanted || item.name === wanted);
      if (found === undefined)
        throw new Failure("not_found", `there is no project ${wanted}; see: holdfast project list`);
      const retired = await client.call("projectRetire", { params: { projectId: found.id } });
      if (json === true) return printJson(terminal, retired);
      terminal.stdout.write(
        `${retired.name} is retired${retired.openJobs > 0 ? `; ${retired.openJobs} of its jobs go on` : ""}.\n`,
      );
    });
  example(retire, "holdfast project retire speech");
}
