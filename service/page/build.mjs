// Builds the page into the service's package: the same bytes on every machine.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename } from "node:path";

const target = process.argv[2] ?? "../overspill_service/web/page_files";
await mkdir(target, { recursive: true });
for (const name of await readdir(target)) await rm(`${target}/${name}`, { recursive: true });

/** Copy a file under a name with a digest of its content. */
async function copied(path) {
  const data = await readFile(path);
  const digest = createHash("sha256").update(data).digest("hex").slice(0, 8);
  const name = basename(path).replace(".", `-${digest}.`);
  await writeFile(`${target}/${name}`, data);
  return name;
}

const common = {
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  outdir: target,
  metafile: true,
};

/** Return the name of what a build made of a source. */
function nameOf(built, source) {
  return basename(Object.entries(built.metafile.outputs).find(([, { entryPoint }]) => entryPoint === source)[0]);
}

const worker = await build({ ...common, entryPoints: ["src/viewer/highlight_worker.ts"], entryNames: "worker-[hash]" });
const built = await build({
  ...common,
  entryPoints: ["src/main.tsx", "src/styles/style.css"],
  splitting: true,
  jsx: "automatic",
  jsxImportSource: "preact",
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  define: { HIGHLIGHT_WORKER: JSON.stringify(`page/${nameOf(worker, "src/viewer/highlight_worker.ts")}`) },
});
const script = nameOf(built, "src/main.tsx");
const style = nameOf(built, "src/styles/style.css");
const icon = await copied("src/icon.svg");

await writeFile(
  `${target}/index.html`,
  `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Overspill</title>
<link rel="icon" href="page/${icon}" type="image/svg+xml">
<link rel="stylesheet" href="page/${style}">
<script type="module" src="page/${script}"></script>
<div id="app"><noscript><main><p>This page needs JavaScript. Everything on it is also in the command <code>overspill</code>.</p></main></noscript></div>
</html>
`,
);
