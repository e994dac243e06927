// A fault in one view leaves the others usable, and is said.
import { Component, type ComponentChildren } from "preact";
import { Empty } from "../parts/states.tsx";
import { link } from "../route.ts";

interface Props {
  children: ComponentChildren;
}

export class Boundary extends Component<Props, { problem?: Error }> {
  static override getDerivedStateFromError(problem: Error): { problem: Error } {
    return { problem };
  }

  override componentDidCatch(problem: Error): void {
    reportError(problem);
  }

  override render({ children }: Props) {
    const { problem } = this.state;
    if (!problem) return children;
    return (
      <Empty isPage title="This view cannot be shown">
        <p>The page has a fault here: <code>{problem.message}</code></p>
        <p class="actions"><button type="button" onClick={() => location.reload()}>Load the page again</button> <a class="button" href={link([])}>Dashboard</a></p>
      </Empty>
    );
  }
}
