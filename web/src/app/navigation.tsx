// SPDX-License-Identifier: Apache-2.0
// Where one can go, who is signed in, and the way out. On a narrow screen: a bar below, with the rest behind "More".

import { useQueryClient } from "@tanstack/react-query";
import { Link, useLocation } from "@tanstack/react-router";
import { useState } from "react";
import { ActionButton } from "../parts/button.tsx";
import { FailureOf } from "../parts/failure.tsx";
import { useAction, useApi, WHO_KEY } from "./api.ts";
import { useWho } from "./session.tsx";
import { themes, useTheme } from "./theme.ts";

const first = [
  ["/", "Overview"],
  ["/nodes", "Nodes"],
  ["/jobs", "Jobs"],
] as const;
const rest = [
  ["/models", "Models"],
  ["/projects", "Projects"],
  ["/people", "People"],
  ["/credentials", "Credentials"],
  ["/audit", "Audit"],
] as const;

export function Navigation() {
  const [isOpen, setOpen] = useState(false);
  const { pathname } = useLocation();
  const [at, setAt] = useState(pathname);
  if (at !== pathname) {
    setAt(pathname);
    setOpen(false);
  }
  const who = useWho();
  return (
    <nav aria-label="Pages" className={isOpen ? "open" : undefined}>
      <p className="brand">
        <img src="/icon.svg" alt="" width="20" height="20" /> <span className="cut">{who.organisationName}</span>
      </p>
      <ul className="first">
        {first.map(([to, text]) => (
          <li key={to}>
            <Link
              to={to}
              activeOptions={{ exact: to === "/", includeSearch: false }}
              activeProps={{ "aria-current": "page" }}
            >
              {text}
              {to === "/" && <AttentionCount />}
            </Link>
          </li>
        ))}
        <li className="more">
          <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            More
          </button>
        </li>
      </ul>
      <div className="rest">
        <ul>
          {rest.map(([to, text]) => (
            <li key={to}>
              <Link to={to} activeOptions={{ includeSearch: false }} activeProps={{ "aria-current": "page" }}>
                {text}
              </Link>
            </li>
          ))}
        </ul>
        <Account />
      </div>
    </nav>
  );
}

function AttentionCount() {
  const { data } = useApi("overview", {});
  const count = data?.attention.length ?? 0;
  if (count === 0) return null;
  return (
    <span className="count" title={`${count} to look at`}>
      {count}
      <span className="reader-only"> to look at</span>
    </span>
  );
}

function Account() {
  const who = useWho();
  const cache = useQueryClient();
  const [theme, setTheme] = useTheme();
  const end = (): void => void cache.setQueryData(WHO_KEY, null);
  const signOut = useAction("signOut", end);
  const signOutEverywhere = useAction("userSignOut", end);
  return (
    <div className="account">
      <p>
        <Link to="/account" activeProps={{ "aria-current": "page" }}>
          <strong className="cut">{who.userName}</strong>
        </Link>
        <span className="quiet"> {who.role}</span>
      </p>
      <label className="theme">
        <span className="reader-only">Colours</span>
        <select
          value={theme}
          onChange={(event) => setTheme(themes.find((each) => each === event.target.value) ?? "system")}
        >
          <option value="system">Colours: system</option>
          <option value="light">Colours: light</option>
          <option value="dark">Colours: dark</option>
        </select>
      </label>
      <ActionButton onClick={() => signOut.mutate({})} isPending={signOut.isPending}>
        Sign out
      </ActionButton>
      <ActionButton
        onClick={() => signOutEverywhere.mutate({ params: { userId: who.userId } })}
        isPending={signOutEverywhere.isPending}
      >
        Sign out everywhere
      </ActionButton>
      <FailureOf error={signOut.error ?? signOutEverywhere.error} />
    </div>
  );
}
