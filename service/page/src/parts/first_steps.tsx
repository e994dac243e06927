// What brings a first output here, for views that have nothing to show yet.
import { Code } from "./small.tsx";

const GUARD = `from overspill import Client, Guard

async with Client() as client, Guard(client, session="run-42") as guard:
    shown = await guard.process(output, tool="pytest")`;

export function GuardLines({ what }: { what: string }) {
  return (
    <>
      <p>Guard the tools of an agent, and {what} here:</p>
      <Code label="Guard the tools of an agent" text={GUARD} />
    </>
  );
}
