// SPDX-License-Identifier: Apache-2.0
// job run | submit | list | show | why | logs | events | cancel.

import { type Command, Option } from "commander";
import { jobStates, type JobState } from "../protocol/job.ts";
import type { Client } from "../client/client.ts";
import type { Job, JobDetail, JobEvent } from "../protocol/job-schema.ts";
import { PAGE_MAX } from "../protocol/limits.ts";
import { needsText } from "../protocol/placement.ts";
import { Failure } from "../std/errors.ts";
import { example, printing, type Tree } from "./command.ts";
import { addJobOptions, type JobOptions, submissionOf, submit } from "./job-options.ts";
import { findNode } from "./node-commands.ts";
import { follow, printChunks, streamLog } from "./job-run.ts";
import { addWhy } from "./job-why.ts";
import { ago, commandLine, fields, table, visible } from "./table.ts";
import { colours, connect, printJson, type Terminal } from "./terminal.ts";
import { parseId, parseWhole } from "./units.ts";

const jobId = parseId("job", "job");

export function addJobCommands(program: Command, tree: Tree): void {
  const job = program.command("job").description("Commands that run on a node");
  example(job, "holdfast job run -- make test", "holdfast job list");
  addRun(job, tree);
  addLooks(job, tree);
  addWhy(job, tree);
  addLogs(job, tree);
  addCancel(job, tree);
}

function addRun(job: Command, { terminal, setExitCode }: Tree): void {
  const run = addJobOptions(job.command("run"))
    .description("Run a command on a node, stream its output, exit with its exit code; Ctrl-C cancels it")
    .action(async (command: string[], options: JobOptions) => {
      const client = connect(terminal);
      const body = await submissionOf(terminal, client, command, options);
      setExitCode(await follow(terminal, client, () => submit(terminal, client, body, options.idempotencyKey)));
    });
  example(
    run,
    "holdfast job run -- sh -c 'echo hello; uname -a'",
    "holdfast job run --memory 8GiB --retries 2 -e SEED=7 -- ./train.sh",
    "holdfast job run --gpu-memory 20GiB --host-part 8GiB -- ./generate.sh",
  );

  const send = printing(addJobOptions(job.command("submit")))
    .description("Submit a command and return; prints the job's id")
    .action(async (command: string[], options: JobOptions) => {
      const client = connect(terminal);
      const made = await submit(
        terminal,
        client,
        await submissionOf(terminal, client, command, options),
        options.idempotencyKey,
      );
      if (options.json === true) return printJson(terminal, made);
      terminal.stdout.write(`${made.id}\n`);
    });
  example(
    send,
    "holdfast job submit --not-before 2026-12-24T20:00:00Z -- ./nightly.sh",
    "holdfast job submit --json --input params.json -- python3 run.py",
  );
}

type ListOptions = {
  readonly state?: JobState;
  readonly project?: string;
  readonly node?: string;
  readonly search?: string;
  readonly limit: number;
  readonly json?: boolean;
};

