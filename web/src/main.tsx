// SPDX-License-Identifier: Apache-2.0
// Starts the page: the cache, who is signed in, and the pages behind it.

import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "./app/api.ts";
import { router } from "./app/router.tsx";
import "uplot/dist/uPlot.min.css";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/pages.css";
import "./styles/scenes.css";
import "./styles/enrol.css";

const root = document.getElementById("root");
if (root === null) throw new Error("bug: index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
