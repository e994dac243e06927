// Where the reader is: the part of the address behind `#`, so that a view can be shared, and a prefix of the path does
// not matter.
import { useLayoutEffect, useState } from "preact/hooks";
import type { Query } from "./service/api.ts";

export interface Route {
  path: string[];
  query: URLSearchParams;
}

export function current(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { path: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

function decoded(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

export function link(path: string[], query: Query = {}): string {
  const words = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(words.map(([name, value]) => [name, String(value)])).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** Change parameters of the address. A removed or empty one goes. With `replace` the back button skips the old one. */
export function setQuery(changes: Query, replace = false): void {
  const { path, query } = current();
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === null || value === "") query.delete(name);
    else query.set(name, String(value));
  }
  const target = link(path, Object.fromEntries(query));
  if (replace) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute(): Route {
  const [route, setRoute] = useState(current);
  useLayoutEffect(() => {  // an effect comes after the view is drawn: who is quick has gone on by then
    const update = () => setRoute(current());
    addEventListener("hashchange", update);
    addEventListener("popstate", update);
    return () => {
      removeEventListener("hashchange", update);
      removeEventListener("popstate", update);
    };
  }, []);
  return route;
}
