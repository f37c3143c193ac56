// Prints what the reference's packages know of models, as JSON. Runs in a folder in which they are installed.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { builtinProviders } from "@earendil-works/pi-ai/providers/all";

const inside = (path) => resolve("node_modules/@earendil-works", path);
const { version } = JSON.parse(readFileSync(inside("pi-ai/package.json"), "utf8"));
const resolver = await import(pathToFileURL(inside("pi-coding-agent/dist/core/model-resolver.js")).href);

const providers = {};
for (const { id, getModels } of builtinProviders()) {
  providers[id] = { first: resolver.defaultModelPerProvider[id] ?? null, models: getModels() };
}
console.log(JSON.stringify({ version, providers }));
