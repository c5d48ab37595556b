// SPDX-License-Identifier: Apache-2.0
// The part of the OpenAI API that a sample server speaks: what is read of a request, and how answers look, whole and as
// events. Pure. Rule: fields that it does not know are let through, as other servers do; those that it reads must be right.

export type Kind = "chat" | "text";

export type Asked = {
  readonly prompt: string;
  readonly tokensMax: number;
  readonly isStream: boolean;
  readonly isUsageWanted: boolean;
};

export type ReadAsked =
  | { readonly kind: "asked"; readonly asked: Asked }
  | { readonly kind: "refused"; readonly why: string };

const refused = (why: string): ReadAsked => ({ kind: "refused", why });

type Fields = { readonly [name: string]: unknown };

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function readAsked(kind: Kind, text: string): ReadAsked {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return refused("the body is no JSON");
  }
  if (!isFields(body)) return refused("the body is no JSON object");
  const prompt = kind === "chat" ? chatPrompt(body["messages"]) : textPrompt(body["prompt"]);
  if (prompt === undefined)
    return refused(kind === "chat" ? "messages is a list of objects with content" : "prompt is a string");
  const tokensMax = body["max_completion_tokens"] ?? body["max_tokens"] ?? Number.MAX_SAFE_INTEGER;
  if (typeof tokensMax !== "number" || !Number.isSafeInteger(tokensMax) || tokensMax < 1)
    return refused("max_tokens is a whole number from 1");
  const stream = body["stream"] ?? false;
  if (typeof stream !== "boolean") return refused("stream is true or false");
  const options = body["stream_options"];
  return {
    kind: "asked",
    asked: {
      prompt,
      tokensMax,
      isStream: stream,
      isUsageWanted: isFields(options) && options["include_usage"] === true,
    },
  };
}

function textPrompt(prompt: unknown): string | undefined {
  return typeof prompt === "string" ? prompt : undefined;
}

function chatPrompt(messages: unknown): string | undefined {
  if (!Array.isArray(messages) || messages.length === 0) return undefined;
  const contents = messages.map((message: unknown) => (isFields(message) ? contentOf(message["content"]) : undefined));
  return contents.every((content) => content !== undefined) ? contents.join("\n") : undefined;
}

/** A text, or parts of which the text is taken. */
function contentOf(content: unknown): string | undefined {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return undefined;
  return content.map((part: unknown) => (isFields(part) ? String(part["text"] ?? "") : "")).join("");
}

export type Answer = {
  readonly kind: Kind;
  readonly id: string;
  readonly model: string;
  /** Seconds since 1970. */
  readonly created: number;
};

export type Usage = { readonly promptTokens: number; readonly answerTokens: number };

const head = ({ id, model, created }: Answer, object: string): object => ({ id, object, created, model });
const usageOf = ({ promptTokens, answerTokens }: Usage): object => ({
  prompt_tokens: promptTokens,
  completion_tokens: answerTokens,
  total_tokens: promptTokens + answerTokens,
});

export function wholeAnswer(answer: Answer, text: string, reason: string, usage: Usage): object {
  const choice =
    answer.kind === "chat"
      ? { index: 0, message: { role: "assistant", content: text }, finish_reason: reason }
      : { index: 0, text, finish_reason: reason };
  return {
    ...head(answer, answer.kind === "chat" ? "chat.completion" : "text_completion"),
    choices: [choice],
    usage: usageOf(usage),
  };
}

/** reason: null while more comes. */
export function pieceOfAnswer(answer: Answer, text: string, reason: string | null): object {
  const isEnd = reason !== null;
  const choice =
    answer.kind === "chat"
      ? { index: 0, delta: isEnd ? {} : { content: text }, finish_reason: reason }
      : { index: 0, text, finish_reason: reason };
  return { ...head(answer, answer.kind === "chat" ? "chat.completion.chunk" : "text_completion"), choices: [choice] };
}

export function usagePiece(answer: Answer, usage: Usage): object {
  return {
    ...head(answer, answer.kind === "chat" ? "chat.completion.chunk" : "text_completion"),
    choices: [],
    usage: usageOf(usage),
  };
}

export const event = (json: object): string => `data: ${JSON.stringify(json)}\n\n`;
export const LAST_EVENT = "data: [DONE]\n\n";

export function errorBody(status: number, message: string): object {
  return { error: { code: status, message, type: status < 500 ? "invalid_request_error" : "unavailable_error" } };
}
