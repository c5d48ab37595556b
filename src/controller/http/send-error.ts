// SPDX-License-Identifier: Apache-2.0
// What a failed request is answered with: a code of the closed table, one sentence, the request id. A 5xx carries no detail;
// the log has it under the same id.

import type { FastifyReply, FastifyRequest } from "fastify";
import { errorRow, isErrorCode } from "../../protocol/errors.ts";
import { BODY_BYTES_MAX } from "../../protocol/limits.ts";
import { codeOf, Failure, messageOf } from "../../std/errors.ts";
import type { Context } from "../context.ts";

export function sendError(
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
): FastifyReply {
  const failure = toFailure(error);
  const row = errorRow(failure.code);
  const status = row.status === 0 ? 500 : row.status;
  if (status >= 500)
    context.log.error(
      {
        requestId: request.id,
        method: request.method,
        path: pathOf(request),
        error: messageOf(error),
        stack: stackOf(error),
      },
      "request failed",
    );
  const message = status === 500 ? "something went wrong inside the controller" : failure.message;
  const details = status < 500 && failure.details.length > 0 ? { details: failure.details } : {};
  if (row.retry === "later" && status < 500) reply.header("retry-after", "10");
  if (status === 401) reply.header("www-authenticate", 'Bearer realm="holdfast"');
  return reply
    .code(status)
    .send({ code: status === 500 ? "internal" : failure.code, message, requestId: request.id, ...details });
}

function stackOf(error: unknown): string | undefined {
  return error instanceof Error && !(error instanceof Failure) ? error.stack : undefined;
}

/** Fastify's own refusals in our words. */
function toFailure(error: unknown): Failure {
  if (error instanceof Failure && isErrorCode(error.code)) return error;
  const code = codeOf(error);
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE")
    return new Failure("payload_too_large", `the body is larger than ${BODY_BYTES_MAX} bytes`);
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE")
    return new Failure("unsupported_media_type", "the body must be application/json");
  if (code === "FST_ERR_BAD_URL" || code === "FST_ERR_MAX_PARAM_LENGTH")
    return new Failure("not_found", "there is no such address here");
  const status = typeof error === "object" && error !== null && "statusCode" in error ? error.statusCode : undefined;
  if (typeof status === "number" && status >= 400 && status < 500)
    return new Failure("invalid_request", messageOf(error), { cause: error });
  return new Failure("internal", messageOf(error), { cause: error });
}

/** Without the query, which a log has no business with. */
export function pathOf(request: FastifyRequest): string {
  return request.url.split("?")[0] ?? "";
}
