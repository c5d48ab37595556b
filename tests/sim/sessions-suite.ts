// SPDX-License-Identifier: Apache-2.0
// Sessions on one node: jobs of several sessions in two networks that arrive in any order and again and again, burns, a log that
// is lost, a node that dies anywhere and moves between networks. P9: no position of a session runs twice. P11: a start that
// knows of everything is admitted in the end, whatever was lost.

import { openEnvelope } from "../../src/locker/envelope.ts";
import { boundaryFormat, emptyRecord } from "../../src/boundary/record.ts";
import { CausalLog } from "./causal-log.ts";
import { Chance } from "./chance.ts";
import { SimulatedDisk } from "./disk.ts";
import { mishapOf, mixOf, must, type RunEnd, type RunOptions, Violation } from "./run.ts";
import { decode, jobIdOf, networkId, SessionNode, type SimulatedSession, type Task, TENANT } from "./session-node.ts";
import { type Life, settled, Steps } from "./steps.ts";
import { breakDisks } from "./variant-disks.ts";

const STEPS_MAX = 3000;
const POSITIONS = 4;

class SessionsRun {
  readonly #options: RunOptions;
  readonly #chance: Chance;
  readonly #mix;
  readonly #disks: readonly SimulatedDisk[];
  readonly #fingerprint: Uint8Array;
  readonly #log: CausalLog;
  readonly steps: Steps;
  readonly #sessions: SimulatedSession[] = [];
  readonly #ran = new Set<string>();
  #life: Life = { isOver: true };
  #network = 0;
  #isCalm = false;
  #isTampered = false;
  #fault: unknown;

