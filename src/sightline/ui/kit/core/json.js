// @ts-check
/** JSON as a tree of positions in its text, so that numbers and keys are shown exactly as they are written. */

/**
 * @typedef {object} Node
 * @property {"object" | "array" | "string" | "number" | "literal"} kind
 * @property {number} start
 * @property {number} end
 * @property {Node[]} [items]
 * @property {[number, number]} [key] where its key stands, quotes included
 */

const DEEPEST = 1200;
const SPACE = /[ \t\n\r]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LITERAL = /true|false|null/y;

/** @param {string} text @returns {Node | null} null where it is not JSON */
export function scan(text) {
  const reader = { text, at: 0, depth: 0 };
  try {
    skip(reader);
    const node = value(reader);
    skip(reader);
    return reader.at === text.length ? node : null;
  } catch (error) {
    if (error instanceof NotJson) return null;
    throw error;
  }
}

class NotJson extends Error {}

/** @typedef {{ text: string, at: number, depth: number }} Reader */

/** @param {Reader} reader @returns {Node} */
function value(reader) {
  const start = reader.at;
  switch (reader.text[start]) {
    case "{":
    case "[":
      return readNested(reader);
    case '"':
      return { kind: "string", start, end: pastString(reader) };
    case "t":
    case "f":
    case "n":
      return { kind: "literal", start, end: skipPattern(reader, LITERAL) };
    default:
      return { kind: "number", start, end: skipPattern(reader, NUMBER) };
  }
}

/** @param {Reader} reader @returns {Node} */
function readNested(reader) {
  if (++reader.depth > DEEPEST) throw new NotJson();
  const { text, at: start } = reader;
  const isObject = text[start] === "{";
  const closing = isObject ? "}" : "]";
  /** @type {Node[]} */
  const items = [];
  reader.at++;
  skip(reader);
  while (text[reader.at] !== closing) {
    if (items.length) {
      if (text[reader.at] !== ",") throw new NotJson();
      reader.at++;
      skip(reader);
    }
    /** @type {[number, number] | undefined} */
    let key;
    if (isObject) {
      key = [reader.at, pastString(reader)];
      skip(reader);
      if (text[reader.at] !== ":") throw new NotJson();
      reader.at++;
      skip(reader);
    }
    const item = value(reader);
    if (key) item.key = key;
    items.push(item);
    skip(reader);
  }
  reader.at++;
  reader.depth--;
  return { kind: isObject ? "object" : "array", start, end: reader.at, items };
}

/** @param {Reader} reader */
function skip(reader) {
  SPACE.lastIndex = reader.at;
  SPACE.test(reader.text);
  reader.at = SPACE.lastIndex;
}

/** @param {Reader} reader @param {RegExp} pattern */
function skipPattern(reader, pattern) {
  pattern.lastIndex = reader.at;
  if (!pattern.test(reader.text)) throw new NotJson();
  return (reader.at = pattern.lastIndex);
}

/**
 * By hand, since a pattern with a choice inside a repetition runs out of stack on a long string.
 * @param {Reader} reader
 */
function pastString(reader) {
  const { text } = reader;
  if (text[reader.at] !== '"') throw new NotJson();
  reader.at++;
  while (reader.at < text.length) {
    const code = text.charCodeAt(reader.at);
    if (code === 0x22) return ++reader.at;
    if (code < 0x20) break;
    if (code === 0x5c) skipPattern(reader, ESCAPE);
    else reader.at++;
  }
  throw new NotJson();
}

/**
 * A value in which every number is written back as it was written: 1.0 stays 1.0, and an id of twenty digits keeps them
 * all, where the browser has a way to say so.
 * @param {string} text
 * @returns {any}
 */
export function exactValue(text) {
  const raw = /** @type {{ rawJSON?: (text: string) => unknown }} */ (/** @type {unknown} */ (JSON)).rawJSON;
  if (!raw) return JSON.parse(text);
  /** @param {string} _key @param {unknown} value @param {{ source?: string }} [context] */
  const kept = (_key, value, context) =>
    typeof value === "number" && context?.source !== undefined && String(value) !== context.source
      ? raw(context.source)
      : value;
  return JSON.parse(text, kept);
}

