// @ts-check
/** The exact bytes: to be sent, received, or replied, with every edited place marked. */

import { bytes } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { copyText } from "../../kit/copy.js";
import { Heights } from "../../kit/core/heights.js";
import { exactRows, rowsOf, nodeAt, scan, wrapRow } from "../../kit/core/json.js";
import { countOf } from "../../kit/core/format.js";
import { rangesOfChanges } from "../../kit/core/text-diff.js";
import { checkbox, textField } from "../../kit/fields.js";
import { Icon } from "../../kit/icon.js";
import { segmentControl } from "../../kit/segmented.js";
import { VirtualList } from "../../kit/virtual-list.js";
import { h, html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../../vendor/preact.js";
import { isHeld, proof } from "./core/exchange.js";

/** @import { Row } from "../../kit/core/json.js" */
/** @import { Desk } from "./desk.js" */

const ROW = 18;
/** @typedef {{ text: string, size: number, sha256: string, isText: boolean }} Body */

/** @param {string} path @returns {Promise<Body>} */
async function loadBody(path) {
  const data = await bytes(path);
  let text;
  let isText = true;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
  } catch {
    text = new TextDecoder().decode(data);
    isText = false;
  }
  return { text, size: data.length, sha256: await sha256Of(data), isText };
}

/** The hash of what is shown is worked out here, from the bytes that were got. @param {Uint8Array} data */
export async function sha256Of(data) {
  if (!globalThis.crypto?.subtle) return "";
  const digest = await crypto.subtle.digest("SHA-256", /** @type {any} */ (data));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {{ desk: Desk }} props */
export function Wire({ desk }) {
  const view = desk.view.value;
  const isCalls = isHeld(view) && view?.hold?.phase === "tool_calls";
  const [of, setOf] = useState(isCalls ? "held" : "sent");
  const [body, setBody] = useState(/** @type {Body | null} */ (null));
  const [original, setOriginal] = useState(/** @type {string | null} */ (null));
  const [problem, setProblem] = useState("");
  const [isIndented, setIndented] = useState(false);
  const key = of === "reply" ? String(desk.heard.value) : view?.body_sha256;
  useEffect(() => {
    let isThere = true;
    void desk
      .flush()
      .then(() => loadBody(`${desk.path}/body${of === "sent" ? "" : `?of=${of}`}`))
      .then(
        (found) => isThere && (setBody(found), setProblem("")),
        (error) => isThere && (setBody(null), setProblem([error.message, error.hint].filter(Boolean).join(" "))),
      );
    return () => void (isThere = false);
  }, [desk, of, key, view?.state]);
  const wasEdited = view?.dirty || (view?.facts ?? []).some((fact) => fact.kind === "edited");
  useEffect(() => {
    let isThere = true;
    setOriginal(null);
    if (wasEdited && of === "sent") void originalOf(desk).then((text) => isThere && setOriginal(text));
    return () => void (isThere = false);
  }, [desk, of, wasEdited]);
  const marks = useMemo(
    () => (body && original !== null && of === "sent" ? rangesOfChanges(original, body.text) : []),
    [body, original, of],
  );
  const choices = [
    { value: "sent", label: isHeld(view) ? "To be sent" : "Sent" },
    { value: "received", label: "From the client" },
    { value: "reply", label: "Reply" },
    ...(isCalls ? [{ value: "held", label: "Held tool calls" }] : []),
  ];
  return html`<div class="wire">
    <div class="toolbar">
      ${segmentControl({
        label: "Which body",
        value: of,
        choices,
        onChange: (value) => (setBody(null), setOf(value)),
      })}
      ${checkbox("Indent", isIndented, setIndented)}
      <span class="card-gap"></span>
      ${body ? h(Hash, { desk, body, of }) : null}
      ${button("Copy", () => body && void copyText(body.text), { icon: "copy", isDisabled: !body })}
    </div>
    ${problem ? html`<div class="empty"><p class="soft">${problem}</p></div>` : null}
    ${!body && !problem ? html`<p class="faint pad">Loading…</p>` : null}
    ${body ? h(Bytes, { desk, body, marks, isIndented }) : null}
  </div>`;
}

/** The body before a person touched it. @param {Desk} desk @returns {Promise<string | null>} */
async function originalOf(desk) {
  for (const of of ["original", "received"]) {
    const isTranslated = desk.view.peek()?.facts?.some((fact) => fact.kind === "translated");
    if (of === "received" && isTranslated) return null;
    try {
      return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await bytes(`${desk.path}/body?of=${of}`));
    } catch {
      // The next way to know it.
    }
  }
  return null;
}

