// SPDX-License-Identifier: Apache-2.0
// The versions of a format: each names its predecessor by following it, with the conversion from it and the way back. A
// version without its conversion, or with a number that does not rise, does not compile. Two policies, two types: a Record's
// conversion may fail and its holder sets it aside; a Wire message's cannot, and an unknown newer one is passed on as it is.
// On disk and on the wire: the CBOR array [version, bytes], exactly two.

import { type Cbor, CborFault, decodeCbor, encodeCbor } from "./cbor.ts";
import type { Codec } from "./shape.ts";

type Counted<N extends number, Tuple extends readonly unknown[] = []> = Tuple["length"] extends N
  ? Tuple
  : Counted<N, readonly [...Tuple, unknown]>;

type IsAbove<N extends number, Last extends number> = number extends N
  ? false
  : Counted<N> extends readonly [...Counted<Last>, unknown, ...unknown[]]
    ? true
    : false;

/** The number itself where it rises; else nothing, and the compiler says so at the number. */
export type Above<N extends number, Last extends number> = IsAbove<N, Last> extends true ? N : never;

export type Converted<Body> =
  | { readonly kind: "converted"; readonly body: Body }
  | { readonly kind: "failed"; readonly reason: string };

export type DecodeFault =
  /** Not [version, bytes]. */
  | { readonly kind: "envelope"; readonly reason: string }
  /** Below the newest known version, and none of them. */
  | { readonly kind: "unknown"; readonly version: number }
  /** The body is not what its version says. */
  | { readonly kind: "body"; readonly version: number; readonly reason: string }
  /** The body of an older version could not be carried over. */
  | { readonly kind: "convert"; readonly version: number; readonly reason: string };

/** Written by a newer program: update this one, and never reset what it wrote. */
export type Future = { readonly kind: "future"; readonly version: number };

export type DecodedRecord<Body> =
  | { readonly kind: "ok"; readonly version: number; readonly body: Body }
  | Future
  | DecodeFault;
export type DecodedWire<Body> =
  | { readonly kind: "ok"; readonly version: number; readonly body: Body }
  /** Kept and passed on byte by byte, and otherwise ignored. */
  | (Future & { readonly bytes: Uint8Array })
  | Exclude<DecodeFault, { kind: "convert" }>;

type Step = {
  readonly version: number;
  readonly codec: Codec<unknown>;
  /** From the body of the version before. */
  readonly from: (body: unknown) => Converted<unknown>;
  /** To the body of the version before. */
  readonly back: (body: unknown) => unknown;
};

export type RecordChain<Body, Last extends number> = {
  readonly newest: number;
  /** One line a version, for the pin. */
  readonly description: string;
  readonly next: <const N extends number, Next>(
    version: Above<N, Last>,
    codec: Codec<Next>,
    conversion: { readonly from: (body: Body) => Converted<Next>; readonly back: (body: Next) => Body },
  ) => RecordChain<Next, N>;
  readonly decode: (bytes: Uint8Array) => DecodedRecord<Body>;
  /** as: an older version, for as long as an upgrade is not confirmed. */
  readonly encode: (body: Body, as?: number) => Uint8Array;
};

export type WireChain<Body, Last extends number> = {
  readonly newest: number;
  readonly description: string;
  readonly next: <const N extends number, Next>(
    version: Above<N, Last>,
    codec: Codec<Next>,
    conversion: { readonly from: (body: Body) => Next; readonly back: (body: Next) => Body },
  ) => WireChain<Next, N>;
  readonly decode: (bytes: Uint8Array) => DecodedWire<Body>;
  readonly encode: (body: Body, as?: number) => Uint8Array;
};

/** A body may take this much; its own codec bounds it further. */
const BYTES_MAX = 1024 * 1024;

const same = (body: unknown): Converted<unknown> => ({ kind: "converted", body });

export function recordChain<const N extends number, Body>(
  version: Above<N, 0>,
  codec: Codec<Body>,
): RecordChain<Body, N> {
  return recordsOf<Body, N>([{ version, codec: codec as Codec<unknown>, from: same, back: (body) => body }]);
}

function recordsOf<Body, Last extends number>(steps: readonly Step[]): RecordChain<Body, Last> {
  return {
    ...shared(steps),
    next: (version, codec, { from, back }) =>
      recordsOf([
        ...steps,
        {
          version,
          codec: codec as Codec<unknown>,
          from: from as Step["from"],
          back: back as Step["back"],
        },
      ]),
    decode: (bytes) => decodeWith(steps, bytes) as DecodedRecord<Body>,
  };
}

export function wireChain<const N extends number, Body>(version: Above<N, 0>, codec: Codec<Body>): WireChain<Body, N> {
  return wiresOf<Body, N>([{ version, codec: codec as Codec<unknown>, from: same, back: (body) => body }]);
}

function wiresOf<Body, Last extends number>(steps: readonly Step[]): WireChain<Body, Last> {
  return {
    ...shared(steps),
    next: (version, codec, { from, back }) =>
      wiresOf([
        ...steps,
        {
          version,
          codec: codec as Codec<unknown>,
          from: (body) => ({ kind: "converted", body: (from as (body: unknown) => unknown)(body) }),
          back: back as Step["back"],
        },
      ]),
    decode: (bytes) => {
      const decoded = decodeWith(steps, bytes) as DecodedRecord<Body>;
      if (decoded.kind === "future") return { ...decoded, bytes };
      if (decoded.kind === "convert") throw new Error("bug: a conversion of a wire message cannot fail");
      return decoded;
    },
  };
}

function shared(steps: readonly Step[]) {
  const newest = steps.at(-1)?.version ?? 0;
  return {
    newest,
    description: steps.map(({ version, codec }) => `${version}: ${codec.description}`).join("\n"),
    encode: (body: unknown, as = newest): Uint8Array => {
      let current: unknown = body;
      for (const step of steps.toReversed()) {
        if (step.version === as) return encodeCbor([as, step.codec.encode(current)]);
        current = step.back(current);
      }
      throw new Error(`bug: there is no version ${as} to write`);
    },
  };
}

function decodeWith(steps: readonly Step[], bytes: Uint8Array): DecodedRecord<unknown> {
  const envelope = open(bytes);
  if ("reason" in envelope) return { kind: "envelope", reason: envelope.reason };
  const { version, body } = envelope;
  const newest = steps.at(-1)?.version ?? 0;
  if (version > newest) return { kind: "future", version };
  const at = steps.findIndex((step) => step.version === version);
  const step = steps[at];
  if (step === undefined) return { kind: "unknown", version };
  let current: unknown;
  try {
    current = step.codec.decode(body);
  } catch (error) {
    if (error instanceof CborFault) return { kind: "body", version, reason: error.message };
    throw error;
  }
  for (const later of steps.slice(at + 1)) {
    const converted = later.from(current);
    if (converted.kind === "failed") return { kind: "convert", version, reason: converted.reason };
    current = converted.body;
  }
  return { kind: "ok", version, body: current };
}

function open(
  bytes: Uint8Array,
): { readonly version: number; readonly body: Uint8Array } | { readonly reason: string } {
  let value: Cbor;
  try {
    value = decodeCbor(bytes, BYTES_MAX);
  } catch (error) {
    if (error instanceof CborFault) return { reason: error.message };
    throw error;
  }
  if (!Array.isArray(value) || value.length !== 2) return { reason: "is not [version, bytes]" };
  const [version, body] = value as readonly Cbor[];
  if (typeof version !== "number" || !Number.isSafeInteger(version) || version < 1 || !(body instanceof Uint8Array))
    return { reason: "is not [version, bytes]" };
  return { version, body };
}
