// SPDX-License-Identifier: Apache-2.0
// Talks to a gateway over its control socket: a connection a question. Rule: an answer comes within a limit, or the gateway
// counts as unreachable; whether a table was applied is then not known, and it can be sent again under the same generation.

import net from "node:net";
import { Failure, messageOf } from "../std/errors.ts";
import { type Answered, type Asked, readLines } from "./control-lines.ts";
import type { Applied, GatewaySeen } from "./gateway.ts";
import type { Table } from "./table.ts";

const ANSWER_WITHIN_MS = 10_000;

export type GatewayControl = {
  /** Throws Failure invalid_request with every fault of the table. */
  readonly set: (table: Table, generation: number) => Promise<Applied>;
  readonly status: () => Promise<GatewaySeen>;
  /** Prometheus text. */
  readonly metrics: () => Promise<string>;
};

/** path: of the control socket. Every call throws Failure gateway_unreachable when no gateway answers. */
export function gatewayControl(path: string, answerWithinMs = ANSWER_WITHIN_MS): GatewayControl {
  const ask = async (asked: Asked): Promise<Answered> => {
    const answer = await askLine(path, JSON.stringify(asked), answerWithinMs);
    return JSON.parse(answer) as Answered;
  };
  const odd = (answer: Answered): Failure =>
    answer.ok
      ? new Failure("bad_answer", `the gateway at ${path} answered something else`)
      : new Failure(answer.code, `the gateway at ${path}: ${answer.message}`, { details: answer.details });
  return {
    set: async (set, generation) => {
      const answer = await ask({ set, generation });
      if (answer.ok && "failed" in answer)
        return { kind: "applied", generation: answer.generation, failed: answer.failed };
      if (!answer.ok && answer.generation !== undefined) return { kind: "stale", generation: answer.generation };
      throw odd(answer);
    },
    status: async () => {
      const answer = await ask({ status: true });
      if (answer.ok && "status" in answer) return answer.status;
      throw odd(answer);
    },
    metrics: async () => {
      const answer = await ask({ metrics: true });
      if (answer.ok && "metrics" in answer) return answer.metrics;
      throw odd(answer);
    },
  };
}

function askLine(path: string, line: string, withinMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(path);
    const fail = (why: string): void => {
      socket.destroy();
      reject(new Failure("gateway_unreachable", `the gateway at ${path} does not answer: ${why}`));
    };
    const timer = setTimeout(() => fail(`nothing within ${withinMs} ms`), withinMs);
    socket.on("error", (error) => fail(messageOf(error)));
    socket.on("close", () => {
      clearTimeout(timer);
      fail("it closed the connection");
    });
    readLines(socket, (answer) => {
      resolve(answer);
      socket.destroy();
    });
    socket.write(`${line}\n`);
  });
}
