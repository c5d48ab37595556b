// SPDX-License-Identifier: Apache-2.0
// What a gateway is told: for each address that apps use, what becomes of connections to it. Rule: a table that is not valid
// in any place is refused as a whole, with every fault.

import net from "node:net";
import type { Fault } from "../std/errors.ts";
import type { Marker } from "../std/marker.ts";
import type { Identity } from "../std/process.ts";

export type Address = { readonly host: string; readonly port: number };

/** Where the model of a front listens, and what proves that it is that model. */
export type Upstream = {
  /** An IP address; a name is allowed only without an identity. */
  readonly address: Address;
  /** Of the shim of the model's launch: the listening socket must belong to its process tree. Absent: not looked at. */
  readonly identity?: Identity;
  /** What the model server must say about itself. Absent: not asked. */
  readonly marker?: Marker;
  /** For people and counters. */
  readonly model: string;
};

export type Target =
  | { readonly kind: "serving"; readonly upstream: Upstream }
  /** New connections wait. why: for people. */
  | { readonly kind: "holding"; readonly why: string }
  | { readonly kind: "refusing"; readonly why: string };

export type Front = {
  /** An IP address and a port. It names the front: one front an address. */
  readonly listen: Address;
  readonly target: Target;
  /** Refuse with a plain HTTP 503 that says why, instead of a TCP reset. */
  readonly httpStatus?: boolean;
  /** How long busy connections to the former upstream may go on after this change. Default: DRAIN_MS. */
  readonly drainMs?: number;
};

export type Table = { readonly fronts: readonly Front[] };

export const DRAIN_MS = 30_000;
/** A drain of more than a day is a mistake in units. */
const DRAIN_MS_MAX = 86_400_000;
/** A front is one listening socket; a node has few models. */
export const FRONTS_MAX = 256;
const TEXT_MAX = 1000;

/** host:port, an IPv6 address in brackets: what a front is called in answers, counters and logs. */
export function addressText({ host, port }: Address): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** HOST:PORT, an IPv6 address in brackets. Undefined: it is none. */
export function parseAddress(text: string): Address | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port > 65_535 ? undefined : { host, port };
}

export type ParsedTable =
  | { readonly kind: "table"; readonly table: Table }
  | { readonly kind: "invalid"; readonly faults: readonly Fault[] };

/** From JSON. Unknown keys are refused: a gateway that drops what it does not know would serve what was not asked for. */
export function parseTable(json: unknown): ParsedTable {
  const reader = new Reader();
  const [fronts] = reader.object(json, "", ["fronts"]);
  const list = reader.list(fronts, "/fronts", FRONTS_MAX).map((front, index) => readFront(reader, front, index));
  const seen = new Set<string>();
  for (const [index, { listen }] of list.entries()) {
    if (seen.has(addressText(listen))) reader.fault(`/fronts/${index}/listen`, `${addressText(listen)} is there twice`);
    seen.add(addressText(listen));
  }
  return reader.faults.length > 0
    ? { kind: "invalid", faults: reader.faults }
    : { kind: "table", table: { fronts: list } };
}

function readFront(reader: Reader, json: unknown, index: number): Front {
  const at = `/fronts/${index}`;
  const [listen, target, httpStatus, drainMs] = reader.object(
    json,
    at,
    ["listen", "target"],
    ["httpStatus", "drainMs"],
  );
  return {
    listen: readAddress(reader, listen, `${at}/listen`, true),
    target: readTarget(reader, target, `${at}/target`),
    ...(httpStatus === undefined ? {} : { httpStatus: reader.boolean(httpStatus, `${at}/httpStatus`) }),
    ...(drainMs === undefined ? {} : { drainMs: reader.whole(drainMs, `${at}/drainMs`, DRAIN_MS_MAX) }),
  };
}

function readTarget(reader: Reader, json: unknown, at: string): Target {
  const kind = reader.member(json, "kind");
  switch (kind) {
    case "serving": {
      const [, upstream] = reader.object(json, at, ["kind", "upstream"]);
      return { kind, upstream: readUpstream(reader, upstream, `${at}/upstream`) };
    }
    case "holding":
    case "refusing": {
      const [, why] = reader.object(json, at, ["kind", "why"]);
      return { kind, why: reader.text(why, `${at}/why`) };
    }
    default:
      reader.fault(`${at}/kind`, "must be serving, holding or refusing");
      return { kind: "refusing", why: "" };
  }
}

