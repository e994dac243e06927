// The keys over the lines of a capture: those of `less`, and what leads through an output.
import type { RefObject } from "preact";
import { useKeys } from "../keys.ts";
import { setQuery } from "../route.ts";
import type { Entry } from "../service/wire.ts";
import type { ViewHandle } from "../viewer/view.tsx";
import type { Asked } from "./asked.ts";
import { JUMP } from "./toolbar.tsx";

/** Lines around a match, unless the reader chooses. */
const USUAL_CONTEXT = 2;

interface LineKeys {
  entry: Entry;
  view: Asked;
  handle: RefObject<ViewHandle | null>;
  field: RefObject<HTMLInputElement | null>;
  onNext(step: 1 | -1): void;
  /** Go to another error. */
  onWalk(step: 1 | -1): void;
  onWrap(): void;
  /** Whether it is known what the model saw. */
  canBeBeside: boolean;
}

export function useLineKeys({ entry, view, handle, field, onNext, onWalk, onWrap, canBeBeside }: LineKeys): void {
  const { wanted, context, isBeside } = view;
  useKeys({
    "/": () => field.current?.select(),
    "Ctrl+f": () => field.current?.select(),
    n: () => onNext(1),
    N: () => onNext(-1),
    "&": () => wanted.pattern && setQuery({ only: context === undefined ? USUAL_CONTEXT : null }),
    e: () => onWalk(1),
    E: () => onWalk(-1),
    w: onWrap,
    p: () => canBeBeside && setQuery({ seen: isBeside ? null : 1 }, true),
    g: () => handle.current?.goTo(1),
    G: () => handle.current?.goTo(entry.lines),
    j: () => handle.current?.move(1),
    k: () => handle.current?.move(-1),
    " ": () => handle.current?.page(1),
    b: () => handle.current?.page(-1),
    ":": () => document.getElementById(JUMP)?.focus(),
  });
}
