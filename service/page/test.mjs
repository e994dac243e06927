// Runs the tests of what only computes, in Node, which does not read TypeScript: they are bundled first.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = await mkdtemp(join(tmpdir(), "overspill-page-test-"));
const entryPoints = (await readdir("test")).filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`);
await build({ entryPoints, bundle: true, format: "esm", platform: "node", target: "es2022", outdir: folder, outExtension: { ".js": ".mjs" }, logLevel: "warning" });
const files = (await readdir(folder)).map((name) => join(folder, name));
const { status } = spawnSync(process.execPath, ["--test", "--test-reporter=dot", ...files], { stdio: "inherit" });
await rm(folder, { recursive: true });
process.exit(status ?? 1);
