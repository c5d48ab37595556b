// SPDX-License-Identifier: Apache-2.0
// What a model server must say about itself to count as the one that was asked for: an exact value at a place of a JSON answer,
// and perhaps the exact text of a generation. Rule: never a substring, never "something answered".

import http from "node:http";
import { isDeepStrictEqual } from "node:util";
import { messageOf } from "./errors.ts";

export type Marker = {
  /** Path and query of a GET. */
  readonly path: string;
  /** JSON pointer (RFC 6901); a step `*` stands for each element of an array, of which one must have the value. */
  readonly pointer: string;
  /** Any JSON. */
  readonly value: unknown;
  /** A POST whose answer must have exactly this text at the pointer. */
  readonly generation?: Generation;
};

export type Generation = {
  readonly path: string;
  readonly body: unknown;
  readonly pointer: string;
  readonly text: string;
};

/** An id in /v1/models, as every OpenAI-compatible server tells it. */
export function defaultMarker(value: unknown): Marker {
  return { path: "/v1/models", pointer: "/data/*/id", value };
}

export type Place = { readonly host: string; readonly port: number };

export type Probed =
  | { readonly kind: "equal" }
  /** found: what stands there, for people; undefined when there is nothing. */
  | { readonly kind: "other"; readonly found: unknown }
  /** It cannot be reached, or does not answer with JSON and status 200. */
  | { readonly kind: "silent"; readonly why: string };

const ANSWER_BYTES_MAX = 1024 * 1024;

/** Asks the server at this place. timeoutMs: for each question. Never throws. */
export async function probeMarker(place: Place, marker: Marker, timeoutMs: number): Promise<Probed> {
  const { path, pointer, value, generation } = marker;
  const said = await ask(place, { method: "GET", path, timeoutMs });
  if (said.kind === "silent") return said;
  const found = valuesAt(said.json, pointer);
  if (!found.some((each) => isDeepStrictEqual(each, value)))
    return { kind: "other", found: found.length > 1 ? found : found[0] };
  if (generation === undefined) return { kind: "equal" };
  const made = await ask(place, { method: "POST", path: generation.path, body: generation.body, timeoutMs });
  if (made.kind === "silent") return made;
  const [text] = valuesAt(made.json, generation.pointer);
  return text === generation.text ? { kind: "equal" } : { kind: "other", found: text };
}

type Question = {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: unknown;
  readonly timeoutMs: number;
};

type Said = { readonly kind: "said"; readonly json: unknown } | { readonly kind: "silent"; readonly why: string };

function ask({ host, port }: Place, { method, path, body, timeoutMs }: Question): Promise<Said> {
  return new Promise((resolve) => {
    const silent = (why: string): void => resolve({ kind: "silent", why });
    const text = body === undefined ? undefined : JSON.stringify(body);
    const request = http.request({
      host,
      port,
      path,
      method,
      agent: false,
      signal: AbortSignal.timeout(timeoutMs),
      headers:
        text === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(text) },
    });
    request.on("error", (error) =>
      silent(
        error.name === "TimeoutError" || error.name === "AbortError"
          ? `no answer in ${timeoutMs} ms`
          : messageOf(error),
      ),
    );
    request.on("response", (response) => {
      const pieces: Buffer[] = [];
      let size = 0;
      response.on("data", (piece: Buffer) => {
        size += piece.length;
        if (size > ANSWER_BYTES_MAX) request.destroy(new Error(`an answer of more than ${ANSWER_BYTES_MAX} bytes`));
        else pieces.push(piece);
      });
      response.on("error", (error) => silent(messageOf(error)));
      response.on("end", () => resolve(read(response.statusCode, Buffer.concat(pieces).toString())));
    });
    request.end(text);
  });
}

function read(status: number | undefined, text: string): Said {
  if (status !== 200) return { kind: "silent", why: `status ${status}` };
  try {
    return { kind: "said", json: JSON.parse(text) };
  } catch {
    return { kind: "silent", why: "an answer that is no JSON" };
  }
}

/** Everything that a pointer names. */
export function valuesAt(json: unknown, pointer: string): readonly unknown[] {
  let found: readonly unknown[] = [json];
  for (const step of pointer.split("/").slice(1)) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    found = found.flatMap((value) => stepInto(value, key));
  }
  return found;
}

function stepInto(value: unknown, key: string): readonly unknown[] {
  if (Array.isArray(value)) {
    const elements: readonly unknown[] = value;
    if (key === "*") return elements;
    return /^\d+$/.test(key) && Number(key) < elements.length ? [elements[Number(key)]] : [];
  }
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return [];
  return [(value as { readonly [name: string]: unknown })[key]];
}