/** @param {{ desk: Desk, body: Body, of: string }} props */
function Hash({ desk, body, of }) {
  const view = desk.view.value;
  const claim = proof(view);
  const expected =
    of === "sent"
      ? claim.sent || view?.body_sha256
      : of === "held"
        ? view?.body_sha256
        : of === "received"
          ? view?.hashes?.received
          : view?.hashes?.reply;
  const isSame = !body.sha256 || !expected || expected === body.sha256;
  const words =
    of !== "sent" ? "" : claim.state === "same" ? "sent = shown" : claim.state === "different" ? "sent ≠ shown" : "";
  return html`<span class="wire-hash">
    ${
      words &&
      html`<span class=${`proof ${claim.state}`}>
        ${h(Icon, { name: claim.state === "same" ? "check" : "warn" })}
        ${words}
      </span>`
    }
    <span class="soft number">${body.size.toLocaleString("en-US")} bytes${body.isText ? "" : ", not UTF-8"}</span>
    <code
      class=${isSame ? "hash" : "hash bad"}
      title=${
        isSame
          ? `SHA-256 of these bytes, worked out in this page: ${body.sha256}`
          : `These bytes have the hash ${body.sha256}, but the record says ${expected}`
      }
    >
      sha256 ${(body.sha256 || expected || "").slice(0, 16)}…
    </code>
    ${isSame ? null : html`<span class="bad">not what the record says</span>`}
  </span>`;
}

/**
 * @param {{ desk: Pick<Desk, "shownPointer">, body: Pick<Body, "text">, marks: [number, number][], isIndented: boolean
 *   }} props
 */
export function Bytes({ desk, body, marks, isIndented }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [columns, setColumns] = useState(120);
  const [find, setFind] = useState("");
  const [place, setPlace] = useState(0);
  const { text } = body;
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const probe = document.createElement("span");
    probe.className = "wire-probe";
    probe.textContent = "0".repeat(50);
    element.append(probe);
    const width = probe.getBoundingClientRect().width / 50 || 7.2;
    probe.remove();
    const sized = new ResizeObserver(() => setColumns(Math.max(30, Math.floor((element.clientWidth - 84) / width))));
    sized.observe(element);
    return () => sized.disconnect();
  }, []);
  const tree = useMemo(() => scan(text), [text]);
  const rows = useMemo(() => {
    if (isIndented && tree) return rowsOf(text, tree).flatMap((row) => wrapRow(row, text, columns));
    return exactRows(text, columns);
  }, [text, tree, isIndented, columns]);
  const pointer = desk.shownPointer.value;
  const aimed = useMemo(() => {
    const node = pointer && tree ? nodeAt(text, tree, pointer) : null;
    return node ? /** @type {[number, number]} */ ([node.start, node.end]) : null;
  }, [pointer, tree]);
  const hits = useMemo(() => findAll(text, find), [text, find]);
  const target = find
    ? (hits[place % Math.max(1, hits.length)]?.[0] ?? -1)
    : aimed
      ? aimed[0]
      : place && marks.length
        ? marks[(place - 1) % marks.length][0]
        : -1;
  const active = useMemo(
    () =>
      target < 0
        ? -1
        : Math.max(
            rows.findLastIndex((row) => row.from <= target),
            0,
          ),
    [rows, target],
  );
  const heights = useMemo(() => new Heights(rows.length, ROW), [rows]);
  const list = useRef(/** @type {import("../../kit/virtual-list.js").ListHandle | null} */ (null));
  useLayoutEffect(() => {
    if (active >= 0) list.current?.show(active, "third");
  }, [active, place, pointer, find]);
  const step = (/** @type {number} */ by) =>
    setPlace(
      (now) => (now + by + Math.max(1, hits.length || marks.length + 1)) % Math.max(1, hits.length || marks.length + 1),
    );
  return html`<div class="wire-tools in-row">
      ${textField(find, (wanted) => (setFind(wanted), setPlace(0)), {
        label: "Find in these bytes",
        kind: "wire-find",
        type: "search",
        placeholder: "Find in these bytes",
        onKeyDown: (/** @type {KeyboardEvent} */ event) => event.key === "Enter" && step(event.shiftKey ? -1 : 1),
      })}
      ${
        find &&
        html`<span class="soft number" role="status">
          ${
            hits.length
              ? `${(place % hits.length) + 1} of ${hits.length}${hits.length >= MOST_HITS ? "+" : ""}`
              : "not found"
          }
        </span>`
      }
      <span class="card-gap"></span>
      ${
        marks.length
          ? button(
              html`<i class="mark-sample" aria-hidden="true"></i>
                ${countOf(marks.length, "edited place")}
                ${place && !find ? ` · at ${((place - 1) % marks.length) + 1}` : ""}`,
              () => (setFind(""), (desk.shownPointer.value = ""), setPlace(place + 1)),
              { kind: "quiet" },
            )
          : null
      }
      ${
        pointer &&
        button(html`<code>${pointer}</code>${h(Icon, { name: "close" })}`, () => (desk.shownPointer.value = ""), {
          kind: "quiet",
          title: "Stop showing this place",
        })
      }
    </div>
    <div class="wire-bytes" ref=${box} dir="ltr">
      ${h(VirtualList, {
        heights,
        handle: list,
        attributes: { tabindex: 0, role: "region", "aria-label": "Exact bytes" },
        render: (index) =>
          h(WireRow, { text, row: rows[index], number: index + 1, marks, hits, aimed, isHere: index === active }),
      })}
    </div>`;
}

