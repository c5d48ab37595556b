// SPDX-License-Identifier: Apache-2.0
// The address of a login link, /sign-in#hfl_…. Rule: the secret leaves the address and the history before anything is sent.

import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState, type ReactNode } from "react";
import { SignIn } from "./sign-in.tsx";

function takeSecret(): string | undefined {
  const secret = window.location.hash.slice(1);
  if (!secret.startsWith("hfl_")) return undefined;
  window.history.replaceState(window.history.state, "", window.location.pathname);
  return secret;
}

// When the page is loaded, before anything else runs; React may call what it renders twice.
let first = window.location.pathname === "/sign-in" ? takeSecret() : undefined;

export function SignInPage(): ReactNode {
  const navigate = useNavigate();
  const [secret, setSecret] = useState(first);
  useEffect(() => {
    first = undefined;
    // A second link that is opened in the same tab only changes what stands behind the #.
    const take = (): void => setSecret((before) => takeSecret() ?? before);
    window.addEventListener("hashchange", take);
    return () => window.removeEventListener("hashchange", take);
  }, []);
  return <SignIn key={secret} secret={secret} onDone={() => void navigate({ to: "/", replace: true })} />;
}
