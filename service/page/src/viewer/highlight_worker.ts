// A worker that looks for marks, so that a pattern that takes for ever can be stopped. It answers once, with nothing,
// when it has started.
import { type Marked, marksIn, patternOf } from "./marks.ts";

export interface Question {
  source: string;
  ignoreCase: boolean;
  texts: string[];
}

export type Answer = [text: string, marks: Marked][];

addEventListener("message", ({ data: { source, ignoreCase, texts } }: MessageEvent<Question>) => {
  const pattern = patternOf(source, ignoreCase);
  postMessage(texts.map((text) => [text, pattern ? marksIn(text, pattern) : []]) satisfies Answer);
});

postMessage([] satisfies Answer);
