// SPDX-License-Identifier: Apache-2.0
// The page's way to the controller: the typed client on the same origin, its answers cached by TanStack Query under
// [route, input]. Rule: a refusal because nobody is signed in ends the session of the page, wherever it comes up.

import { QueryCache, QueryClient, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { createClient, type Input } from "../../../src/client/client.ts";
import type { Who } from "../../../src/protocol/access-schema.ts";
import type { ReplyOf } from "../../../src/protocol/route.ts";
import type { RouteName, RouteOf } from "../../../src/protocol/routes.ts";
import { codeOf } from "../../../src/std/errors.ts";

export type Reply<Name extends RouteName> = ReplyOf<RouteOf<Name>>;

export const WHO_KEY = ["whoami"] as const;
/** A change that the live stream did not tell, such as a clock that moves on, is seen after this long. */
const STALE_MS = 15_000;
const RETRIES = 2;

export const api = createClient({
  baseUrl: window.location.origin,
  csrfToken: () => queryClient.getQueryData<Who | null>(WHO_KEY)?.csrfToken ?? null,
});

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: endSession }),
  defaultOptions: {
    queries: { staleTime: STALE_MS, retry: isWorthRetry, refetchOnWindowFocus: "always" },
    mutations: { onError: endSession },
  },
});

function endSession(error: Error): void {
  if (codeOf(error) === "unauthenticated") queryClient.setQueryData(WHO_KEY, null);
}

function isWorthRetry(failures: number, error: Error): boolean {
  return failures < RETRIES && ["controller_unreachable", "stopping", "database_unavailable"].includes(codeOf(error));
}

export type QueryChoice = { readonly isEnabled?: boolean; readonly refetchMs?: number };

export function useApi<Name extends RouteName>(name: Name, input: Input<Name>, choice: QueryChoice = {}) {
  return useQuery<Reply<Name>>({
    queryKey: [name, input],
    queryFn: ({ signal }) => api.call(name, input, { signal }),
    enabled: choice.isEnabled ?? true,
    refetchInterval: choice.refetchMs ?? false,
  });
}

/** One change; when it is done or refused, everything that is shown is asked for again. */
export function useAction<Name extends RouteName>(name: Name, onDone?: (reply: Reply<Name>) => void) {
  const cache = useQueryClient();
  return useMutation<Reply<Name>, Error, Input<Name>>({
    mutationFn: (input) => api.call(name, input),
    onSuccess: (reply) => onDone?.(reply),
    onSettled: () => cache.invalidateQueries({ predicate: (query) => query.queryKey[0] !== WHO_KEY[0] }),
  });
}