  constructor(options: RunOptions) {
    this.#options = options;
    this.#chance = new Chance(options.seed);
    this.#mix = mixOf(this.#chance);
    this.#disks = Array.from(
      { length: 1 + this.#chance.below(2) },
      (_, index) => new SimulatedDisk(`slot-${index}`, this.#chance),
    );
    this.#fingerprint = this.#chance.bytes(32);
    this.#log = new CausalLog(this.#chance);
    this.steps = new Steps({
      chance: this.#chance,
      mishapAt: (number, mayFail) => this.#mishapAt(number, mayFail),
      end: (kind) => this.#end(kind),
    });
  }

  #mishapAt(number: number, mayFail: boolean) {
    if (this.#isCalm) return undefined;
    return mishapOf(this.#options.single, { number, mayFail, chance: this.#chance, mix: this.#mix });
  }

  #end(kind: "kill" | "power"): void {
    this.#life.isOver = true;
    if (kind === "power") for (const disk of this.#disks) disk.cutPower();
  }

  async run(): Promise<void> {
    const lives = 2 + this.#chance.below(3);
    for (let life = 0; life < lives; life++) {
      await this.#live((node) => this.#work(node));
      if (this.#options.single === undefined) this.#betweenLives();
    }
    this.#isCalm = true;
    for (const disk of this.#disks) disk.unreadable = undefined;
    await this.#live((node) => this.#work(node));
    await this.#live((node) => this.#admitsWhatKnowsAll(node));
  }

  async #live(work: (node: SessionNode) => Promise<void>): Promise<void> {
    const life: Life = { isOver: false };
    this.#life = life;
    this.#fault = undefined;
    const slots = this.#disks.map((disk) => disk.slotOf(life, this.steps));
    const locker = SessionNode.locker(
      breakDisks(slots, this.#options.variant, this.#chance),
      this.#fingerprint,
      this.#chance,
    );
    const { variant } = this.#options;
    const world = {
      chance: this.#chance,
      steps: this.steps,
      log: this.#log,
      variant,
      onGate: (task: Task) => this.#onGate(task),
    };
    const node = new SessionNode(world, life, this.#network, locker);
    void this.#program(node, work)
      .catch((error: unknown) => (this.#fault = error))
      .finally(() => (life.isOver = true));
    await settled();
    while (!life.isOver && (await this.steps.next())) must(this.steps.count < STEPS_MAX, "the run does not end");
    life.isOver = true;
    const fault = this.#fault;
    if (fault !== undefined && !(fault instanceof Error && "code" in fault))
      throw fault instanceof Error ? fault : new Error(String(fault));
  }

  async #program(node: SessionNode, work: (node: SessionNode) => Promise<void>): Promise<void> {
    const loaded = await node.tenant.load();
    if (loaded.kind === "discard") {
      must(this.#isTampered, `P11: healthy disks end untrusted: ${loaded.text}`);
      await node.tenant.reset(boundaryFormat.encode(emptyRecord));
      this.#ran.clear();
      this.#isTampered = false;
      return;
    }
    this.#isTampered = this.#disks.some(({ unreadable }) => unreadable !== undefined);
    node.enter(loaded);
    await work(node);
  }

  async #work(node: SessionNode): Promise<void> {
    for (let rounds = 2 + this.#chance.below(6); rounds > 0; rounds--) {
      if (this.#sessions.length < 6 && this.#chance.happens(0.4)) this.#openSession();
      const here = this.#sessions.filter(({ network }) => network === this.#network);
      if (here.length === 0) continue;
      const together = Array.from({ length: 1 + this.#chance.below(3) }, () => {
        const session = this.#chance.pick(here);
        if (this.#chance.happens(0.8)) this.#log.learn(session.start);
        const task = { session, position: this.#chance.below(POSITIONS), turn: this.#chance.happens(0.8) ? 0 : 1 };
        if (this.#chance.happens(0.15)) return node.forget();
        return this.#chance.happens(0.15) ? node.burn(task) : node.run(task);
      });
      await Promise.all(together);
    }
  }

  #openSession(): void {
    const start = this.#log.say(this.#network, this.#chance.happens(0.5) ? "some" : "all");
    this.#sessions.push({ number: this.#sessions.length + 1, network: this.#network, start });
  }

  async #admitsWhatKnowsAll(node: SessionNode): Promise<void> {
    for (let turn = 0; turn < 2; turn++) {
      const session = { number: 200 + turn, network: this.#network, start: this.#log.say(this.#network, "all") };
      this.#log.learn(session.start);
      const outcome = await node.run({ session, position: 0, turn: 0 });
      if (outcome === "committed") return;
      must(outcome === "session-hop", `P11: a start that knows of everything is answered with ${outcome}`);
    }
    must(false, "P11: a start that knows of everything is refused for ever");
  }

  #onGate(task: Task): void {
    const key = `session ${task.session.number}, position ${task.position}`;
    must(!this.#ran.has(key), `P9: ${key} runs twice`);
    this.#ran.add(key);
    for (const disk of this.#disks) {
      const opened = openEnvelope(disk.lasting(TENANT) ?? new Uint8Array());
      const record = opened.kind === "envelope" ? decode(opened.envelope.record) : emptyRecord;
      const isKnown = record.sessions.some(({ handled }) =>
        handled.some((job) => Buffer.compare(job, jobIdOf(task)) === 0),
      );
      must(isKnown, `P9: ${key} runs, and ${disk.place} does not know it`);
      must(
        Buffer.compare(record.network ?? new Uint8Array(), networkId(task.session.network)) === 0,
        `P9: ${key} runs under another network's watermark`,
      );
    }
  }

  #betweenLives(): void {
    if (this.#chance.happens(0.3)) this.#end("power");
    if (this.#chance.happens(0.3)) this.#network = this.#chance.below(2);
    if (this.#chance.happens(0.2)) this.#log.lose();
    if (!this.#chance.happens(0.2)) return;
    const disk = this.#chance.pick(this.#disks);
    const other = this.#disks.find((each) => each !== disk);
    if (other === undefined || this.#isTampered || !this.#isNewest(other, disk)) return;
    const what = this.#chance.pick(["wipe", "turn back", "rot"] as const);
    this.steps.note(`between lives: ${what} ${disk.place}`);
    if (what === "wipe") return disk.wipe();
    this.#isTampered = true;
    if (what === "rot") disk.rot();
    else disk.turnBack();
  }

  #isNewest(one: SimulatedDisk, other: SimulatedDisk): boolean {
    const [a, b] = [one, other].map((disk) => openEnvelope(disk.lasting(TENANT) ?? new Uint8Array()));
    return (
      a?.kind === "envelope" && b?.kind === "envelope" && Buffer.compare(a.envelope.digest, b.envelope.digest) === 0
    );
  }
}

export async function runSessions(options: RunOptions): Promise<RunEnd> {
  const run = new SessionsRun(options);
  let violation: string | undefined;
  try {
    await run.run();
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    violation = error.message;
  }
  return { violation, steps: run.steps.count, trail: run.steps.trail };
}
