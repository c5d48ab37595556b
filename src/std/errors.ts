// SPDX-License-Identifier: Apache-2.0
// Failure: what the outside world did wrong, with a code from the closed table in protocol/errors.ts.
// Bugs are asserts; expected outcomes are values. An error chain is printed once, outermost first.

/** One fault with its place: a JSON pointer, a file:line, a flag or an environment variable. */
export type Fault = { readonly place: string; readonly problem: string };

export type FailureOptions = {
  readonly cause?: unknown;
  readonly details?: readonly Fault[];
  /** Of the HTTP request that was answered with this. */
  readonly requestId?: string;
};

export class Failure extends Error {
  override readonly name = "Failure";
  readonly code: string;
  readonly details: readonly Fault[];
  readonly requestId: string | undefined;

  constructor(code: string, message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.details = options.details ?? [];
    this.requestId = options.requestId;
  }
}

/** The code of a Failure or of a Node system error ("ENOENT"), or "" when there is none. */
export function codeOf(error: unknown): string {
  if (error instanceof Failure) return error.code;
  if (typeof error === "object" && error !== null && "code" in error) {
    return typeof error.code === "string" ? error.code : "";
  }
  return "";
}

/** The messages of an error and its causes on one line, outermost first, each said once. */
export function messageOf(error: unknown): string {
  const parts: string[] = [];
  let current: unknown = error;
  while (current !== undefined && current !== null && parts.length < 8) {
    const text = current instanceof Error ? textOf(current) : String(current);
    if (!parts.some((part) => part.includes(text))) parts.push(text);
    current = current instanceof Error ? current.cause : undefined;
  }
  return parts.join(": ");
}

function textOf(error: Error): string {
  if (error.message !== "") return error.message;
  // A connection refused on every address of a name is an AggregateError without a message.
  if (error instanceof AggregateError) return error.errors.map((inner) => messageOf(inner)).join(", ");
  return codeOf(error) || error.name;
}
