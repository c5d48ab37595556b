// SPDX-License-Identifier: Apache-2.0
// Where HTTP/1 messages end in bytes that pass by, so that a switch can tell an idle keep-alive connection from one whose model
// is thinking: both are silent. Rule: it only looks; what it does not understand is opaque, and opaque is never idle.
// Source: RFC 9112, "Message Body Length".

/** A head longer than this is nobody's HTTP. */
const HEAD_BYTES_MAX = 32 * 1024;
const CHUNK_LINE_MAX = 4096;
/** Requests that were sent before the answer to the first came. */
const PIPELINE_MAX = 1024;
const HEAD_END = Buffer.from("\r\n\r\n", "latin1");
const LF = 10;

type Stage = "head" | "length" | "chunk-line" | "chunk" | "trailer" | "until-close" | "opaque";
/** Of a message: how its body ends. undefined: it is no message of HTTP/1. */
type BodyEnd = { readonly kind: "bytes"; readonly count: number } | { readonly kind: "chunked" | "until-close" };

/** One direction. onHead says how the body of the message ends. */
class Messages {
  readonly #onHead: (head: string) => BodyEnd | undefined;
  #stage: Stage = "head";
  /** Of a body or a chunk with its line end. */
  #left = 0;
  /** The beginning of a head or line whose end has not come. */
  #partial: Buffer | undefined;
  /** Whole messages. */
  ended = 0;

  constructor(onHead: (head: string) => BodyEnd | undefined) {
    this.#onHead = onHead;
  }

  get isOpaque(): boolean {
    return this.#stage === "opaque";
  }

  /** Between two messages. */
  get isBetween(): boolean {
    return this.#stage === "head" && this.#partial === undefined;
  }

  makeOpaque(): void {
    this.#stage = "opaque";
    this.#partial = undefined;
  }

  /** The bytes are not kept. */
  see(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length) {
      switch (this.#stage) {
        case "opaque":
        case "until-close":
          return;
        case "length":
        case "chunk": {
          const taken = Math.min(this.#left, bytes.length - at);
          this.#left -= taken;
          at += taken;
          if (this.#left === 0) this.#endPart();
          break;
        }
        case "head":
          at = this.#seeHead(bytes, at);
          break;
        case "chunk-line":
        case "trailer":
          at = this.#seeLine(bytes, at);
          break;
        default:
          this.#stage satisfies never;
      }
    }
  }

  #endPart(): void {
    if (this.#stage === "chunk") this.#stage = "chunk-line";
    else this.#endMessage();
  }

  #endMessage(): void {
    this.#stage = "head";
    this.ended++;
  }

  #seeHead(bytes: Buffer, from: number): number {
    const kept = this.#partial;
    const all = kept === undefined ? bytes : Buffer.concat([kept, bytes.subarray(from)]);
    const start = kept === undefined ? from : 0;
    const end = all.indexOf(HEAD_END, Math.max(start, (kept?.length ?? 0) - HEAD_END.length));
    if (end < 0) {
      if (all.length - start > HEAD_BYTES_MAX || !mayBeHead(all, start)) this.makeOpaque();
      // A copy: the bytes belong to a buffer that is read into again.
      else this.#partial = Buffer.from(all.subarray(start));
      return bytes.length;
    }
    this.#partial = undefined;
    this.#begin(this.#onHead(all.toString("latin1", start, end + HEAD_END.length)));
    return end + HEAD_END.length - (kept === undefined ? 0 : kept.length - from);
  }

  #begin(body: BodyEnd | undefined): void {
    if (this.#stage === "opaque") return;
    if (body === undefined) return this.makeOpaque();
    if (body.kind === "bytes") {
      this.#left = body.count;
      if (body.count > 0) this.#stage = "length";
      else this.ended++;
    } else this.#stage = body.kind === "chunked" ? "chunk-line" : "until-close";
  }

  #seeLine(bytes: Buffer, from: number): number {
    const end = bytes.indexOf(LF, from);
    const piece = bytes.subarray(from, end < 0 ? bytes.length : end + 1);
    const line = this.#partial === undefined ? piece : Buffer.concat([this.#partial, piece]);
    if (line.length > CHUNK_LINE_MAX) {
      this.makeOpaque();
      return bytes.length;
    }
    this.#partial = end < 0 ? Buffer.from(line) : undefined;
    if (end < 0) return bytes.length;
    const text = line.toString("latin1").trim();
    if (this.#stage === "trailer") {
      if (text === "") this.#endMessage();
    } else this.#beginChunk(text);
    return end + 1;
  }

  #beginChunk(line: string): void {
    const size = /^([0-9a-fA-F]{1,12})(?:\s*;.*)?$/.exec(line)?.[1];
    if (size === undefined) return this.makeOpaque();
    const count = Number.parseInt(size, 16);
    this.#stage = count === 0 ? "trailer" : "chunk";
    this.#left = count + 2;
  }
}

/** Every head begins with a letter: of a method, or of HTTP. TLS does not. */
function mayBeHead(bytes: Buffer, at: number): boolean {
  const first = bytes[at] ?? 0;
  return first >= 0x41 && first <= 0x5a;
}

const LENGTH = /\r\ncontent-length:[ \t]*(\d{1,15})[ \t]*\r\n/i;
const CHUNKED = /\r\ntransfer-encoding:[^\r]*\bchunked[ \t]*\r\n/i;

function bodyEnd(head: string, otherwise: BodyEnd): BodyEnd {
  const length = LENGTH.exec(head)?.[1];
  if (CHUNKED.test(head)) return { kind: "chunked" };
  return length === undefined ? otherwise : { kind: "bytes", count: Number(length) };
}

const NO_BODY: BodyEnd = { kind: "bytes", count: 0 };

/** Both directions of one connection. */
export class Framing {
  /** Methods whose answers have not come. */
  readonly #asked: string[] = [];
  readonly #requests = new Messages((head) => this.#onRequest(head));
  readonly #answers = new Messages((head) => this.#onAnswer(head));
  #informational = 0;

  seeRequest(bytes: Buffer): void {
    this.#requests.see(bytes);
  }

  seeAnswer(bytes: Buffer): void {
    this.#answers.see(bytes);
  }

  get isOpaque(): boolean {
    return this.#requests.isOpaque || this.#answers.isOpaque;
  }

  /** Every request that came is whole and answered. */
  get isIdle(): boolean {
    if (this.isOpaque || !this.#requests.isBetween || !this.#answers.isBetween) return false;
    return this.#requests.ended === this.#answers.ended - this.#informational;
  }

  #onRequest(head: string): BodyEnd | undefined {
    const method = /^([A-Z]+) \S+ HTTP\/1\.[01]\r\n/.exec(head)?.[1];
    if (method === undefined || this.#asked.length >= PIPELINE_MAX) return undefined;
    this.#asked.push(method);
    return bodyEnd(head, NO_BODY);
  }

  #onAnswer(head: string): BodyEnd | undefined {
    const status = Number(/^HTTP\/1\.[01] (\d{3})[ \r]/.exec(head)?.[1]);
    if (Number.isNaN(status)) return undefined;
    if (status >= 100 && status < 200 && status !== 101) {
      this.#informational++;
      return NO_BODY;
    }
    const method = this.#asked.shift();
    const isTunnel = status === 101 || (method === "CONNECT" && status < 300);
    if (method === undefined || isTunnel) {
      this.#requests.makeOpaque();
      return undefined;
    }
    const isEmpty = method === "HEAD" || status === 204 || status === 304;
    return isEmpty ? NO_BODY : bodyEnd(head, { kind: "until-close" });
  }
}