function readUpstream(reader: Reader, json: unknown, at: string): Upstream {
  const [address, model, identity, marker] = reader.object(json, at, ["address", "model"], ["identity", "marker"]);
  return {
    address: readAddress(reader, address, `${at}/address`, identity !== undefined),
    model: reader.text(model, `${at}/model`),
    ...(identity === undefined ? {} : { identity: readIdentity(reader, identity, `${at}/identity`) }),
    ...(marker === undefined ? {} : { marker: readMarker(reader, marker, `${at}/marker`) }),
  };
}

function readAddress(reader: Reader, json: unknown, at: string, isIp: boolean): Address {
  const [host, port] = reader.object(json, at, ["host", "port"]);
  const address = { host: reader.text(host, `${at}/host`), port: reader.whole(port, `${at}/port`, 65_535) };
  if (isIp && net.isIP(address.host) === 0) reader.fault(`${at}/host`, `must be an IP address, not ${address.host}`);
  if (address.port === 0) reader.fault(`${at}/port`, "must be 1 to 65535");
  return address;
}

function readIdentity(reader: Reader, json: unknown, at: string): Identity {
  const [bootId, pid, ticks, inode] = reader.object(json, at, ["bootId", "pid", "startTicks"], ["pidfdInode"]);
  const startTicks = reader.text(ticks, `${at}/startTicks`);
  if (!/^\d+$/.test(startTicks)) reader.fault(`${at}/startTicks`, "must be digits");
  return {
    bootId: reader.text(bootId, `${at}/bootId`),
    pid: reader.whole(pid, `${at}/pid`, 2 ** 31),
    startTicks,
    ...(inode === undefined ? {} : { pidfdInode: reader.text(inode, `${at}/pidfdInode`) }),
  };
}

function readMarker(reader: Reader, json: unknown, at: string): Marker {
  const [path, pointer, value, generation] = reader.object(json, at, ["path", "pointer", "value"], ["generation"]);
  return {
    path: reader.path(path, `${at}/path`),
    pointer: reader.text(pointer, `${at}/pointer`),
    value,
    ...(generation === undefined ? {} : { generation: readGeneration(reader, generation, `${at}/generation`) }),
  };
}

function readGeneration(reader: Reader, json: unknown, at: string): NonNullable<Marker["generation"]> {
  const [path, body, pointer, text] = reader.object(json, at, ["path", "body", "pointer", "text"]);
  return {
    path: reader.path(path, `${at}/path`),
    body,
    pointer: reader.text(pointer, `${at}/pointer`),
    text: reader.text(text, `${at}/text`),
  };
}

/** Reads JSON and keeps every fault; what is faulty is read as something harmless, and the whole is refused. */
class Reader {
  readonly faults: Fault[] = [];

  fault(place: string, problem: string): void {
    this.faults.push({ place: place === "" ? "/" : place, problem });
  }

  member(json: unknown, key: string): unknown {
    return isObject(json) && Object.hasOwn(json, key) ? json[key] : undefined;
  }

  /** The members in the order of their names. */
  object(json: unknown, at: string, needed: readonly string[], allowed: readonly string[] = []): readonly unknown[] {
    if (!isObject(json)) {
      this.fault(at, "must be an object");
      return [];
    }
    for (const key of Object.keys(json))
      if (![...needed, ...allowed].includes(key)) this.fault(`${at}/${key}`, "is not known");
    for (const key of needed) if (!Object.hasOwn(json, key)) this.fault(`${at}/${key}`, "is missing");
    return [...needed, ...allowed].map((key) => this.member(json, key));
  }

  list(json: unknown, at: string, most: number): readonly unknown[] {
    if (!Array.isArray(json)) {
      this.fault(at, "must be a list");
      return [];
    }
    const list: readonly unknown[] = json;
    if (list.length > most) this.fault(at, `has ${list.length} entries, at most ${most} are allowed`);
    return list.slice(0, most);
  }

  text(json: unknown, at: string): string {
    if (typeof json === "string" && json.length <= TEXT_MAX) return json;
    this.fault(at, `must be text of at most ${TEXT_MAX} characters`);
    return "";
  }

  /** Of an HTTP request: what is no path could be a request of its own. */
  path(json: unknown, at: string): string {
    const text = this.text(json, at);
    if (!/^\/[\x21-\x7e]*$/.test(text)) this.fault(at, "must be a path that begins with /");
    return text;
  }

  whole(json: unknown, at: string, most: number): number {
    if (typeof json === "number" && Number.isInteger(json) && json >= 0 && json <= most) return json;
    this.fault(at, `must be a whole number of at most ${most}`);
    return 0;
  }

  boolean(json: unknown, at: string): boolean {
    if (typeof json === "boolean") return json;
    this.fault(at, "must be true or false");
    return false;
  }
}

function isObject(json: unknown): json is { readonly [key: string]: unknown } {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}
