"""Calls every tool with its declared examples through the official Python client, which validates.

Arguments: the OpenAPI document that holds the examples, then the command that starts the server. After the
examples come the calls of `calls.json`, of which it is known whether they fail; `ORIGIN` is the web server
that they name.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def declared_examples(path):
    with open(path, encoding="utf-8") as document:
        paths = json.load(document)["paths"]
    for path, operations in paths.items():
        if path.startswith("/tools/"):
            content = operations["post"]["requestBody"]["content"]["application/json"]
            calls = [example["value"] for example in content.get("examples", {}).values()]
            yield path.removeprefix("/tools/"), calls


def further_calls():
    text = Path(__file__).with_name("calls.json").read_text(encoding="utf-8")
    return json.loads(text.replace("{origin}", os.environ["ORIGIN"]))


async def main():
    document, command, *arguments = sys.argv[1:]
    examples = dict(declared_examples(document))
    faults, n_validated, n_refused = [], 0, 0
    server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        listed = {tool.name: tool for tool in (await session.list_tools()).tools}
        faults += [f"{name} is not listed" for name in examples if name not in listed]
        faults += [f"{name} has no example" for name in listed if name not in examples]
        all_calls = [(name, call, None) for name, calls in examples.items() for call in calls]
        all_calls += [(it["tool"], it["arguments"], it.get("is_error", False)) for it in further_calls()]
        for name, call, is_error in all_calls:
            try:
                result = await session.call_tool(name, call)
            except Exception as fault:
                faults.append(f"{name} {json.dumps(call)}: {fault}")
                continue
            result = result.model_dump(by_alias=True)
            n_refused += bool(result.get("isError"))
            n_validated += result.get("structuredContent") is not None
            if is_error is not None and is_error != bool(result.get("isError")):
                faults.append(f"{name} {json.dumps(call)}: {result['content']}")
            if is_error is False and result.get("structuredContent") is None:
                faults.append(f"{name} {json.dumps(call)}: nothing structured")
    for fault in faults:
        print(f"python: {fault}")
    if faults or n_validated == 0:
        sys.exit(1)
    print(f"python: {len(examples)} tools, {n_validated} answers validated, {n_refused} errors")


asyncio.run(main())
