// SPDX-License-Identifier: Apache-2.0
// The log is an argument. Field names are stable: they are what an operator greps for. Secrets never enter it.

export type LogFields = { readonly [field: string]: unknown };

export type Log = {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  child(fields: LogFields): Log;
};

/** Drops everything: for tests that look at behaviour, not at lines. */
export const silentLog: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silentLog,
};