function addLooks(job: Command, { terminal }: Tree): void {
  const list = printing(job.command("list"))
    .description("List jobs, newest first")
    .addOption(new Option("--state <state>", "only these").choices([...jobStates]))
    .option("--project <name>", "only jobs of this project")
    .option("--node <node>", "only jobs that this node holds or ended, by name or id")
    .option("--search <text>", "only jobs with this in their id, command or labels")
    .option("--limit <n>", "how many", parseWhole(1, PAGE_MAX), 30)
    .action(async ({ node, json, ...filters }: ListOptions) => {
      const client = connect(terminal);
      const query = { ...filters, ...(node === undefined ? {} : { nodeId: (await findNode(client, node)).id }) };
      const page = await client.call("jobList", { query });
      if (json === true) return printJson(terminal, page);
      if (page.items.length === 0) {
        const isFiltered = Object.keys(query).length > 1;
        return void terminal.stdout.write(
          isFiltered ? "No job is like that.\n" : "No job yet: holdfast job run -- echo hello\n",
        );
      }
      terminal.stdout.write(jobTable(terminal, page.items));
      if (page.nextCursor !== null && filters.limit < PAGE_MAX)
        terminal.stderr.write(`… older ones: --limit ${Math.min(PAGE_MAX, filters.limit * 4)}\n`);
      else if (page.nextCursor !== null)
        terminal.stderr.write("… older ones: narrow it with --state, --project or --search\n");
    });
  example(list, "holdfast job list", "holdfast job list --state running --json");

  const show = printing(job.command("show"))
    .argument("<id>", "of the job", jobId)
    .description("Show one job with its input and result")
    .action(async (id: string, { json }) => {
      const found = await connect(terminal).call("jobShow", { params: { jobId: id } });
      if (json === true) return printJson(terminal, found);
      printJob(terminal, found);
    });
  example(show, "holdfast job show job_01j…");

  const events = printing(job.command("events"))
    .argument("<id>", "of the job", jobId)
    .description("Show the ledger of one job: every claim, start, loss and ending")
    .action(async (id: string, { json }) => {
      const found = await allEvents(connect(terminal), id);
      if (json === true) return printJson(terminal, found);
      const rows = found.map((event) => [
        String(event.seq),
        event.at,
        event.kind,
        event.epoch,
        visible(event.actorName ?? event.actor),
        dataText(event.data),
      ]);
      terminal.stdout.write(table(["#", "AT", "EVENT", "EPOCH", "BY", ""], rows));
    });
  example(events, "holdfast job events job_01j…");
}

/** All of the ledger: a page holds at most PAGE_MAX events. */
async function allEvents(client: Client, jobId: string): Promise<readonly JobEvent[]> {
  const found: JobEvent[] = [];
  for (;;) {
    const query = { limit: PAGE_MAX, after: found.at(-1)?.seq ?? 0 };
    const { events } = await client.call("jobEvents", { params: { jobId }, query });
    found.push(...events);
    if (events.length < PAGE_MAX) return found;
  }
}

function dataText(data: Readonly<Record<string, unknown>>): string {
  return Object.entries(data)
    .map(([key, value]) => visible(`${key}=${typeof value === "string" ? value : JSON.stringify(value)}`))
    .join(" ");
}

function addLogs(job: Command, { terminal }: Tree): void {
  const logs = job
    .command("logs")
    .argument("<id>", "of the job", jobId)
    .description("Print what a job wrote, its standard error on standard error")
    .option("-f, --follow", "go on until the job has ended")
    .addOption(new Option("--only <stream>", "only this stream").choices(["stdout", "stderr"]))
    .option("--json", "print the chunks as JSON, one a line")
    .action(
      async (
        id: string,
        { follow: isFollowing, only, json }: { follow?: boolean; only?: "stdout" | "stderr"; json?: boolean },
      ) => {
        const client = connect(terminal);
        const leave = new AbortController();
        using stack = new DisposableStack();
        stack.use(terminal.onInterrupt(() => leave.abort()));
        if (isFollowing === true && json !== true && only === undefined) {
          await streamLog(terminal, client, id, leave.signal);
          return;
        }
        for (let after: string | undefined; !leave.signal.aborted; ) {
          const page = await client.call("jobLogs", {
            params: { jobId: id },
            query: { limit: 200, ...(after === undefined ? {} : { after }) },
          });
          if (json === true) for (const chunk of page.chunks) terminal.stdout.write(`${JSON.stringify(chunk)}\n`);
          else printChunks(terminal, page, only);
          after = page.chunks.at(-1)?.cursor ?? after;
          if (page.ended || (page.chunks.length === 0 && isFollowing !== true)) return;
          if (page.chunks.length === 0) await terminal.clock.sleep(500, leave.signal);
        }
      },
    );
  example(logs, "holdfast job logs job_01j…", "holdfast job logs --follow job_01j…");
}

