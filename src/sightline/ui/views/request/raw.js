// @ts-check
/** An exchange that passed as it was: its two bodies, each shown as what it is. Nothing in them becomes markup. */

import { bytes } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { CopyButton } from "../../kit/copy.js";
import { countOf, whole } from "../../kit/core/format.js";
import { JsonView } from "../../kit/json-view.js";
import { h, html, useEffect, useMemo, useState } from "../../vendor/preact.js";
import { batchOf, essence, eventsOf, kindOf, partsOf, sizeWords, textOf } from "./core/raw.js";
import { Reply } from "./reply.js";

/** @import { RawBodyShown } from "../../api-types.d.ts" */
/** @import { BatchItem, FormPart } from "./core/raw.js" */
/** @import { Desk } from "./desk.js" */

const MOST_ITEMS = 200;
const MOST_TEXT = 256 * 1024;

/** @param {{ desk: Desk }} props */
export function Raw({ desk }) {
  const raw = desk.view.value?.raw;
  if (!raw) return null;
  return html`<div class="raw-bodies">
    ${raw.is_read ? h(Reply, { desk }) : null}
    ${h(Body, { key: "request", desk, of: "sent", name: "Request body", body: raw.request ?? null })}
    ${h(Body, { key: "reply", desk, of: "reply", name: "Answer", body: raw.reply ?? null })}
  </div>`;
}

/** @param {{ desk: Desk, of: string, name: string, body: RawBodyShown | null, key?: string }} props */
function Body({ desk, of, name, body }) {
  const [data, setData] = useState(/** @type {Uint8Array | null} */ (null));
  const [problem, setProblem] = useState("");
  const size = body?.size ?? 0;
  useEffect(() => {
    if (!size) return undefined;
    const leaving = new AbortController();
    bytes(`${desk.path}/body?of=${of}`, { signal: leaving.signal }).then(setData, (error) => {
      if (!leaving.signal.aborted) setProblem(error.message);
    });
    return () => leaving.abort();
  }, [desk, of, size]);
  const isPassing = ["sending", "streaming"].includes(desk.view.value?.state ?? "") && !body;
  return html`<article class="card boxed" aria-label=${name}>
    <header class="card-head in-row">
      <h3 class="card-label">${name}</h3>
      ${body?.media_type ? html`<code class="faint cut">${body.media_type}</code>` : null}
      <span class="card-gap"></span>
      ${body ? html`<span class="soft number" title=${`${whole(size)} bytes`}>${sizeWords(size)}</span>` : null}
    </header>
    ${body && size ? h(Hash, { body }) : null}
    <div class="card-body">
      ${problem ? html`<p class="soft">${problem}</p>` : null}
      ${
        body && size
          ? data && h(Content, { type: body.media_type, data, isWhole: body.kept === size && !body.coding, name })
          : html`<p class="faint">${isPassing ? "It is arriving…" : "There is none."}</p>`
      }
    </div>
  </article>`;
}

/** @param {{ body: RawBodyShown }} props */
function Hash({ body }) {
  const notes = [
    body.kept < body.size ? `The first ${sizeWords(body.kept)} are on record.` : "",
    body.coding ? `Its size is that of the ${body.coding} encoding.` : "",
    body.is_whole === false ? "It was interrupted." : "",
  ].filter(Boolean);
  return html`<p class="raw-hash in-row faint">
    <code class="cut" title="SHA-256 of the whole body">${body.sha256}</code>${h(CopyButton, {
      text: body.sha256,
      label: "Copy the hash",
    })}
    ${notes.join(" ")}
  </p>`;
}

/** @param {{ type: string, data: Uint8Array, isWhole: boolean, name: string }} props */
function Content({ type, data, isWhole, name }) {
  const kind = useMemo(() => kindOf(type, data, isWhole), [type, data, isWhole]);
  const text = kind === "binary" ? "" : (textOf(data, isWhole) ?? "");
  switch (kind) {
    case "json":
      return h(JsonView, { text, open: 3, label: name });
    case "batch":
      return h(Batch, { what: "Request", items: batchOf(text) ?? [] });
    case "form":
      return h(Form, { parts: partsOf(type, data) });
    case "picture":
    case "audio":
      return h(Medium, { type: essence(type), data, name });
    case "events":
      return h(Batch, {
        what: "Event",
        items: eventsOf(text).map(({ name, text }) => ({ id: name || "data", title: text.slice(0, 120), text })),
      });
    case "text":
      return html`<pre class="plain-text" tabindex="0" aria-label=${name}>${text.slice(0, MOST_TEXT)}</pre>`;
    default:
      return html`<p class="faint">This page cannot display it.</p>`;
  }
}

/** A picture, or a sound with its player. @param {{ type: string, data: Uint8Array, name: string }} props */
function Medium({ type, data, name }) {
  const [url, setUrl] = useState("");
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([/** @type {any} */ (data)], { type }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [data, type]);
  if (!url) return null;
  return type.startsWith("audio/")
    ? html`<audio controls src=${url} aria-label=${name}></audio>`
    : html`<img class="raw-picture" src=${url} alt=${name} />`;
}

/**
 * The requests of a batch, or the events of a stream.
 * @param {{ what: "Request" | "Event", items: BatchItem[] }} props
 */
function Batch({ what, items }) {
  const [most, setMost] = useState(MOST_ITEMS);
  return html`<div class="raw-batch">
    <p class="soft">${countOf(items.length, what.toLowerCase())}</p>
    ${items.slice(0, most).map(
      (item, index) => html`<details key=${index} open=${what === "Request" && items.length === 1}>
        <summary><b class="cut">${item.id}</b><span class="faint cut">${item.title}</span></summary>
        ${h(JsonView, { text: item.text, open: 3, label: `${what} ${what === "Request" ? item.id : index + 1}` })}
      </details>`,
    )}
    ${items.length > most ? button("Show more", () => setMost(most + MOST_ITEMS), { kind: "quiet" }) : null}
  </div>`;
}

/** @param {{ parts: FormPart[] }} props */
function Form({ parts }) {
  return html`<dl class="raw-form">
    ${parts.map(
      (part, index) => html`<div key=${index}>
        <dt>
          <b>${part.name}</b>${" "}${part.file}${" "}
          <span class="faint">${describe(part)}</span>
        </dt>
        <dd>${h(Content, { type: part.type, data: part.data, isWhole: true, name: part.name })}</dd>
      </div>`,
    )}
  </dl>`;
}

/** @param {FormPart} part */
function describe(part) {
  return [part.type, sizeWords(part.data.length)].filter(Boolean).join(" · ");
}
