// SPDX-License-Identifier: Apache-2.0
// Who is signed in, for every part of the page, and why a route is beyond their reach.

import { useQuery } from "@tanstack/react-query";
import { createContext, use } from "react";
import type { Who } from "../../../src/protocol/access-schema.ts";
import { type RouteName, routes } from "../../../src/protocol/routes.ts";
import { codeOf } from "../../../src/std/errors.ts";
import { api, WHO_KEY } from "./api.ts";

const REFETCH_MS = 60_000;

const WhoContext = createContext<Who | undefined>(undefined);
export const WhoProvider = WhoContext.Provider;

/** Who is signed in; only below the sign-in gate. */
export function useWho(): Who {
  const who = use(WhoContext);
  if (who === undefined) throw new Error("bug: this part is shown outside of the sign-in gate");
  return who;
}

/** Null: nobody is signed in here. */
export function useSession() {
  return useQuery<Who | null>({
    queryKey: WHO_KEY,
    // A changed role counts from the next request on: the buttons should know it soon.
    refetchInterval: REFETCH_MS,
    queryFn: async ({ signal }) => {
      try {
        return await api.call("whoami", {}, { signal });
      } catch (error) {
        if (codeOf(error) === "unauthenticated") return null;
        throw error;
      }
    },
  });
}

/** Undefined when the signed-in user's scopes reach this route. */
export function whyNotRoute(name: RouteName, who: Who): string | undefined {
  const { access } = routes[name];
  if (access.kind !== "people" || who.scopes.includes(access.scope)) return undefined;
  return `this needs the scope ${access.scope}, which ${who.userName} (${who.role}) does not have here: ask an admin`;
}

export function useWhyNot(name: RouteName): string | undefined {
  return whyNotRoute(name, useWho());
}
