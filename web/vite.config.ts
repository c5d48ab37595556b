// SPDX-License-Identifier: Apache-2.0
// How the page is bundled. Nothing is inlined: the controller's Content-Security-Policy allows files of its own only.

import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  oxc: { jsx: { runtime: "automatic", importSource: "react" } },
  build: {
    target: "es2023",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      // "use client" means nothing here.
      onwarn: (warning, warn) => (warning.code === "MODULE_LEVEL_DIRECTIVE" ? undefined : warn(warning)),
    },
  },
  // npx vite web, beside a running controller.
  server: { proxy: { "/v1": { target: process.env["HOLDFAST_URL"] ?? "http://127.0.0.1:7440" } } },
});