/** @param {string} text */
export function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** What a text says if it is JSON, else the text itself; what is no text is left as it is. @param {any} given */
export function parseOrText(given) {
  return typeof given === "string" && isJson(given) ? JSON.parse(given) : given;
}

/** A string as it is meant. @param {string} text @param {Node} node @returns {string} */
export function stringOf(text, node) {
  return JSON.parse(text.slice(node.start, node.end));
}

/** @param {string} text @param {Node} node @returns {string} its key, empty where it has none */
export function keyOf(text, node) {
  return node.key ? JSON.parse(text.slice(...node.key)) : "";
}

/** @param {string} token @returns {string} one step of a JSON pointer */
export function step(token) {
  return "/" + token.replaceAll("~", "~0").replaceAll("/", "~1");
}

/**
 * The node at a JSON pointer; of a key that is written twice, the last.
 * @param {string} text
 * @param {Node} root
 * @param {string} pointer
 * @returns {Node | null}
 */
export function nodeAt(text, root, pointer) {
  /** @type {Node | undefined} */
  let node = root;
  for (const token of pointer.split("/").slice(1)) {
    const name = token.replaceAll("~1", "/").replaceAll("~0", "~");
    if (node.kind === "array") node = /^(0|[1-9]\d*)$/.test(name) ? node.items?.[Number(name)] : undefined;
    else node = node.items?.findLast((item) => keyOf(text, item) === name);
    if (!node) return null;
  }
  return node;
}

/** @typedef {{ from: number, to: number, indent: number }} Row a stretch of the text; `indent` is for the eye only */

/**
 * The text in rows of its own characters, nothing added or left out but white space between values: one row for each
 * member, as an indented print would have it.
 * @param {string} text
 * @param {Node} root
 * @returns {Row[]}
 */
export function rowsOf(text, root) {
  /** @type {Row[]} */
  const rows = [];
  /** @param {Node} node @param {number} depth @param {number} from @param {number} to */
  const put = (node, depth, from, to) => {
    if (!node.items?.length) {
      rows.push({ from, to, indent: depth });
      return;
    }
    rows.push({ from, to: node.start + 1, indent: depth });
    node.items.forEach((item, index) => {
      const isLast = index === /** @type {Node[]} */ (node.items).length - 1;
      const comma = isLast ? item.end : text.indexOf(",", item.end) + 1;
      put(item, depth + 1, item.key ? item.key[0] : item.start, comma);
    });
    rows.push({ from: node.end - 1, to, indent: depth });
  };
  put(root, 0, root.start, root.end);
  return rows;
}

/**
 * The text as it stands, in rows of at most so many characters.
 * @param {string} text
 * @param {number} columns
 * @returns {Row[]}
 */
export function exactRows(text, columns) {
  /** @type {Row[]} */
  const rows = [];
  let from = 0;
  while (from <= text.length) {
    const line = text.indexOf("\n", from);
    const end = line < 0 ? text.length : line;
    rows.push(...wrapRow({ from, to: end, indent: 0 }, text, columns));
    if (line < 0) break;
    from = line + 1;
  }
  return rows;
}

/** @param {Row} row @param {string} text @param {number} columns @returns {Row[]} */
export function wrapRow(row, text, columns) {
  const most = Math.max(20, columns - 2 * row.indent);
  if (row.to - row.from <= most) return [row];
  /** @type {Row[]} */
  const rows = [];
  for (let from = row.from; from < row.to;) {
    let to = Math.min(row.to, from + most);
    const code = text.charCodeAt(to);
    if (to < row.to && code >= 0xdc00 && code <= 0xdfff) to++;
    rows.push({ from, to, indent: row.indent });
    from = to;
  }
  return rows;
}
