// Bundles the page: node build.mjs OUTDIR writes index.html, app.js, app.css and favicon.svg there.
// The output depends on the sources and package-lock.json only, so two builds are identical.
import { copyFile, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2];
if (out === undefined || process.argv.length > 3) {
  console.error("usage: node build.mjs OUTDIR");
  process.exit(64);
}

await mkdir(out, { recursive: true });
await build({
  entryPoints: { app: join(here, "src/main.tsx") },
  absWorkingDir: here,
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "warning",
});
for (const file of ["index.html", "favicon.svg"]) {
  await copyFile(join(here, "src", file), join(out, file));
}
