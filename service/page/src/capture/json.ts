// JSON as it is written: a number that a browser's own would round keeps its digits.

/** A number whose digits are its value. */
export class ExactNumber {
  constructor(readonly digits: string) {}
}

type Reviver = (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown;

/** Return the value of a JSON text, undefined if it is none. */
export function parsedJson(text: string): unknown {
  const exact: Reviver = (_key, value, context) => {
    if (typeof value !== "number" || context?.source === undefined || isExact(value, context.source)) return value;
    return new ExactNumber(context.source);
  };
  try {
    return JSON.parse(text, exact) as unknown;
  } catch {
    return undefined;  // a SyntaxError, or data that is nested too deeply for a tree
  }
}

function isExact(value: number, source: string): boolean {
  return !/^-?\d+$/.test(source) ? Number.isFinite(value) : Number.isSafeInteger(value);
}
