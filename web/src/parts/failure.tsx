// SPDX-License-Identifier: Apache-2.0
// What went wrong: the message, what to do about it, the request id for the controller's log, and a way to try again.

import type { ReactNode } from "react";
import { errorRow, isErrorCode } from "../../../src/protocol/errors.ts";
import { Failure, messageOf } from "../../../src/std/errors.ts";
import { Foreign } from "./foreign.tsx";

/** In a browser there is one address and no option to correct. */
function adviceOf(error: Error): string {
  if (!(error instanceof Failure) || !isErrorCode(error.code))
    return "Load the page again; if it stays, this is a bug of the page.";
  return errorRow(error.code).advice;
}

export function FailureBox({ error, onRetry }: { readonly error: Error; readonly onRetry?: () => void }) {
  const requestId = error instanceof Failure ? error.requestId : undefined;
  return (
    <div className="failure" role="alert">
      <p>
        <strong>
          <Foreign text={messageOf(error)} />
        </strong>
      </p>
      <p>{adviceOf(error)}</p>
      {requestId !== undefined && (
        <p className="quiet">
          request <code>{requestId}</code>
        </p>
      )}
      {onRetry !== undefined && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function FailureOf({ error }: { readonly error: Error | null }) {
  return error === null ? null : <FailureBox error={error} />;
}

type Asked<Data> = {
  readonly data: Data | undefined;
  readonly error: Error | null;
  readonly refetch: () => unknown;
};

/** What a query brings: its data; or why there is none; old data stays under a failure. */
export function Loaded<Data>({
  query,
  children,
}: {
  readonly query: Asked<Data>;
  readonly children: (data: Data) => ReactNode;
}) {
  const failure = query.error === null ? null : <FailureBox error={query.error} onRetry={() => void query.refetch()} />;
  if (query.data === undefined) return failure ?? <p className="loading quiet">Loading…</p>;
  return (
    <>
      {failure}
      {children(query.data)}
    </>
  );
}