const MOST_HITS = 2000;

/** @param {string} text @param {string} wanted @returns {[number, number][]} */
function findAll(text, wanted) {
  /** @type {[number, number][]} */
  const hits = [];
  if (!wanted) return hits;
  for (let at = text.indexOf(wanted); at >= 0 && hits.length < MOST_HITS; at = text.indexOf(wanted, at + wanted.length))
    hits.push([at, at + wanted.length]);
  return hits;
}

/** Signs that are not seen, or that turn what is seen, are written out. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/**
 * @param {{ text: string, row: Row, number: number, marks: [number, number][], hits: [number, number][], aimed:
 *   [number, number] | null, isHere: boolean }} props
 */
function WireRow({ text, row, number, marks, hits, aimed, isHere }) {
  const spans = [
    ...within(marks, row, "wire-mark"),
    ...within(hits, row, "wire-hit"),
    ...(aimed ? within([aimed], row, "wire-aim") : []),
  ];
  const cuts = [
    ...new Set([
      row.from,
      row.to,
      ...spans.flatMap((span) => [Math.max(row.from, span.from), Math.min(row.to, span.to)]),
    ]),
  ].sort((a, b) => a - b);
  const pieces = cuts.slice(0, -1).map((from, index) => {
    const to = cuts[index + 1];
    const names = spans.filter((span) => span.from <= from && span.to >= to).map((span) => span.name);
    const shown = visible(text.slice(from, to));
    return names.length ? html`<span class=${names.join(" ")}>${shown}</span>` : shown;
  });
  const gone = spans.some((span) => span.from === span.to);
  return html`<div class=${isHere ? "wire-row is-here" : "wire-row"}>
    <span class="wire-number" aria-hidden="true">${number}</span>
    <span class="wire-text" style=${{ paddingLeft: `${row.indent * 2}ch` }}>
      ${pieces}
      ${gone ? html`<span class="wire-gone" title="Something was removed here">◂</span>` : null}
    </span>
  </div>`;
}

/** @param {[number, number][]} ranges in order @param {Row} row @param {string} name */
function within(ranges, row, name) {
  const inside = [];
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ranges[middle][1] < row.from) low = middle + 1;
    else high = middle;
  }
  for (let at = low; at < ranges.length && ranges[at][0] <= row.to; at++) {
    const [from, to] = ranges[at];
    if (from < row.to) inside.push({ from, to, name });
  }
  return inside;
}

/** @param {string} text */
function visible(text) {
  if (!HIDDEN.test(text)) return text;
  HIDDEN.lastIndex = 0;
  const pieces = [];
  let at = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > at) pieces.push(text.slice(at, match.index));
    pieces.push(
      html`<span class="hidden-sign" title="An invisible character">
        ${`U+${match[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`}
      </span>`,
    );
    at = match.index + 1;
  }
  return [...pieces, text.slice(at)];
}
