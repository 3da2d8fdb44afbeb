// Calls every tool with its declared examples through the official TypeScript client, which validates.
//
// Arguments: the OpenAPI document that holds the examples, then the command that starts the server. After
// the examples come the calls of `calls.json`, of which it is known whether they fail; `ORIGIN` is the web
// server that they name.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The client lies where it was installed, not beside this file.
const installed = createRequire(pathToFileURL(`${process.cwd()}/package.json`));
const load = (name) => import(pathToFileURL(installed.resolve(name)));
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");

const [document, command, ...args] = process.argv.slice(2);
const examples = new Map();
for (const [path, operations] of Object.entries(JSON.parse(readFileSync(document, "utf8")).paths)) {
  if (path.startsWith("/tools/")) {
    const { examples: declared } = operations.post.requestBody.content["application/json"];
    const calls = Object.values(declared ?? {}).map((example) => example.value);
    examples.set(path.slice("/tools/".length), calls);
  }
}

// What a validator warns of is a fault of a schema.
const faults = [];
console.warn = (...words) => faults.push(words.join(" "));

const client = new Client({ name: "sdk-clients", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" }));
const listed = new Set((await client.listTools()).tools.map((tool) => tool.name));
for (const name of examples.keys()) {
  if (!listed.has(name)) faults.push(`${name} is not listed`);
}
const further = readFileSync(new URL("calls.json", import.meta.url), "utf8");
const allCalls = [...examples].flatMap(([name, calls]) => calls.map((call) => ({ name, call })));
for (const it of JSON.parse(further.replaceAll("{origin}", process.env.ORIGIN))) {
  allCalls.push({ name: it.tool, call: it.arguments, isError: it.is_error ?? false });
}
let nValidated = 0;
let nRefused = 0;
for (const { name, call, isError } of allCalls) {
  const fault = (text) => faults.push(`${name} ${JSON.stringify(call)}: ${text}`);
  try {
    const result = await client.callTool({ name, arguments: call });
    nRefused += result.isError ? 1 : 0;
    nValidated += result.structuredContent === undefined ? 0 : 1;
    if (isError !== undefined && isError !== Boolean(result.isError)) fault(JSON.stringify(result.content));
    if (isError === false && result.structuredContent === undefined) fault("nothing structured");
  } catch (error) {
    fault(error.message);
  }
}
await client.close();
for (const fault of faults) console.log(`typescript: ${fault}`);
if (faults.length > 0 || nValidated === 0) process.exit(1);
console.log(`typescript: ${examples.size} tools, ${nValidated} answers validated, ${nRefused} errors`);
