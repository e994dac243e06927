// What stands in the place of an answer: that it is awaited, a problem, or that there is nothing.
import type { ComponentChildren } from "preact";
import { sentence } from "../format.ts";
import type { Loaded } from "../load.ts";
import { Problem } from "../service/api.ts";
import { visible } from "../viewer/text.ts";

/** Show an answer as `children` draw it. It stays in view if a newer one cannot be had, and says so. */
export function Shown<T>({ of: found, children }: { of: Loaded<T>; children(answer: T): ComponentChildren }) {
  return (
    <>
      {found.problem && <Trouble problem={found.problem} onRetry={found.retry} isStale={found.answer !== undefined} />}
      {found.answer !== undefined ? children(found.answer) : !found.problem && <Waiting />}
    </>
  );
}

export function Waiting() {
  return (
    <p class="waiting quiet" role="status">
      Loading…
    </p>
  );
}

interface TroubleProps {
  problem: Error;
  onRetry?: (() => void) | undefined;
  /** Whether something older is in view. */
  isStale?: boolean;
}

export function Trouble({ problem, onRetry, isStale = false }: TroubleProps) {
  const isPassing = problem instanceof Problem && problem.isPassing;
  const mayRetry = onRetry !== undefined && problem instanceof Problem;  // nothing else changes by itself
  return (
    <div class="trouble" role="alert">
      <p>
        {visible(sentence(problem.message))}
        {isStale && " What is shown is older."}
        {isPassing && mayRetry && " The page tries again by itself."}
      </p>
      {mayRetry && <button type="button" class="small" onClick={onRetry}>Try again</button>}
    </div>
  );
}

/** What to do next where nothing is shown. `isPage`: there is nothing else on the page. */
export function Empty({ title, isPage = false, children }: { title: string; isPage?: boolean; children: ComponentChildren }) {
  return (
    <section class="empty">
      {isPage ? <h1>{title}</h1> : <h2>{title}</h2>}
      {children}
    </section>
  );
}
