// What brings a first output here, for views that have nothing to show yet.
import { Code } from "./copy.tsx";

const GUARD = `from overspill import Client, Guard

async with Client() as client, Guard(client, session="run-42") as guard:
    shown = await guard.process(output, tool="pytest")`;

export function FirstSteps({ what }: { what: string }) {
  return (
    <div class="first-steps">
      <div>
        <h3>In the code of an agent</h3>
        <p>Guard its tools, and {what} here:</p>
        <Code label="Guard the tools of an agent" text={GUARD} />
      </div>
      <div>
        <h3>Without code</h3>
        <p>Put the guard in front of any MCP server:</p>
        <Code label="Guard an MCP server" text="overspill mcp-proxy -- npx some-mcp-server" />
        <p>Or run a command whose output is kept:</p>
        <Code label="Keep the output of a command" text="overspill run -- find / -name '*.py'" />
      </div>
    </div>
  );
}
