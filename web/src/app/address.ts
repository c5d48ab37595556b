// SPDX-License-Identifier: Apache-2.0
// What stands in the page's address: text from outside, read as such.

import { useParams, useSearch } from "@tanstack/react-router";

/** One value of a parsed search; the router reads a search for 42 as a number. */
export function searchText(search: unknown, key: string): string | undefined {
  if (typeof search !== "object" || search === null) return undefined;
  const value: unknown = Object.hasOwn(search, key) ? Reflect.get(search, key) : undefined;
  const text = typeof value === "number" ? String(value) : value;
  return typeof text === "string" && text !== "" ? text : undefined;
}

/** A part of the path that the route names, such as jobId. */
export function useParam(key: string): string {
  const params: unknown = useParams({ strict: false });
  return searchText(params, key) ?? "";
}

export function useSearchOf<Search>(read: (search: unknown) => Search): Search {
  const search: unknown = useSearch({ strict: false });
  return read(search);
}