function addCancel(job: Command, { terminal }: Tree): void {
  const cancel = printing(job.command("cancel"))
    .argument("<id...>", "of the jobs", (text: string, before: readonly string[] | undefined) => [
      ...(before ?? []),
      jobId(text),
    ])
    .description("Cancel: at once when it waits, within seconds when it runs")
    .action(async (ids: string[], { json }) => {
      const client = connect(terminal);
      const cancelled: Job[] = [];
      const refused: { readonly id: string; readonly failure: Failure }[] = [];
      for (const id of ids) {
        try {
          cancelled.push(await client.call("jobCancel", { params: { jobId: id } }));
        } catch (error) {
          // One that has ended keeps no other from being cancelled; a controller that is away answers for none.
          if (!(error instanceof Failure) || !["conflict", "not_found"].includes(error.code)) throw error;
          refused.push({ id, failure: error });
        }
      }
      if (json === true) printJson(terminal, cancelled);
      else
        for (const one of cancelled)
          terminal.stdout.write(
            `${one.id} ${one.state === "cancelled" ? "is cancelled" : "will be stopped by its node"}.\n`,
          );
      refuse(refused);
    });
  example(cancel, "holdfast job cancel job_01j…");
}

function refuse(refused: readonly { readonly id: string; readonly failure: Failure }[]): void {
  const [first] = refused;
  if (first === undefined) return;
  if (refused.length === 1) throw first.failure;
  throw new Failure(first.failure.code, `${refused.length} jobs were not cancelled`, {
    details: refused.map(({ id, failure }) => ({ place: id, problem: failure.message })),
  });
}

function jobTable(terminal: Terminal, jobs: readonly Job[]): string {
  const now = terminal.clock.now();
  return table(
    ["JOB", "STATE", "NODE", "CREATED", "COMMAND"],
    jobs.map((job) => [
      job.id,
      stateText(terminal, job),
      job.nodeName ?? "",
      ago(job.createdAt, now),
      commandLine(job.command, 40),
    ]),
  );
}

function stateText(terminal: Terminal, job: Job): string {
  const colour = colours(terminal);
  if (job.state === "queued" && job.blocked !== null) return colour.yellow("blocked");
  if (job.state === "succeeded") return colour.green(job.state);
  if (job.state === "failed" || job.state === "dead")
    return colour.red(job.exitCode === null ? job.state : `${job.state} (${job.exitCode})`);
  return job.state === "running" ? colour.cyan(job.state) : job.state;
}

function printJob(terminal: Terminal, job: JobDetail): void {
  const now = terminal.clock.now();
  terminal.stdout.write(
    fields([
      ["job", job.id],
      ["state", `${stateText(terminal, job)}${job.reason === null ? "" : `: ${visible(job.reason)}`}`],
      ["blocked", visible(job.blocked ?? "")],
      ["message", visible(job.message ?? "")],
      ["command", commandLine(job.command, 2000)],
      ["project", job.project],
      ["node", job.nodeName],
      [
        "attempt",
        `${job.attempt} of ${job.retry.maxAttempts}${job.retry.onFailure ? ", failures are tried again" : ""}`,
      ],
      ["epoch", job.epoch],
      ["requires", needsText(job.requires)],
      ["priority", job.priority === 0 ? null : String(job.priority)],
      ["time limit", job.timeLimitMs === null ? null : `${job.timeLimitMs / 1000} s`],
      [
        "labels",
        Object.entries(job.labels)
          .map(([name, value]) => visible(`${name}=${value}`))
          .join(" "),
      ],
      [
        "environment",
        Object.entries(job.environment)
          .map(([name, value]) => visible(`${name}=${value}`))
          .join(" "),
      ],
      ["created", `${job.createdAt} (${ago(job.createdAt, now)})`],
      ["not before", job.notBefore],
      ["started", job.startedAt],
      ["finished", job.finishedAt],
      ["exit code", job.exitCode === null ? null : String(job.exitCode)],
      ["input", job.input === null ? null : visible(JSON.stringify(job.input).slice(0, 500))],
      ["result", job.result === null ? null : visible(JSON.stringify(job.result))],
    ]),
  );
}
